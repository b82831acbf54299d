//! Identities of the inputs that clients and stores are built from. If an identity changes, they are built again.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::context::Context;
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
