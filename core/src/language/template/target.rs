//! The resource or collection that a template is rendered for.

use crate::path::{LogicalPath, PathNames};

/// The resource or collection that an operation applies to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The path.
    pub path: &'a LogicalPath,
    /// The logical collection: the parent of [`Target::path`], or that path itself for a list.
    pub collection: &'a LogicalPath,
    /// The position below the root of descendants, if a document with `descendants: true` applies.
    pub descendants: Option<&'a Descendants>,
    /// How the segments of the paths name resources.
    pub names: PathNames,
}

/// The position of a target below a collection whose document has `descendants: true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendants {
    root: LogicalPath,
    path: String,
    collection: String,
}

impl Descendants {
    /// Returns the position of `path` and its logical collection below `root`, the deepest collection that a document
    /// with `descendants: true` matched.
    pub fn new(root: &LogicalPath, path: &LogicalPath, collection: &LogicalPath) -> Self {
        Self { root: root.clone(), path: below(root, path), collection: below(root, collection) }
    }

    /// The collection that the document matched.
    pub fn root(&self) -> &LogicalPath {
        &self.root
    }

    /// The path without the root; empty, or with a leading slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The logical collection without the root; empty, or with a leading slash.
    pub fn collection(&self) -> &str {
        &self.collection
    }
}

fn below(root: &LogicalPath, path: &LogicalPath) -> String {
    if !path.is_within(root) {
        return String::new();
    }
    path.segments().skip(root.segments().count()).flat_map(|segment| ["/", segment]).collect()
}
