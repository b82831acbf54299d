//! The scopes of the runs in progress. Scopes of concurrent runs on one server never overlap.

use std::collections::HashMap;
use std::pin::pin;

use declarest_core::path::LogicalPath;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::controller::kind::Key;

/// The names of the servers and the scopes of all runs in progress, by policy.
#[derive(Default)]
pub struct Territories {
    held: Mutex<HashMap<Key, (String, LogicalPath)>>,
    freed: Notify,
}

/// The scope of one run, held until it is dropped.
pub struct Territory<'a> {
    territories: &'a Territories,
    key: Key,
}

impl Territories {
    /// Waits until no run of another policy of the namespace has the same `server` and a scope that overlaps `scope`.
    /// Such a run is of a younger policy and is being stopped.
    pub async fn enter(&self, key: &Key, server: &str, scope: &LogicalPath) -> Territory<'_> {
        loop {
            let mut freed = pin!(self.freed.notified());
            // From here on, no notification is missed.
            freed.as_mut().enable();
            if self.try_enter(key, server, scope) {
                return Territory { territories: self, key: key.clone() };
            }
            freed.await;
        }
    }

    fn try_enter(&self, key: &Key, server: &str, scope: &LogicalPath) -> bool {
        let mut held = self.held.lock();
        let taken = held.iter().any(|(other, (on, theirs))| {
            other != key && other.namespace == key.namespace && on == server && theirs.overlaps(scope)
        });
        if !taken {
            held.insert(key.clone(), (server.to_owned(), scope.clone()));
        }
        !taken
    }
}

impl Drop for Territory<'_> {
    fn drop(&mut self) {
        self.territories.held.lock().remove(&self.key);
        self.territories.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn path(text: &str) -> LogicalPath {
        LogicalPath::parse(text).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_waits_for_another_run_in_its_scope() {
        let territories = Territories::default();
        let [own, other] = ["own", "other"].map(|name| Key::new("team".to_owned(), name.to_owned()));
        let elsewhere = Key::new("other".to_owned(), "own".to_owned());
        let held = territories.enter(&other, "staging", &path("/shops/rio")).await;
        drop(territories.enter(&elsewhere, "staging", &path("/shops")).await);
        drop(territories.enter(&own, "staging", &path("/shops/ava")).await);
        drop(territories.enter(&own, "production", &path("/shops")).await);
        let wanted = path("/shops");
        let mut waiting = pin!(territories.enter(&own, "staging", &wanted));
        let too_long = tokio::time::timeout(Duration::from_secs(1), &mut waiting).await;
        assert!(too_long.is_err(), "another run has the scope");
        drop(held);
        let _entered = waiting.await;
    }
}
