//! How long answers take, compared with how long they take at best.

use std::time::Duration;

use tokio::time::Instant;

/// The least number of answers whose median means something.
const LEAST_WINDOW: usize = 16;

/// Answers further apart are not of one window: a trickle of requests tells nothing about concurrency.
const LONGEST_WINDOW: Duration = Duration::from_secs(10);

/// Differences below this are noise: of scheduling here, of collecting garbage there.
const NOISE: Duration = Duration::from_millis(5);

/// The latency of one sort of requests.
#[derive(Debug, Default)]
pub(super) struct Latency {
    window: Vec<Duration>,
    since: Option<Instant>,
    /// Whether the limit held anybody back in this window; if not, concurrency was not what mattered.
    used: bool,
    /// The least median.
    baseline: Option<Duration>,
    elevated: bool,
}

/// Where latency goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trend {
    Steady,
    /// A quarter above the best: no reason to shrink, but none to grow.
    Elevated,
    /// Twice the best, and the limit is used.
    Rising,
}

impl Latency {
    /// Whether the last window gave no reason against growth.
    pub(super) fn is_steady(&self) -> bool {
        !self.elevated
    }

    /// Begins another window.
    pub(super) fn start_window(&mut self) {
        self.window.clear();
        (self.since, self.used) = (None, false);
    }

    /// Takes `median` as normal.
    pub(super) fn accept(&mut self, median: Duration) {
        (self.baseline, self.elevated) = (Some(median), false);
    }

    /// Adds an answer that took so long. If it is the last one of a window of `length` answers: the median and
    /// what it means.
    pub(super) fn record(
        &mut self,
        took: Duration,
        now: Instant,
        used: bool,
        length: usize,
    ) -> Option<(Duration, Trend)> {
        if self.since.is_some_and(|since| now - since > LONGEST_WINDOW) {
            self.start_window();
        }
        self.since.get_or_insert(now);
        self.used |= used;
        self.window.push(took);
        if self.window.len() < length.max(LEAST_WINDOW) {
            return None;
        }
        let middle = self.window.len() / 2;
        let median = *self.window.select_nth_unstable(middle).1;
        let trend = self.trend(median);
        self.elevated = trend != Trend::Steady;
        self.baseline = Some(self.baseline.map_or(median, |baseline| baseline.min(median)));
        self.start_window();
        Some((median, trend))
    }

    fn trend(&self, median: Duration) -> Trend {
        let Some(baseline) = self.baseline else { return Trend::Steady };
        if median <= baseline.mul_f64(1.25) + NOISE {
            Trend::Steady
        } else if median <= baseline * 2 + NOISE || !self.used {
            Trend::Elevated
        } else {
            Trend::Rising
        }
    }
}
