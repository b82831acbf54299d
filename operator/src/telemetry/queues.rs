//! The gauge of the queues of the controllers. A queue is read when metrics are scraped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus::IntGaugeVec;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::series::{Subject, count, opts};

/// The queues of all controllers. Clones share them.
#[derive(Clone, Debug)]
pub struct Queues {
    known: Arc<Mutex<Known>>,
    depth: IntGaugeVec,
}

/// By controller: the namespaces and names of objects that wait for a round, and when each round is due.
type Known = HashMap<&'static str, HashMap<(String, String), Instant>>;

impl Queues {
    pub fn new() -> Result<Self, prometheus::Error> {
        let help = "Objects whose round of work is due and has not started";
        let depth = IntGaugeVec::new(opts("workqueue_depth", help), &["controller"])?;
        Ok(Self { known: Arc::default(), depth })
    }

    /// Shows the queue of a controller, which is empty.
    pub fn open(&self, controller: &'static str) {
        self.known.lock().entry(controller).or_default();
    }

    /// Adds an object to the queue, or keeps it there if its round is due earlier.
    pub fn add(&self, controller: &'static str, object: Subject<'_>, after: Duration) {
        let due = Instant::now() + after;
        let mut known = self.known.lock();
        let waiting = known.entry(controller).or_default();
        waiting.entry(object.key()).and_modify(|earlier| *earlier = due.min(*earlier)).or_insert(due);
    }

    /// Removes an object whose round starts, or that does not exist.
    pub fn remove(&self, controller: &str, object: Subject<'_>) {
        if let Some(waiting) = self.known.lock().get_mut(controller) {
            waiting.remove(&object.key());
        }
    }
}

impl Collector for Queues {
    fn desc(&self) -> Vec<&Desc> {
        self.depth.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = Instant::now();
        for (controller, waiting) in self.known.lock().iter() {
            let due = waiting.values().filter(|due| **due <= now).count();
            self.depth.with_label_values(&[*controller]).set(count(due));
        }
        self.depth.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Subject<'_> = Subject { namespace: "team", name: "a" };
    const B: Subject<'_> = Subject { namespace: "team", name: "b" };

    #[test]
    fn objects_count_when_they_are_due_and_once() {
        let queues = Queues::new().unwrap();
        let depth = || {
            queues.collect();
            queues.depth.with_label_values(&["SyncPolicy"]).get()
        };
        queues.open("SyncPolicy");
        assert_eq!(depth(), 0);
        queues.add("SyncPolicy", A, Duration::from_mins(5));
        queues.add("SyncPolicy", B, Duration::ZERO);
        assert_eq!(depth(), 1);
        queues.add("SyncPolicy", A, Duration::ZERO);
        queues.add("SyncPolicy", A, Duration::from_mins(5));
        assert_eq!(depth(), 2);
        queues.remove("SyncPolicy", A);
        assert_eq!(depth(), 1);
    }
}
