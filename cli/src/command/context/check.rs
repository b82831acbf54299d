//! `declarest context check`.

use std::path::Path;

use declarest_core::bundle::{Manifest, Reference};
use declarest_core::error::Category;
use declarest_core::repository::{DirTree, SyncState, WorktreeStatus};
use serde::Serialize;

use crate::context::{MetadataSource, RepositoryPlace, ResolvedContext};
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::{Messages, OutputPolicy, counted};
use crate::report::{Case, Outcome, ReportArguments};
use crate::repository::{Contact, deadline, worktree};
use crate::workspace::open_bundle;

/// The status of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "UPPERCASE", const_into_str)]
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

impl Row {
    fn redacted(self, messages: &Messages) -> Self {
        let error = self.error.map(|error| messages.redacted(&error));
        Self { details: messages.redacted(&self.details), error, ..self }
    }

    /// Returns the row as a case of a report.
    fn case(&self) -> Case {
        let outcome = match self.status {
            Status::Ok => Outcome::Passed,
            Status::Warn => Outcome::Warning,
            Status::Fail => Outcome::Error,
            Status::Skip => Outcome::Skipped,
        };
        let message = self.error.as_ref().unwrap_or(&self.details);
        Case::new(self.component, COMPONENT, outcome, format!("{}: {message}", self.component))
    }
}

/// The rule of reports.
const COMPONENT: &str = "component";

#[derive(Debug, Serialize)]
struct Report<'c> {
    context: &'c str,
    passed: bool,
    summary: Summary,
    components: [Row; 5],
}

#[derive(Debug, Serialize)]
struct Summary {
    ok: usize,
    warn: usize,
    fail: usize,
    skip: usize,
}

/// Checks all components of a context and prints the report. The command fails if a component fails.
pub fn check(name: Option<&str>, reported: &ReportArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let context = invocation.context_named(name)?;
    let components = [
        row("context", Ok((Status::Ok, "settings are valid".to_owned()))),
        row("repository", repository(context)),
        row("metadata", metadata(context, invocation)),
        row("managedServer", server(context, invocation)),
        row("secretStore", secret_store(context)),
    ];
    let components = components.map(|row| row.redacted(&invocation.messages));
    let count = |status| components.iter().filter(|row| row.status == status).count();
    let summary = Summary {
        ok: count(Status::Ok),
        warn: count(Status::Warn),
        fail: count(Status::Fail),
        skip: count(Status::Skip),
    };
    let cases: Vec<Case> = components.iter().map(Row::case).collect();
    let report = Report { context: &context.name, passed: summary.fail == 0, summary, components };
    output.show(&report, Some(&text(&report)))?;
    reported.publish("context check", &cases, &[(COMPONENT, "see \"declarest context edit\"")])?;
    if report.passed {
        return Ok(());
    }
    let failed = report.components.iter().filter(|row| row.status == Status::Fail);
    let failed: Vec<_> = failed.map(|row| row.component).collect();
    Err(Failure::invalid(format!("context \"{}\" failed the check of {}", context.name, failed.join(", "))))
}

type Standing = Result<(Status, String), Failure>;

/// Returns the row of a component.
fn row(component: &'static str, outcome: Standing) -> Row {
    match outcome {
        Ok((status, details)) => Row { component, status, details, error: None },
        Err(failure) => {
            let message = failure.message().to_owned();
            Row { component, status: Status::Fail, details: "check failed".to_owned(), error: Some(message) }
        }
    }
}

fn repository(context: &ResolvedContext) -> Standing {
    if context.context.repository.is_none() {
        return Ok((Status::Skip, "not configured".to_owned()));
    }
    match context.repository()? {
        RepositoryPlace::Filesystem { base_dir } => {
            DirTree::open(&base_dir)?;
            Ok((Status::Ok, "filesystem repository is accessible".to_owned()))
        }
        RepositoryPlace::Git { base_dir, auto_init: true, .. } if !base_dir.join(".git").exists() => {
            Ok((Status::Warn, "git repository does not exist yet; it is created on first use".to_owned()))
        }
        RepositoryPlace::Git { .. } => {
            let worktree = worktree(context, Contact::Remote, "the check")?;
            Ok(standing(&worktree.status(deadline())?))
        }
    }
}

