//! `declarest validate`.

mod check;
mod finding;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use declarest_core::metadata::Metadata;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{DirTree, RepositoryError, Tree};

use crate::error::Failure;
use crate::interrupt::block_on_local;
use crate::invocation::Invocation;
use crate::output::{OutputPolicy, print};
use crate::report::{self as reports, ReportArguments};
use crate::target::PathArguments;
use crate::workspace::Workspace;
use check::check;
use report::{Report, rules};

#[derive(Debug, Args)]
pub struct ValidateArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Validate this directory instead of the repository of the context; needs no context
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArguments,
    /// Accepted, because a validation is always recursive
    #[arg(short, long, hide = true)]
    recursive: bool,
}

/// Validates the files of the repository without requests.
pub fn run(arguments: &ValidateArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let scope = arguments.path.optional_target()?.map_or_else(LogicalPath::root, |target| target.path);
    let (tree, metadata) = sources(arguments, invocation)?;
    if !scope.is_root() && tree.entries(scope.relative())?.is_none() {
        return Err(RepositoryError::ResourceMissing(scope).into());
    }
    let checked = check(tree.as_ref(), &metadata, &scope)?;
    let report = Report::new(&checked);
    // A relative directory is below the directory of the workflow.
    let root = arguments.dir.as_deref().filter(|dir| dir.is_relative()).and_then(Path::to_str).unwrap_or("");
    let (cases, rules) = (report.cases(), rules());
    let reported = reports::Report { title: "validate", cases: &cases, rules: &rules, root };
    let written = arguments.report.write(&reported);
    if arguments.report.annotates() {
        print(reported.annotations().as_bytes())?;
    } else {
        output.show(&report, Some(&report.text()))?;
    }
    let valid = match report.errors {
        0 => Ok(()),
        errors => Err(Failure::invalid(format!("validation failed; errors: {errors}"))),
    };
    invocation.messages.first([valid, written])
}

/// Returns the files and the metadata to validate.
fn sources(
    arguments: &ValidateArguments,
    invocation: &Invocation,
) -> Result<(Arc<dyn Tree>, Arc<Metadata>), Failure> {
    if let Some(directory) = &arguments.dir {
        let tree: Arc<dyn Tree> = Arc::new(DirTree::open(directory)?);
        return Ok((Arc::clone(&tree), Arc::new(Metadata::new(tree))));
    }
    let workspace = block_on_local(Workspace::local(invocation))?;
    // A context without a repository is an error.
    workspace.store()?;
    Ok((workspace.tree, workspace.metadata))
}
