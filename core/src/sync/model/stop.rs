//! Why a run ends before its work does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::{Session, SyncError};
use crate::error::Category;
use crate::path::LogicalPath;
use crate::server::{ServerError, TokenRenewal};

/// Refused credentials on this many resources in a row make further calls pointless.
const AUTH_FAILURES: u32 = 3;
/// So does an unreachable server on this many.
const TRANSPORT_FAILURES: u32 = 5;
/// And a secret store that cannot be asked.
const STORE_FAILURES: u32 = 5;

/// Ends a run early: on request (deletion, suspension, a new generation, shutdown, a deadline) or because
/// further calls are pointless. Clones share one state; the first reason stays.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<State>);

#[derive(Debug, Default)]
struct State {
    reason: OnceLock<String>,
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

    /// `session`, whose requests are not sent any more once the run is to end.
    pub(crate) fn bounding(&self, session: &Session) -> Session {
        let client = session.client.until(self.0.requested.clone()).renewing(&self.0.renewal);
        Session { client, ..session.clone() }
    }

    /// What came of the resource at `path`: what was not sent since the run was to end was not attempted. Takes note of
    /// how the server treated it.
    pub(crate) fn outcome<T>(&self, path: &LogicalPath, done: Result<T, SyncError>) -> Result<T, SyncError> {
        let cancelled = matches!(done, Err(SyncError::Server(ServerError::Cancelled { .. })));
        let done = if cancelled { self.check(path).and(done) } else { done };
        self.note(done.as_ref().err());
        done
    }

    /// Fails if the run is to end before it comes to the resource at `path`.
    pub(crate) fn check(&self, path: &LogicalPath) -> Result<(), SyncError> {
        let reason = self.reason().map(str::to_owned);
        reason.map_or(Ok(()), |reason| Err(SyncError::NotAttempted(path.clone(), reason)))
    }

    /// Why the run ends, if it was asked to.
    pub fn reason(&self) -> Option<&str> {
        self.0.reason.get().map(String::as_str)
    }

    /// The category of the failures that made the run give up, if it gave up by itself.
    pub fn aborted_by(&self) -> Option<Category> {
        self.0.aborted_by.get().copied()
    }

    /// Takes note of how the server treated one resource.
    fn note(&self, error: Option<&SyncError>) {
        // One failed list fails all members of its collection alike; that is one failure, of one collection.
        if matches!(error, Some(SyncError::Undecided(..))) {
            return;
        }
        let no_secrets = error.is_some_and(SyncError::is_of_secret_store);
        if is_enough(&self.0.store_failures, no_secrets, STORE_FAILURES) {
            self.request(format!("the secret store failed for {STORE_FAILURES} resources in a row"));
        }
        // The server was not asked then.
        if no_secrets {
            return;
        }
        if is_enough(&self.0.auth_failures, error.is_some_and(SyncError::is_unauthorized), AUTH_FAILURES) {
            let reason = format!("the server refused our credentials {AUTH_FAILURES} times in a row");
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
        // The first one stays, as with reasons.
        let _ = self.0.aborted_by.set(category);
        self.request(reason);
    }
}

/// Whether it failed `limit` times in a row.
fn is_enough(failures: &AtomicU32, failed: bool, limit: u32) -> bool {
    if !failed {
        failures.store(0, Ordering::Relaxed);
        return false;
    }
    failures.fetch_add(1, Ordering::Relaxed) + 1 >= limit
}
