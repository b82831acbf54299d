//! The early end of a run: on request, or after repeated failures.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
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
///
/// Behind a gateway, one of several servers may be down while the others answer. If other resources were read before, only
/// the further resources below the same path as the failed ones are left out.
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
    transport_failures: Mutex<Streak>,
    store_failures: AtomicU32,
    /// Whether a resource succeeded since the start of the run, or since resources were left out.
    succeeds: AtomicBool,
    /// The paths below which no further resource is read, with the reasons.
    left_out: Mutex<Vec<(LogicalPath, String)>>,
    aborted_by: OnceLock<Category>,
    /// The path that contains the resources whose failures ended the run.
    aborted_at: OnceLock<LogicalPath>,
}

/// Failures in a row, and the closest path that contains these resources.
#[derive(Debug, Default)]
struct Streak {
    failures: u32,
    scope: Option<LogicalPath>,
}

impl Streak {
    /// Records a result for the resource at `path`. Returns the path that contains the failed resources if this is the
    /// last of `limit` failures in a row.
    fn record(&mut self, path: &LogicalPath, failed: bool, limit: u32) -> Option<LogicalPath> {
        let Self { failures, scope } = mem::take(self);
        if !failed {
            return None;
        }
        let scope = match scope {
            Some(scope) => scope.common(path),
            None => path.collection(),
        };
        if failures + 1 >= limit {
            return Some(scope);
        }
        *self = Self { failures: failures + 1, scope: Some(scope) };
        None
    }
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

    /// Returns the outcome of a write of the resource at `path`: "not attempted" if the end of the run prevented its
    /// request. Records how the server answered.
    pub(crate) fn written<T>(&self, path: &LogicalPath, done: Result<T, SyncError>) -> Result<T, SyncError> {
        self.outcome(path, done, false)
    }

    /// As [`Self::written`], for a resource that was read.
    pub(crate) fn read<T>(&self, path: &LogicalPath, done: Result<T, SyncError>) -> Result<T, SyncError> {
        self.outcome(path, done, true)
    }

    fn outcome<T>(
        &self,
        path: &LogicalPath,
        done: Result<T, SyncError>,
        is_read: bool,
    ) -> Result<T, SyncError> {
        let cancelled = matches!(done, Err(SyncError::Server(ServerError::Cancelled { .. })));
        let done = if cancelled { self.check(path).and(done) } else { done };
        self.note(path, done.as_ref().err(), is_read);
        done
    }

    /// Waits until the run is asked to end.
    pub(crate) async fn requested(&self) {
        self.0.requested.cancelled().await;
    }

    /// Fails if the run was asked to end before the resource at `path`.
    pub(crate) fn check(&self, path: &LogicalPath) -> Result<(), SyncError> {
        let reason = self.reason().map(str::to_owned);
        reason.map_or(Ok(()), |reason| Err(SyncError::NotAttempted(path.clone(), reason)))
    }

    /// Fails if the resource at `path` is not to be read.
    pub(crate) fn check_read(&self, path: &LogicalPath) -> Result<(), SyncError> {
        self.check(path)?;
        let left_out = self.0.left_out.lock();
        let reason = left_out.iter().find(|(scope, _)| path.is_within(scope));
        reason.map_or(Ok(()), |(_, reason)| Err(SyncError::NotAttempted(path.clone(), reason.clone())))
    }

    /// Returns the reason if the run was asked to end.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.get().map(String::as_str)
    }

    /// Returns the path below which resources were left out last.
    pub(crate) fn left_out(&self) -> Option<LogicalPath> {
        self.0.left_out.lock().last().map(|(scope, _)| scope.clone())
    }

    /// Returns the category of the failures, if they ended the run.
    pub fn aborted_by(&self) -> Option<Category> {
        self.0.aborted_by.get().copied()
    }

    /// Returns the closest path that contains the unreachable resources, if they ended the run.
    pub(crate) fn aborted_at(&self) -> Option<&LogicalPath> {
        self.0.aborted_at.get()
    }

    /// Records how the server answered for one resource.
    fn note(&self, path: &LogicalPath, error: Option<&SyncError>, is_read: bool) {
        if error.is_some() {
            self.failed();
        } else {
            self.0.succeeds.store(true, Ordering::Relaxed);
        }
        // A failed list fails all members of its collection. This counts as one failure of the collection. A resource that
        // is left out was not read, or its request was under way.
        if matches!(error, Some(SyncError::Undecided(..))) || self.check_read(path).is_err() {
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
        let scope = self.0.transport_failures.lock().record(path, unreachable, TRANSPORT_FAILURES);
        if let Some(scope) = scope {
            self.give_up(scope, is_read);
        }
    }

    /// Leaves out the resources below `scope`, where the server could not be reached. Ends the run if no other resource
    /// was read before, or none since the last time.
    fn give_up(&self, scope: LogicalPath, is_read: bool) {
        let reason = format!("the server could not be reached for {TRANSPORT_FAILURES} resources in a row");
        if is_read && !scope.is_root() && self.0.succeeds.swap(false, Ordering::Relaxed) {
            let reason = format!("{reason} below {scope}");
            self.0.left_out.lock().push((scope, reason));
            return;
        }
        let _ = self.0.aborted_at.set(scope);
        self.abort(Category::Transport, reason);
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
