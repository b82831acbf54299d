//! The deliveries of the last minutes: a Git host may send one delivery several times.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time that a delivery is remembered.
const KEPT_FOR: Duration = Duration::from_mins(10);
/// The number of deliveries that are remembered; the oldest is forgotten first.
const KEPT: usize = 4096;

/// Namespace and name of a repository, and the id of a delivery.
pub type Id = Arc<(String, String, String)>;

/// The deliveries that were announced.
#[derive(Debug, Default)]
pub struct Recent(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    ids: HashSet<Id>,
    oldest_first: VecDeque<(Instant, Id)>,
}

impl Recent {
    /// Returns whether the delivery was announced within the last ten minutes.
    pub fn contains(&self, id: &Id) -> bool {
        let mut known = self.0.lock();
        known.forget(|since| since.elapsed() >= KEPT_FOR);
        known.ids.contains(id)
    }

    /// Remembers an announced delivery.
    pub fn insert(&self, id: Id) {
        let mut known = self.0.lock();
        if known.ids.insert(Arc::clone(&id)) {
            known.oldest_first.push_back((Instant::now(), id));
        }
        let excess = known.oldest_first.len().saturating_sub(KEPT);
        let mut left = excess;
        known.forget(|_| left.checked_sub(1).map(|fewer| left = fewer).is_some());
    }
}

impl Known {
    /// Removes the oldest deliveries while `is_over` holds for the time of their insertion.
    fn forget(&mut self, mut is_over: impl FnMut(Instant) -> bool) {
        while self.oldest_first.front().is_some_and(|(since, _)| is_over(*since)) {
            if let Some((_, id)) = self.oldest_first.pop_front() {
                self.ids.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Id {
        Arc::new(("team".to_owned(), "repo".to_owned(), number.to_string()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_delivery_is_remembered_for_ten_minutes() {
        let recent = Recent::default();
        recent.insert(id(1));
        tokio::time::advance(Duration::from_secs(599)).await;
        assert!(recent.contains(&id(1)) && !recent.contains(&id(2)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!recent.contains(&id(1)));
    }

    #[tokio::test]
    async fn the_number_of_remembered_deliveries_is_bounded() {
        let recent = Recent::default();
        (0..=KEPT).for_each(|number| recent.insert(id(number)));
        assert!(!recent.contains(&id(0)) && recent.contains(&id(1)) && recent.contains(&id(KEPT)));
        assert_eq!(recent.0.lock().ids.len(), KEPT);
    }
}
