//! `resource diff` and `resource explain`.

use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::{Args, ColorChoice};
use declarest_core::path::LogicalPath;
use declarest_core::payload::PayloadType;
use declarest_core::sync::{self, Action, Options, Plan};

use super::outcome;
use super::reported::Reported;
use super::targets::Targets;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::diff::{ALL, DiffRecord, DiffStyle, Drift, section, summary};
use crate::output::{Output, OutputPolicy, is_closed, lines};
use crate::pager;
use crate::report::ReportArguments;
use crate::settings::parse_interval;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct DiffArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Include all resources below the path
    #[arg(short, long)]
    recursive: bool,
    /// Print only the paths of resources that differ
    #[arg(long)]
    list: bool,
    /// Print secrets instead of placeholders
    #[arg(long)]
    show_secrets: bool,
    /// Exit with 7 if there are differences
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    report: ReportArguments,
    /// When to use colour
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    color: ColorChoice,
    /// Compare again at this interval, by default 30s, and print what changed; Ctrl-C ends it
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, require_equals = true, default_missing_value = "30s",
        value_parser = parse_interval)]
    watch: Option<Duration>,
    /// Number of equal lines around a difference, or all
    #[arg(short = 'U', long, default_value = "3", value_name = "LINES", value_parser = parse_context)]
    unified: usize,
}

fn parse_context(text: &str) -> Result<usize, String> {
    if text == "all" {
        return Ok(ALL);
    }
    text.parse().map_err(|_| "use a number of lines, or all".to_owned())
}

/// Shows the differences between the repository and the server.
pub fn diff(arguments: &DiffArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(OutputPolicy::TextDefault)?;
    let target = arguments.path.target(invocation)?;
    block_on(async {
        let Some(interval) = arguments.watch else {
            let shown = differences(arguments, &target.path, invocation).await?;
            shown.print(&output, invocation)?;
            let reported = shown.write(invocation);
            return shown.check(reported, arguments, invocation);
        };
        let mut before = None;
        loop {
            match differences(arguments, &target.path, invocation).await {
                Ok(shown) if before.as_ref() != Some(&shown.text) => {
                    shown.show(&output)?;
                    before = Some(shown.text.clone());
                    shown.write(invocation)?;
                    shown.report(invocation);
                }
                Ok(_) => {}
                // The server may be available again later.
                Err(failure) if failure.category().is_transient() => {
                    invocation.messages.attempt(&failure);
                }
                Err(failure) => return Err(failure),
            }
            invocation.messages.end_round();
            tokio::time::sleep(interval).await;
            if is_closed() {
                return Ok(());
            }
        }
    })
}

/// The differences of one comparison.
struct Differences<'a> {
    reported: Reported<'a>,
    records: Vec<DiffRecord>,
    text: String,
    drifting: Vec<LogicalPath>,
    list: bool,
    failures: Vec<sync::Failure>,
    targeted: usize,
}

async fn differences<'a>(
    arguments: &'a DiffArguments,
    path: &LogicalPath,
    invocation: &Invocation,
) -> Result<Differences<'a>, Failure> {
    let workspace = Workspace::connected(invocation).await?;
    let targets = Targets::declared(&workspace, path, arguments.recursive)?;
    let (single, targeted) = (targets.single, targets.selection.targeted());
    let formats = formats(&targets);
    let reported = Reported::new(&arguments.report, "diff", &targets.selection);
    let plan = compare(&workspace, targets, arguments.show_secrets, invocation).await?;
    let drifting = plan.actions.iter().filter(|action| drift(action) != Drift::Unchanged);
    let drifting: Vec<LogicalPath> = drifting.map(|action| action.path.clone()).collect();
    let text = if arguments.list {
        lines(names(&drifting))
    } else {
        text(arguments, invocation, &plan, &formats, path.as_str(), (single, targeted))
    };
    let (records, list) = (records(&plan), arguments.list);
    Ok(Differences { reported, records, text, drifting, list, failures: plan.failures, targeted })
}

