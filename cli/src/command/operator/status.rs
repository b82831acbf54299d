//! `declarest operator status`.

use std::time::Duration;

use clap::Args;
use declarest_core::control::one_line;
use serde_json::Value;

use super::objects::{self, Report};
use crate::cluster::{Cluster, ClusterArguments};
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::{Output, OutputPolicy, is_closed, print};
use crate::settings::parse_interval;

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Show the objects of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Read again at this interval, by default 5s, and print what changed; Ctrl-C ends it
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "5s",
        value_parser = parse_interval)]
    watch: Option<Duration>,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// The columns of the text.
const COLUMNS: [&str; 8] =
    ["NAMESPACE", "NAME", "READY", "REASON", "REVISION", "LAST SYNC", "RESOURCES", "MESSAGE"];

/// The number of digits of a commit in the text.
const DIGITS: usize = 12;

/// Prints what the status of each object reports.
pub fn run(arguments: &StatusArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(OutputPolicy::TextDefault)?;
    block_on(async {
        let cluster = Cluster::connect(&arguments.cluster).await?;
        let namespace = (!arguments.all_namespaces).then(|| cluster.namespace.clone());
        let mut before = None;
        loop {
            match objects::list(&cluster, namespace.as_deref()).await {
                Ok(reports) => show(&reports, namespace.as_deref(), &output, &mut before)?,
                // The API server may be available again later.
                Err(failure) if arguments.watch.is_some() && failure.category().is_transient() => {
                    invocation.messages.attempt(&failure);
                }
                Err(failure) => return Err(failure),
            }
            let Some(interval) = arguments.watch else { return Ok(()) };
            tokio::time::sleep(interval).await;
            if is_closed() {
                return Ok(());
            }
        }
    })
}

/// Prints the reports, unless the output is the same as before.
fn show(
    reports: &[Report],
    namespace: Option<&str>,
    output: &Output,
    before: &mut Option<Vec<u8>>,
) -> Result<(), Failure> {
    let titles: Vec<String> = reports.iter().map(Report::title).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let text = text(reports, namespace, output.is_wide());
    let shown = output.encoded_about(&titles, &reports, Some(&text))?;
    if before.as_ref() != Some(&shown) {
        print(&shown)?;
        *before = Some(shown);
    }
    Ok(())
}

/// Returns a table. The message of an object that is not ready follows its line, and what the operator is doing.
fn text(reports: &[Report], namespace: Option<&str>, wide: bool) -> String {
    if reports.is_empty() {
        return namespace.map_or_else(
            || "No objects in any namespace.".to_owned(),
            |namespace| format!("No objects in namespace \"{namespace}\"."),
        );
    }
    let columns = usize::from(namespace.is_some())..if wide { COLUMNS.len() } else { COLUMNS.len() - 1 };
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(reports.iter().map(cells));
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = columns.clone().map(|at| format!("{:width$}", row[at], width = widths[at]));
        lines.push(cells.collect::<Vec<_>>().join("  ").trim_end().to_owned());
        let Some(report) = number.checked_sub(1).map(|index| &reports[index]) else { continue };
        let is_unusable = !wide && report.ready != "True" && report.suspended != Some(true);
        let message = report.message.as_ref().filter(|_| is_unusable);
        lines.extend(
            message.into_iter().chain(&report.progress).map(|text| format!("    {}", one_line(text))),
        );
    }
    lines.join("\n")
}

fn cells(report: &Report) -> [String; COLUMNS.len()] {
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    let revision = report.revision.as_ref().map(|revision| revision.chars().take(DIGITS).collect());
    [
        report.namespace.clone(),
        report.title(),
        report.ready.clone(),
        or_dash(report.reason.clone()),
        or_dash(revision),
        or_dash(report.last_sync.clone()),
        or_dash(report.resources.as_ref().map(counts)),
        report.message.as_deref().map(|text| one_line(text).into_owned()).unwrap_or_default(),
    ]
}

/// Returns the counts that say most, such as `12 applied, 1 failed`.
fn counts(stats: &Value) -> String {
    let count = |key: &str| stats[key].as_i64().unwrap_or_default();
    let others = ["pruned", "drifted", "failed"].map(|key| (key, count(key)));
    let others = others.iter().filter(|(_, count)| *count > 0).map(|(key, count)| format!(", {count} {key}"));
    format!("{} applied", count("applied")) + &others.collect::<String>()
}
