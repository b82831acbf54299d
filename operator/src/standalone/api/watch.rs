//! Watches: streams of changes that start at a revision and are complete.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::engine::Engine;
use super::render::{Body, Representation};
use super::resource::ResourceType;
use super::route::Query;
use super::selector::Selector;
use super::status_error::StatusError;
use super::store::{Change, History};

/// Interval of bookmarks in an idle watch that requested them.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);
/// Duration of a watch without `timeoutSeconds` (kube-apiserver: 30 to 60 minutes).
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
/// The maximum duration of a watch.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// The parameters of a watch.
pub(crate) struct WatchRequest {
    pub engine: Arc<Engine>,
    pub resource: Arc<ResourceType>,
    pub namespace: Option<String>,
    pub selector: Selector,
    pub representation: Representation,
    pub query: Query,
}

/// A running watch.
struct Watch {
    request: WatchRequest,
    signal: Receiver<()>,
    revision: u64,
    queue: VecDeque<Bytes>,
    deadline: Instant,
    next_bookmark: Instant,
    columns_sent: bool,
    ended: bool,
}

/// Starts a watch. The response streams JSON lines until the timeout, or until the client disconnects.
pub(crate) fn start(request: WatchRequest) -> Result<Response<Body>, StatusError> {
    // Subscribe before the current state is read, so that no change in between is lost.
    let requested = request.query.revision()?;
    let timeout = request.query.timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs).min(MAX_TIMEOUT);
    let now = Instant::now();
    let mut watch = Watch {
        signal: request.engine.store.subscribe(request.resource.table),
        revision: requested,
        queue: VecDeque::new(),
        deadline: now + timeout,
        next_bookmark: now + BOOKMARK_INTERVAL,
        columns_sent: false,
        ended: false,
        request,
    };
    // Send the current state first, unless the client has it.
    if requested == 0 || watch.request.query.send_initial_events {
        watch.send_current_state();
    }
    // Stream the changes.
    let frames = stream::unfold(watch, |mut watch| async move {
        let line = watch.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(line)), watch))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

impl Watch {
    /// Sends the initial objects as added (streaming lists end them with a bookmark).
    fn send_current_state(&mut self) {
        let request = &self.request;
        let (objects, revision) =
            request.engine.store.list(request.resource.table, request.namespace.as_deref());
        self.revision = revision;
        for object in objects {
            if self.request.selector.matches(&object) {
                self.push_object("ADDED", &object);
            }
        }
        if self.request.query.send_initial_events && self.request.query.bookmarks {
            self.push_bookmark(true);
        }
    }

    /// Returns the next line. `None` ends the watch.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Send queued lines first.
            if let Some(line) = self.queue.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            // Mark the signal as seen before reading, so that a change in between ends the next wait.
            self.signal.borrow_and_update();
            self.read_history();
            if !self.queue.is_empty() {
                continue;
            }
            // Wait for a change, the next bookmark or the timeout.
            tokio::select! {
                changed = self.signal.changed() => {
                    self.ended = changed.is_err();
                }
                () = tokio::time::sleep_until(self.next_bookmark), if self.request.query.bookmarks => {
                    self.push_bookmark(false);
                }
                () = tokio::time::sleep_until(self.deadline) => self.ended = true,
            }
        }
    }

    fn read_history(&mut self) {
        match self.request.engine.store.since(self.request.resource.table, self.revision) {
            History::Changes(changes) => {
                for change in &changes {
                    self.revision = change.revision;
                    self.push_change(change);
                }
            }
            History::Gone(available) => {
                let error = StatusError::expired(self.revision, available);
                self.push("ERROR", &error.to_status());
                self.ended = true;
            }
        }
    }

    /// Adds the event of a change. An object that starts or stops matching the selector is added or deleted.
    fn push_change(&mut self, change: &Change) {
        if let Some(namespace) = &self.request.namespace
            && super::object::meta(&change.new, "namespace") != namespace
        {
            return;
        }
        let selector = &self.request.selector;
        let before = change.old.as_ref().is_some_and(|old| selector.matches(old));
        let after = !change.removed && selector.matches(&change.new);
        match (before, after) {
            (false, true) => self.push_object("ADDED", &change.new),
            (true, true) => self.push_object("MODIFIED", &change.new),
            (true, false) => self.push_object("DELETED", &change.new),
            (false, false) => {}
        }
    }

    fn push_object(&mut self, kind: &str, object: &Arc<Value>) {
        let request = &self.request;
        let shown = request.representation.object(&request.resource, object, !self.columns_sent);
        self.columns_sent = true;
        self.push(kind, &shown);
    }

    fn push_bookmark(&mut self, ends_initial_events: bool) {
        self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
        let request = &self.request;
        let bookmark = request.representation.bookmark(&request.resource, self.revision, ends_initial_events);
        self.push("BOOKMARK", &bookmark);
    }

    fn push(&mut self, kind: &str, object: &Value) {
        let mut line = json!({"type": kind, "object": object}).to_string();
        line.push('\n');
        self.queue.push_back(Bytes::from(line));
    }
}
