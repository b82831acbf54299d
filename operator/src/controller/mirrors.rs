//! The open mirrors of all repositories: one per ResourceRepository, shared by fetches and syncs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use declarest_core::repository::{Mirror, RepositoryError};
use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::identity::Turns;
use super::kind::Key;
use crate::fanout::Fanout;

/// Minimum time between two replacements of a damaged mirror. If a disk damages it again sooner, an administrator
/// must act.
const RENEWALS_APART: Duration = Duration::from_secs(30);

/// The directory of a mirror and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub directory: PathBuf,
    /// URL and uid of the object. A mirror with another binding is discarded.
    pub binding: String,
}

/// The open mirrors. Locks are held only briefly, and never during disk access.
#[derive(Default)]
pub struct Mirrors {
    open: Mutex<HashMap<Key, Opened>>,
    /// A mirror must not be opened twice at the same time.
    turns: Turns,
    /// Mirrors that may be damaged.
    suspected: Fanout<Key>,
    /// Mirrors that have become current.
    renewed: Fanout<Key>,
}

#[derive(Clone)]
struct Opened {
    place: Place,
    mirror: Mirror,
    /// When it was last replaced because of damage.
    renewed: Option<Instant>,
    /// Whether it has the revision that its repository shows.
    current: bool,
}

impl Mirrors {
    /// Waits for the turn to open the mirror of a repository.
    pub async fn turn(&self, repository: &Key) -> OwnedMutexGuard<()> {
        self.turns.wait(repository).await
    }

    /// Returns the mirror of a repository. Call it with the turn of the repository. If the mirror is not open at
    /// `place`, opens it or creates an empty one. A damaged mirror is discarded and replaced. Blocks.
    ///
    /// # Errors
    /// The damage, if a damaged mirror was replaced less than 30 s ago.
    pub fn open(
        &self,
        _turn: &OwnedMutexGuard<()>,
        repository: &Key,
        place: &Place,
    ) -> Result<Mirror, RepositoryError> {
        let known = self.known(repository).filter(|known| known.place == *place);
        let damage = known.as_ref().map(|known| known.mirror.verify());
        let (mirror, renewed) = match (known, damage) {
            (Some(known), Some(Ok(()))) => return Ok(known.mirror),
            (Some(known), Some(Err(damage))) => {
                if known.renewed.is_some_and(|renewed| renewed.elapsed() < RENEWALS_APART) {
                    return Err(damage);
                }
                tracing::warn!(error = %damage, "the mirror is damaged; it is discarded and fetched again");
                (Mirror::open_empty(&place.directory, &place.binding)?, Some(Instant::now()))
            }
            _ => (Mirror::open(&place.directory, &place.binding)?, None),
        };
        let opened = Opened { place: place.clone(), mirror: mirror.clone(), renewed, current: false };
        self.open.lock().insert(repository.clone(), opened);
        Ok(mirror)
    }

    fn known(&self, repository: &Key) -> Option<Opened> {
        self.open.lock().get(repository).cloned()
    }

    /// Returns the mirror of a repository, if it is current. After a start, and after damage, it may be open and empty.
    pub fn get(&self, repository: &Key) -> Option<Mirror> {
        self.known(repository).filter(|opened| opened.current).map(|opened| opened.mirror)
    }

    /// Records that the mirror has the revision that its repository shows.
    pub fn set_current(&self, repository: &Key) {
        let mut open = self.open.lock();
        let before = open.get_mut(repository).map(|opened| std::mem::replace(&mut opened.current, true));
        drop(open);
        if before == Some(false) {
            self.renewed.send(|| vec![repository.clone()]);
        }
    }

    /// Returns the repositories whose mirrors become current.
    pub fn renewals(&self) -> impl Stream<Item = Key> + Send + use<> {
        self.renewed.subscribe(Vec::new)
    }

    /// Returns all open mirrors of a namespace.
    pub fn of_namespace(&self, namespace: &str) -> Vec<Mirror> {
        let open = self.open.lock();
        let own = open.iter().filter(|(key, _)| key.namespace == namespace);
        own.map(|(_, opened)| opened.mirror.clone()).collect()
    }

    /// Closes a mirror and returns it with its place, if it was open. Trees in use can still be read.
    pub fn close(&self, repository: &Key) -> Option<(Place, Mirror)> {
        let mut open = self.open.lock();
        open.remove(repository).map(|opened| (opened.place, opened.mirror))
    }

    /// Forgets a deleted repository.
    pub fn forget(&self, repository: &Key) {
        let _ = self.close(repository);
        self.turns.forget(repository);
    }

    /// Requests a check of a mirror that could not be read.
    pub fn suspect(&self, repository: &Key) {
        self.suspected.send(|| vec![repository.clone()]);
    }

    /// Returns the repositories whose mirrors must be checked.
    pub fn suspects(&self) -> impl Stream<Item = Key> + Send + use<> {
        self.suspected.subscribe(Vec::new)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;
    use std::sync::Arc;

    use super::*;

    fn place(directory: PathBuf) -> Place {
        Place { directory, binding: "binding".to_owned() }
    }

    fn key(name: &str) -> Key {
        Key::new("team".to_owned(), name.to_owned())
    }

    /// Opening reads the binding, which is a pipe in this test, so it blocks until something is written.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_blocked_disk_does_not_delay_other_repositories() {
        let directory = tempfile::tempdir().unwrap();
        let (slow, fast) = (directory.path().join("slow"), directory.path().join("fast"));
        fs::create_dir(&slow).unwrap();
        assert!(Command::new("mkfifo").arg(slow.join("binding")).status().unwrap().success());
        let mirrors = Arc::new(Mirrors::default());
        let hanging = tokio::task::spawn_blocking({
            let (mirrors, slow) = (Arc::clone(&mirrors), place(slow.clone()));
            let turn = mirrors.turn(&key("slow")).await;
            move || mirrors.open(&turn, &key("slow"), &slow).map(drop)
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!hanging.is_finished());
        let others = tokio::time::timeout(Duration::from_secs(10), async {
            let turn = mirrors.turn(&key("fast")).await;
            mirrors.open(&turn, &key("fast"), &place(fast)).unwrap();
            assert!(mirrors.get(&key("slow")).is_none());
            assert_eq!(mirrors.of_namespace("team").len(), 1);
        });
        others.await.unwrap();
        let again = tokio::time::timeout(Duration::from_millis(100), mirrors.turn(&key("slow"))).await;
        assert!(again.is_err(), "a mirror is not opened twice at the same time");
        fs::write(slow.join("binding"), "of something else").unwrap();
        hanging.await.unwrap().unwrap();
        assert!(mirrors.get(&key("slow")).is_none(), "it is empty");
        mirrors.set_current(&key("slow"));
        assert!(mirrors.get(&key("slow")).is_some());
    }

    #[tokio::test]
    async fn a_mirror_that_is_damaged_again_at_once_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(directory.path().join("mirror"));
        let mirrors = Mirrors::default();
        let turn = mirrors.turn(&key("repo")).await;
        let open = || mirrors.open(&turn, &key("repo"), &place);
        let damage = || fs::remove_dir_all(place.directory.join("git")).unwrap();
        open().unwrap();
        damage();
        std::thread::sleep(Duration::from_millis(50));
        open().unwrap().verify().unwrap();
        damage();
        std::thread::sleep(Duration::from_millis(50));
        let error = open().unwrap_err();
        assert!(matches!(error, RepositoryError::Damaged { .. }), "{error}");
    }
}
