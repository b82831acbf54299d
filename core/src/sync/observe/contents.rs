//! Keeps the contents of resources that the run has read, for other resources that refer to them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::asked::Asked;
use super::once::{Once, cell};
use crate::metadata::Rules;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::sync::model::Observed;

/// The number of resources of a run whose contents are remembered for others that refer to them.
const REMEMBERED: usize = 1_000;
/// The memory that all of these contents may need.
const ROOM: usize = 8 << 20;

/// The content of a resource on the server.
pub(super) struct Content {
    pub payload: Value,
    pub rules: Arc<Rules>,
    /// The places where Git has placeholders of secrets.
    pub secrets: Arc<[Pointer]>,
    /// Its part of the room for remembered contents; `None` if only resources that refer to it need it.
    #[allow(dead_code, reason = "held until it is dropped")]
    pub part: Option<Part>,
}

/// The memory that remembered contents need.
#[derive(Clone, Default)]
struct Room(Arc<AtomicUsize>);

/// A part of the room, until it is dropped.
pub(super) struct Part {
    room: Room,
    weight: usize,
}

impl Room {
    /// Takes a part; `None` if too little is left.
    fn take(&self, weight: usize) -> Option<Part> {
        let more = |used: usize| used.checked_add(weight).filter(|used| *used <= ROOM);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Part { room: self.clone(), weight })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

impl Content {
    /// Returns the content of a resource, if there is room for it.
    fn of(observed: &Observed, room: &Room) -> Option<Arc<Self>> {
        let payload = observed.payload.as_ref()?;
        let part = Some(room.take(payload.weight())?);
        let (rules, secrets) = (Arc::clone(&observed.at.rules), Arc::clone(&observed.at.secrets));
        Some(Arc::new(Self { payload: payload.clone(), rules, secrets, part }))
    }

    /// Whether the value at `pointer` is a secret, or contains one.
    pub fn is_secret(&self, pointer: &Pointer) -> bool {
        let rules = self.rules.resolved();
        let (own, secret) = (pointer.tokens(), rules.secret_attributes.iter().chain(&*self.secrets));
        rules.secret
            || secret.map(Pointer::tokens).any(|tokens| tokens.starts_with(own) || own.starts_with(tokens))
    }
}

/// The content of a resource that the run observed; `None` if the server does not have it.
pub(super) type Seen = Option<Arc<Content>>;

/// The contents that were read in one run.
#[derive(Default)]
pub(crate) struct References {
    pub(super) known: Once<Arc<Content>>,
    /// The resources of the run, which are not read twice.
    seen: Mutex<HashMap<LogicalPath, watch::Receiver<Option<Seen>>>>,
    room: Room,
    /// The answers of the reads since the last write.
    pub(super) asked: Arc<Asked>,
    /// The resources of the run that refer to others.
    referrers: Mutex<Referrers>,
}

/// The resources that refer to values of others.
#[derive(Default)]
struct Referrers {
    looked_at: HashSet<LogicalPath>,
    /// Those whose values the run may have changed since it looked at them, and whether it has looked at them.
    stale: BTreeMap<LogicalPath, bool>,
}

/// A resource that the run is about to observe. If it is dropped without an observation, the resources that refer to it
/// read it again.
pub(crate) struct Expected(watch::Sender<Option<Seen>>, Room);

impl Expected {
    /// Remembers the observation of the resource.
    pub fn remember(self, observed: &Observed) {
        let content = Content::of(observed, &self.1);
        if content.is_some() || observed.payload.is_none() {
            self.0.send_replace(Some(content));
        }
    }
}

impl fmt::Debug for References {
    /// Shows no contents, because they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("References")
    }
}

impl References {
    /// Announces that the run observes the resource at `path`. Resources that refer to it wait for the result.
    pub fn expect(&self, path: &LogicalPath) -> Option<Expected> {
        let mut seen = self.seen.lock();
        if seen.len() >= REMEMBERED {
            return None;
        }
        let (sender, receiver) = watch::channel(None);
        seen.insert(path.clone(), receiver);
        Some(Expected(sender, self.room.clone()))
    }

    /// Remembers the resource at `path`, which the run has just read.
    pub fn remember(&self, path: &LogicalPath, observed: &Observed) {
        let is_full = self.known.lock().len() >= REMEMBERED;
        if !is_full && let Some(content) = Content::of(observed, &self.room) {
            // A resource that refers to it may have read it before.
            let _ = cell(&self.known, path).set(content);
        }
    }

    /// Forgets the resource at `path`, which the run writes, the resources below it, and the collections that show it.
    pub fn forget(&self, path: &LogicalPath) {
        self.asked.forget();
        self.known.lock().retain(|known, _| !known.overlaps(path));
        self.seen.lock().retain(|seen, _| !seen.overlaps(path));
    }

    /// Records that the run looks at `resource`, which refers to others, with their current values.
    pub fn look_at(&self, resource: &LogicalPath) {
        let mut referrers = self.referrers.lock();
        referrers.stale.remove(resource);
        referrers.looked_at.insert(resource.clone());
    }

    /// Records that the values of `resources` may have changed.
    pub fn outdate(&self, resources: impl Iterator<Item = LogicalPath>) {
        let Referrers { looked_at, stale } = &mut *self.referrers.lock();
        stale.extend(resources.map(|path| {
            let known = looked_at.contains(&path);
            (path, known)
        }));
    }

    /// Whether the run may have changed values of the resource since it looked at it.
    pub fn is_outdated(&self, resource: &LogicalPath) -> bool {
        self.referrers.lock().stale.get(resource) == Some(&true)
    }

    /// Removes and returns the resources whose values may have changed since the run looked at them, or that it has not
    /// looked at (false).
    pub fn take_outdated(&self) -> BTreeMap<LogicalPath, bool> {
        std::mem::take(&mut self.referrers.lock().stale)
    }

    /// Forgets all contents.
    pub fn clear(&self) {
        self.forget(&LogicalPath::root());
    }

    /// Waits for the observation of `path`; `None` if the run has not announced it, or if it ended without a result.
    pub(super) async fn seen(&self, path: &LogicalPath) -> Option<Seen> {
        let expected = self.seen.lock().get(path).cloned();
        let mut expected = expected?;
        expected.wait_for(Option::is_some).await.ok()?.clone()
    }
}
