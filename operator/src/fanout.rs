//! Sends values to any number of subscribers.

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use parking_lot::Mutex;

/// Sends values to its subscribers. Those that are gone are dropped.
#[derive(Debug)]
pub struct Fanout<T>(Mutex<Vec<UnboundedSender<T>>>);

impl<T> Default for Fanout<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Fanout<T> {
    /// Sends the values that `change` returns. Nothing is subscribed while it runs.
    pub fn send(&self, change: impl FnOnce() -> Vec<T>) {
        let mut subscribers = self.0.lock();
        let values = change();
        subscribers.retain(|subscriber| {
            values.iter().all(|value| subscriber.unbounded_send(value.clone()).is_ok())
                && !subscriber.is_closed()
        });
    }

    /// Returns the values of `current`, followed by all that are sent. If a sender changes what `current` returns, no change
    /// is lost in between.
    pub fn subscribe(&self, current: impl FnOnce() -> Vec<T>) -> UnboundedReceiver<T> {
        let (sender, receiver) = unbounded();
        let mut subscribers = self.0.lock();
        for value in current() {
            // This cannot fail, because the receiver exists.
            let _ = sender.unbounded_send(value);
        }
        subscribers.push(sender);
        receiver
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_subscription_is_forgotten() {
        let fanout = Fanout::default();
        drop(fanout.subscribe(|| vec!["first"]));
        fanout.send(Vec::new);
        assert!(fanout.0.lock().is_empty());
    }
}
