//! Locks between commands that change the same files, or the same managed server.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use declarest_core::digest::hex;
use declarest_core::error::categories;
use declarest_core::lock::lock;
use sha2::{Digest as _, Sha256};

use crate::output::Messages;

/// How long a command waits for another one that changes the same files.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a command waits for another one that changes the same server.
const PATIENCE_WITH_SERVER: Duration = Duration::from_mins(10);

/// A lock of a directory or of a server. It ends when it is dropped, and when the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// A lock could not be obtained.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "another command has been changing {changed} for {} s; repeat this command when it has ended",
        patience.as_secs()
    )]
    Busy { changed: String, patience: Duration },
    #[error("cannot lock {}: {reason}", directory.display())]
    Io { directory: PathBuf, reason: String },
}

categories!(LockError {
    Conflict: Busy;
    Internal: Io;
});

impl Lock {
    /// Locks an existing directory, and waits for other commands that have locked it.
    pub fn of(directory: &Path) -> Result<Self, LockError> {
        let failed = |error: std::io::Error| LockError::Io {
            directory: directory.to_owned(),
            reason: error.to_string(),
        };
        let file = open(directory).map_err(failed)?;
        match lock(&file, PATIENCE) {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                Err(LockError::Busy { changed: directory.display().to_string(), patience: PATIENCE })
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Locks the server at `address` by a file in `directory`, and waits for other commands of this user that have locked
    /// it: if two commands find at once that a resource is missing, both create it. Returns nothing if files cannot be
    /// locked there.
    pub fn of_server(
        directory: &Path,
        address: &str,
        messages: &Messages,
    ) -> Result<Option<Self>, LockError> {
        let name = hex(&Sha256::digest(address));
        let opened = std::fs::create_dir_all(directory)
            .and_then(|()| declarest_core::lock::open(&directory.join(format!("{name}.lock"))));
        let Ok(file) = opened else { return Ok(None) };
        let mut locked = lock(&file, Duration::ZERO);
        if let Err(TryLockError::WouldBlock) = locked {
            messages.note(&format!("waiting for another command that changes {address}"));
            locked = lock(&file, PATIENCE_WITH_SERVER);
        }
        match locked {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => {
                Err(LockError::Busy { changed: address.to_owned(), patience: PATIENCE_WITH_SERVER })
            }
            Err(TryLockError::Error(_)) => Ok(None),
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
