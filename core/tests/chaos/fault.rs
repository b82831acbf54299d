//! What can go wrong with a request, and which requests it hits.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::wire::Message;

/// One way in which a request fails, or is made hard to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 503, half of the time after the server acted: what stands in between lost the answer.
    Unavailable,
    /// 429 with `Retry-After`, mostly 0 and sometimes 1.
    TooManyRequests,
    /// The connection is reset, and the server never sees the request.
    ResetBefore,
    /// The connection is reset when the server has acted.
    ResetAfter,
    /// No answer, half of the time though the server acted.
    Timeout,
    /// The answer ends before its announced length.
    Truncated,
    /// The answer claims to be HTML, half of the time with reason.
    WrongContent,
    /// The answer comes in small pieces, though in time.
    Trickle,
    /// A redirect to another origin.
    Redirect,
}

impl Fault {
    pub const ALL: [Self; 9] = [
        Self::Unavailable,
        Self::TooManyRequests,
        Self::ResetBefore,
        Self::ResetAfter,
        Self::Timeout,
        Self::Truncated,
        Self::WrongContent,
        Self::Trickle,
        Self::Redirect,
    ];
}

/// A fault, and chance for its details.
pub struct Injection {
    pub fault: Fault,
    pub rng: fastrand::Rng,
}

/// Decides request by request. What hits a request depends on the seed, on the request, and on how often it was
/// made before: not on the order in which requests of concurrent work happen to arrive.
pub struct Chance {
    seed: u64,
    percent: u8,
    faults: &'static [Fault],
    seen: Mutex<HashMap<u64, u64>>,
}

impl Chance {
    /// `percent` of all requests meet one of `faults`.
    pub fn new(seed: u64, percent: u8, faults: &'static [Fault]) -> Self {
        Self { seed, percent, faults, seen: Mutex::default() }
    }

    pub fn draw(&self, request: &Message) -> Option<Injection> {
        let what = digest(&(&request.first_line, &request.body));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let times = seen.entry(what).or_default();
        *times += 1;
        let mut rng = fastrand::Rng::with_seed(digest(&(self.seed, what, *times)));
        if self.faults.is_empty() || rng.u8(..100) >= self.percent {
            return None;
        }
        Some(Injection { fault: self.faults[rng.usize(..self.faults.len())], rng })
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
