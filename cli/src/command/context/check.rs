//! `declarest context check`.

use std::path::Path;

use declarest_core::error::Category;
use declarest_core::repository::DirTree;
use serde::Serialize;

use crate::context::{MetadataSource, RepositoryPlace, ResolvedContext};
use crate::error::Failure;
use crate::invocation::{Invocation, block_on};
use crate::output::OutputPolicy;

/// How a component fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Fail,
    Skip,
}

/// One row of the report.
#[derive(Debug, Serialize)]
struct Row {
    component: &'static str,
    status: Status,
    details: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report<'c> {
    context: &'c str,
    passed: bool,
    summary: Summary,
    components: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Summary {
    ok: usize,
    warn: usize,
    fail: usize,
    skip: usize,
}

/// Checks all components of a context and reports them; a failing one is a failure of the command.
pub fn check(name: Option<&str>, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let context = invocation.context_named(name)?;
    let components = vec![
        row("context", Ok((Status::Ok, "settings are valid".to_owned()))),
        row("repository", repository(context)),
        row("metadata", metadata(context)),
        row("managedServer", server(context)),
        row("secretStore", Ok(secret_store(context))),
    ];
    let count = |status| components.iter().filter(|row| row.status == status).count();
    let summary = Summary {
        ok: count(Status::Ok),
        warn: count(Status::Warn),
        fail: count(Status::Fail),
        skip: count(Status::Skip),
    };
    let report = Report { context: &context.name, passed: summary.fail == 0, summary, components };
    output.show(&report, Some(&text(&report)))?;
    if report.passed {
        return Ok(());
    }
    let failed = report.components.iter().filter(|row| row.status == Status::Fail);
    let failed: Vec<_> = failed.map(|row| row.component).collect();
    Err(Failure::invalid(format!("context \"{}\" failed the check of {}", context.name, failed.join(", "))))
}

type Outcome = Result<(Status, String), Failure>;

/// A server that answers is there, whatever it answers: not to know the address of the check, or not to
/// like the request, is worth a warning.
fn row(component: &'static str, outcome: Outcome) -> Row {
    match outcome {
        Ok((status, details)) => Row { component, status, details, error: None },
        Err(failure) => {
            let message = failure.message().to_owned();
            Row { component, status: Status::Fail, details: message.clone(), error: Some(message) }
        }
    }
}

fn repository(context: &ResolvedContext) -> Outcome {
    if context.context.repository.is_none() {
        return Ok((Status::Skip, "not configured".to_owned()));
    }
    match context.repository()? {
        RepositoryPlace::Filesystem { base_dir } => {
            DirTree::open(&base_dir)?;
            Ok((Status::Ok, "filesystem repository is accessible".to_owned()))
        }
        RepositoryPlace::Git { base_dir, auto_init, .. } => {
            if auto_init && !base_dir.join(".git").exists() {
                return Ok((
                    Status::Warn,
                    "git repository is not there yet; the first use makes it".to_owned(),
                ));
            }
            DirTree::open(&base_dir)?;
            if !base_dir.join(".git").exists() {
                let place = base_dir.display();
                return Err(Failure::invalid(format!(
                    "{place} is not a git repository; run \"git init\" there"
                )));
            }
            Ok((Status::Ok, "git repository is accessible".to_owned()))
        }
    }
}

fn metadata(context: &ResolvedContext) -> Outcome {
    let found = |what: &str, place: &Path, there: bool| {
        if there {
            return Ok((Status::Ok, format!("{what} is accessible")));
        }
        Err(Failure::invalid(format!("{what} {} does not exist", place.display())))
    };
    let base_dir = context.context.repository.as_ref().and_then(|repository| repository.base_dir());
    match context.metadata() {
        MetadataSource::None => Ok((Status::Skip, "not configured".to_owned())),
        MetadataSource::Directory(place) if base_dir.is_some_and(|base| Path::new(&base.0) == place) => {
            Ok((Status::Ok, "metadata is in the repository".to_owned()))
        }
        MetadataSource::Directory(place) => found("metadata directory", &place, place.is_dir()),
        MetadataSource::BundleFile(place) => found("metadata bundle", &place, place.is_file()),
        MetadataSource::Bundle(bundle) => {
            Ok((Status::Skip, format!("bundle {bundle} is fetched when it is needed")))
        }
    }
}

fn server(context: &ResolvedContext) -> Outcome {
    if context.context.managed_server.is_none() {
        return Ok((Status::Skip, "not configured".to_owned()));
    }
    let client = context.server()?;
    match block_on(async { Ok(client.health().await?) }) {
        Ok(()) => Ok((Status::Ok, "managed server answers".to_owned())),
        Err(failure)
            if matches!(
                failure.category(),
                Category::NotFound | Category::Conflict | Category::Validation
            ) =>
        {
            Ok((Status::Warn, format!("managed server answers, but: {}", failure.message())))
        }
        Err(failure) => Err(failure),
    }
}

fn secret_store(context: &ResolvedContext) -> (Status, String) {
    match context.secret_store() {
        Ok(_) => (Status::Ok, "settings are valid".to_owned()),
        Err(_) => (Status::Skip, "not configured".to_owned()),
    }
}

fn text(report: &Report<'_>) -> String {
    let line = "-".repeat(80);
    let rows = report.components.iter().map(|row| {
        let label = match row.status {
            Status::Ok => "OK",
            Status::Warn => "WARN",
            Status::Fail => "FAIL",
            Status::Skip => "SKIP",
        };
        format!("[{label}] {:<14} {}", row.component, row.details)
    });
    let Summary { ok, warn, fail, skip } = report.summary;
    let result = if report.passed { "PASS" } else { "FAIL" };
    format!(
        "Config check for context \"{}\"\n{line}\n{}\n{line}\nResult: {result} (ok={ok} warn={warn} fail={fail} \
         skip={skip})",
        report.context,
        rows.collect::<Vec<_>>().join("\n"),
    )
}
