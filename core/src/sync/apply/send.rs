//! Sends the requests of actions, each when its turn comes.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::turns::Turn;
use super::write::Writer;
use crate::path::LogicalPath;
use crate::sync::model::{Action, Call, Done, Step, SyncError};
use crate::sync::plan::referred::still_needed;

impl Writer {
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
            SyncError::Server(_) | SyncError::Fixed(_) if self.has_created(&action.path) => {
                SyncError::Incomplete(Box::new(error))
            }
            other => other,
        })
    }

    async fn prepare_and_write(&self, action: &Action) -> Result<Done, SyncError> {
        let prepared = self.prepare(action).await?;
        let action = prepared.as_deref().unwrap_or(action);
        let Some(call) = action.call() else { return Ok(Done::NOTHING) };
        let written = {
            let _turn = self.turn(action, call).await?;
            self.write(action, call).await
        };
        let written = match written {
            Ok((done, update)) => match update.as_deref().and_then(|update| Some((update, update.call()?))) {
                // Its address may be that of other resources, and requests to one address are sent one after the other.
                Some((update, sent)) => {
                    let _turn = self.turn(action, sent).await?;
                    self.complete((action, call), (update, sent)).await.map(|()| done)
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

    /// Waits until the request may be sent. Fails if the run was asked to end before.
    async fn turn(&self, action: &Action, call: &Call) -> Result<Turn<'_>, SyncError> {
        let turn = self.turns.take(&call.request).await;
        self.stop.check(&action.path)?;
        Ok(turn)
    }
}
