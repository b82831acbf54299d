//! The statuses of the answers of a managed server, for hints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use declarest_core::server::RequestObserver;
use http::{Method, StatusCode};

/// The number of failed requests from which a server may be overloaded.
const MANY: usize = 5;

/// The kinds of answers.
#[derive(Clone, Copy)]
enum Kind {
    Accepted,
    /// Status 404.
    Missing,
    /// Status 401.
    Rejected,
    /// Status 403.
    Forbidden,
    /// A status from 500, or no answer.
    Failed,
    Other,
}

/// The number of answers of each [`Kind`].
#[derive(Debug, Default)]
pub struct Statuses([AtomicUsize; 6]);

impl Statuses {
    fn count(&self, kind: Kind) -> usize {
        self.0[kind as usize].load(Ordering::Relaxed)
    }

    /// Whether the server answered 404 to more requests than one missing resource needs, and had no other answer.
    pub fn are_all_missing(&self) -> bool {
        let all: usize = self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        all > 2 && all == self.count(Kind::Missing)
    }

    /// Whether the server accepted a request.
    pub fn have_success(&self) -> bool {
        self.count(Kind::Accepted) > 0
    }

    /// Whether the server rejected credentials, and never only a right of theirs.
    pub fn reject_credentials(&self) -> bool {
        self.count(Kind::Rejected) > 0 && self.count(Kind::Forbidden) == 0
    }

    /// Whether the server accepted requests, and failed many others.
    pub fn show_overload(&self) -> bool {
        self.have_success() && self.count(Kind::Failed) >= MANY
    }

    /// Forgets the answers so far.
    pub fn forget(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

impl RequestObserver for Statuses {
    fn completed(&self, _: &Method, status: Option<StatusCode>, _: Duration) {
        let kind = match status {
            Some(StatusCode::NOT_FOUND) => Kind::Missing,
            Some(StatusCode::UNAUTHORIZED) => Kind::Rejected,
            Some(StatusCode::FORBIDDEN) => Kind::Forbidden,
            Some(status) if status.is_success() => Kind::Accepted,
            Some(status) if !status.is_server_error() => Kind::Other,
            _ => Kind::Failed,
        };
        self.0[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn throttled(&self, _: bool) {}
}
