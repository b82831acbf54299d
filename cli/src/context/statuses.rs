//! The statuses of the answers of a managed server, for hints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use declarest_core::server::RequestObserver;
use http::{Method, StatusCode};

/// The number of failed requests from which a server may be overloaded.
const MANY: usize = 5;

/// The numbers of answers with success, with status 404, of failures of the server, with status 401, with status 403, and of others.
#[derive(Debug, Default)]
pub struct Statuses {
    accepted: AtomicUsize,
    missing: AtomicUsize,
    /// Answers with a status from 500, and requests without an answer.
    failed: AtomicUsize,
    rejected: AtomicUsize,
    forbidden: AtomicUsize,
    others: AtomicUsize,
}

impl Statuses {
    /// Whether the server answered 404 to more requests than one missing resource needs, and had no other answer.
    pub fn are_all_missing(&self) -> bool {
        let others = [&self.accepted, &self.failed, &self.rejected, &self.forbidden, &self.others];
        others.iter().all(|count| count.load(Ordering::Relaxed) == 0)
            && self.missing.load(Ordering::Relaxed) > 2
    }

    /// Whether the server accepted a request.
    pub fn have_success(&self) -> bool {
        self.accepted.load(Ordering::Relaxed) > 0
    }

    /// Whether the server rejected credentials, and never only a right of theirs.
    pub fn reject_credentials(&self) -> bool {
        self.rejected.load(Ordering::Relaxed) > 0 && self.forbidden.load(Ordering::Relaxed) == 0
    }

    /// Whether the server accepted requests, and failed many others.
    pub fn show_overload(&self) -> bool {
        self.have_success() && self.failed.load(Ordering::Relaxed) >= MANY
    }

    /// Forgets the answers so far.
    pub fn forget(&self) {
        for count in
            [&self.accepted, &self.missing, &self.failed, &self.rejected, &self.forbidden, &self.others]
        {
            count.store(0, Ordering::Relaxed);
        }
    }
}

impl RequestObserver for Statuses {
    fn completed(&self, _: &Method, status: Option<StatusCode>, _: Duration) {
        let count = match status {
            Some(StatusCode::NOT_FOUND) => &self.missing,
            Some(StatusCode::UNAUTHORIZED) => &self.rejected,
            Some(StatusCode::FORBIDDEN) => &self.forbidden,
            Some(status) if status.is_success() => &self.accepted,
            Some(status) if !status.is_server_error() => &self.others,
            _ => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn throttled(&self, _: bool) {}
}
