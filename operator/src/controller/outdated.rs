//! Waits until an object changes while a round works on it.

use std::pin::pin;

use futures::{StreamExt as _, future};
use kube::Resource as _;

use super::cache::Cache;
use super::context::Guarded;
use super::kind::{Key, Kind};

/// Waits until the spec of `object` changes, or the object is deleted. Returns the reason why its round must not continue.
pub async fn outdated<K: Kind>(cache: &Cache<Guarded<K>>, object: &K) -> String {
    let (Key { namespace, name }, meta) = (object.key(), object.meta());
    let mut changes = pin!(cache.subscribe());
    loop {
        // Another object may have the name now. The cache may be older than the object that the round read.
        let current = cache.object(&namespace, &name).filter(|current| current.meta().uid == meta.uid);
        let reason = match current.as_ref().map(|current| current.meta()) {
            None => Some("was deleted"),
            Some(current) if current.deletion_timestamp.is_some() => Some("is being deleted"),
            Some(current) => (current.generation > meta.generation).then_some("has another spec now"),
        };
        if let Some(reason) = reason {
            return format!("the {} {reason}", K::NAME);
        }
        if changes.next().await.is_none() {
            future::pending::<()>().await;
        }
    }
}
