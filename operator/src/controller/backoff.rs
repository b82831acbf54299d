//! Waits after failures, per object.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::kind::Key;

const FIRST: Duration = Duration::from_secs(5);
const CAP: Duration = Duration::from_mins(5);

/// The number of consecutive failures of each object. A success or a new generation resets it.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: Mutex<HashMap<Key, Streak>>,
}

#[derive(Clone, Copy, Debug)]
struct Streak {
    generation: i64,
    length: u32,
}

impl Backoff {
    /// Records a failure. Returns the number of consecutive failures, including this one.
    pub fn failed(&self, key: &Key, generation: i64) -> u32 {
        let mut failures = self.failures.lock();
        let streak = failures.entry(key.clone()).or_insert(Streak { generation, length: 0 });
        if streak.generation != generation {
            *streak = Streak { generation, length: 0 };
        }
        streak.length = streak.length.saturating_add(1);
        streak.length
    }

    /// Forgets the failures of an object that succeeded or was deleted.
    pub fn reset(&self, key: &Key) {
        self.failures.lock().remove(key);
    }
}

/// Returns the wait after `failures` consecutive failures: 5 s, doubled each time, at most 5 min or `cap`.
pub fn delay(failures: u32, cap: Option<Duration>) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let wait = FIRST.saturating_mul(1 << doublings).min(CAP);
    cap.map_or(wait, |cap| wait.min(cap))
}

/// Varies `wait` by up to a tenth, so that objects that were created together are not reconciled together.
pub fn jitter(wait: Duration) -> Duration {
    wait.mul_f64(0.9 + fastrand::f64() * 0.2)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1, None, 5)]
    #[case(2, None, 10)]
    #[case(3, None, 20)]
    #[case(6, None, 160)]
    #[case(7, None, 300)]
    #[case(u32::MAX, None, 300)]
    #[case(4, Some(30), 30)]
    #[case(1, Some(30), 5)]
    fn waits_double_up_to_the_cap(#[case] failures: u32, #[case] cap: Option<u64>, #[case] seconds: u64) {
        assert_eq!(delay(failures, cap.map(Duration::from_secs)), Duration::from_secs(seconds));
    }

    #[test]
    fn jitter_stays_within_a_tenth() {
        for _ in 0..1000 {
            let wait = jitter(Duration::from_secs(100));
            assert!((Duration::from_secs(90)..=Duration::from_secs(110)).contains(&wait), "{wait:?}");
        }
    }

    #[test]
    fn success_and_a_new_generation_reset_the_count() {
        let backoff = Backoff::default();
        let [a, b] = ["a", "b"].map(|name| Key { namespace: "team".to_owned(), name: name.to_owned() });
        assert_eq!(backoff.failed(&a, 1), 1);
        assert_eq!(backoff.failed(&a, 1), 2);
        assert_eq!(backoff.failed(&b, 1), 1);
        assert_eq!(backoff.failed(&a, 2), 1);
        backoff.reset(&a);
        assert_eq!(backoff.failed(&a, 2), 1);
    }
}
