//! A secret store in one encrypted file.

mod envelope;
mod error;
mod key;
mod snapshot;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use error::FileStoreError;
pub use key::{Kdf, KeyMaterial};

use envelope::{Derivation, Envelope, Secrets};
pub(super) use key::{Key, Material};
use parking_lot::Mutex;
use snapshot::{Content, Snapshot};

use super::{Secret, SecretKey};
use crate::atomic::{followed, write_secret_file};
use crate::lock;

/// The longest wait for the lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// The path and the encryption of a secret file.
#[derive(Clone, Debug)]
pub struct FileStoreSettings {
    /// The file.
    pub path: PathBuf,
    /// The key or passphrase.
    pub key: KeyMaterial,
    /// The directory on a volume that other users can write, if the file is below it. Symbolic links between the two are
    /// not followed. Such a file is only read.
    pub beneath: Option<PathBuf>,
    /// The parameters to derive keys from a passphrase when the file is written. Reading uses those in the file.
    pub kdf: Kdf,
}

/// Secrets in a file: a JSON envelope around AES-256-GCM.
///
/// Any number of tasks and processes may use one file at once. A change holds an exclusive advisory lock on
/// `<path>.lock` and replaces the whole file: readers see the secrets before or after it, and a killed process loses
/// only changes that were not confirmed. The content is cached in memory until the file changes. Blocking work runs
/// on blocking threads.
///
/// Only the owner may read the file. If others may, the mode is corrected, and a warning is logged.
#[derive(Clone)]
pub struct FileStore(Arc<Inner>);

struct Inner {
    settings: FileStoreSettings,
    /// Held during a change, so that tasks of this process do not compete for the file lock.
    writing: Mutex<()>,
    /// Held while the file is read, so that concurrent tasks derive its key once.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    snapshot: Option<(Snapshot, Arc<Secrets>)>,
    derived: Option<(Derivation, Key)>,
}

impl FileStore {
    /// Returns the store for `settings`. Nothing is read yet.
    pub fn new(settings: FileStoreSettings) -> Self {
        Self(Arc::new(Inner { settings, writing: Mutex::default(), known: Mutex::default() }))
    }

    /// Creates an empty file and its parent directories (0700), or checks that the existing file can be decrypted.
    pub async fn init(&self) -> Result<(), FileStoreError> {
        self.blocking(|inner| inner.change(|_| false)).await
    }

    /// Stores a value and replaces the previous one of the key.
    pub async fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), FileStoreError> {
        self.set_all(vec![(key.clone(), value.clone())]).await
    }

    /// Stores all `entries` in one change: a reader sees all of them or none.
    pub async fn set_all(&self, entries: Vec<(SecretKey, Secret)>) -> Result<(), FileStoreError> {
        self.blocking(|inner| {
            inner.change(|secrets| {
                let any = !entries.is_empty();
                secrets.extend(entries.into_iter().map(|(key, value)| (key.as_str().to_owned(), value)));
                any
            })
        })
        .await
    }

    /// Returns the value of a key; [`FileStoreError::NotFound`] if there is no such key or no file.
    pub async fn get(&self, key: &SecretKey) -> Result<Secret, FileStoreError> {
        let key = key.clone();
        self.blocking(move |inner| {
            let found = inner.read()?.get(key.as_str()).cloned();
            found.ok_or_else(|| FileStoreError::NotFound { key, file: inner.settings.path.clone() })
        })
        .await
    }

    /// Removes a key. An absent key is not an error.
    pub async fn delete(&self, key: &SecretKey) -> Result<(), FileStoreError> {
        let key = key.clone();
        self.blocking(move |inner| inner.change(|secrets| secrets.remove(key.as_str()).is_some())).await
    }

    /// Returns all keys, sorted; none if there is no file.
    pub async fn list(&self) -> Result<Vec<SecretKey>, FileStoreError> {
        self.blocking(|inner| {
            let secrets = inner.read()?;
            // Keys from other programs that are not valid here are ignored.
            Ok(secrets.keys().filter_map(|key| SecretKey::parse(key).ok()).collect())
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, FileStoreError> + Send + 'static,
    ) -> Result<T, FileStoreError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|error| {
            Err(FileStoreError::Task { file: self.0.settings.path.clone(), reason: error.to_string() })
        })
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileStore({})", self.0.settings.path.display())
    }
}

