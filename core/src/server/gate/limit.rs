//! How many requests may run at once, learnt from how the server answers.
//!
//! Additive increase, multiplicative decrease, as TCP finds its share of a network (RFC 5681 §3.1):
//!
//! - one more per round trip, and only while the limit is what holds requests back (RFC 7661);
//! - half as many when the server shows that it is too much: 429, 503, 504, a timeout, a broken connection; once
//!   per round trip, as attempts from before a decrease tell nothing about it (RFC 6582);
//! - half as many when answers take longer, which overload does before it does anything worse. What is compared
//!   is the median of a window with the least median so far, as LEDBAT compares delays with the base delay
//!   (RFC 6817), because the queue that our own concurrency builds up delays most answers and not only some.
//!
//! Answers take longer for other reasons too: another kind of resource, a slower disk, other users. So a decrease
//! for latency is a test. If half as many requests do not make the answers much quicker, our concurrency was not
//! the cause: the limit is restored, and that latency is the new normal.
//!
//! A configured limit starts at its ceiling and yields only to what the server says or fails to answer.

use std::time::Duration;

use tokio::time::Instant;

use super::latency::{Latency, Trend};
use super::{Answer, DEFAULT_CONCURRENCY, MAX_CONCURRENCY};

/// A larger answer's time measures the wire, so it says nothing for or against growth.
const SMALL: usize = 64 << 10;

/// How long nothing grows after the server asked for less. One that counts requests per second would else be
/// driven into its limit many times a second.
const RESPITE: Duration = Duration::from_secs(1);

/// Half the concurrency that brings the median below this part of what it was was worth it.
const RELIEF: f64 = 0.75;

/// A test without result, because no more such requests came, does not prevent the next one any longer.
const LONGEST_TEST: Duration = Duration::from_secs(10);

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
    reads: Latency,
    writes: Latency,
    test: Option<Test>,
}

