//! Errors of catalogues and contexts.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use declarest_core::error::categories;
use declarest_core::payload::PayloadError;
use declarest_core::payload::fields::{FieldError, nearest};

use crate::lock::LockError;

/// A catalogue could not be used, or a context was not found in it.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    #[error(
        "cannot find the catalogue of contexts: HOME is not set; set DECLAREST_CONTEXTS_FILE to an absolute path"
    )]
    NoHome,
    #[error("cannot {action} {}: {reason}", file.display())]
    Io { action: &'static str, file: PathBuf, reason: String },
    #[error("{} was changed by another command; repeat this command", .0.display())]
    Changed(PathBuf),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("{origin}: {source}")]
    Invalid {
        origin: String,
        #[source]
        source: Box<FieldError>,
    },
    #[error("cannot write the catalogue of contexts: {0}")]
    Encode(#[from] PayloadError),
    #[error("current context not set; choose one with \"declarest context use NAME\" or --context")]
    NoCurrent,
    #[error(
        "{}; there are no contexts in {}; create one with \"declarest init\" or \"declarest context add\"",
        unresolved(.wanted.as_deref()), file.display()
    )]
    NoContexts { wanted: Option<String>, file: PathBuf },
    #[error("context \"{name}\" not found; {}", there_are(.name, .known))]
    NotFound { name: String, known: Vec<String> },
    #[error("context \"{0}\" already exists; choose another name")]
    Exists(String),
    #[error("credential \"{0}\" already exists with other values; rename one of them")]
    CredentialExists(String),
    #[error("context name mismatch: {0}")]
    NameMismatch(String),
    #[error("--set {key}: {reason}")]
    Override { key: String, reason: String },
    #[error("context \"{context}\": {field}: {reason}")]
    Setting { context: String, field: String, reason: String },
    #[error("{capability} is not configured in context \"{context}\"; set {field}")]
    Missing { context: String, capability: &'static str, field: &'static str },
}

impl CatalogueError {
    /// Returns a function that makes the error of an action on `file`.
    pub fn io(action: &'static str, file: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io { action, file: file.to_owned(), reason: error.to_string() }
    }

    /// Returns a function that makes the error of a fault in `origin`.
    pub fn invalid(origin: impl Display) -> impl Fn(FieldError) -> Self {
        move |source| Self::Invalid { origin: origin.to_string(), source: Box::new(source) }
    }
}

fn unresolved(wanted: Option<&str>) -> String {
    match wanted {
        Some(name) => format!("context \"{name}\" not found"),
        None => "current context not set".to_owned(),
    }
}

fn there_are(wanted: &str, names: &[String]) -> String {
    let meant = nearest(wanted, names.iter().map(String::as_str));
    let meant = meant.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
    format!("there are {}{meant}", names.join(", "))
}

categories!(CatalogueError {
    .0: Lock;
    Validation: NoHome, Invalid, Exists, CredentialExists, NameMismatch, Override, Setting, Missing;
    NotFound: NoCurrent, NoContexts, NotFound;
    Conflict: Changed;
    Internal: Io, Encode;
});
