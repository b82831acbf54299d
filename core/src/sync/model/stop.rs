//! The early end of a run: on request, or after repeated failures.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::SyncError;
use crate::error::Category;
use crate::path::LogicalPath;
use crate::server::{Client, ServerError, TokenRenewal};

/// A run ends if the server refuses the credentials for this number of resources in a row.
const AUTH_FAILURES: u32 = 3;
/// A run ends if the server is unreachable for this number of resources in a row.
const TRANSPORT_FAILURES: u32 = 5;
/// A run ends if the secret store cannot be read for this number of resources in a row.
const STORE_FAILURES: u32 = 5;

/// Ends a run early: on request (deletion, suspension, a new generation, shutdown, a deadline) or after repeated
/// failures. Clones share one state and keep the first reason.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<State>);

#[derive(Debug, Default)]
struct State {
    reason: OnceLock<String>,
    /// The reason if the first failure ends the run.
    at_failure: OnceLock<String>,
    requested: CancellationToken,
    renewal: TokenRenewal,
    auth_failures: AtomicU32,
    transport_failures: AtomicU32,
    store_failures: AtomicU32,
    aborted_by: OnceLock<Category>,
}

impl Stop {
    /// Asks the run to end; `reason` completes the sentence "not attempted: …".
    pub fn request(&self, reason: impl Into<String>) {
        // A second reason is dropped on purpose: the first one is the cause.
        let _ = self.0.reason.set(reason.into());
        self.0.requested.cancel();
    }

    /// Asks the run to end at the first failure of a resource; `reason` is that of [`Self::request`].
    pub fn request_at_failure(&self, reason: impl Into<String>) {
        let _ = self.0.at_failure.set(reason.into());
    }

    /// Records that a resource failed. Called before a request may start in place of the failed one.
    pub(crate) fn failed(&self) {
        if let Some(reason) = self.0.at_failure.get() {
            self.request(reason.clone());
        }
    }

    /// Returns `client`, but it sends no further requests after the run is asked to end.
    pub(crate) fn bounding(&self, client: &Client) -> Client {
        client.until(self.0.requested.clone()).renewing(&self.0.renewal)
    }

    /// Returns the outcome of the resource at `path`: "not attempted" if the end of the run prevented its request.
    /// Records how the server answered.
    pub(crate) fn outcome<T>(&self, path: &LogicalPath, done: Result<T, SyncError>) -> Result<T, SyncError> {
        let cancelled = matches!(done, Err(SyncError::Server(ServerError::Cancelled { .. })));
        let done = if cancelled { self.check(path).and(done) } else { done };
        self.note(done.as_ref().err());
        done
    }

    /// Fails if the run was asked to end before the resource at `path`.
    pub(crate) fn check(&self, path: &LogicalPath) -> Result<(), SyncError> {
        let reason = self.reason().map(str::to_owned);
        reason.map_or(Ok(()), |reason| Err(SyncError::NotAttempted(path.clone(), reason)))
    }

    /// Returns the reason if the run was asked to end.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.get().map(String::as_str)
    }

    /// Returns the category of the failures, if they ended the run.
    pub fn aborted_by(&self) -> Option<Category> {
        self.0.aborted_by.get().copied()
    }

    /// Records how the server answered for one resource.
    fn note(&self, error: Option<&SyncError>) {
        if error.is_some() {
            self.failed();
        }
        // A failed list fails all members of its collection. This counts as one failure of the collection.
        if matches!(error, Some(SyncError::Undecided(..))) {
            return;
        }
        let no_secrets = error.is_some_and(SyncError::is_of_secret_store);
        if is_enough(&self.0.store_failures, no_secrets, STORE_FAILURES) {
            self.request(format!("the secret store failed for {STORE_FAILURES} resources in a row"));
        }
        // No request was sent to the server.
        if no_secrets {
            return;
        }
        if is_enough(&self.0.auth_failures, error.is_some_and(SyncError::is_unauthorized), AUTH_FAILURES) {
            let reason =
                format!("the server rejected the credentials for {AUTH_FAILURES} resources in a row");
            self.abort(Category::Auth, reason);
        }
        let unreachable = error.is_some_and(SyncError::is_unreachable);
        if is_enough(&self.0.transport_failures, unreachable, TRANSPORT_FAILURES) {
            let reason =
                format!("the server could not be reached for {TRANSPORT_FAILURES} resources in a row");
            self.abort(Category::Transport, reason);
        }
    }

    fn abort(&self, category: Category, reason: String) {
        // The first category is kept, as the first reason is.
        let _ = self.0.aborted_by.set(category);
        self.request(reason);
    }
}

/// Records a result. Returns whether there were `limit` failures in a row.
fn is_enough(failures: &AtomicU32, failed: bool, limit: u32) -> bool {
    if !failed {
        failures.store(0, Ordering::Relaxed);
        return false;
    }
    failures.fetch_add(1, Ordering::Relaxed) + 1 >= limit
}
