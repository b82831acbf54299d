//! Stores objects on disk, one JSON file each, so that uids, generations and status outlive the process.
//!
//! A write is durable when [`StateDir::write`] returns: the content is synced and then renamed to its place. After
//! a crash, the file has its old or its new content, never a part. This module never receives Secrets.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use declarest_core::repository::write_secret_file;
use serde_json::Value;

/// The state of objects could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// An object could not be saved. The request that changed it failed.
    #[error("cannot save object state to {}: {source}; check space and permissions of the state directory", path.display())]
    Write {
        /// The file of the object.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file of a deleted object could not be removed. The object still exists.
    #[error("cannot remove object state {}: {source}; check permissions of the state directory", path.display())]
    Remove {
        /// The file of the object.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Saved objects could not be read.
    #[error("cannot read object state {}: {source}; check permissions of the state directory", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The files `<state directory>/api/<plural>/<namespace>/<name>.json`.
#[derive(Clone, Debug)]
pub(crate) struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// Uses the directory `api` below `state_dir`. Directories are created when they are needed.
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self { root: state_dir.join("api") }
    }

    fn file(&self, plural: &str, namespace: &str, name: &str) -> PathBuf {
        // Names are RFC 1123 subdomains: they are not empty, not hidden, and cannot leave the directory.
        self.root.join(plural).join(namespace).join(format!("{name}.json"))
    }

    pub(crate) fn write(
        &self,
        plural: &str,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<(), StateError> {
        let path = self.file(plural, namespace, name);
        write_private(&path, object).map_err(|source| StateError::Write { path, source })
    }

    pub(crate) fn remove(&self, plural: &str, namespace: &str, name: &str) -> Result<(), StateError> {
        let path = self.file(plural, namespace, name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StateError::Remove { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Returns all saved objects of a type. A file without such an object is logged and skipped; the object is
    /// then created again from its manifest.
    pub(crate) fn load(&self, plural: &str) -> Result<Vec<Value>, StateError> {
        let mut objects = Vec::new();
        for namespace in entries(&self.root.join(plural))? {
            for path in entries(&namespace)? {
                let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
                if hidden || path.extension().is_none_or(|extension| extension != "json") {
                    continue;
                }
                let text = fs::read_to_string(&path)
                    .map_err(|source| StateError::Read { path: path.clone(), source })?;
                match serde_json::from_str::<Value>(&text) {
                    Ok(object) if self.is_place_of(&path, plural, &object) => objects.push(object),
                    Ok(_) => {
                        tracing::warn!(path = %path.display(), "ignoring a state file that contains another object");
                    }
                    Err(error) => {
                        tracing::warn!(path = %path.display(), %error, "ignoring an unreadable state file");
                    }
                }
            }
        }
        Ok(objects)
    }

    fn is_place_of(&self, path: &Path, plural: &str, object: &Value) -> bool {
        let meta = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        !meta("uid").is_empty() && path == self.file(plural, meta("namespace"), meta("name"))
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, StateError> {
    let error = |source| StateError::Read { path: directory.to_owned(), source };
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(source) if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(source) => return Err(error(source)),
    };
    let paths: Result<Vec<PathBuf>, io::Error> =
        listing.map(|entry| entry.map(|entry| entry.path())).collect();
    paths.map_err(error)
}

/// Writes JSON to a file that only its owner can read. Readers see the old or the new content.
pub fn write_private(path: &Path, object: &Value) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut text = serde_json::to_vec_pretty(object)?;
    text.push(b'\n');
    write_secret_file(path, &text)
}
