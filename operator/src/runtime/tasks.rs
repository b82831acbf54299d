//! The tasks that run as long as the process.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

use super::RuntimeError;
use crate::args::BindAddress;
use crate::http_server::{self, HttpServer, ListenError};

/// The maximum time of requests in flight after the servers begin to close.
const DRAIN: Duration = Duration::from_secs(10);

/// The tasks that run as long as the process, with names for the log.
#[derive(Default)]
pub struct Tasks {
    running: JoinSet<()>,
    names: HashMap<Id, String>,
    servers: HashSet<Id>,
}

impl Tasks {
    pub fn spawn(&mut self, name: impl Into<String>, task: impl Future<Output = ()> + Send + 'static) -> Id {
        let id = self.running.spawn(task).id();
        self.names.insert(id, name.into());
        id
    }

    /// Runs `server` at `address` until `close` is cancelled. Returns whether the address is on.
    pub async fn serve(
        &mut self,
        address: &BindAddress,
        server: HttpServer,
        close: &CancellationToken,
    ) -> Result<bool, ListenError> {
        let listener = http_server::listen(address, server.purpose).await?;
        let Some(listener) = listener else { return Ok(false) };
        self.spawn_server(server.name(), server.serve(listener, close.clone()));
        Ok(true)
    }

    /// Runs a server that completes the requests in flight before it ends.
    pub fn spawn_server(
        &mut self,
        name: impl Into<String>,
        server: impl Future<Output = ()> + Send + 'static,
    ) {
        let id = self.spawn(name, server);
        self.servers.insert(id);
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
            self.servers.remove(&id);
            let name = self.names.remove(&id).unwrap_or_default();
            if let Some(error) = cause {
                tracing::error!(task = name, %error, "a task failed");
            }
            return RuntimeError::TaskEnded(name);
        }
        std::future::pending().await
    }

    /// Waits until the servers have completed the requests in flight, then aborts the other tasks and waits until they
    /// have ended. The servers must have begun to close.
    pub async fn shutdown(mut self) {
        let drained = async {
            while !self.servers.is_empty() {
                let Some(ended) = self.running.join_next_with_id().await else { break };
                let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                self.servers.remove(&id);
            }
        };
        // Their own limits are not longer.
        let _ = tokio::time::timeout(DRAIN, drained).await;
        self.running.shutdown().await;
    }
}
