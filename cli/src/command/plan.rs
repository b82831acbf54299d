//! `declarest plan`.

use std::path::PathBuf;

use clap::Args;
use declarest_core::repository::{Mode, write_atomically};
use declarest_core::sync::{self, Action, Options, Plan, SavedPlan, Step, Stop};

use super::resource::{Targets, outcome, subject};
use crate::error::Failure;
use crate::invocation::{Invocation, block_on};
use crate::output::OutputPolicy;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Include all resources below the path
    #[arg(short, long)]
    recursive: bool,
    /// Save the plan for "resource apply --plan"
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Exit with 7 if the plan is not empty
    #[arg(long)]
    exit_code: bool,
}

/// Shows the actions of `resource apply`, and optionally saves them.
pub fn run(arguments: &PlanArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let target = arguments.path.target(invocation)?;
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let targets = Targets::declared(&workspace, &target.path, arguments.recursive)?;
        let targeted = targets.selection.targeted();
        let options = Options { sealable: arguments.out.is_some(), ..Options::default() };
        let session = workspace.session()?;
        let plan = sync::plan(&session, targets.selection, &options, &Stop::default()).await;
        output.show(&plan, Some(&text(&plan)))?;
        outcome::check(&plan.failures, targeted, &invocation.messages)?;
        if let Some(file) = &arguments.out {
            let subject = subject(&session, target.path.as_str(), arguments.recursive);
            let content = SavedPlan::encode(&subject, &plan)?;
            let failed = |error| Failure::internal(format!("cannot write {}: {error}", file.display()));
            write_atomically(file, &content, Mode::Private).map_err(failed)?;
        }
        if arguments.exit_code && !plan.is_empty() { Err(Failure::Differs) } else { Ok(()) }
    })
}

fn text(plan: &Plan) -> String {
    let lines = plan.actions.iter().filter_map(line);
    lines.chain([plan.summary().to_string()]).collect::<Vec<_>>().join("\n")
}

/// Returns the line of an action, such as `~ /shops/rio: /tier, /tags/1`.
fn line(action: &Action) -> Option<String> {
    let sign = match action.step {
        Step::Create => '+',
        Step::Update => '~',
        Step::Delete => '-',
        Step::Skip => return None,
    };
    let places: Vec<&str> = action.differences.iter().map(|difference| difference.path.as_str()).collect();
    // The pointer "" is a difference of the whole resource.
    let places = places.join(", ");
    Some(if places.is_empty() {
        format!("{sign} {}", action.path)
    } else {
        format!("{sign} {}: {places}", action.path)
    })
}
