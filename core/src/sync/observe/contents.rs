//! The contents of resources that one run has read, for others that refer to them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::once::{Once, cell};
use crate::metadata::Rules;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::sync::model::Observed;

/// The number of resources of a run whose contents are remembered for others that refer to them.
const REMEMBERED: usize = 1_000;
/// The largest content that is remembered.
const SMALL: usize = 8 << 10;

/// The content of a resource on the server.
pub(super) struct Content {
    pub payload: Value,
    pub rules: Arc<Rules>,
}

impl Content {
    /// Returns the content of a resource, if it is small.
    fn of(observed: &Observed) -> Option<Arc<Self>> {
        let payload = observed.payload.as_ref().filter(|payload| payload.weight() <= SMALL)?;
        Some(Arc::new(Self { payload: payload.clone(), rules: Arc::clone(&observed.at.rules) }))
    }

    /// Whether the value at `pointer` is a secret, or contains one.
    pub fn is_secret(&self, pointer: &Pointer) -> bool {
        let rules = self.rules.resolved();
        let (own, mut secret) = (pointer.tokens(), rules.secret_attributes.iter().map(Pointer::tokens));
        rules.secret || secret.any(|tokens| tokens.starts_with(own) || own.starts_with(tokens))
    }
}

/// The content of a resource that the run looked at; `None` if the server does not have it.
pub(super) type Seen = Option<Arc<Content>>;

/// The contents that were read in one run.
#[derive(Default)]
pub(super) struct References {
    pub known: Once<Arc<Content>>,
    /// The resources of the run, which are not read twice.
    seen: Mutex<HashMap<LogicalPath, watch::Receiver<Option<Seen>>>>,
}

/// A resource that the run is about to look at. If it is dropped without an observation, the resource is read again for
/// those that refer to it.
pub(crate) struct Expected(watch::Sender<Option<Seen>>);

impl Expected {
    /// Remembers the observation of the resource.
    pub fn remember(self, observed: &Observed) {
        let content = Content::of(observed);
        if content.is_some() || observed.payload.is_none() {
            self.0.send_replace(Some(content));
        }
    }
}

impl References {
    /// Announces that the run looks at the resource at `path`. Others that refer to it wait for the result.
    pub fn expect(&self, path: &LogicalPath) -> Option<Expected> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REMEMBERED {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        seen.insert(path.clone(), receiver);
        Some(Expected(sender))
    }

    /// Remembers the resource at `path`, which the run has just read.
    pub fn remember(&self, path: &LogicalPath, observed: &Observed) {
        let is_full = self.known.lock().unwrap_or_else(PoisonError::into_inner).len() >= REMEMBERED;
        if let Some(content) = Content::of(observed).filter(|_| !is_full) {
            // A resource that refers to it may have read it before.
            let _ = cell(&self.known, path).set(content);
        }
    }

    /// Waits for the result of a look at `path`, if the run has begun it.
    pub async fn seen(&self, path: &LogicalPath) -> Option<Seen> {
        let expected = self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        let mut expected = expected?;
        expected.wait_for(Option::is_some).await.ok()?.clone()
    }
}
