//! `declarest repository check`.

use declarest_core::error::with_causes;
use declarest_core::path::LogicalPath;

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::repository::{Contact, Repository, unused};

/// `repository check`: prints nothing if there is no fault. Faults of single resources are warnings, because the
/// others can be used.
pub fn check(invocation: &Invocation) -> Result<(), Failure> {
    let store = Repository::open(invocation.context()?, Contact::None)?.store()?;
    for (_, error) in store.list(&LogicalPath::root(), true)?.broken {
        invocation.messages.warn(&with_causes(&error));
    }
    for file in unused(store.tree())? {
        invocation.messages.warn(&file.to_string());
    }
    Ok(())
}
