//! Sends the requests of actions, each when its turn comes.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::Method;
use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore, SemaphorePermit};

use super::write::Writer;
use crate::path::LogicalPath;
use crate::sync::model::{Action, Call, Done, Step, Stop, SyncError};
use crate::sync::plan::referred::still_needed;

/// The permission to send one request.
struct Turn<'a> {
    _shared: Option<OwnedRwLockReadGuard<()>>,
    _alone: Option<OwnedRwLockWriteGuard<()>>,
    _slot: Option<SemaphorePermit<'a>>,
}

/// The state that the tasks of one run share.
pub struct Sender {
    pub writer: Writer,
    /// One slot for each request that may run at once. An action that waits for a slot can still be stopped.
    pub slots: Semaphore,
    /// A lock for each address that is written: several resources may share an address.
    addresses: Mutex<HashMap<String, Arc<RwLock<()>>>>,
    pub stop: Stop,
}

impl Sender {
    pub fn new(writer: Writer, concurrency: usize, stop: &Stop) -> Self {
        Self { writer, slots: Semaphore::new(concurrency), addresses: Mutex::default(), stop: stop.clone() }
    }

    /// Executes `action`, unless it must not be executed because `failed` was not: its parent was not created, or what
    /// depends on it was not deleted. Returns a boxed future, because the compiler limits the depth of types.
    pub fn send(
        self: Arc<Self>,
        action: Arc<Action>,
        failed: Option<LogicalPath>,
    ) -> BoxFuture<'static, Result<Done, SyncError>> {
        Box::pin(async move { self.attempt(&action, failed).await })
    }

    async fn attempt(&self, action: &Action, failed: Option<LogicalPath>) -> Result<Done, SyncError> {
        if let Some(failed) = failed {
            let path = &action.path;
            return Err(if action.step == Step::Delete {
                still_needed(path, &failed)
            } else {
                SyncError::ParentFailed(path.clone(), failed)
            });
        }
        self.stop.check(&action.path)?;
        if action.is_impossible() {
            let reason = "its request cannot be made".to_owned();
            return Err(SyncError::NotAttempted(action.path.clone(), reason));
        }
        let outcome = self.stop.written(&action.path, self.prepare_and_write(action).await);
        outcome.map_err(|error| match error {
            SyncError::Server(_) | SyncError::Fixed(_) if self.writer.has_created(&action.path) => {
                SyncError::Incomplete(Box::new(error))
            }
            other => other,
        })
    }

    async fn prepare_and_write(&self, action: &Action) -> Result<Done, SyncError> {
        let prepared = self.writer.prepare(action).await?;
        let action = prepared.as_deref().unwrap_or(action);
        let Some(call) = action.call() else { return Ok(Done::NOTHING) };
        let written = {
            let _turn = self.turn(action, call).await?;
            self.writer.write(action, call).await
        };
        let written = match written {
            Ok((done, update)) => match update.as_deref().and_then(|update| Some((update, update.call()?))) {
                // Its address may be that of other resources, and requests to one address are sent one after the other.
                Some((update, sent)) => {
                    let _turn = self.turn(action, sent).await?;
                    self.writer.complete((action, call), (update, sent)).await.map(|()| done)
                }
                None => Ok(done),
            },
            Err(error) => Err(error),
        };
        if written.is_err() {
            self.stop.failed();
        }
        written
    }

    /// Waits until the request may be sent. The result is held until it was answered.
    async fn turn(&self, action: &Action, call: &Call) -> Result<Turn<'_>, SyncError> {
        let address = self.address(&call.request.path);
        // Several POST requests to an address may run at once, but not together with another write.
        let (shared, alone) = if call.request.method == Method::POST {
            (Some(address.read_owned().await), None)
        } else {
            (None, Some(address.write_owned().await))
        };
        // The semaphore is never closed.
        let slot = self.slots.acquire().await.ok();
        self.stop.check(&action.path)?;
        Ok(Turn { _shared: shared, _alone: alone, _slot: slot })
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
