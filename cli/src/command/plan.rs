//! `declarest plan`.

use std::path::PathBuf;

use clap::Args;
use declarest_core::repository::{Mode, write_atomically};
use declarest_core::sync::{self, Options, SavedPlan, Stop};

use super::resource::{Targets, outcome, show_plan, subject};
use crate::environment::parse_boolean;
use crate::error::Failure;
use crate::invocation::{Invocation, block_on};
use crate::output::OutputPolicy;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Include all resources below the path; this is the default
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_boolean)]
    recursive: Option<bool>,
    /// Save the plan for "resource apply --plan"
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Exit with 7 if the plan is not empty
    #[arg(long)]
    exit_code: bool,
}

/// Shows the actions of `resource apply`, and optionally saves them.
pub fn run(arguments: &PlanArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Plan)?;
    let target = arguments.path.target(invocation)?;
    let recursive = arguments.recursive.unwrap_or(true);
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let targets = Targets::declared(&workspace, &target.path, recursive)?;
        let targeted = targets.selection.targeted();
        let options = Options { sealable: arguments.out.is_some(), ..Options::default() };
        let session = workspace.session()?;
        let plan = sync::plan(&session, targets.selection, &options, &Stop::default()).await;
        show_plan(&output, &plan, target.path.as_str(), &session, invocation)?;
        outcome::check(&plan.failures, targeted, &invocation.messages)?;
        if let Some(file) = &arguments.out {
            let subject = subject(&session, target.path.as_str(), recursive);
            let content = SavedPlan::encode(&subject, &plan)?;
            let failed = |error| Failure::internal(format!("cannot write {}: {error}", file.display()));
            write_atomically(file, &content, Mode::Private).map_err(failed)?;
        }
        if arguments.exit_code && !plan.is_empty() { Err(Failure::Differs) } else { Ok(()) }
    })
}