impl Inner {
    /// Returns the current content; empty if there is no file.
    fn read(&self) -> Result<Arc<Secrets>, FileStoreError> {
        Ok(self.load()?.unwrap_or_default())
    }

    /// Returns the current content; `None` if there is no file.
    fn load(&self) -> Result<Option<Arc<Secrets>>, FileStoreError> {
        let file = &self.settings.path;
        let mut known = self.known.lock();
        if let Some((snapshot, secrets)) = &known.snapshot
            && snapshot.is_current(file)
        {
            return Ok(Some(Arc::clone(secrets)));
        }
        known.snapshot = None;
        let Some(Content { bytes, snapshot }) = snapshot::read(file, self.settings.beneath.as_deref())?
        else {
            return Ok(None);
        };
        let envelope = Envelope::parse(file, &bytes)?;
        let secrets = Arc::new(match &self.settings.key.0 {
            Material::Key(key) => envelope.open(file, key)?,
            Material::Passphrase(passphrase) => {
                let derivation = envelope.derivation(file)?;
                envelope.open(file, known.derive(file, passphrase, derivation)?)?
            }
        });
        known.snapshot = Some((snapshot, Arc::clone(&secrets)));
        Ok(Some(secrets))
    }

    /// Changes the content. `change` returns whether it changed anything. An absent file is created in any case.
    fn change(&self, change: impl FnOnce(&mut Secrets) -> bool) -> Result<(), FileStoreError> {
        // Whatever links lead to a file, it has one lock.
        let file = &followed(&self.settings.path);
        let _turn = self.writing.lock();
        if let Some(parent) = file.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            create_directories(parent)?;
        }
        let _lock = locked(file)?;
        let before = self.load()?;
        let exists = before.is_some();
        let mut secrets = before.as_deref().cloned().unwrap_or_default();
        if change(&mut secrets) || !exists { self.write(file, &secrets) } else { Ok(()) }
    }

    fn write(&self, file: &Path, secrets: &Secrets) -> Result<(), FileStoreError> {
        let envelope = match &self.settings.key.0 {
            Material::Key(key) => Envelope::seal(file, secrets, key, None)?,
            Material::Passphrase(passphrase) => {
                let derivation = Derivation::fresh(self.settings.kdf, file)?;
                let mut known = self.known.lock();
                let key = known.derive(file, passphrase, derivation.clone())?;
                Envelope::seal(file, secrets, key, Some(&derivation))?
            }
        };
        let encoded = envelope.encode(file)?;
        let failed = |source| FileStoreError::Io { action: "write", file: file.to_owned(), source };
        // A larger file could not be read.
        if encoded.len() as u64 > snapshot::MAX_SIZE {
            let limit = format!("it would be larger than {} MiB", snapshot::MAX_SIZE >> 20);
            return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, limit)));
        }
        write_secret_file(file, &encoded).map_err(failed)
    }
}

impl Known {
    /// Returns the key for `derivation`, and caches it because deriving is slow.
    fn derive(
        &mut self,
        file: &Path,
        passphrase: &Secret,
        derivation: Derivation,
    ) -> Result<&Key, FileStoreError> {
        let key = match self.derived.take() {
            Some((known, key)) if known == derivation => key,
            _ => derivation
                .kdf
                .derive(passphrase, &derivation.salt)
                .map_err(|error| FileStoreError::Derive { file: file.to_owned(), reason: error })?,
        };
        Ok(&self.derived.insert((derivation, key)).1)
    }
}

fn create_directories(directory: &Path) -> Result<(), FileStoreError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|source| FileStoreError::Io {
        action: "create",
        file: directory.to_owned(),
        source,
    })
}

/// Locks the secret file until the result is dropped. The lock is a file beside it.
fn locked(file: &Path) -> Result<File, FileStoreError> {
    let place = file.with_added_extension("lock");
    let failed = |action| {
        let file = place.clone();
        move |source| FileStoreError::Io { action, file, source }
    };
    let held = lock::open(&place).map_err(failed("open"))?;
    match lock::lock(&held, PATIENCE) {
        Ok(()) => Ok(held),
        Err(TryLockError::Error(source)) => Err(failed("lock")(source)),
        Err(TryLockError::WouldBlock) => Err(FileStoreError::Locked(file.to_owned())),
    }
}
