//! `declarest repository check`.

use declarest_core::error::with_causes;
use declarest_core::metadata::document::Document;
use declarest_core::path::LogicalPath;
use declarest_core::payload::PayloadType;
use declarest_core::repository::unused_files;

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::repository::{Contact, Repository};

/// `repository check`: prints nothing if there is no fault. Faults of single resources are warnings, because the
/// others can be used.
pub fn check(invocation: &Invocation) -> Result<(), Failure> {
    let store = Repository::open(invocation.context()?, Contact::None)?.store()?;
    for (_, error) in store.list(&LogicalPath::root(), true)?.broken {
        invocation.messages.warn(&with_causes(&error));
    }
    let includes = |payload_type: PayloadType, content: &[u8]| {
        Document::decode(payload_type, content).ok().map(|document| document.defaults_files())
    };
    for unused in unused_files(store.tree(), &includes)? {
        invocation.messages.warn(&unused.to_string());
    }
    Ok(())
}
