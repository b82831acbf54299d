//! Errors of opening bundles.

use std::path::Path;
use std::sync::Arc;

use http::StatusCode;

use crate::error::{Category, categories};
use crate::metadata::document::DocumentError;
use crate::repository::RepositoryError;

/// An error of finding, fetching, unpacking or using a metadata bundle.
///
/// Messages contain URLs without userinfo and query, and never contain credentials.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A text is not a bundle reference.
    #[error("bundle reference \"{reference}\": {reason}")]
    Reference {
        /// The text; without userinfo and query if it is a URL.
        reference: String,
        /// The fault and the correction.
        reason: String,
    },
    /// A local bundle does not exist.
    #[error("bundle {place} does not exist{hint}")]
    Missing {
        /// The path that was tried.
        place: String,
        /// A suggestion; empty, or begins with `;`.
        hint: &'static str,
    },
    /// A server responded with an error status.
    #[error("GET {url} answered with status {status}{}", advice(*.status))]
    Status {
        /// The requested URL.
        url: String,
        /// The status of the response.
        status: StatusCode,
    },
    /// A server could not be reached, or its response is incomplete.
    #[error("GET {url}: {reason}")]
    Request {
        /// The requested URL.
        url: String,
        /// The cause.
        reason: String,
    },
    /// The content of a download does not match its digest.
    #[error("{url} has the digest {actual}, expected {expected}")]
    Digest {
        /// The URL of the download.
        url: String,
        /// The expected digest.
        expected: String,
        /// The digest of the downloaded content.
        actual: String,
    },
    /// The artifact in a registry is not a bundle, or the registry is not supported.
    #[error("bundle {reference}: {reason}")]
    Registry {
        /// The reference.
        reference: String,
        /// The fault.
        reason: String,
    },
    /// The file with registry credentials cannot be used.
    #[error("registry credentials in {file}: {reason}")]
    Credentials {
        /// The file.
        file: String,
        /// The fault.
        reason: String,
    },
    /// The archive is corrupt, or contains files that a bundle must not contain.
    #[error("archive of bundle {bundle}: {reason}")]
    Archive {
        /// The reference.
        bundle: String,
        /// The fault.
        reason: String,
    },
    /// There is no `bundle.yaml` at the root.
    #[error("bundle {0} has no bundle.yaml at its root")]
    NoManifest(String),
    /// The manifest is not valid.
    #[error("bundle {bundle}: bundle.yaml: {source}")]
    Manifest {
        /// The reference.
        bundle: String,
        /// The fault and its location.
        source: Box<DocumentError>,
    },
    /// The bundle does not match its manifest or reference: for example a missing file, or another name.
    #[error("bundle {bundle}: {reason}")]
    Content {
        /// The reference.
        bundle: String,
        /// The fault.
        reason: String,
    },
    /// The bundle requires another version of `DeclaREST`.
    #[error("bundle {bundle} requires DeclaREST {constraint}, but this build is compatible with {version}")]
    Incompatible {
        /// The reference.
        bundle: String,
        /// The versions that it supports.
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
        /// The fault.
        source: Box<DocumentError>,
    },
    /// The files of the bundle cannot be read.
    #[error("bundle {bundle}: {source}")]
    Files {
        /// The reference.
        bundle: String,
        /// The cause.
        source: RepositoryError,
    },
    /// A file of the cache or a local archive cannot be read or written.
    #[error("could not {action} {file}: {source}")]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file or directory.
        file: String,
        /// The cause.
        source: Arc<std::io::Error>,
    },
    /// The HTTP client could not be created.
    #[error("the HTTP client for bundles cannot be created: {0}")]
    Client(String),
}

impl BundleError {
    /// Returns a function that makes an error of `action` on `file`.
    pub(super) fn io(action: &'static str, file: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let file = file.display().to_string();
        move |source| Self::Io { action, file, source: Arc::new(source) }
    }
}

categories!(BundleError {
    {
        Self::Status { status, .. } => match *status {
            StatusCode::NOT_FOUND => Category::NotFound,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Category::Auth,
            _ => Category::Transport,
        },
    }
    .source: Files;
    Validation: Reference, Registry, Credentials, Archive, Manifest, Content, Incompatible, Document;
    NotFound: Missing, NoManifest;
    Transport: Request, Digest;
    Internal: Io, Client;
});

fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; check the credentials for this host",
        StatusCode::NOT_FOUND => "; check the name and the version",
        _ => "",
    }
}
