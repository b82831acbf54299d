//! The cache of unpacked bundles on disk, shared by all processes of a user.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::archive::{Capacity, unpack};
use super::content::{Content, Expected};
use super::{BundleError, Reference};
use crate::digest::sha256;

/// The file that marks an entry as complete. It holds the [`Provenance`].
const READY: &str = ".declarest-bundle-ready";

/// The location of one bundle in the cache.
///
/// Next to its directory an entry has a lock file and, while the entry is created, a download and a staging directory.
/// Their names are fixed, because only the holder of the lock uses them. If a process is killed, the next one removes
/// its leftovers.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    root: PathBuf,
    name: String,
    source: String,
}

/// An exclusive lock on one entry among all processes. It is released when dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// The source that an entry was created from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Provenance {
    /// The complete SHA-256 of the reference; the name of an entry contains only a part of it.
    pub source: String,
    /// The digest of the archive, or of the manifest in its registry.
    pub digest: String,
    /// The state of a local archive when it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveState>,
    /// The header of a conditional request to the web server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

/// A precondition header for the archive in the cache (RFC 9110, section 13.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Condition {
    pub header: String,
    pub value: String,
}

/// The state of a local archive, to detect a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ArchiveState {
    size: u64,
    /// Nanoseconds since 1970; negative before.
    modified: i128,
}

/// A complete entry.
#[derive(Debug)]
pub(super) struct Ready {
    pub content: Content,
    pub provenance: Provenance,
}

impl Slot {
    pub fn new(root: &Path, reference: &Reference) -> Self {
        Self { root: root.to_owned(), name: reference.cache_entry(), source: reference.source_digest() }
    }

    /// The directory of the bundle's files; it may not exist yet.
    pub fn directory(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    /// The file for downloads of the holder of the lock.
    pub fn download(&self) -> PathBuf {
        self.beside("download")
    }

    /// Locks the entry. Blocks while another process or task holds the lock.
    pub fn lock(&self) -> Result<Lock, BundleError> {
        fs::create_dir_all(&self.root).map_err(BundleError::io("create", &self.root))?;
        let place = self.beside("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&place);
        let file = file.map_err(BundleError::io("open", &place))?;
        file.lock().map_err(BundleError::io("lock", &place))?;
        Ok(Lock(file))
    }

    /// Returns the entry if it is complete, created from this source, and compatible. Otherwise the caller has to
    /// create it again. Blocks.
    pub fn ready(&self, expected: &Expected) -> Option<Ready> {
        let directory = self.directory();
        let provenance = fs::read(directory.join(READY)).ok()?;
        let provenance: Provenance = serde_json::from_slice(&provenance).ok()?;
        if provenance.source != self.source {
            return None;
        }
        let content = Content::read(&directory, expected);
        let content = content
            .inspect_err(|error| tracing::debug!(%error, "cached bundle is invalid and is created again"))
            .ok()?;
        Some(Ready { content, provenance })
    }

    /// Returns the provenance of an entry that is created from an archive with this digest.
    pub fn made_of(&self, digest: String) -> Provenance {
        Provenance { source: self.source.clone(), digest, archive: None, condition: None }
    }

    /// Creates the entry from an archive if all its content is valid. Blocks.
    pub fn install(
        &self,
        archive: &File,
        provenance: Provenance,
        expected: &Expected,
    ) -> Result<Ready, BundleError> {
        let staging = self.beside("new");
        remove(&staging)?;
        fs::create_dir(&staging).map_err(BundleError::io("create", &staging))?;
        let staged = stage(archive, &staging, &provenance, expected);
        if let Err(error) = staged {
            // Report the first error. If the removal fails, the next attempt removes the directory.
            let _ = fs::remove_dir_all(&staging);
            return Err(error);
        }
        self.publish(&staging)?;
        let content = Content::read(&self.directory(), expected)?;
        Ok(Ready { content, provenance })
    }

    /// Replaces the entry with the staging directory.
    fn publish(&self, staging: &Path) -> Result<(), BundleError> {
        // Move the entry aside first, because a rename cannot replace a directory that is not empty.
        let (directory, retired) = (self.directory(), self.beside("old"));
        remove(&retired)?;
        match fs::rename(&directory, &retired) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(BundleError::io("move aside", &directory)(error));
            }
            _ => {}
        }
        fs::rename(staging, &directory).map_err(BundleError::io("create", &directory))?;
        remove(&retired)
    }

    fn beside(&self, role: &str) -> PathBuf {
        self.root.join(format!(".{}.{role}", self.name))
    }
}

/// Unpacks and validates the archive in the staging directory, and marks it as complete.
fn stage(
    archive: &File,
    staging: &Path,
    provenance: &Provenance,
    expected: &Expected,
) -> Result<(), BundleError> {
    unpack(archive, staging, Capacity::default(), &expected.bundle)?;
    Content::read(staging, expected)?.validate(expected)?;
    let ready = staging.join(READY);
    let text = serde_json::to_vec(provenance).map_err(io::Error::other);
    text.and_then(|text| fs::write(&ready, text)).map_err(BundleError::io("write", &ready))?;
    flush(staging).map_err(BundleError::io("write", staging))
}

/// Writes a directory with all its content to the disk. Otherwise, after a power failure, an entry could be complete by
/// its names while its files are empty, and an empty document is valid.
fn flush(directory: &Path) -> io::Result<()> {
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            } else {
                File::options().write(true).open(entry.path())?.sync_all()?;
            }
        }
        // Windows cannot open a directory as a file.
        if cfg!(unix) {
            File::open(&directory)?.sync_all()?;
        }
    }
    Ok(())
}

impl ArchiveState {
    /// Returns the state of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let modified = match metadata.modified()?.duration_since(UNIX_EPOCH) {
            Ok(after) => nanoseconds(after),
            Err(before) => -nanoseconds(before.duration()),
        };
        Ok(Self { size: metadata.len(), modified })
    }
}

fn nanoseconds(duration: std::time::Duration) -> i128 {
    i128::from(duration.as_secs()) * 1_000_000_000 + i128::from(duration.subsec_nanos())
}

/// Returns the digest of a file, and rewinds the file.
pub(super) fn digest_of(mut file: &File) -> io::Result<String> {
    struct Hashing(Sha256);

    impl io::Write for Hashing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut hashing = Hashing(Sha256::new());
    io::copy(&mut file, &mut hashing)?;
    file.rewind()?;
    Ok(sha256(hashing.0))
}

/// Removes a file, or a directory with its content, if it exists.
pub(super) fn remove(place: &Path) -> Result<(), BundleError> {
    let removed = match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(BundleError::io("remove", place)(error)),
        _ => Ok(()),
    }
}
