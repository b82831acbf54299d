//! Which requests of a run may be sent at once.

use std::collections::HashMap;
use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore, SemaphorePermit};

use crate::server::Request;

/// The permission to send one request.
pub struct Turn<'a> {
    _shared: Option<OwnedRwLockReadGuard<()>>,
    _alone: Option<OwnedRwLockWriteGuard<()>>,
    _slot: Option<SemaphorePermit<'a>>,
}

/// The turns of the requests of one run.
pub struct Turns {
    /// One slot for each request that may run at once. An action that waits for a slot can still be stopped.
    slots: Semaphore,
    /// A lock for each address that is written: several resources may share an address.
    addresses: Mutex<HashMap<String, Arc<RwLock<()>>>>,
}

impl Turns {
    /// Returns the turns of a run that sends up to `concurrency` requests at once.
    pub fn new(concurrency: usize) -> Self {
        Self { slots: Semaphore::new(concurrency), addresses: Mutex::default() }
    }

    /// Returns the number of requests that may be sent at once, at least one.
    pub fn at_once(&self) -> usize {
        self.slots.available_permits().max(1)
    }

    /// Waits until the request may be sent. The result is held until it was answered.
    pub async fn take(&self, request: &Request) -> Turn<'_> {
        let address = self.address(&request.path);
        // Several POST requests to an address may run at once, but not together with another write.
        let (shared, alone) = if request.method == Method::POST {
            (Some(address.read_owned().await), None)
        } else {
            (None, Some(address.write_owned().await))
        };
        // The semaphore is never closed.
        let slot = self.slots.acquire().await.ok();
        Turn { _shared: shared, _alone: alone, _slot: slot }
    }

    fn address(&self, path: &str) -> Arc<RwLock<()>> {
        let mut addresses = self.addresses.lock();
        // Drops locks that no action uses.
        if addresses.len() > 1024 {
            addresses.retain(|_, address| Arc::strong_count(address) > 1);
        }
        Arc::clone(addresses.entry(path.to_owned()).or_default())
    }
}
