//! Watches the objects that contracts are compared with. Only their metadata is received, and nothing is kept of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use declarest_core::contract::ObjectKind;
use futures::{Stream, StreamExt as _};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher as watch_objects;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::kind::Key;
use crate::fanout::Fanout;
use crate::watching::with_pauses;

/// A contract is verified at most once in this time because of changes of its target.
const QUIET: Duration = Duration::from_secs(10);

/// The longest pause after failures. Without the rights, a watch fails until an administrator grants them.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// An object of a target: its kind and its name, or [`ANY`].
pub type Watched = (ObjectKind, String);

/// Instead of a name: the autoscalers that are created in the namespace, because only their content shows what they
/// scale. No object has an empty name.
pub const ANY: &str = "";

/// The watches of all targets: one for each kind and namespace that a target is in.
#[derive(Default)]
pub struct TargetWatches(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Fanout<Key>,
}

#[derive(Default)]
struct State {
    /// The objects of each server.
    targets: HashMap<Key, BTreeSet<Watched>>,
    watches: HashMap<(ObjectKind, String), AbortOnDropHandle<()>>,
    /// The time of the last announcement of each server; in the future if one is pending.
    announced: HashMap<Key, Instant>,
}

impl TargetWatches {
    /// Returns the servers whose target changes.
    pub fn changes(&self) -> impl Stream<Item = Key> + Send + use<> {
        self.0.changed.subscribe(Vec::new)
    }

    /// Replaces the objects of the target of `server`. Watches begin and end as necessary.
    pub fn set(&self, client: &Client, server: &Key, objects: BTreeSet<Watched>) {
        let mut state = self.0.state.lock();
        if objects.is_empty() {
            state.targets.remove(server);
            state.announced.remove(server);
        } else {
            state.targets.insert(server.clone(), objects);
        }
        let wanted: BTreeSet<(ObjectKind, String)> = state
            .targets
            .iter()
            .flat_map(|(key, objects)| objects.iter().map(|(kind, _)| (*kind, key.namespace.clone())))
            .collect();
        state.watches.retain(|place, _| wanted.contains(place));
        for place in wanted {
            let (kind, namespace) = place.clone();
            state.watches.entry(place).or_insert_with(|| {
                let work = watch(client.clone(), kind, namespace, Arc::clone(&self.0));
                AbortOnDropHandle::new(tokio::spawn(work))
            });
        }
    }
}

impl Shared {
    /// Announces the servers with this object in their target, each at most once in ten seconds.
    fn object_changed(self: &Arc<Self>, kind: ObjectKind, namespace: &str, name: &str, is_new: bool) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let State { targets, announced, .. } = &mut *state;
        let is_of = |(key, objects): &(&Key, &BTreeSet<Watched>)| {
            let affects =
                |object: &Watched| object.0 == kind && (object.1 == name || (is_new && object.1 == ANY));
            key.namespace == namespace && objects.iter().any(affects)
        };
        for (key, _) in targets.iter().filter(is_of) {
            let at = announced.get(key).map_or(now, |last| (*last + QUIET).max(now));
            if announced.get(key).is_some_and(|last| *last > now) {
                continue;
            }
            announced.insert(key.clone(), at);
            let (key, shared) = (key.clone(), Arc::clone(self));
            tokio::spawn(async move {
                tokio::time::sleep_until(at).await;
                shared.changed.send(|| vec![key]);
            });
        }
    }
}

/// Follows the objects of one kind and namespace until the task is aborted.
async fn watch(client: Client, kind: ObjectKind, namespace: String, shared: Arc<Shared>) {
    let (version, name, plural) = kind.names();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, name), plural);
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::namespaced_with(client, &namespace, &resource);
    let events = with_pauses(watch_objects(api, watcher::Config::default()), LONGEST_PAUSE);
    let mut events = std::pin::pin!(events);
    // The status of autoscalers changes often, so those of other targets are of interest only once.
    let mut seen = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                let name = object.name_any();
                let is_new = kind == ObjectKind::Autoscaler && seen.insert(name.clone());
                shared.object_changed(kind, &namespace, &name, is_new);
            }
            Ok(Event::Delete(object)) => {
                let name = object.name_any();
                seen.remove(&name);
                shared.object_changed(kind, &namespace, &name, false);
            }
            Ok(Event::Init | Event::InitDone) => {}
            // Without the rights, the checks of the contract report it.
            Err(error) => {
                tracing::debug!(kind = name, namespace, %error, "the watch of a target was interrupted");
            }
        }
    }
}
