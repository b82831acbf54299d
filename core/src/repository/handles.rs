//! A pool of libgit2 handles for one repository.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use git2::{Config, ConfigLevel, ErrorCode, Repository};
use parking_lot::{Mutex, RwLock};

use super::RepositoryError;
use super::directories::Directories;
use super::packs::{Look, Packs};

/// Returns `None` if the object or the ref does not exist.
pub(super) fn found<T>(result: Result<T, git2::Error>) -> Result<Option<T>, git2::Error> {
    match result {
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Open handles of one bare repository, lent to one thread at a time.
///
/// libgit2 objects may move between threads but not be shared, so each concurrent caller gets its own handle. A
/// returned handle keeps its open packs for the next caller.
#[derive(Debug)]
pub(super) struct Handles {
    directory: PathBuf,
    idle: Mutex<Vec<IdleHandle>>,
    /// Held while packs are used, and exclusively while some are removed.
    in_use: RwLock<()>,
    packs: Mutex<Packs>,
    /// The damage that was found; the repository is then unusable.
    damage: Mutex<Option<RepositoryError>>,
    /// The directories that the current trees have read. Most directories are the same in several commits.
    directories: Mutex<Weak<Directories>>,
}

struct IdleHandle(Repository);

impl std::fmt::Debug for IdleHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Repository")
    }
}

/// The number of idle handles that are kept. More are opened if necessary and closed after use.
const KEPT: usize = 8;

/// How long the removal of packs waits for calls that use them. New calls do not wait for it.
const PATIENCE: Duration = Duration::from_secs(10);

impl Handles {
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            idle: Mutex::default(),
            in_use: RwLock::default(),
            packs: Mutex::default(),
            damage: Mutex::default(),
            directories: Mutex::default(),
        }
    }

    /// Returns the directories that all trees of the same lifetime share.
    pub fn directories(&self) -> Arc<Directories> {
        let mut shared = self.directories.lock();
        shared.upgrade().unwrap_or_else(|| {
            let new = Arc::default();
            *shared = Arc::downgrade(&new);
            new
        })
    }

    /// Whether a tree is in use.
    pub fn has_trees(&self) -> bool {
        self.directories.lock().strong_count() > 0
    }

    /// Runs `work` with a handle that no other call uses. After damage was found, each call fails with it, because a
    /// partial read must not be treated as complete.
    pub fn with<T>(
        &self,
        work: impl FnOnce(&Repository) -> Result<T, RepositoryError>,
    ) -> Result<T, RepositoryError> {
        // A call may be within another one.
        let _used = self.in_use.read_recursive();
        self.check()?;
        let idle = self.idle.lock().pop();
        let handle = match idle {
            Some(IdleHandle(handle)) => handle,
            None => open(&self.directory)?,
        };
        let result = work(&handle);
        if let Err(damage @ RepositoryError::Damaged { .. }) = &result {
            return Err(self.note(damage.clone()));
        }
        let mut idle = self.idle.lock();
        if idle.len() < KEPT {
            idle.push(IdleHandle(handle));
        }
        result
    }

    /// Runs `work`, which removes packs, while no call uses them. Does nothing if calls use them for a long time.
    pub fn without_readers(
        &self,
        work: impl FnOnce() -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let Some(_alone) = self.in_use.try_write_for(PATIENCE) else { return Ok(()) };
        self.close_idle();
        work()
    }

    /// Returns the damage that was found, if any.
    pub fn damage(&self) -> Option<RepositoryError> {
        self.damage.lock().clone()
    }

    fn check(&self) -> Result<(), RepositoryError> {
        if let Some(damage) = self.damage() {
            return Err(damage);
        }
        let look = self.packs.lock().look(&self.directory);
        match look {
            Look::Sound => Ok(()),
            Look::Replaced => {
                self.close_idle();
                Ok(())
            }
            Look::Damaged(reason) => {
                let directory = self.directory.display().to_string();
                Err(self.note(RepositoryError::Damaged { directory, reason }))
            }
        }
    }

    fn note(&self, damage: RepositoryError) -> RepositoryError {
        self.close_idle();
        *self.damage.lock() = Some(damage.clone());
        damage
    }

    fn close_idle(&self) {
        self.idle.lock().clear();
    }
}

/// Applies the process-wide settings of libgit2.
///
/// Caching is off, because libgit2 would keep every parsed directory in each handle; see [`Directories`] instead.
/// Hash verification on reading is off: a fetch verifies all objects that it receives, and zlib's checksums detect
/// damage on disk. `git` does not verify more.
static SETTINGS: Once = Once::new();

/// Opens a bare repository that reads only its own configuration file.
///
/// The Git configuration of the user and the system could rewrite URLs (`url.insteadOf`), add proxies or turn off TLS
/// verification. A bare repository also skips the check of the directory's owner, which fails on volumes that another
/// user id wrote.
pub(super) fn open(directory: &Path) -> Result<Repository, RepositoryError> {
    SETTINGS.call_once(|| {
        git2::opts::enable_caching(false);
        git2::opts::strict_hash_verification(false);
    });
    let action = || format!("open the repository {}", directory.display());
    let repository = Repository::open_bare(directory).map_err(RepositoryError::git(action()))?;
    let mut config = Config::new().map_err(RepositoryError::git(action()))?;
    config
        .add_file(&directory.join("config"), ConfigLevel::Local, true)
        .and_then(|()| repository.set_config(&config))
        .map_err(RepositoryError::git(action()))?;
    Ok(repository)
}
