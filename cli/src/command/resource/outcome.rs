//! Reports the failures of a command's resources.

use declarest_core::sync::Failure as Failed;

use crate::error::Failure;
use crate::output::Messages;

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
