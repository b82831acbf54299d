//! Locks between commands that change the same files.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use declarest_core::error::{Categorized, Category};
use declarest_core::lock::lock;

/// How long a command waits for another one.
const PATIENCE: Duration = Duration::from_secs(30);

/// A lock of a directory. It ends when it is dropped, and when the process ends.
#[derive(Debug)]
pub struct Lock {
    _directory: File,
}

/// A lock could not be obtained.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another command has been changing {} for {} s; repeat this command when it has ended",
        directory.display(),
        PATIENCE.as_secs()
    )]
    Busy { directory: PathBuf },
    #[error("cannot lock {}: {reason}", directory.display())]
    Io { directory: PathBuf, reason: String },
}

impl Categorized for LockError {
    fn category(&self) -> Category {
        match self {
            Self::Busy { .. } => Category::Conflict,
            Self::Io { .. } => Category::Internal,
        }
    }
}

impl Lock {
    /// Locks an existing directory, and waits for other commands that have locked it.
    pub fn of(directory: &Path) -> Result<Self, LockError> {
        let failed = |error: std::io::Error| LockError::Io {
            directory: directory.to_owned(),
            reason: error.to_string(),
        };
        let file = open(directory).map_err(failed)?;
        match lock(&file, PATIENCE) {
            Ok(()) => Ok(Self { _directory: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Busy { directory: directory.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Opens the directory itself, so that the lock needs no file.
#[cfg(unix)]
fn open(directory: &Path) -> std::io::Result<File> {
    File::open(directory)
}

/// Opens a file in the directory, because Windows does not lock directories.
#[cfg(not(unix))]
fn open(directory: &Path) -> std::io::Result<File> {
    declarest_core::lock::open(&directory.join("declarest.lock"))
}
