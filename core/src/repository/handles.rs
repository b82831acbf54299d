use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};

use git2::{Config, ConfigLevel, Repository};

use super::RepositoryError;
use super::directories::Directories;
use super::packs::{Look, Packs};

/// Open handles of one bare repository, lent to one thread at a time.
///
/// libgit2 objects may move between threads but not be shared, so each concurrent caller gets a handle
/// of its own; a handle that comes back keeps its open packs for the next one.
#[derive(Debug)]
pub(super) struct Handles {
    directory: PathBuf,
    idle: Mutex<Vec<IdleHandle>>,
    packs: Mutex<Packs>,
    /// Why the repository cannot be used any more.
    damage: Mutex<Option<RepositoryError>>,
    /// What the trees that are in use have read; most of what one commit holds is in another one, too.
    directories: Mutex<Weak<Directories>>,
}

struct IdleHandle(Repository);

impl std::fmt::Debug for IdleHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Repository")
    }
}

/// Handles kept for reuse; more are opened while needed and dropped afterwards.
const KEPT: usize = 8;

impl Handles {
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            idle: Mutex::default(),
            packs: Mutex::default(),
            damage: Mutex::default(),
            directories: Mutex::default(),
        }
    }

    /// Directories for all trees that live at the same time.
    pub fn directories(&self) -> Arc<Directories> {
        let mut shared = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let new = Arc::default();
            *shared = Arc::downgrade(&new);
            new
        })
    }

    /// Runs `work` with a handle that no other call uses meanwhile. Once the repository is damaged, each call
    /// fails with the damage: what was read in part must not be taken for the whole.
    pub fn with<T>(
        &self,
        work: impl FnOnce(&Repository) -> Result<T, RepositoryError>,
    ) -> Result<T, RepositoryError> {
        self.check()?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let handle = match idle {
            Some(IdleHandle(handle)) => handle,
            None => open(&self.directory)?,
        };
        let result = work(&handle);
        if let Err(damage @ RepositoryError::Damaged { .. }) = &result {
            return Err(self.note(damage.clone()));
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(IdleHandle(handle));
        }
        result
    }

    /// The damage that was found so far.
    pub fn damage(&self) -> Option<RepositoryError> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check(&self) -> Result<(), RepositoryError> {
        if let Some(damage) = self.damage() {
            return Err(damage);
        }
        let look = self.packs.lock().unwrap_or_else(PoisonError::into_inner).look(&self.directory);
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
        *self.damage.lock().unwrap_or_else(PoisonError::into_inner) = Some(damage.clone());
        damage
    }

    fn close_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Settings of libgit2, which are of the process.
///
/// It would keep every directory that it ever parsed, in each handle: much memory for what walks meet a few
/// times; see [`Directories`] instead. And it would hash each object each time it is read. A fetch hashes
/// everything that it brings, and damage on disk does not get past the checksums of zlib; `git` reads no more
/// carefully.
static SETTINGS: Once = Once::new();

/// Opens a bare repository that reads no configuration but its own file.
///
/// The user's and the system's Git configuration could rewrite URLs (`url.insteadOf`), add proxies or
/// turn off TLS verification. Opening as bare also skips the check that the directory belongs to the
/// current user, which fails on volumes written under another user id.
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
