//! The statuses of the answers of a managed server, for hints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use declarest_core::server::RequestObserver;
use http::{Method, StatusCode};

/// The number of answers with status 404, and of others.
#[derive(Debug, Default)]
pub struct Statuses {
    missing: AtomicUsize,
    others: AtomicUsize,
}

impl Statuses {
    /// Whether the server answered 404 to more requests than one missing resource needs, and had no other answer.
    pub fn are_all_missing(&self) -> bool {
        self.others.load(Ordering::Relaxed) == 0 && self.missing.load(Ordering::Relaxed) > 2
    }

    /// Forgets the answers so far.
    pub fn forget(&self) {
        self.missing.store(0, Ordering::Relaxed);
        self.others.store(0, Ordering::Relaxed);
    }
}

impl RequestObserver for Statuses {
    fn completed(&self, _: &Method, status: Option<StatusCode>, _: Duration) {
        let count = if status == Some(StatusCode::NOT_FOUND) { &self.missing } else { &self.others };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn throttled(&self, _: bool) {}
}
