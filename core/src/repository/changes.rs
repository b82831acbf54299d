//! What a set of changed files affects.

use crate::path::LogicalPath;

/// Resources to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyTarget {
    /// The resource, or with `recursive` the root of a subtree.
    pub path: LogicalPath,
    /// Whether everything below is meant, too.
    pub recursive: bool,
}
