//! What a client does to its server: how many requests at once, and how fast they start.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts requests that arrive and end.
#[derive(Default)]
pub struct Traffic {
    counts: Mutex<Counts>,
    /// Requests older than that are not counted as open: the client may have given them up.
    patience: Duration,
}

#[derive(Default)]
struct Counts {
    arrived: Vec<Instant>,
    open: BTreeMap<usize, Instant>,
    peak: usize,
    injected: usize,
}

/// A request under way, until dropped.
pub struct Open {
    traffic: Arc<Traffic>,
    number: usize,
}

impl Traffic {
    pub fn new(patience: Duration) -> Self {
        Self { patience, ..Self::default() }
    }

    pub fn arrive(self: &Arc<Self>) -> Open {
        self.with(|counts| {
            let (now, number) = (Instant::now(), counts.arrived.len());
            counts.arrived.push(now);
            counts.open.insert(number, now);
            let open = counts.open.values().filter(|since| now - **since < self.patience).count();
            counts.peak = counts.peak.max(open);
            Open { traffic: Arc::clone(self), number }
        })
    }

    pub fn inject(&self) {
        self.with(|counts| counts.injected += 1);
    }

    pub fn requests(&self) -> usize {
        self.with(|counts| counts.arrived.len())
    }

    pub fn injected(&self) -> usize {
        self.with(|counts| counts.injected)
    }

    pub fn peak(&self) -> usize {
        self.with(|counts| counts.peak)
    }

    /// The most requests that arrived within any span of this length.
    pub fn most_within(&self, span: Duration) -> usize {
        self.with(|counts| {
            let arrived = &counts.arrived;
            let until = |from: &Instant| arrived.partition_point(|at| *at <= *from + span);
            arrived.iter().enumerate().map(|(place, from)| until(from) - place).max().unwrap_or(0)
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Counts) -> T) -> T {
        work(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.traffic.with(|counts| counts.open.remove(&self.number));
    }
}
