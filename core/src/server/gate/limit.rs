//! How many requests may run at once, learnt from how the server answers.
//!
//! Additive increase, multiplicative decrease, as TCP finds its share of a network (RFC 5681 §3.1):
//!
//! - one more per round trip, and only while the limit is what holds requests back (RFC 7661);
//! - half as many when the server shows that it is too much: 429, 503, 504, a timeout, a broken connection; once
//!   per round trip, because attempts from before a decrease are not evidence about it (RFC 6582).
//!
//! How long answers take does not count: they take longer for many reasons other than our concurrency. A server
//! that is overloaded answers with one of these statuses, or not in time.
//!
//! A configured limit starts at its ceiling.

use std::time::Duration;

use tokio::time::Instant;

use super::{DEFAULT_CONCURRENCY, MAX_CONCURRENCY};

/// How long nothing grows after the server asked for less. One that counts requests per second would
/// otherwise be driven into its limit many times a second.
const RESPITE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Limit {
    now: usize,
    start: usize,
    ceiling: usize,
    configured: bool,
    /// Answers since the last growth; as many as the limit make a round trip.
    credit: usize,
    /// What was learnt from attempts that began before is out of date.
    shrunk: Option<Instant>,
    /// No growth before.
    rests_until: Option<Instant>,
    /// What the limit was before the server asked for less, until it is that again.
    pushed_back_from: Option<usize>,
}

impl Limit {
    /// Finds its level below [`MAX_CONCURRENCY`].
    pub(super) fn adaptive() -> Self {
        Self::new(DEFAULT_CONCURRENCY, MAX_CONCURRENCY, false)
    }

    /// Never exceeds `ceiling`, and stays there unless the server pushes back.
    pub(super) fn configured(ceiling: usize) -> Self {
        Self::new(ceiling, ceiling, true)
    }

    fn new(start: usize, ceiling: usize, configured: bool) -> Self {
        let (credit, shrunk, rests_until, pushed_back_from) = Default::default();
        Self { now: start, start, ceiling, configured, credit, shrunk, rests_until, pushed_back_from }
    }

    pub(super) fn now(&self) -> usize {
        self.now
    }

    pub(super) fn ceiling(&self) -> usize {
        self.ceiling
    }

    /// Whether requests wait here because of settings, or because the server asked for less: otherwise the
    /// limit is what the server takes gladly, and waiting for one's turn is no loss.
    pub(super) fn holds_back(&self) -> bool {
        self.configured || self.pushed_back_from.is_some()
    }

    /// Starts over.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.start, self.ceiling, self.configured);
    }

    /// The server showed that it is too much.
    pub(super) fn overloaded(&mut self, started: Instant, now: Instant) {
        self.rests_until = Some(now + RESPITE);
        if self.is_outdated(started) {
            return;
        }
        self.pushed_back_from = self.pushed_back_from.max(Some(self.now));
        self.set((self.now / 2).max(1));
        self.shrunk = Some(now);
    }

    /// The server answered a request that was one of `running`.
    pub(super) fn answered(&mut self, started: Instant, now: Instant, running: usize) {
        let rested = self.rests_until.is_none_or(|until| until <= now);
        if self.is_outdated(started) || running < self.now || !rested || self.now >= self.ceiling {
            return;
        }
        self.credit += 1;
        if self.credit >= self.now {
            self.set(self.now + 1);
        }
    }

    fn is_outdated(&self, started: Instant) -> bool {
        self.shrunk.is_some_and(|shrunk| started < shrunk)
    }

    fn set(&mut self, limit: usize) {
        (self.now, self.credit) = (limit, 0);
        if self.pushed_back_from.is_some_and(|before| before <= limit) {
            self.pushed_back_from = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(20);

    /// A server that `offered` requests try to be at once.
    struct Simulation {
        limit: Limit,
        now: Instant,
    }

    impl Simulation {
        fn new(limit: Limit) -> Self {
            Self { limit, now: Instant::now() }
        }

        /// One round trip of as many requests as are offered and allowed.
        fn round(&mut self, offered: usize) {
            let inside = offered.min(self.limit.now());
            let started = self.now;
            self.now += ROUND_TRIP;
            for _ in 0..inside {
                self.limit.answered(started, self.now, inside);
            }
        }

        fn rounds(&mut self, rounds: usize) {
            for _ in 0..rounds {
                self.round(MAX_CONCURRENCY);
            }
        }
    }

    #[test]
    fn it_grows_by_one_per_round_trip_to_the_ceiling() {
        let mut world = Simulation::new(Limit::adaptive());
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY);
        world.rounds(1);
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY + 1);
        world.rounds(100);
        assert_eq!(world.limit.now(), MAX_CONCURRENCY);
    }

    #[test]
    fn it_does_not_grow_while_it_is_not_used() {
        let mut world = Simulation::new(Limit::adaptive());
        for _ in 0..100 {
            world.round(DEFAULT_CONCURRENCY - 1);
        }
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY);
    }

    #[test]
    fn push_back_halves_once_per_round_trip_and_never_below_one() {
        let mut world = Simulation::new(Limit::adaptive());
        for expected in [8, 4, 2, 1, 1] {
            let started = world.now;
            world.now += ROUND_TRIP;
            for _ in 0..16 {
                world.limit.overloaded(started, world.now);
            }
            assert_eq!(world.limit.now(), expected);
            assert!(world.limit.holds_back());
        }
    }

    #[rstest]
    #[case(Limit::adaptive(), MAX_CONCURRENCY)]
    #[case(Limit::configured(40), 40)]
    fn it_recovers_after_a_respite_and_never_beyond_its_ceiling(
        #[case] limit: Limit,
        #[case] ceiling: usize,
    ) {
        let mut world = Simulation::new(limit);
        let start = world.limit.now();
        world.limit.overloaded(world.now, world.now);
        world.rounds(40);
        assert_eq!(world.limit.now(), start / 2, "no growth within a second");
        world.rounds(100);
        assert_eq!(world.limit.now(), ceiling);
    }

    #[test]
    fn waiting_is_ordinary_again_once_the_limit_has_recovered() {
        let mut world = Simulation::new(Limit::adaptive());
        assert!(!world.limit.holds_back());
        world.limit.overloaded(world.now, world.now);
        world.rounds(120);
        assert!(world.limit.now() >= DEFAULT_CONCURRENCY && !world.limit.holds_back());
        assert!(Limit::configured(4).holds_back());
    }
}
