//! Finds secrets that are in payload files already.

use std::collections::BTreeSet;

use super::AuthoringError;
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::repository::{RepositoryError, Tree, read_payload, resources};
use crate::secrets::detect;

/// A resource whose file holds attributes in plain text that look like secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The resource.
    pub path: LogicalPath,
    /// Its attributes, sorted.
    pub attributes: BTreeSet<Pointer>,
}

/// Returns the resources at `scope` and below with attributes that look like secrets, sorted by path. `only`
/// restricts the search to one attribute; it is [`AuthoringError::NeverDetected`] if no resource has it. Blocks.
pub fn detect_stored(
    tree: &dyn Tree,
    scope: &LogicalPath,
    only: Option<&Pointer>,
) -> Result<Vec<Detected>, AuthoringError> {
    let mut found = Vec::new();
    for file in resources(tree, scope, true)?.whole()? {
        let payload = match read_payload(tree, &file) {
            // The file was removed after it was listed.
            Err(RepositoryError::PayloadMissing { .. }) => continue,
            read => read?,
        };
        let attributes: BTreeSet<Pointer> =
            detect(&payload).into_iter().filter(|at| only.is_none_or(|only| only == at)).collect();
        if !attributes.is_empty() {
            found.push(Detected { path: file.path, attributes });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    match only {
        Some(only) if found.is_empty() => Err(AuthoringError::NeverDetected(only.clone())),
        _ => Ok(found),
    }
}