/// Returns the status of a checkout. A diverged one can be used, but a user must decide how to merge it.
fn standing(status: &WorktreeStatus) -> (Status, String) {
    let (ahead, behind) = (counted(status.ahead, "commit"), counted(status.behind, "commit"));
    let (state, relation) = match status.state {
        SyncState::NoRemote => (Status::Ok, "accessible, without a remote".to_owned()),
        SyncState::UpToDate => (Status::Ok, "up to date with its remote".to_owned()),
        SyncState::Ahead => (Status::Ok, format!("{ahead} ahead of its remote")),
        SyncState::Behind => (Status::Ok, format!("{behind} behind its remote")),
        SyncState::Diverged => {
            (Status::Warn, format!("diverged from its remote: {ahead} ahead, {behind} behind"))
        }
    };
    let uncommitted = if status.has_uncommitted() { ", with uncommitted changes" } else { "" };
    (state, format!("git repository is {relation}{uncommitted}"))
}

fn metadata(context: &ResolvedContext, invocation: &Invocation) -> Standing {
    let base_dir = context.context.repository.as_ref().and_then(|repository| repository.base_dir());
    match context.metadata() {
        MetadataSource::None => Ok((Status::Skip, "not configured".to_owned())),
        MetadataSource::Directory(place) if base_dir.is_some_and(|base| Path::new(&base.0) == place) => {
            Ok((Status::Ok, "metadata is in the repository".to_owned()))
        }
        MetadataSource::Directory(place) if place.is_dir() => {
            Ok((Status::Ok, "metadata directory is accessible".to_owned()))
        }
        MetadataSource::Directory(place) => {
            Err(Failure::invalid(format!("metadata directory {} does not exist", place.display())))
        }
        MetadataSource::BundleFile(file) => {
            bundle(context, invocation, &Reference::parse_file(&file.to_string_lossy())?)
        }
        MetadataSource::Bundle(reference) => bundle(context, invocation, &Reference::parse(&reference)?),
    }
}

fn bundle(context: &ResolvedContext, invocation: &Invocation, reference: &Reference) -> Standing {
    let bundle = block_on(open_bundle(invocation, context, reference))?;
    if bundle.warnings.is_empty() {
        let Manifest { name, version, .. } = &bundle.manifest;
        return Ok((Status::Ok, format!("metadata bundle {name} {version} is available")));
    }
    let warnings: Vec<_> = bundle.warnings.iter().map(ToString::to_string).collect();
    Ok((Status::Warn, warnings.join("; ")))
}

fn server(context: &ResolvedContext, invocation: &Invocation) -> Standing {
    if context.context.managed_server.is_none() {
        return Ok((Status::Skip, "not configured".to_owned()));
    }
    let client = invocation.client(context, None)?;
    match block_on(async { Ok(client.health().await?) }) {
        Ok(()) => Ok((Status::Ok, "managed server responds".to_owned())),
        Err(failure)
            if matches!(
                failure.category(),
                Category::NotFound | Category::Conflict | Category::Validation
            ) =>
        {
            Ok((Status::Warn, format!("managed server responds, but: {}", failure.message())))
        }
        Err(failure) => Err(failure),
    }
}

/// Checks the store by reading it. Changes nothing in it.
fn secret_store(context: &ResolvedContext) -> Standing {
    let Some(settings) = &context.context.secret_store else {
        return Ok((Status::Skip, "not configured".to_owned()));
    };
    let store = context.open_secret_store()?;
    let Some(file) = &settings.file else {
        return block_on(async {
            // For Vault, this checks login, mount and version, and creates nothing.
            store.init().await?;
            Ok((Status::Ok, "Vault accepted the login and has the engine".to_owned()))
        });
    };
    if !Path::new(&file.path.0).exists() {
        return Ok((Status::Warn, "secret file does not exist yet; it is created on first use".to_owned()));
    }
    block_on(async {
        store.list().await?;
        Ok((Status::Ok, "secret file can be decrypted".to_owned()))
    })
}

fn text(report: &Report<'_>) -> String {
    let line = "-".repeat(80);
    let rows = report.components.iter().map(|row| {
        let error = row.error.as_ref().map(|error| format!("\n  error: {error}")).unwrap_or_default();
        format!("[{}] {:<14} {}{error}", row.status.into_str(), row.component, row.details)
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
