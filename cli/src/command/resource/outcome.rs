//! Reports plans, and the failures of a command's resources.

use std::io::IsTerminal as _;

use declarest_core::sync::{Failure as Failed, Plan, Session};

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::plan::{PlanView, markdown, text};
use crate::output::{Messages, Output};

/// Prints the plan for `path`.
pub fn show_plan(
    output: &Output,
    plan: &Plan,
    path: &str,
    session: &Session,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let shown = if output.is_markdown() {
        markdown(plan, path, &session.client.address())
    } else {
        text(plan, invocation.settings.colour && std::io::stdout().is_terminal())
    };
    Ok(output.show(&PlanView::new(plan), Some(&shown))?)
}

/// Returns a failure if some of the `targeted` resources failed. A single failure is returned as it is. Several are
/// printed, one per line, and the command fails with the category of the first one.
pub fn check(failures: &[Failed], targeted: usize, messages: &Messages) -> Result<(), Failure> {
    let Some(first) = failures.first() else { return Ok(()) };
    let category = first.reason.category();
    if targeted <= 1 && failures.len() == 1 {
        return Err(Failure::Failed { category, message: shown(first) });
    }
    for failure in failures {
        messages.problem(&shown(failure));
    }
    let message = format!("{} of {targeted} resources failed", failures.len());
    Err(Failure::Failed { category, message })
}

/// Returns the message, with the path of the resource if the message does not contain it.
fn shown(failure: &Failed) -> String {
    if failure.message.contains(failure.path.as_str()) {
        return failure.message.clone();
    }
    format!("{}: {}", failure.path, failure.message)
}