impl Differences<'_> {
    /// Prints them, with the pager if they may be long.
    fn print(&self, output: &Output, invocation: &Invocation) -> Result<(), Failure> {
        if self.list {
            return self.show(output);
        }
        pager::show(output, &names(&self.drifting), &self.records, &self.text, invocation)
    }

    fn show(&self, output: &Output) -> Result<(), Failure> {
        let (paths, text) = (names(&self.drifting), Some(self.text.as_str()));
        let shown = if self.list {
            output.show_about(&paths, &self.drifting, text)
        } else {
            output.show_about(&paths, &self.records, text)
        };
        Ok(shown?)
    }

    /// Writes the report.
    fn write(&self, invocation: &Invocation) -> Result<(), Failure> {
        let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for record in &self.records {
            lines.entry(record.resource_path()).or_default().push(record.change());
        }
        let differing = self.drifting.iter();
        let differing = differing.map(|path| (path.clone(), lines.remove(path.as_str()).unwrap_or_default()));
        self.reported.differences(differing, &self.failures, invocation)
    }

    /// Prints the failures of a comparison that is followed by others.
    fn report(&self, invocation: &Invocation) {
        if let Err(failure) = outcome::check(&self.failures, self.targeted, &invocation.messages) {
            invocation.messages.attempt(&failure);
        }
    }

    fn check(
        &self,
        reported: Result<(), Failure>,
        arguments: &DiffArguments,
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let compared = outcome::check(&self.failures, self.targeted, &invocation.messages);
        invocation.messages.first([compared, reported])?;
        if arguments.exit_code && !self.drifting.is_empty() { Err(Failure::Differs) } else { Ok(()) }
    }
}

/// The formats of the files of resources, by path.
type Formats = HashMap<LogicalPath, PayloadType>;

fn formats(targets: &Targets) -> Formats {
    let files = targets.selection.resources.iter();
    let declared = files.map(|file| (file.path.clone(), file.descriptor.payload_type));
    let given = targets.selection.given.iter();
    let given = given.filter_map(|at| Some((at.path.clone(), at.descriptor.as_ref()?.payload_type)));
    declared.chain(given).collect()
}

/// Lists the differences of one resource.
pub fn explain(arguments: &PathArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let target = arguments.target(invocation)?;
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let targets = Targets::declared(&workspace, &target.path, false)?;
        if !targets.single {
            return Err(Failure::invalid(format!(
                "{} is a collection; name one resource, or compare all with \"resource diff\"",
                target.path
            )));
        }
        let plan = compare(&workspace, targets, false, invocation).await?;
        let checked = outcome::check(&plan.failures, 1, &invocation.messages);
        if plan.actions.is_empty() {
            return checked;
        }
        // Differences are also shown if the request that removes them cannot be made.
        let records = records(&plan);
        let mut lines: Vec<String> = records.iter().map(DiffRecord::line).collect();
        let replaced = plan.actions.iter().filter(|action| action.replaces());
        lines.extend(replaced.map(|action| format!("replaced by {}", action.requests().join(" and "))));
        let text = output.is_text().then(|| lines.join("\n"));
        output.show_about(&[target.path.as_str()], &records, text.as_deref())?;
        checked
    })
}

fn names(paths: &[LogicalPath]) -> Vec<&str> {
    paths.iter().map(LogicalPath::as_str).collect()
}

async fn compare(
    workspace: &Workspace<'_>,
    targets: Targets,
    show_secrets: bool,
    invocation: &Invocation,
) -> Result<Plan, Failure> {
    let options = Options { keep_compared: true, show_secrets, ..Options::default() };
    let run = outcome::Run::new(invocation, targets.selection.targeted());
    Ok(run.plan(&workspace.session()?, targets.selection, &options).await)
}

fn records(plan: &Plan) -> Vec<DiffRecord> {
    let compared = plan.actions.iter().filter_map(|action| Some((action, action.compared.as_ref()?)));
    let records = compared.flat_map(|(action, compared)| {
        compared.differences.iter().map(|difference| DiffRecord::new(action.path.as_str(), difference))
    });
    records.collect()
}

fn drift(action: &Action) -> Drift {
    action.compared.as_ref().map_or(Drift::Unchanged, |compared| Drift::of(compared))
}

fn text(
    arguments: &DiffArguments,
    invocation: &Invocation,
    plan: &Plan,
    formats: &Formats,
    path: &str,
    (single, targeted): (bool, usize),
) -> String {
    let style = DiffStyle {
        colour: match arguments.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => invocation.settings.colour && std::io::stdout().is_terminal(),
        },
        context: arguments.unified,
    };
    let failed = plan.failures.len();
    let drifts: Vec<Drift> = plan.actions.iter().map(drift).collect();
    if drifts.iter().all(|drift| *drift == Drift::Unchanged) {
        return match (&drifts[..], failed) {
            // All comparisons failed; the failures are printed separately.
            ([], _) => String::new(),
            (_, 1..) if targeted > 1 => summary(&drifts, failed),
            _ if single => format!("No differences for {path}."),
            _ => format!("No differences under {path}."),
        };
    }
    let differing = plan.actions.iter().filter_map(|action| {
        let compared = action.compared.as_ref().filter(|compared| !compared.differences.is_empty())?;
        let format = formats.get(&action.path).copied().unwrap_or(PayloadType::Json);
        Some(section(action.path.as_str(), compared, format, style))
    });
    let mut sections: Vec<String> = differing.collect();
    if targeted > 1 {
        sections.push(summary(&drifts, failed));
    }
    sections.join("\n")
}
