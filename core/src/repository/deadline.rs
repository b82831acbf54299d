//! The end of a connection to a remote.

use std::future::Future;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

/// The end of a fetch or a push: a time, or a cancellation before it.
#[derive(Clone, Debug)]
pub struct Deadline {
    at: Instant,
    cancelled: CancellationToken,
}

impl Deadline {
    /// Returns a deadline at `at`, or earlier if `cancelled` is cancelled.
    pub fn new(at: Instant, cancelled: CancellationToken) -> Self {
        Self { at, cancelled }
    }

    pub(super) fn has_passed(&self) -> bool {
        Instant::now() >= self.at || self.cancelled.is_cancelled()
    }

    /// Runs `work` until the deadline; `None` if it has passed.
    pub(super) async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let work = self.cancelled.run_until_cancelled(work);
        tokio::time::timeout_at(self.at.into(), work).await.ok().flatten()
    }
}

impl From<Instant> for Deadline {
    fn from(at: Instant) -> Self {
        Self::new(at, CancellationToken::new())
    }
}
