//! The tasks that run as long as the process.

use std::collections::HashMap;

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use super::RuntimeError;
use crate::args::BindAddress;
use crate::http_server::{self, HttpServer, ListenError};

/// The tasks that run as long as the process, with names for the log.
#[derive(Default)]
pub struct Tasks {
    running: JoinSet<()>,
    names: HashMap<Id, String>,
}

impl Tasks {
    pub fn spawn(&mut self, name: impl Into<String>, task: impl Future<Output = ()> + Send + 'static) {
        let id = self.running.spawn(task).id();
        self.names.insert(id, name.into());
    }

    /// Runs `server` at `address` until `close` is cancelled. Returns whether the address is on.
    pub async fn serve(
        &mut self,
        address: &BindAddress,
        server: HttpServer,
        close: &CancellationToken,
    ) -> Result<bool, ListenError> {
        let listener = http_server::listen(address, server.purpose).await?;
        Ok(listener
            .map(|listener| self.spawn(server.name(), server.serve(listener, close.clone())))
            .is_some())
    }

    /// Waits until a task ends before `stop` is cancelled. Does not return if none does.
    pub async fn ended_early(&mut self, stop: &CancellationToken) -> RuntimeError {
        while let Some(ended) = self.running.join_next_with_id().await {
            if stop.is_cancelled() {
                continue;
            }
            let (id, cause) = match ended {
                Ok((id, ())) => (id, None),
                Err(error) => (error.id(), Some(error)),
            };
            let name = self.names.remove(&id).unwrap_or_default();
            if let Some(error) = cause {
                tracing::error!(task = name, %error, "a task failed");
            }
            return RuntimeError::TaskEnded(name);
        }
        std::future::pending().await
    }

    /// Aborts all tasks, and waits until they have ended.
    pub async fn shutdown(mut self) {
        self.running.shutdown().await;
    }
}
