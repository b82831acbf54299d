//! What became of the resources of a command.

use declarest_core::sync::Failure as Failed;

use crate::error::Failure;
use crate::output::Messages;

/// Tells which of `targeted` resources failed. One failure alone is the failure of the command; of several each
/// gets its line, and the command fails as the first did.
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

/// The message, and the resource if the message does not name it.
fn shown(failure: &Failed) -> String {
    if failure.message.contains(failure.path.as_str()) {
        return failure.message.clone();
    }
    format!("{}: {}", failure.path, failure.message)
}
