//! What something was built from, so that it is built again when that changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::context::Context;
use super::kind::{Key, Kind};

/// An object in one generation, with the Secrets that it refers to in one version. Rotated Secrets are noticed by
/// this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    uid: Option<String>,
    generation: Option<i64>,
    secret_versions: Vec<(String, Option<String>)>,
}

impl Identity {
    /// The identity of `object`, whose placeholders are expanded, as of now. To be taken before Secrets are read:
    /// a rotation in between then builds once more.
    pub fn of<K: Kind>(context: &Context, object: &K) -> Self {
        let namespace = object.key().namespace;
        let version = |name: &str| {
            let stored = context.caches.secrets.object(&namespace, name);
            stored.and_then(|stored| stored.metadata.resource_version.clone())
        };
        let secrets = object.secret_refs();
        Self {
            uid: object.meta().uid.clone(),
            generation: object.meta().generation,
            secret_versions: secrets
                .into_iter()
                .map(|(_, secret)| (secret.name.clone(), version(&secret.name)))
                .collect(),
        }
    }
}

/// Turns in building: who waited for one finds what the others built, and logs in no second time.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<Key, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until nobody else builds for the object; held until dropped.
    pub async fn wait(&self, key: &Key) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(turns.entry(key.clone()).or_default())
        };
        turn.lock_owned().await
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
