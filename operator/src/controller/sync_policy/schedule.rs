//! Computes the time of the next full run, by interval and by cron.

use std::time::Duration;

use jiff::Timestamp;

use crate::crd::Schedule;

/// Drift checks are spread over this last part of the interval, so that policies that were created together do not
/// run together. A check may be early by this part, but never late.
const EARLY: f64 = 0.1;

/// Returns whether `planned` is in the future and within `interval`. A later time shows that the clock was set back
/// after it was planned.
pub fn is_credible_plan(planned: Timestamp, interval: Duration, now: Timestamp) -> bool {
    // Waits after failures vary by a tenth.
    planned > now && planned <= later(now, interval.mul_f64(1.1) + Duration::from_secs(1))
}

/// Returns whether there was a tick between the last full run and now. Several missed ticks cause one run.
pub fn cron_due(schedule: Option<&Schedule>, last_full: Timestamp, now: Timestamp) -> bool {
    schedule.and_then(|schedule| schedule.next_after(last_full)).is_some_and(|tick| tick <= now)
}

/// Returns whether the interval since the last full run has passed, or almost passed. If the last run is in the
/// future, it counts as passed: the clock was set back, and the age of the run is unknown.
pub fn drift_due(interval: Duration, last_full: Timestamp, now: Timestamp) -> bool {
    last_full > now || now >= later(last_full, interval.mul_f64(1.0 - EARLY))
}

/// Returns the time of the next full run after a success: the earlier of the drift check and the next tick. `spread` in
/// `0.0..1.0` is the position of the drift check within the last part of the interval.
pub fn next_full(
    schedule: Option<&Schedule>,
    interval: Duration,
    last_full: Timestamp,
    spread: f64,
) -> Timestamp {
    let drift = later(last_full, interval.mul_f64(1.0 - EARLY * spread.clamp(0.0, 1.0)));
    let tick = schedule.and_then(|schedule| schedule.next_after(last_full));
    tick.map_or(drift, |tick| tick.min(drift))
}

/// Returns `time` plus `pause`, saturating at the maximum.
pub fn later(time: Timestamp, pause: Duration) -> Timestamp {
    time.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// Returns the duration until `time`; zero if it has passed.
pub fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[rstest]
    #[case::just_now("2026-11-21T00:00:00Z", false)]
    #[case::long_ago("2026-11-20T23:00:00Z", true)]
    #[case::a_second_ahead("2026-11-21T00:00:01Z", true)]
    #[case::a_year_ahead("2027-11-21T00:00:00Z", true)]
    fn a_full_run_in_the_future_is_due_now(#[case] last_full: &str, #[case] due: bool) {
        let (interval, now) = (Duration::from_mins(5), at("2026-11-21T00:00:00Z"));
        assert_eq!(drift_due(interval, at(last_full), now), due);
    }

    #[rstest]
    #[case::past("2026-11-20T23:59:00Z", false)]
    #[case::next_full_run("2026-11-21T00:05:00Z", true)]
    #[case::late_retry("2026-11-21T00:05:30Z", true)]
    #[case::clock_set_back("2026-11-21T00:06:00Z", false)]
    fn a_plan_is_credible_up_to_its_interval(#[case] planned: &str, #[case] expected: bool) {
        let (interval, now) = (Duration::from_mins(5), at("2026-11-21T00:00:00Z"));
        assert_eq!(is_credible_plan(at(planned), interval, now), expected);
    }

    #[test]
    fn missed_ticks_cause_one_run() {
        let schedule = Schedule::parse("0 * * * *", at("2026-11-21T00:00:00Z")).unwrap();
        let last = at("2026-11-21T00:30:00Z");
        assert!(!cron_due(Some(&schedule), last, at("2026-11-21T00:59:59Z")));
        assert!(cron_due(Some(&schedule), last, at("2026-11-21T09:00:00Z")));
        assert!(!cron_due(None, last, at("2026-11-21T09:00:00Z")));
    }

    #[test]
    fn drift_is_early_but_never_late() {
        let (interval, last) = (Duration::from_secs(100), at("2026-11-21T00:00:00Z"));
        assert!(!drift_due(interval, last, at("2026-11-21T00:01:29Z")));
        assert!(drift_due(interval, last, at("2026-11-21T00:01:30Z")));
        assert_eq!(next_full(None, interval, last, 0.0), at("2026-11-21T00:01:40Z"));
        assert_eq!(next_full(None, interval, last, 1.0), at("2026-11-21T00:01:30Z"));
    }

    #[test]
    fn the_next_run_is_the_earlier_of_cron_and_interval() {
        let last = at("2026-11-21T00:59:00Z");
        let schedule = Schedule::parse("0 * * * *", last).unwrap();
        let next = next_full(Some(&schedule), Duration::from_mins(5), last, 0.0);
        assert_eq!(next, at("2026-11-21T01:00:00Z"));
    }
}
