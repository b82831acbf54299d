//! Metadata: who a resource is, which HTTP request each operation becomes, what counts as equal.
//!
//! [`Metadata`] answers for a revision; it compiles [`Rules`] once per set of applicable documents and
//! shares them between all resources they govern. Evaluating rules for one resource parses nothing.
//!
//! Where no document exists the conventions hold: a collection answers `GET` with its members and takes
//! new ones by `POST`; a member lives at `<collection>/<id>` and takes `GET`, `PUT` and `DELETE`; its id
//! is the payload's `id`, else the last segment of its path.

pub mod bundle;
mod check;
#[cfg(test)]
mod check_tests;
mod compare;
pub mod document;
pub mod identity;
mod list;
mod resolve;
mod rules;
pub mod template;
pub mod transform;

use crate::error::{Categorized, Category};
use crate::path::{LogicalPath, PathError};
use crate::repository::RepositoryError;

pub use compare::{Change, Difference, differences};
pub use identity::Identity;
pub use list::{Entry, Listing};
pub use resolve::Metadata;
pub use rules::{Operation, Rendered, Rules, Scope};

/// Why rules could not be found or evaluated for a resource.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// Looking for documents failed.
    #[error("cannot look up the metadata of {path}")]
    Lookup {
        /// The resource.
        path: LogicalPath,
        /// What failed.
        #[source]
        source: RepositoryError,
    },
    /// A document governs the resource, and this version evaluates the conventions only. Ignoring the
    /// document could send the resource to a wrong address.
    #[error("{path} is governed by {file}: metadata documents are not supported by this version yet")]
    DocumentUnsupported {
        /// The resource.
        path: LogicalPath,
        /// The document's file, relative to the repository root.
        file: String,
    },
    /// The payload's id cannot be a path segment.
    #[error("{path}: the payload's /id is no usable identity: {source}")]
    Identity {
        /// The resource.
        path: LogicalPath,
        /// Why not.
        #[source]
        source: PathError,
    },
    /// A list answer that is neither an array nor an object with one array.
    #[error("list of {collection}: {reason}")]
    ListShape {
        /// The collection.
        collection: LogicalPath,
        /// What was found instead.
        reason: String,
    },
    /// A list entry that nothing identifies.
    #[error("list of {collection}: entry {index} has none of /id, {well_known}", well_known = list::WELL_KNOWN.join(", "))]
    AnonymousEntry {
        /// The collection.
        collection: LogicalPath,
        /// Its place in the list, from 0.
        index: usize,
    },
    /// Several list entries answer to one name.
    #[error("{path} is ambiguous: {count} entries of the list of its collection match \"{wanted}\"")]
    Ambiguous {
        /// The resource.
        path: LogicalPath,
        /// The segment looked for.
        wanted: String,
        /// How many matched.
        count: usize,
    },
}

impl Categorized for MetadataError {
    fn category(&self) -> Category {
        match self {
            Self::Lookup { source, .. } => source.category(),
            Self::DocumentUnsupported { .. }
            | Self::Identity { .. }
            | Self::ListShape { .. }
            | Self::AnonymousEntry { .. } => Category::Validation,
            Self::Ambiguous { .. } => Category::Conflict,
        }
    }
}
