//! `declarest plan`.

use std::path::PathBuf;

use clap::Args;
use declarest_core::repository::{Mode, write_through};
use declarest_core::sync::{Options, SavedPlan, Subject};

use super::resource::{Reported, Targets, outcome, pruning, show_plan};
use crate::environment::parse_boolean;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::report::ReportArguments;
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
    /// Delete resources that a commit once declared and HEAD no longer declares
    #[arg(long)]
    prune: bool,
    /// Delete only resources that a commit after this one removed
    #[arg(long, value_name = "REVISION", requires = "prune")]
    prune_base: Option<String>,
    /// Save the plan for "resource apply --plan"
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Exit with 7 if the plan is not empty
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    report: ReportArguments,
}

/// Shows the actions of `resource apply`, and optionally saves them.
pub fn run(arguments: &PlanArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(OutputPolicy::Plan)?;
    let target = arguments.path.target(invocation)?;
    let recursive = arguments.recursive.unwrap_or(true);
    if arguments.prune && !recursive {
        return Err(Failure::invalid("--prune needs --recursive"));
    }
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let session = workspace.session()?;
        let subject = Subject {
            server: session.client.address(),
            path: target.path.to_string(),
            recursive,
            prune: arguments.prune,
            prune_base: arguments.prune_base.clone(),
        };
        let targets = Targets::planned(&workspace, &subject)?;
        let targeted = targets.selection.size();
        let options = Options { sealable: arguments.out.is_some(), ..pruning() };
        let reported = Reported::new(&arguments.report, "plan", &targets.selection);
        let run = outcome::Run::new(invocation, targeted);
        let plan = run.plan(&session, targets.selection, &options).await;
        show_plan(&output, &plan, target.path.as_str(), &session, invocation)?;
        let reported = reported.plan(&plan, invocation);
        let save = |file: &PathBuf| {
            let content = SavedPlan::encode(&subject, &plan)?;
            write_through(file, &content, Mode::Private).map_err(Failure::io("write", file))
        };
        let checked = outcome::check(&plan.failures, targeted, &invocation.messages);
        let saved = checked.and_then(|()| arguments.out.as_ref().map_or(Ok(()), save));
        invocation.messages.first([saved, reported])?;
        if arguments.exit_code && !plan.is_empty() { Err(Failure::Differs) } else { Ok(()) }
    })
}
