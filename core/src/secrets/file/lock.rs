//! Allows one writer at a time among all processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::FileStoreError;

/// The longest wait for the lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest pause between two attempts, in microseconds. Pauses are random, so that no process always loses.
const LONGEST_PAUSE: u64 = 8_000;

/// The exclusive lock on a secret file, held until dropped. The system releases it when the process ends.
pub(super) struct Lock {
    _held: File,
}

impl Lock {
    /// Waits for the lock of `file`.
    pub fn of(file: &Path) -> Result<Self, FileStoreError> {
        Self::within(file, PATIENCE)
    }

    fn within(file: &Path, patience: Duration) -> Result<Self, FileStoreError> {
        let place = place(file);
        let failed = |action| {
            let file = place.clone();
            move |source| FileStoreError::Io { action, file, source }
        };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.open(&place).map_err(failed("open"))?;
        let started = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { _held: lock }),
                Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
                Err(TryLockError::WouldBlock) if started.elapsed() >= patience => {
                    return Err(FileStoreError::Locked { file: file.to_owned() });
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(Duration::from_micros(fastrand::u64(200..LONGEST_PAUSE)));
                }
            }
        }
    }
}

/// Returns the path of the lock file. It is never removed: otherwise two processes could lock two different files.
fn place(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Categorized as _, Category};

    #[test]
    fn only_one_process_holds_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("secrets.json");
        let held = Lock::of(&file).unwrap();
        let error = Lock::within(&file, Duration::ZERO).err().unwrap();
        assert_eq!(error.category(), Category::Conflict);
        assert!(directory.path().join("secrets.json.lock").exists());
        drop(held);
        Lock::within(&file, Duration::ZERO).unwrap();
    }
}
