//! Errors of loading a contract.

use std::sync::Arc;

use crate::bundle::BundleError;
use crate::error::{Category, categories};

/// An error of finding or fetching a contract document.
///
/// Messages contain URLs without userinfo and query, and never contain credentials.
#[derive(Debug, thiserror::Error)]
pub enum ContractError {
    /// A text is not a reference to an image.
    #[error("contract image: {0}")]
    Reference(String),
    /// No tag of a repository satisfies the constraint.
    #[error("NoMatchingTag: no tag of {repository} is a version that satisfies \"{constraint}\"")]
    NoMatchingTag {
        /// The repository.
        repository: String,
        /// The constraint.
        constraint: String,
    },
    /// A bundle has no document.
    #[error("the bundle {0} has no pacto.yaml at its root")]
    NoDocument(String),
    /// A local file cannot be read.
    #[error("cannot read {path}: {source}")]
    Local {
        /// The file.
        path: String,
        /// The cause.
        source: Arc<std::io::Error>,
    },
    /// A document or bundle cannot be downloaded or unpacked.
    #[error(transparent)]
    Package(#[from] BundleError),
    /// A failure of this machine.
    #[error("cannot unpack a bundle: {0}")]
    Internal(String),
}

categories!(ContractError {
    {
        Self::Local { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Category::NotFound,
    }
    .0: Package;
    Validation: Reference, NoDocument;
    NotFound: NoMatchingTag;
    Internal: Local, Internal;
});