/// A decrease that is to show whether our concurrency makes the server slow.
#[derive(Clone, Copy, Debug)]
struct Test {
    of_writes: bool,
    before: usize,
    median: Duration,
    since: Instant,
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
        Self {
            now: start,
            start,
            ceiling,
            configured,
            credit: 0,
            shrunk: None,
            rests_until: None,
            pushed_back_from: None,
            reads: Latency::default(),
            writes: Latency::default(),
            test: None,
        }
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
        self.test = None;
        self.halve(now);
    }

    /// The server answered a request that was one of `running`.
    pub(super) fn answered(&mut self, started: Instant, now: Instant, running: usize, answer: &Answer) {
        if self.is_outdated(started) || answer.length > SMALL {
            return;
        }
        let used = running >= self.now;
        if !self.configured {
            self.time(started, now, used, answer.write);
        }
        let rested = self.rests_until.is_none_or(|until| until <= now);
        if used && rested && self.now < self.ceiling && self.latency(answer.write).is_steady() {
            self.grow();
        }
    }

    fn latency(&mut self, write: bool) -> &mut Latency {
        if write { &mut self.writes } else { &mut self.reads }
    }

    fn is_outdated(&self, started: Instant) -> bool {
        self.shrunk.is_some_and(|shrunk| started < shrunk)
    }

    fn grow(&mut self) {
        self.credit += 1;
        if self.credit < self.now {
            return;
        }
        self.set(self.now + 1);
    }

    fn set(&mut self, limit: usize) {
        (self.now, self.credit) = (limit, 0);
        if self.pushed_back_from.is_some_and(|before| before <= limit) {
            self.pushed_back_from = None;
        }
    }

    fn halve(&mut self, now: Instant) {
        self.set((self.now / 2).max(1));
        self.shrunk = Some(now);
        self.reads.start_window();
        self.writes.start_window();
    }

    /// Adds to the latency of reads or writes, and draws the consequences at the end of a window.
    fn time(&mut self, started: Instant, now: Instant, used: bool, write: bool) {
        let window = self.now;
        let Some((median, trend)) = self.latency(write).record(now - started, now, used, window) else {
            return;
        };
        if let Some(test) = self.test.take_if(|test| test.of_writes == write) {
            if median > test.median.mul_f64(RELIEF) {
                self.latency(write).accept(median);
                self.set(self.now.max(test.before));
            }
        } else if trend == Trend::Rising && self.now == 1 {
            self.latency(write).accept(median);
        } else if trend == Trend::Rising && self.test.is_none_or(|test| now - test.since > LONGEST_TEST) {
            self.test = Some(Test { of_writes: write, before: self.now, median, since: now });
            self.halve(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use rstest::rstest;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A server that `offered` requests try to be at once.
    struct Simulation {
        limit: Limit,
        now: Instant,
    }

    impl Simulation {
        fn new(limit: Limit) -> Self {
            Self { limit, now: Instant::now() }
        }

        /// One round trip of as many requests as are offered and allowed, which take as long as `latency` says
        /// of their number.
        fn round(&mut self, offered: usize, write: bool, length: usize, latency: impl Fn(usize) -> Duration) {
            let inside = offered.min(self.limit.now());
            let started = self.now;
            self.now += latency(inside);
            let answer = Answer { status: StatusCode::OK, retry_after: None, write, length };
            for _ in 0..inside {
                self.limit.answered(started, self.now, inside, &answer);
            }
        }

        fn rounds(&mut self, rounds: usize, latency: impl Fn(usize) -> Duration) {
            for _ in 0..rounds {
                self.round(MAX_CONCURRENCY, false, 100, &latency);
            }
        }

        /// The least limit in so many rounds.
        fn least(&mut self, rounds: usize, latency: impl Fn(usize) -> Duration) -> usize {
            (0..rounds)
                .map(|_| {
                    self.rounds(1, &latency);
                    self.limit.now()
                })
                .min()
                .unwrap()
        }
    }

    #[test]
    fn it_grows_by_one_per_round_trip_to_the_ceiling_while_latency_holds() {
        let mut world = Simulation::new(Limit::adaptive());
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY);
        world.rounds(1, |_| MS * 20);
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY + 1);
        world.rounds(100, |_| MS * 20);
        assert_eq!(world.limit.now(), MAX_CONCURRENCY);
    }

    #[test]
    fn it_does_not_grow_while_it_is_not_used() {
        let mut world = Simulation::new(Limit::adaptive());
        for _ in 0..100 {
            world.round(DEFAULT_CONCURRENCY - 1, false, 100, |_| MS * 20);
        }
        assert_eq!(world.limit.now(), DEFAULT_CONCURRENCY);
    }

    #[test]
    fn push_back_halves_once_per_round_trip_and_never_below_one() {
        let mut world = Simulation::new(Limit::adaptive());
        for expected in [8, 4, 2, 1, 1] {
            let started = world.now;
            world.now += MS * 20;
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
        world.rounds(40, |_| MS * 20);
        assert_eq!(world.limit.now(), start / 2, "no growth within a second");
        world.rounds(100, |_| MS * 20);
        assert_eq!(world.limit.now(), ceiling);
    }

    #[test]
    fn waiting_is_ordinary_again_once_the_limit_has_recovered() {
        let mut world = Simulation::new(Limit::adaptive());
        assert!(!world.limit.holds_back());
        world.limit.overloaded(world.now, world.now);
        world.rounds(120, |_| MS * 20);
        assert!(world.limit.now() >= DEFAULT_CONCURRENCY && !world.limit.holds_back());
        assert!(Limit::configured(4).holds_back());
    }

    #[test]
    fn a_saturated_server_is_not_pushed_beyond_its_knee() {
        // Eight at once take 20 ms; more only wait for each other.
        let mut world = Simulation::new(Limit::adaptive());
        let busy = |inside: usize| MS * 20 * u32::try_from(inside.max(8)).unwrap() / 8;
        world.rounds(300, busy);
        let most = (0..300).map(|_| {
            world.rounds(1, busy);
            world.limit.now()
        });
        assert!(most.max().unwrap() <= 2 * DEFAULT_CONCURRENCY);
    }

    #[test]
    fn a_server_that_gets_slower_the_more_it_has_to_do_gets_less() {
        let mut world = Simulation::new(Limit::adaptive());
        world.rounds(100, |_| MS * 20);
        let overloaded = |inside: usize| MS * 4 * u32::try_from(inside).unwrap();
        world.rounds(20, overloaded);
        assert!(world.limit.now() <= DEFAULT_CONCURRENCY, "{}", world.limit.now());
    }

    #[test]
    fn latency_of_other_causes_is_taken_as_it_is() {
        let mut world = Simulation::new(Limit::adaptive());
        world.rounds(100, |_| MS * 2);
        assert!(world.least(20, |_| MS * 300) >= MAX_CONCURRENCY / 2);
        world.rounds(100, |_| MS * 300);
        assert_eq!(world.limit.now(), MAX_CONCURRENCY);
    }

    #[test]
    fn kinds_of_requests_that_take_turns_do_not_collapse_it() {
        let mut world = Simulation::new(Limit::adaptive());
        for turn in 0..50 {
            let latency = if turn % 2 == 0 { MS * 3 } else { MS * 200 };
            assert!(world.least(10, |_| latency) >= DEFAULT_CONCURRENCY / 2);
        }
        assert!(world.limit.now() >= DEFAULT_CONCURRENCY);
    }

    #[test]
    fn large_bodies_and_slow_writes_are_not_rising_latency() {
        let mut world = Simulation::new(Limit::adaptive());
        for _ in 0..50 {
            world.round(64, false, 100, |_| MS * 3);
            let before = world.limit.now();
            world.round(64, false, SMALL + 1, |_| MS * 2000);
            world.round(64, true, 100, |_| MS * 300);
            assert!(world.limit.now() >= before);
        }
        assert_eq!(world.limit.now(), MAX_CONCURRENCY);
    }

    #[test]
    fn a_configured_limit_does_not_judge_latency() {
        let mut world = Simulation::new(Limit::configured(32));
        world.rounds(50, |_| MS * 2);
        assert_eq!(world.least(50, |inside| MS * 10 * u32::try_from(inside).unwrap()), 32);
    }

    #[test]
    fn noise_of_a_few_milliseconds_is_not_rising_latency() {
        let mut world = Simulation::new(Limit::adaptive());
        world.rounds(20, |_| MS / 2);
        assert!(world.least(50, |_| MS * 5) >= DEFAULT_CONCURRENCY);
    }
}
