//! Kubernetes events of the objects. They are only for users, so a lost event is not an error.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::outcome::Notice;
use super::status::FIELD_MANAGER;
use crate::telemetry;

/// An identical event is not published again within this time.
const QUIET: Duration = Duration::from_mins(10);

/// Maximum length of a note in bytes, from the Kubernetes API.
const NOTE_LIMIT: usize = 1024;

/// Publishes events, identical ones at most once in ten minutes.
pub struct Events {
    client: Client,
    reporter: Reporter,
    recent: Mutex<HashMap<u64, Instant>>,
}

impl Events {
    /// Creates a publisher. `instance` identifies this replica.
    pub fn new(client: Client, instance: String) -> Self {
        let reporter = Reporter { controller: FIELD_MANAGER.to_owned(), instance: Some(instance) };
        Self { client, reporter, recent: Mutex::default() }
    }

    pub async fn publish(&self, object: &ObjectReference, notice: &Notice) {
        if !self.is_news(object, notice, Instant::now()) {
            return;
        }
        let note = telemetry::conceal(object.namespace.as_deref().unwrap_or_default(), &notice.note);
        let event = Event {
            type_: if notice.warning { EventType::Warning } else { EventType::Normal },
            reason: notice.reason.to_owned(),
            note: Some(truncate(&note).to_owned()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        // A shared recorder would count an event with another note as a repetition of the first event, and would
        // keep the first note.
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        if let Err(error) = recorder.publish(&event, object).await {
            tracing::debug!(%error, reason = notice.reason, "cannot publish an event");
        }
    }

    fn is_news(&self, object: &ObjectReference, notice: &Notice, now: Instant) -> bool {
        let mut hasher = DefaultHasher::new();
        (&object.uid, &object.kind, &object.namespace, &object.name).hash(&mut hasher);
        (notice.warning, notice.reason, &notice.note).hash(&mut hasher);
        let mut recent = self.recent.lock();
        recent.retain(|_, published| now.duration_since(*published) < QUIET);
        let notice = hasher.finish();
        let is_news = !recent.contains_key(&notice);
        // A repeated event does not extend the time in which it is not published.
        recent.entry(notice).or_insert(now);
        is_news
    }
}

fn truncate(note: &str) -> &str {
    &note[..note.floor_char_boundary(NOTE_LIMIT)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Events {
        let refuse = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        });
        Events::new(Client::new(refuse, "default"), "test".to_owned())
    }

    fn object(name: &str) -> ObjectReference {
        ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() }
    }

    #[tokio::test]
    async fn identical_events_are_published_once_in_ten_minutes() {
        let events = events();
        let start = Instant::now();
        let notice = Notice::warning("FetchFailed", "connection refused");
        assert!(events.is_news(&object("a"), &notice, start));
        assert!(!events.is_news(&object("a"), &notice, start + Duration::from_secs(599)));
        assert!(events.is_news(&object("b"), &notice, start));
        assert!(events.is_news(&object("a"), &Notice::warning("FetchFailed", "timed out"), start));
        assert!(events.is_news(&object("a"), &notice, start + Duration::from_mins(10)));
    }

    #[test]
    fn notes_fit_into_an_event() {
        let note = "ü".repeat(1000);
        assert_eq!(truncate(&note).len(), 1024);
    }
}
