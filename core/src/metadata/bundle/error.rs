//! Why a bundle could not be opened.

use std::path::Path;
use std::sync::Arc;

use http::StatusCode;

use crate::error::{Categorized, Category};
use crate::metadata::document::DocumentError;
use crate::repository::RepositoryError;

/// Why a metadata bundle could not be found, fetched, unpacked or used.
///
/// URLs are shown without userinfo and query. Credentials never appear.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A text is no bundle reference.
    #[error("bundle reference \"{reference}\": {reason}")]
    Reference {
        /// The text; without userinfo and query if it is a URL.
        reference: String,
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// A local bundle does not exist.
    #[error("bundle {place} does not exist{hint}")]
    Missing {
        /// Where it was looked for.
        place: String,
        /// What may have been meant; empty, or begins with `;`.
        hint: &'static str,
    },
    /// A server answered with an error.
    #[error("GET {url} answered with status {status}{}", advice(*.status))]
    Status {
        /// What was asked for.
        url: String,
        /// The answer.
        status: StatusCode,
    },
    /// A server could not be reached, or its answer broke off.
    #[error("GET {url}: {reason}")]
    Request {
        /// What was asked for.
        url: String,
        /// What happened.
        reason: String,
    },
    /// A download has other content than its digest says.
    #[error("{url} has the digest {actual}, expected {expected}")]
    Digest {
        /// What was downloaded.
        url: String,
        /// The digest that was announced.
        expected: String,
        /// The digest of what came.
        actual: String,
    },
    /// A registry holds something else than a bundle, or speaks another protocol.
    #[error("bundle {reference}: {reason}")]
    Registry {
        /// The reference.
        reference: String,
        /// What is wrong.
        reason: String,
    },
    /// The file with registry credentials cannot be used.
    #[error("registry credentials in {file}: {reason}")]
    Credentials {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// The archive is broken or holds what a bundle must not hold.
    #[error("archive of bundle {bundle}: {reason}")]
    Archive {
        /// The reference.
        bundle: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no `bundle.yaml` at the root.
    #[error("bundle {bundle} has no bundle.yaml at its root")]
    NoManifest {
        /// The reference.
        bundle: String,
    },
    /// The manifest is not valid.
    #[error("bundle {bundle}: bundle.yaml: {source}")]
    Manifest {
        /// The reference.
        bundle: String,
        /// What is wrong and where.
        source: Box<DocumentError>,
    },
    /// What the manifest says does not hold: a missing file, another name than was asked for.
    #[error("bundle {bundle}: {reason}")]
    Content {
        /// The reference.
        bundle: String,
        /// What is wrong.
        reason: String,
    },
    /// The bundle is made for other versions of `DeclaREST`.
    #[error("bundle {bundle} needs DeclaREST {constraint}, this is compatible with {version}")]
    Incompatible {
        /// The reference.
        bundle: String,
        /// The versions that it is made for.
        constraint: String,
        /// The version that was compared.
        version: String,
    },
    /// A metadata document of the bundle is not valid.
    #[error("bundle {bundle}: \"{file}\": {source}")]
    Document {
        /// The reference.
        bundle: String,
        /// The file below metadataRoot.
        file: String,
        /// What is wrong.
        source: Box<DocumentError>,
    },
    /// The files of the bundle cannot be read.
    #[error("bundle {bundle}: {source}")]
    Files {
        /// The reference.
        bundle: String,
        /// What failed.
        source: RepositoryError,
    },
    /// A file of the cache or a local archive cannot be read or written.
    #[error("could not {action} {file}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        file: String,
        /// What failed.
        source: Arc<std::io::Error>,
    },
    /// The HTTP client could not be prepared.
    #[error("the HTTP client for bundles cannot be prepared: {reason}")]
    Client {
        /// What failed.
        reason: String,
    },
}

impl BundleError {
    /// A file failure while doing `action` to `file`.
    pub(super) fn io(action: &'static str, file: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let file = file.display().to_string();
        move |source| Self::Io { action, file, source: Arc::new(source) }
    }
}

impl Categorized for BundleError {
    fn category(&self) -> Category {
        match self {
            Self::Status { status, .. } => match *status {
                StatusCode::NOT_FOUND => Category::NotFound,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Category::Auth,
                _ => Category::Transport,
            },
            Self::Missing { .. } | Self::NoManifest { .. } => Category::NotFound,
            Self::Request { .. } | Self::Digest { .. } => Category::Transport,
            Self::Reference { .. }
            | Self::Registry { .. }
            | Self::Credentials { .. }
            | Self::Archive { .. }
            | Self::Manifest { .. }
            | Self::Content { .. }
            | Self::Incompatible { .. }
            | Self::Document { .. } => Category::Validation,
            Self::Files { source, .. } => source.category(),
            Self::Io { .. } | Self::Client { .. } => Category::Internal,
        }
    }
}

fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; check the credentials for this host",
        StatusCode::NOT_FOUND => "; check name and version",
        _ => "",
    }
}
