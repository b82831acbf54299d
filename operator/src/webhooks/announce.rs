//! Writes the annotations that announce a delivery, at most once per second for each repository.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use crate::controller::kind::Key;
use crate::controller::resource_repository::{DELIVERY_ID, RECEIVED_AT};
use crate::crd::ResourceRepository;

/// The shortest time between two writes for one repository.
const PAUSE: Duration = Duration::from_secs(1);

/// Announces deliveries.
pub struct Announcer {
    client: Client,
    bursts: Mutex<HashMap<Key, Arc<Burst>>>,
}

/// The deliveries for one repository that arrive faster than they are written.
#[derive(Default)]
struct Burst {
    /// The number of deliveries so far, and the id of the last one.
    last: Mutex<(u64, Option<String>)>,
    /// Held while one delivery is written for all that arrived before.
    written: tokio::sync::Mutex<Option<Written>>,
}

#[derive(Clone, Copy)]
struct Written {
    at: Instant,
    /// How many deliveries were covered.
    count: u64,
    success: bool,
}

impl Announcer {
    pub fn new(client: Client) -> Self {
        Self { client, bursts: Mutex::default() }
    }

    /// Announces a delivery, or a later one of the same burst. Returns whether the write succeeded.
    pub async fn announce(&self, repository: &Key, delivery: Option<&str>) -> bool {
        let burst = self.burst(repository);
        let mine = burst.add(delivery);
        let mut written = burst.written.lock().await;
        // Another task may have written this delivery, or a later one, while this task waited.
        if let Some(last) = *written
            && last.count >= mine
        {
            return last.success;
        }
        if let Some(last) = *written {
            tokio::time::sleep_until(last.at + PAUSE).await;
        }
        let (count, delivery) = burst.last();
        let success = self.write(repository, delivery.as_deref()).await;
        *written = Some(Written { at: Instant::now(), count, success });
        success
    }

    fn burst(&self, repository: &Key) -> Arc<Burst> {
        let mut bursts = self.bursts.lock();
        bursts.retain(|_, burst| Arc::strong_count(burst) > 1 || burst.is_fresh());
        Arc::clone(bursts.entry(repository.clone()).or_default())
    }

    async fn write(&self, repository: &Key, delivery: Option<&str>) -> bool {
        let received = format!("{:.9}", Timestamp::now());
        // A null removes the annotation, if the Git host sent no id.
        let annotations = json!({RECEIVED_AT: received, DELIVERY_ID: delivery});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        let objects: Api<ResourceRepository> = Api::namespaced(self.client.clone(), &repository.namespace);
        let written = objects.patch_metadata(&repository.name, &PatchParams::default(), &patch).await;
        if let Err(error) = &written {
            tracing::warn!(
                namespace = repository.namespace,
                name = repository.name,
                %error,
                "cannot announce a webhook delivery; the next poll fetches the commits"
            );
        }
        written.is_ok()
    }
}

impl Burst {
    fn add(&self, delivery: Option<&str>) -> u64 {
        let mut last = self.last.lock();
        *last = (last.0 + 1, delivery.map(str::to_owned));
        last.0
    }

    fn last(&self) -> (u64, Option<String>) {
        self.last.lock().clone()
    }

    /// Returns whether the next write has to wait.
    fn is_fresh(&self) -> bool {
        let written = self.written.try_lock().map(|written| *written);
        written.is_ok_and(|written| written.is_some_and(|written| written.at.elapsed() < PAUSE))
    }
}
