//! The circuit breaker: stops requests to a server that cannot be reached.
//!
//! A closed breaker admits all requests. It opens after [`FAILURES`] attempts in a row that did not reach the server.
//! An open breaker admits no request for one second, and twice as long after each failed probe, up to 30 seconds.
//! Jitter prevents clients that failed at the same time from retrying at the same time. After this time the breaker is
//! half open and admits one request as the probe. Any answer closes it, whatever its status.
//!
//! The pattern is that of M. Nygard, *Release It!*, chapter "Stability Patterns".

use std::time::Duration;

use tokio::time::Instant;

use super::Refused;

/// The number of failed attempts in a row that opens the breaker.
///
/// At least one of them must have begun after the first failure. A single broken connection fails all requests on it,
/// and does not show that the next one fails.
const FAILURES: u32 = 5;

const FIRST_OPEN: Duration = Duration::from_secs(1);
const LONGEST_OPEN: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Breaker {
    state: State,
    failures: u32,
    first_failure: Option<Instant>,
    /// Whether an attempt failed that began after the first failure.
    failed_again: bool,
    cause: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Closed,
    Open {
        until: Instant,
        period: Duration,
    },
    Probing {
        period: Duration,
    },
}

/// How the breaker admitted a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Normal,
    /// As the probe, which shows whether the server can be reached again.
    Probe,
}

impl Breaker {
    pub(super) fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// Admits one request, or returns `None`.
    pub(super) fn ask(&mut self, now: Instant) -> Option<Passage> {
        match self.state {
            State::Closed => Some(Passage::Normal),
            State::Open { until, period } if until <= now => {
                self.state = State::Probing { period };
                Some(Passage::Probe)
            }
            State::Open { .. } | State::Probing { .. } => None,
        }
    }

    /// Returns the error for a request that [`Breaker::ask`] would not admit.
    pub(super) fn refusal(&self, now: Instant) -> Option<Refused> {
        let probe_in = match self.state {
            State::Open { until, .. } if until > now => until - now,
            State::Probing { .. } => Duration::ZERO,
            State::Closed | State::Open { .. } => return None,
        };
        Some(Refused::Unreachable { failures: self.failures, probe_in, cause: self.cause.clone() })
    }

    pub(super) fn succeeded(&mut self) {
        if self.failures > 0 {
            *self = Self::default();
        }
    }

    /// Records an attempt that did not reach the server. Returns whether the breaker opened.
    pub(super) fn failed(&mut self, passage: Passage, started: Instant, now: Instant, cause: &str) -> bool {
        self.failures = self.failures.saturating_add(1);
        cause.clone_into(&mut self.cause);
        let first = *self.first_failure.get_or_insert(now);
        self.failed_again |= started > first;
        let period = match (self.state, passage) {
            (State::Closed, _) if self.failures >= FAILURES && self.failed_again => FIRST_OPEN,
            (State::Probing { period }, Passage::Probe) => longer(period),
            // The attempt began before the breaker opened, or there are too few failures.
            _ => return false,
        };
        let until = now + period.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.state = State::Open { until, period };
        true
    }

    /// Lets the next request be the probe, because this one was not sent.
    pub(super) fn abandoned(&mut self, passage: Passage, now: Instant) {
        if let (State::Probing { period }, Passage::Probe) = (self.state, passage) {
            self.state = State::Open { until: now, period };
        }
    }
}

fn longer(period: Duration) -> Duration {
    (period * 2).min(LONGEST_OPEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);

    /// Returns an open breaker and the time when it opened.
    fn open() -> (Breaker, Instant) {
        let mut breaker = Breaker::default();
        let mut now = Instant::now();
        for attempt in 1..=FAILURES {
            assert_eq!(breaker.ask(now), Some(Passage::Normal));
            let started = now;
            now += MOMENT;
            assert_eq!(breaker.failed(Passage::Normal, started, now, "refused"), attempt == FAILURES);
        }
        (breaker, now)
    }

    fn probe_in(breaker: &Breaker, now: Instant) -> Duration {
        let Some(Refused::Unreachable { probe_in, .. }) = breaker.refusal(now) else {
            panic!("not refused: {breaker:?}")
        };
        probe_in
    }

    #[test]
    fn failures_in_a_row_open_the_breaker_and_one_answer_closes_it() {
        let (mut breaker, now) = open();
        assert_eq!(breaker.ask(now), None);
        let wait = probe_in(&breaker, now);
        assert!((FIRST_OPEN / 2..=FIRST_OPEN).contains(&wait), "{wait:?}");
        assert_eq!(breaker.ask(now + wait), Some(Passage::Probe));
        assert_eq!(breaker.ask(now + wait), None, "one probe at a time");
        breaker.succeeded();
        assert_eq!(breaker.ask(now + wait), Some(Passage::Normal));
        assert!(!breaker.failed(Passage::Normal, now, now, "refused"), "counting starts over");
    }

    #[test]
    fn an_answer_resets_the_count_of_failures() {
        let mut breaker = Breaker::default();
        let now = Instant::now();
        for attempt in 0..20 {
            let started = now + MOMENT * attempt;
            assert!(!breaker.failed(Passage::Normal, started, started, "refused"));
            if attempt % 4 == 3 {
                breaker.succeeded();
            }
        }
        assert!(!breaker.is_open());
    }

    #[test]
    fn requests_that_fail_together_do_not_open_the_breaker() {
        let mut breaker = Breaker::default();
        let (started, broke) = (Instant::now(), Instant::now() + MOMENT);
        for _ in 0..64 {
            assert!(!breaker.failed(Passage::Normal, started, broke, "connection reset"));
        }
        assert!(breaker.failed(Passage::Normal, broke + MOMENT, broke + MOMENT * 2, "connection refused"));
    }

    #[test]
    fn each_failed_probe_doubles_the_wait_up_to_a_limit() {
        let (mut breaker, mut now) = open();
        for seconds in [2, 4, 8, 16, 30, 30] {
            now += probe_in(&breaker, now);
            assert_eq!(breaker.ask(now), Some(Passage::Probe));
            assert!(breaker.failed(Passage::Probe, now, now, "refused"));
            let (wait, period) = (probe_in(&breaker, now), Duration::from_secs(seconds));
            assert!((period / 2..=period).contains(&wait), "{wait:?} of {period:?}");
        }
    }

    #[test]
    fn failures_of_older_attempts_neither_lengthen_the_wait_nor_end_the_probe() {
        let (mut breaker, now) = open();
        let wait = probe_in(&breaker, now);
        assert!(!breaker.failed(Passage::Normal, now, now, "timed out"));
        assert_eq!(probe_in(&breaker, now), wait);
        assert_eq!(breaker.ask(now + wait), Some(Passage::Probe));
        assert!(!breaker.failed(Passage::Normal, now, now + wait, "timed out"));
        assert_eq!(breaker.ask(now + wait), None, "the probe is still under way");
        breaker.succeeded();
        assert!(!breaker.is_open(), "any answer shows that the server is back");
    }

    #[test]
    fn after_an_abandoned_probe_the_next_request_is_the_probe() {
        let (mut breaker, now) = open();
        let now = now + FIRST_OPEN;
        assert_eq!(breaker.ask(now), Some(Passage::Probe));
        breaker.abandoned(Passage::Normal, now);
        assert_eq!(breaker.ask(now), None);
        breaker.abandoned(Passage::Probe, now);
        assert_eq!(breaker.refusal(now), None);
        assert_eq!(breaker.ask(now), Some(Passage::Probe));
    }
}
