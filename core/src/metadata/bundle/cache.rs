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

/// The file that tells that an entry is complete, and what it was made of.
const READY: &str = ".declarest-bundle-ready";

/// Where one bundle is in the cache.
///
/// Beside its directory an entry has a lock file, and while it is made a download and a staging directory.
/// Their names are fixed, as only the holder of the lock touches them: what a killed process left behind is
/// removed by the next one.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    root: PathBuf,
    name: String,
    source: String,
}

/// The exclusive right to read and make one entry, among all processes, until dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// What an entry was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Provenance {
    /// The SHA-256 of the source, in full: names of entries show a part of it only.
    pub source: String,
    /// The digest of the archive, or of the manifest in its registry.
    pub digest: String,
    /// The state of a local archive when it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveState>,
    /// What to ask a web server with, to learn whether it has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

/// A header that makes an answer depend on what is in the cache (RFC 9110, section 13.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Condition {
    pub header: String,
    pub value: String,
}

/// By what a changed local archive is told.
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

    /// The bundle's files, once there is one.
    pub fn directory(&self) -> PathBuf {
        self.root.join(&self.name)
    }

    /// Where the holder of the lock puts a download.
    pub fn download(&self) -> PathBuf {
        self.beside("download")
    }

    /// Waits until nobody else works on the entry. Blocks.
    pub fn lock(&self) -> Result<Lock, BundleError> {
        fs::create_dir_all(&self.root).map_err(BundleError::io("create", &self.root))?;
        let place = self.beside("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&place);
        let file = file.map_err(BundleError::io("open", &place))?;
        file.lock().map_err(BundleError::io("lock", &place))?;
        Ok(Lock(file))
    }

    /// The entry, if it is complete, made of this source, and valid for its user. Everything else will be
    /// made anew, whatever is wrong with it. Blocks.
    pub fn ready(&self, expected: &Expected) -> Option<Ready> {
        let directory = self.directory();
        let provenance = fs::read(directory.join(READY)).ok()?;
        let provenance: Provenance = serde_json::from_slice(&provenance).ok()?;
        if provenance.source != self.source {
            return None;
        }
        let content = Content::read(&directory, expected);
        let content =
            content.inspect_err(|error| tracing::debug!(%error, "cached bundle is made anew")).ok()?;
        Some(Ready { content, provenance })
    }

    /// What an entry is that was made of an archive with this digest.
    pub fn made_of(&self, digest: String) -> Provenance {
        Provenance { source: self.source.clone(), digest, archive: None, condition: None }
    }

    /// Makes the entry from an archive, and only if everything in it is valid. Blocks.
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
            // The first failure is worth more than one of clearing up; the next attempt clears up, too.
            let _ = fs::remove_dir_all(&staging);
            return Err(error);
        }
        self.publish(&staging)?;
        let content = Content::read(&self.directory(), expected)?;
        Ok(Ready { content, provenance })
    }

    /// Puts the staging directory in the place of the entry.
    fn publish(&self, staging: &Path) -> Result<(), BundleError> {
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

/// Fills the staging directory; it is complete if this succeeds.
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
    text.and_then(|text| fs::write(&ready, text)).map_err(BundleError::io("write", &ready))
}

impl ArchiveState {
    /// The state of an open file.
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

/// The digest of a whole file, which is then read from its beginning again.
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

/// Removes a file or a directory with all it holds, if it is there.
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
