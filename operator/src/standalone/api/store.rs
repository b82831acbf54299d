//! Stores the objects, their revision, and the recent history that watches resume from.
//!
//! Writes are serialised: a request holds the [`Writer`] from its first read to its commit, so that no other write
//! can come between. Readers never wait for a write to disk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::object::{meta, set_meta};
use super::resource::ResourceType;
use crate::standalone::state::{StateDir, StateError};

/// The age at which a change leaves the history with the next change of its type. Watches get a bookmark each minute, so
/// only a client that was away for longer must list again.
const LOG_AGE: Duration = Duration::from_mins(5);

/// Namespace and name; the namespace of a cluster-scoped object is empty.
pub(crate) type ObjectKey = (String, String);

/// A change of an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub revision: u64,
    /// The object before the change; `None` if it was created.
    pub old: Option<Arc<Value>>,
    /// The object after the change, with its revision. If the object was removed, its last state.
    pub new: Arc<Value>,
    pub removed: bool,
}

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<ObjectKey, Arc<Value>>,
    log: VecDeque<(Instant, Change)>,
    /// The newest revision that is no longer in the log.
    floor: u64,
}

#[derive(Debug, Default)]
struct Inner {
    tables: Vec<Table>,
    revision: u64,
}

/// The history of a table since a revision.
pub(crate) enum History {
    /// The changes after it, oldest first.
    Changes(Vec<Change>),
    /// The revision is no longer in the log. Holds the oldest revision that a watch can start from.
    Gone(u64),
}

/// All objects of all tables.
#[derive(Debug)]
pub(crate) struct Store {
    inner: RwLock<Inner>,
    writer: Mutex<()>,
    /// One per table: a change.
    signals: Vec<watch::Sender<()>>,
    log_capacity: usize,
    state: Option<StateDir>,
}

impl Store {
    pub(crate) fn new(tables: usize, log_capacity: usize, state: Option<StateDir>) -> Self {
        let inner =
            Inner { tables: std::iter::repeat_with(Table::default).take(tables).collect(), revision: 1 };
        let signals = std::iter::repeat_with(watch::Sender::default).take(tables).collect();
        Self { inner: RwLock::new(inner), writer: Mutex::new(()), signals, log_capacity, state }
    }

    /// Returns whether a commit writes to disk.
    pub(crate) fn is_durable(&self) -> bool {
        self.state.is_some()
    }

    /// Stores the objects of an earlier process. Watches cannot start from a revision before that.
    pub(crate) fn restore(&self, table: usize, objects: Vec<Value>) {
        let mut inner = self.inner.write();
        for object in objects {
            let revision = meta(&object, "resourceVersion").parse().unwrap_or(0);
            inner.revision = inner.revision.max(revision);
            inner.tables[table].objects.insert(key_of(&object), Arc::new(object));
        }
        let revision = inner.revision;
        for table in &mut inner.tables {
            table.floor = revision;
        }
    }

    pub(crate) fn get(&self, table: usize, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.inner.read().tables[table].objects.get(&key).cloned()
    }

    /// Returns the objects of one namespace, or of all, in the order of namespace and name, and their revision.
    pub(crate) fn list(&self, table: usize, namespace: Option<&str>) -> (Vec<Arc<Value>>, u64) {
        let inner = self.inner.read();
        let objects = inner.tables[table].objects.iter();
        let objects = objects.filter(|(key, _)| namespace.is_none_or(|namespace| key.0 == namespace));
        (objects.map(|(_, object)| Arc::clone(object)).collect(), inner.revision)
    }

    /// Returns the changes of a table after `revision`.
    pub(crate) fn since(&self, table: usize, revision: u64) -> History {
        let inner = self.inner.read();
        let current = inner.revision;
        let table = &inner.tables[table];
        if revision < table.floor || revision > current {
            return History::Gone(table.floor.max(1));
        }
        let start = table.log.partition_point(|(_, change)| change.revision <= revision);
        History::Changes(table.log.range(start..).map(|(_, change)| change.clone()).collect())
    }

    pub(crate) fn revision(&self) -> u64 {
        self.inner.read().revision
    }

    /// Returns a receiver that is notified of every change of a table.
    pub(crate) fn subscribe(&self, table: usize) -> watch::Receiver<()> {
        self.signals[table].subscribe()
    }

    /// Returns the writer. Waits until no other request holds it.
    pub(crate) fn writer(&self) -> Writer<'_> {
        Writer { store: self, _guard: self.writer.lock() }
    }
}

/// Exclusive write access to the store.
pub(crate) struct Writer<'a> {
    store: &'a Store,
    _guard: MutexGuard<'a, ()>,
}

impl Writer<'_> {
    /// Stores `object` with a new revision. If the type is durable, the object is then on disk.
    pub(crate) fn put(&self, resource: &ResourceType, object: Value) -> Result<Arc<Value>, StateError> {
        self.commit(resource, object, false)
    }

    /// Removes `object`. Returns it with the revision of its removal.
    pub(crate) fn remove(&self, resource: &ResourceType, object: Value) -> Result<Arc<Value>, StateError> {
        self.commit(resource, object, true)
    }

    fn commit(
        &self,
        resource: &ResourceType,
        mut object: Value,
        removed: bool,
    ) -> Result<Arc<Value>, StateError> {
        // Save the object.
        let revision = self.store.revision() + 1;
        set_meta(&mut object, "resourceVersion", json!(revision.to_string()));
        let key = key_of(&object);
        if let (Some(state), true) = (&self.store.state, resource.durable) {
            if removed {
                state.remove(&resource.plural, &key.0, &key.1)?;
            } else {
                state.write(&resource.plural, &key.0, &key.1, &object)?;
            }
        }
        // Show it to readers, with its change in the history.
        let object = Arc::new(object);
        {
            let mut inner = self.store.inner.write();
            inner.revision = revision;
            let table = &mut inner.tables[resource.table];
            let old = if removed {
                table.objects.remove(&key)
            } else {
                table.objects.insert(key, Arc::clone(&object))
            };
            let (now, capacity) = (Instant::now(), self.store.log_capacity);
            table.log.push_back((now, Change { revision, old, new: Arc::clone(&object), removed }));
            while let Some((at, oldest)) = table.log.front()
                && (table.log.len() > capacity || now.duration_since(*at) > LOG_AGE)
            {
                table.floor = oldest.revision;
                table.log.pop_front();
            }
        }
        // Wake the watches.
        self.store.signals[resource.table].send_replace(());
        Ok(object)
    }
}

fn key_of(object: &Value) -> ObjectKey {
    (meta(object, "namespace").to_owned(), meta(object, "name").to_owned())
}
