//! The open mirrors of all repositories: one per ResourceRepository, shared by fetches and syncs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use declarest_core::repository::{Mirror, RepositoryError};

use super::kind::Key;

/// Where a mirror is and what it is a mirror of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub directory: PathBuf,
    /// Names the URL and the object's uid: a mirror of anything else is discarded.
    pub binding: String,
}

/// The open mirrors.
#[derive(Debug, Default)]
pub struct Mirrors {
    open: Mutex<HashMap<Key, (Place, Mirror)>>,
}

impl Mirrors {
    /// The mirror of a repository. Opens it, or makes an empty one, if it is not open at `place`. Blocks.
    pub fn open(&self, repository: &Key, place: &Place) -> Result<Mirror, RepositoryError> {
        // The lock is held while a mirror is opened, because it must not be opened twice.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, mirror)) = open.get(repository)
            && at == place
        {
            return Ok(mirror.clone());
        }
        open.remove(repository);
        let mirror = Mirror::open(&place.directory, &place.binding)?;
        open.insert(repository.clone(), (place.clone(), mirror.clone()));
        Ok(mirror)
    }

    /// The mirror of a repository, if its controller has opened it.
    pub fn get(&self, repository: &Key) -> Option<Mirror> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(repository).map(|(_, mirror)| mirror.clone())
    }

    /// All mirrors of a namespace.
    pub fn of_namespace(&self, namespace: &str) -> Vec<Mirror> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.iter().filter(|(key, _)| key.namespace == namespace);
        own.map(|(_, (_, mirror))| mirror.clone()).collect()
    }

    /// Closes a mirror and returns it with its place, if it was open. Trees that are in use may still be read.
    pub fn close(&self, repository: &Key) -> Option<(Place, Mirror)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(repository)
    }
}
