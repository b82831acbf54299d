//! The number of requests that may run at once, derived from the server's answers.
//!
//! It uses additive increase and multiplicative decrease, like TCP congestion control (RFC 5681 §3.1):
//!
//! - The limit grows by one per round trip, and only while it is fully used (RFC 7661).
//! - The limit is halved after a sign of overload: 429, 503, 504, a timeout or a broken connection. This happens at
//!   most once per round trip, because attempts that began before a decrease do not show its effect (RFC 6582).
//!
//! Response times are not evaluated, because they also have many other causes. An overloaded server answers with one of
//! these statuses, or not in time.
//!
//! A configured limit starts at its maximum.

use std::time::Duration;

use tokio::time::Instant;

use super::{DEFAULT_CONCURRENCY, MAX_CONCURRENCY};

/// The limit does not grow for this time after a sign of overload. Otherwise a server that counts requests per second
/// would reject requests many times a second.
const RESPITE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Limit {
    now: usize,
    start: usize,
    ceiling: usize,
    configured: bool,
    /// Answers since the last growth. A round trip is over when they are as many as the limit.
    credit: usize,
    /// The time of the last decrease. Attempts that began earlier are ignored.
    shrunk: Option<Instant>,
    /// The limit does not grow before this time.
    rests_until: Option<Instant>,
    /// The limit before the server's push back; `None` when the limit has recovered.
    pushed_back_from: Option<usize>,
}

impl Limit {
    /// A limit that adapts, up to [`MAX_CONCURRENCY`].
    pub(super) fn adaptive() -> Self {
        Self::new(DEFAULT_CONCURRENCY, MAX_CONCURRENCY, false)
    }

    /// A limit that never exceeds `ceiling`, and stays there unless the server pushes back.
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

    /// Whether requests wait because of the configuration or a push back. Otherwise the limit is the server's
    /// measured capacity, and the wait costs no throughput.
    pub(super) fn holds_back(&self) -> bool {
        self.configured || self.pushed_back_from.is_some()
    }

    /// Resets the limit to its start.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.start, self.ceiling, self.configured);
    }

    /// Evaluates a sign of overload.
    pub(super) fn overloaded(&mut self, started: Instant, now: Instant) {
        self.rests_until = Some(now + RESPITE);
        if self.is_outdated(started) {
            return;
        }
        self.pushed_back_from = self.pushed_back_from.max(Some(self.now));
        self.set((self.now / 2).max(1));
        self.shrunk = Some(now);
    }

    /// Evaluates an answer to a request that was one of `running`.
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

    /// A server to which a test sends up to `offered` requests at once.
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
    fn the_limit_grows_by_one_per_round_trip_to_the_ceiling() {
        let mut world = Simulation::new(Limit::adaptive());
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY);
        world.rounds(1);
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY + 1);
        world.rounds(100);
        assert_eq!(world.limit.now(), MAX_CONCURRENCY);
    }

    #[test]
    fn an_unused_limit_does_not_grow() {
        let mut world = Simulation::new(Limit::adaptive());
        for _ in 0..100 {
            world.round(DEFAULT_CONCURRENCY - 1);
        }
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY);
    }

    #[test]
    fn push_back_halves_the_limit_once_per_round_trip_down_to_one() {
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
    fn the_limit_recovers_after_a_second_up_to_its_ceiling(#[case] limit: Limit, #[case] ceiling: usize) {
        let mut world = Simulation::new(limit);
        let start = world.limit.now();
        world.limit.overloaded(world.now, world.now);
        world.rounds(40);
        assert_eq!(world.limit.now(), start / 2, "no growth within a second");
        world.rounds(100);
        assert_eq!(world.limit.now(), ceiling);
    }

    #[test]
    fn waiting_does_not_count_as_held_back_after_the_limit_has_recovered() {
        let mut world = Simulation::new(Limit::adaptive());
        assert!(!world.limit.holds_back());
        world.limit.overloaded(world.now, world.now);
        world.rounds(120);
        assert!(world.limit.now() >= DEFAULT_CONCURRENCY && !world.limit.holds_back());
        assert!(Limit::configured(4).holds_back());
    }
}
