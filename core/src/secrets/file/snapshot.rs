//! The content of a file, and whether the file has changed since.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

#[cfg(target_os = "linux")]
use rustix::fs::OFlags;

use super::FileStoreError;
#[cfg(target_os = "linux")]
use crate::confined;

/// The state of a file when it was read. The file stays open, so that a newer file cannot get its inode.
pub(super) struct Snapshot {
    file: File,
    stamp: Stamp,
}

#[cfg(unix)]
type Stamp = (u64, u64, u64, i64, i64);

#[cfg(not(unix))]
type Stamp = (u64, Option<std::time::SystemTime>);

/// The bytes of a file.
pub(super) struct Content {
    pub bytes: Vec<u8>,
    pub snapshot: Snapshot,
}

impl Snapshot {
    /// Whether `path` is still the same, unchanged file.
    pub fn is_current(&self, path: &Path) -> bool {
        let unchanged = |metadata: io::Result<Metadata>| metadata.is_ok_and(|now| stamp(&now) == self.stamp);
        unchanged(fs::metadata(path)) && unchanged(self.file.metadata())
    }
}

/// The largest file that is read or written, in bytes.
pub(super) const MAX_SIZE: u64 = 32 << 20;

#[cfg(target_os = "linux")]
fn open(path: &Path, beneath: Option<&Path>) -> io::Result<File> {
    let Some(root) = beneath else { return File::open(path) };
    let relative = path.strip_prefix(root).map_err(io::Error::other)?;
    // A pipe must not block.
    confined::open(root, relative, OFlags::RDONLY | OFlags::NONBLOCK)
}

#[cfg(not(target_os = "linux"))]
fn open(path: &Path, _: Option<&Path>) -> io::Result<File> {
    File::open(path)
}

/// Reads the file at `path` and removes the access of other users; `None` if there is no file.
pub(super) fn read(path: &Path, beneath: Option<&Path>) -> Result<Option<Content>, FileStoreError> {
    let failed = |action| move |source| FileStoreError::Io { action, file: path.to_owned(), source };
    let mut file = match open(path, beneath) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open")(error)),
    };
    let metadata = file.metadata().map_err(failed("read"))?;
    tighten(path, &file, &metadata);
    let mut bytes = Vec::new();
    if metadata.len() > MAX_SIZE {
        return Err(failed("read")(io::Error::other("it is larger than 32 MiB")));
    }
    (&mut file).take(MAX_SIZE).read_to_end(&mut bytes).map_err(failed("read"))?;
    Ok(Some(Content { bytes, snapshot: Snapshot { file, stamp: stamp(&metadata) } }))
}

#[cfg(unix)]
fn stamp(metadata: &Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

#[cfg(not(unix))]
fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}

/// Removes the access of other users.
#[cfg(unix)]
fn tighten(path: &Path, file: &File, metadata: &Metadata) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & !0o600 == 0 {
        return;
    }
    if let Err(error) = file.set_permissions(fs::Permissions::from_mode(0o600)) {
        tracing::warn!(file = %path.display(), %error, "the secret file has mode {mode:04o} and cannot be made 0600");
    } else {
        tracing::warn!(file = %path.display(), "the secret file had mode {mode:04o}; it is 0600 now");
    }
}

#[cfg(not(unix))]
fn tighten(_path: &Path, _file: &File, _metadata: &Metadata) {}
