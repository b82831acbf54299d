//! Exclusive locks of files between processes. The system releases a lock when its file is closed, at the latest when
//! the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest pause between two attempts, in microseconds. Pauses are random, so that no process always loses.
const LONGEST_PAUSE: u64 = 8_000;

/// Opens a file for a lock. A new file can be read and written by this user only. Do not remove it: otherwise two
/// processes could lock two different files.
pub fn open(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

/// Locks `file`. Blocks while another process or another open file holds the lock, but at most for `patience`.
pub fn lock(file: &File, patience: Duration) -> Result<(), TryLockError> {
    let end = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                std::thread::sleep(Duration::from_micros(fastrand::u64(200..LONGEST_PAUSE)));
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_file_holds_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lock");
        let (held, waiting) = (open(&file).unwrap(), open(&file).unwrap());
        lock(&held, Duration::ZERO).unwrap();
        assert!(matches!(lock(&waiting, Duration::ZERO), Err(TryLockError::WouldBlock)));
        drop(held);
        lock(&waiting, Duration::ZERO).unwrap();
    }
}
