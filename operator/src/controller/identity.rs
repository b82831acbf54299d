//! Identities of the inputs that clients and stores are built from. If an identity changes, they are built again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::context::Context;
use super::error::Failure;
use super::kind::{Key, Kind};

/// An object in one generation, with the versions of its Secrets, so that rotated Secrets are detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    uid: Option<String>,
    generation: Option<i64>,
    secret_versions: Vec<(String, Option<String>)>,
}

impl Identity {
    /// Returns the current identity of `object`, which is expanded. Call it before Secrets are read, so that a
    /// rotation in between changes the identity.
    pub fn of<K: Kind>(context: &Context, object: &K) -> Self {
        let namespace = object.key().namespace;
        let version = |name: &str| {
            let stored = context.caches.secrets.object(&namespace, name);
            stored.and_then(|stored| stored.metadata.resource_version.clone())
        };
        Self {
            uid: object.meta().uid.clone(),
            generation: object.meta().generation,
            secret_versions: object
                .secret_refs()
                .into_iter()
                .map(|(_, secret)| (secret.name.clone(), version(&secret.name)))
                .collect(),
        }
    }
}

/// What was built from each object, with the identity of its inputs.
pub struct Built<T> {
    known: Mutex<HashMap<Key, (Identity, T)>>,
    turns: Turns,
}

impl<T> Default for Built<T> {
    fn default() -> Self {
        Self { known: Mutex::default(), turns: Turns::default() }
    }
}

impl<T: Clone> Built<T> {
    /// Returns what was built from the object with this identity, or awaits `build`. Other tasks wait for its result.
    pub async fn get(
        &self,
        key: Key,
        identity: Identity,
        build: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        if let Some(built) = self.find(&key, &identity) {
            return Ok(built);
        }
        let _turn = self.turns.wait(&key).await;
        // Another task may have built it in the meantime.
        if let Some(built) = self.find(&key, &identity) {
            return Ok(built);
        }
        let built = build.await?;
        self.known.lock().insert(key, (identity, built.clone()));
        Ok(built)
    }

    /// Forgets what was built from an object, so that it is built again when it is needed.
    pub fn forget(&self, key: &Key) {
        self.known.lock().remove(key);
        self.turns.forget(key);
    }

    fn find(&self, key: &Key, identity: &Identity) -> Option<T> {
        let known = self.known.lock();
        let (built_from, built) = known.get(key)?;
        (built_from == identity).then(|| built.clone())
    }
}

/// Locks per object for building. A task that waited finds the result of the other task, and does not log in again.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until no other task builds for the object. The turn is held until it is dropped.
    pub async fn wait(&self, key: &Key) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock();
            Arc::clone(turns.entry(key.clone()).or_default())
        };
        turn.lock_owned().await
    }

    /// Forgets a deleted object, unless a task holds its turn or waits for it.
    pub fn forget(&self, key: &Key) {
        let mut turns = self.0.lock();
        if turns.get(key).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            turns.remove(key);
        }
    }
}
