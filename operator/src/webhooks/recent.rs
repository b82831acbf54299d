//! The deliveries of the last minutes: a Git host may send one delivery several times.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The time that a delivery is remembered.
const KEPT_FOR: Duration = Duration::from_mins(10);
/// The number of deliveries that are remembered; the oldest is forgotten first.
const KEPT: usize = 4096;

/// Namespace and name of a repository, and the id of a delivery.
pub type Id = (String, String, String);

/// The deliveries that were announced, the oldest first, each with the time of its announcement.
#[derive(Debug, Default)]
pub struct Recent(Mutex<VecDeque<(Instant, Id)>>);

impl Recent {
    /// Returns whether the delivery was announced within the last ten minutes.
    pub fn contains(&self, id: &Id) -> bool {
        self.0.lock().iter().any(|(since, known)| since.elapsed() < KEPT_FOR && known == id)
    }

    /// Remembers an announced delivery.
    pub fn insert(&self, id: Id) {
        let mut known = self.0.lock();
        known.push_back((Instant::now(), id));
        if known.len() > KEPT {
            known.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Id {
        ("team".to_owned(), "repo".to_owned(), number.to_string())
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
        assert_eq!(recent.0.lock().len(), KEPT);
    }
}
