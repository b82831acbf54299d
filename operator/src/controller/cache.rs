//! Caches of watched collections: the current objects, and a stream of changes for every subscriber. All controllers
//! share one watch. Standby replicas also watch, so that they can take over at once.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use declarest_core::error::with_causes;
use futures::stream::select_all;
use futures::{Stream, StreamExt as _, TryStreamExt as _, pin_mut};
use kube::api::ObjectMeta;
use kube::core::DeserializeGuard;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt as _};

use crate::fanout::Fanout;

/// Objects that a cache can hold.
pub trait Cached: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static {}
impl<T: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static> Cached for T {}

/// A change of an object.
#[derive(Clone, Debug)]
pub enum Change<T: Cached> {
    /// It was created or changed, or it existed when the subscription began.
    Present(Arc<T>),
    /// It was deleted. This is its last known state.
    Gone(Arc<T>),
}

/// Read access to a watched collection.
#[derive(Debug)]
pub struct Cache<T: Cached> {
    store: Store<T>,
    changes: Arc<Fanout<Change<T>>>,
}

impl<T: Cached> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), changes: Arc::clone(&self.changes) }
    }
}

/// Fills a cache from a watch.
pub struct Filler<T: Cached> {
    writer: reflector::store::Writer<T>,
    cache: Cache<T>,
}

/// Creates an empty cache, and its filler.
pub fn cache<T: Cached>() -> (Cache<T>, Filler<T>) {
    let (store, writer) = reflector::store();
    let cache = Cache { store, changes: Arc::default() };
    (cache.clone(), Filler { writer, cache })
}

impl<T: Cached> Cache<T> {
    /// Returns the store, which controllers need.
    pub fn store(&self) -> Store<T> {
        self.store.clone()
    }

    /// Waits until the first list has arrived. Returns `false` if the watch ended before.
    pub async fn synced(&self) -> bool {
        self.store.wait_until_ready().await.is_ok()
    }

    /// Returns the current objects, followed by all changes. No change in between is lost.
    pub fn subscribe(&self) -> impl Stream<Item = Change<T>> + Send + use<T> {
        self.changes.subscribe(|| self.store.state().into_iter().map(Change::Present).collect())
    }

    /// Returns the names of the objects of a namespace.
    pub fn names(&self, namespace: &str) -> Vec<String> {
        let all = self.store.state_filter(|object| object.meta().namespace.as_deref() == Some(namespace));
        all.iter().map(|object| object.name_any()).collect()
    }

    /// Returns the last known state of the object.
    pub fn object(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.store.get(&ObjectRef::new(name).within(namespace))
    }
}

impl<K> Cache<DeserializeGuard<K>>
where
    K: Cached + serde::de::DeserializeOwned,
{
    /// Returns the object, or `None` if it does not exist or cannot be decoded.
    pub fn get(&self, namespace: &str, name: &str) -> Option<K> {
        self.object(namespace, name).and_then(|guard| guard.0.as_ref().ok().cloned())
    }

    /// Returns what `choose` takes of the objects of a namespace that can be decoded.
    pub fn select<T>(&self, namespace: &str, choose: impl Fn(&K) -> Option<T>) -> Vec<T> {
        let all = self.store.state_filter(|guard| guard.meta().namespace.as_deref() == Some(namespace));
        all.iter().filter_map(|guard| choose(guard.0.as_ref().ok()?)).collect()
    }
}

impl<T: Cached> Filler<T> {
    /// Follows a watch until it ends. Errors are logged, and the watch continues after a pause.
    pub async fn follow(mut self, events: impl Stream<Item = watcher::Result<Event<T>>>) {
        let kind = T::kind(&()).into_owned();
        let events =
            events.inspect_err(|error| tracing::warn!(kind, error = with_causes(error), "watch interrupted"));
        pin_mut!(events);
        while let Some(event) = events.next().await {
            if let Ok(event) = event {
                self.apply(event);
            }
        }
    }

    /// Follows one watch of each namespace. The cache is synced when all of them have listed their objects.
    pub async fn follow_each<S>(mut self, watches: Vec<(String, S)>)
    where
        S: Stream<Item = watcher::Result<Event<T>>> + Send,
    {
        let kind = T::kind(&()).into_owned();
        let mut unlisted: HashSet<String> = watches.iter().map(|(namespace, _)| namespace.clone()).collect();
        // The lists that are not complete yet.
        let mut lists: HashMap<String, Vec<Arc<T>>> = HashMap::new();
        let mut events = select_all(
            watches
                .into_iter()
                .map(|(namespace, watch)| Box::pin(watch.map(move |event| (namespace.clone(), event)))),
        );
        while let Some((namespace, event)) = events.next().await {
            match event {
                Ok(Event::Init) => drop(lists.remove(&namespace)),
                Ok(Event::InitApply(object)) => lists.entry(namespace).or_default().push(Arc::new(object)),
                Ok(Event::InitDone) => {
                    self.replace(&namespace, &lists.remove(&namespace).unwrap_or_default());
                    if unlisted.remove(&namespace) && unlisted.is_empty() {
                        self.complete();
                    }
                }
                Ok(change) => self.apply(change),
                Err(error) => {
                    tracing::warn!(kind, namespace, error = with_causes(&error), "watch interrupted");
                }
            }
        }
    }

    /// Replaces the objects of a namespace.
    fn replace(&mut self, namespace: &str, list: &[Arc<T>]) {
        let is_of = |object: &T| object.meta().namespace.as_deref() == Some(namespace);
        for change in differences(&self.cache.store.state_filter(is_of), list) {
            self.apply(match change {
                Change::Present(object) => Event::Apply(Arc::unwrap_or_clone(object)),
                Change::Gone(object) => Event::Delete(Arc::unwrap_or_clone(object)),
            });
        }
    }

    /// Makes the store ready, which it is after a complete list.
    fn complete(&mut self) {
        self.apply(Event::Init);
        for object in self.cache.store.state() {
            self.apply(Event::InitApply(Arc::unwrap_or_clone(object)));
        }
        self.apply(Event::InitDone);
    }

    fn apply(&mut self, event: Event<T>) {
        let Cache { store, changes } = &self.cache;
        changes.send(|| {
            let before = matches!(event, Event::InitDone).then(|| store.state());
            self.writer.apply_watcher_event(&event);
            match event {
                Event::Apply(object) => vec![Change::Present(Arc::new(object))],
                Event::Delete(object) => vec![Change::Gone(Arc::new(object))],
                Event::Init | Event::InitApply(_) => Vec::new(),
                Event::InitDone => differences(&before.unwrap_or_default(), &store.state()),
            }
        });
    }
}

/// Returns the changes between two lists, because an interrupted watch misses changes. An object that was deleted and
/// created again is gone, and then present.
fn differences<T: Cached>(before: &[Arc<T>], after: &[Arc<T>]) -> Vec<Change<T>> {
    let versions = |objects: &[Arc<T>]| -> HashMap<ObjectRef<T>, (Option<String>, Option<String>)> {
        objects
            .iter()
            .map(|object| (ObjectRef::from_obj(object.as_ref()), (object.uid(), object.resource_version())))
            .collect()
    };
    let (old, new) = (versions(before), versions(after));
    let gone = before.iter().filter(|object| {
        let current = new.get(&ObjectRef::from_obj(object.as_ref()));
        current.is_none_or(|(uid, _)| *uid != object.uid())
    });
    let changed = after.iter().filter(|object| {
        let key = ObjectRef::from_obj(object.as_ref());
        old.get(&key) != new.get(&key)
    });
    gone.cloned().map(Change::Gone).chain(changed.cloned().map(Change::Present)).collect()
}

/// Returns a filter of relevant changes: the object is new or deleted, its spec changed, its deletion began, or one of
/// `annotations` changed. Changes of the status are not relevant, because the operator itself writes it.
pub fn relevant<T: Cached>(annotations: &'static [&'static str]) -> impl FnMut(&Change<T>) -> bool + Send {
    let mut seen: HashMap<ObjectRef<T>, u64> = HashMap::new();
    move |change| match change {
        Change::Gone(object) => {
            seen.remove(&ObjectRef::from_obj(object.as_ref()));
            true
        }
        Change::Present(object) => {
            let fingerprint = fingerprint(object.meta(), annotations);
            seen.insert(ObjectRef::from_obj(object.as_ref()), fingerprint) != Some(fingerprint)
        }
    }
}

fn fingerprint(object: &ObjectMeta, annotations: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid.hash(&mut hasher);
    object.generation.hash(&mut hasher);
    object.deletion_timestamp.is_some().hash(&mut hasher);
    for annotation in annotations {
        object.annotations.as_ref().and_then(|all| all.get(*annotation)).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::channel::mpsc::{UnboundedSender, unbounded};
    use k8s_openapi::api::core::v1::ConfigMap;
    use rstest::rstest;

    use super::*;

    fn object(name: &str, version: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some("team".to_owned()),
                resource_version: Some(version.to_owned()),
                generation: Some(1),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    fn list(filler: &mut Filler<ConfigMap>, objects: &[ConfigMap]) {
        filler.apply(Event::Init);
        for object in objects {
            filler.apply(Event::InitApply(object.clone()));
        }
        filler.apply(Event::InitDone);
    }

    fn drain(stream: &mut (impl Stream<Item = Change<ConfigMap>> + Unpin)) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(Some(change)) = stream.next().now_or_never() {
            seen.push(match change {
                Change::Present(object) => format!("+{}", object.name_any()),
                Change::Gone(object) => format!("-{}", object.name_any()),
            });
        }
        seen.sort();
        seen
    }

    #[test]
    fn a_subscription_starts_with_the_current_objects() {
        let (cache, mut filler) = cache();
        list(&mut filler, &[object("a", "1")]);
        let mut stream = Box::pin(cache.subscribe());
        assert_eq!(drain(&mut stream), ["+a"]);
        filler.apply(Event::Apply(object("b", "2")));
        filler.apply(Event::Delete(object("a", "3")));
        assert_eq!(drain(&mut stream), ["+b", "-a"]);
        assert!(cache.object("team", "a").is_none());
        assert!(cache.object("team", "b").is_some());
    }

    #[test]
    fn a_new_list_yields_only_the_changes_that_the_watch_missed() {
        let (cache, mut filler) = cache();
        list(&mut filler, &[object("gone", "1"), object("same", "1"), object("changed", "1")]);
        let mut stream = Box::pin(cache.subscribe());
        drain(&mut stream);
        list(&mut filler, &[object("same", "1"), object("changed", "2"), object("new", "3")]);
        assert_eq!(drain(&mut stream), ["+changed", "+new", "-gone"]);
    }

    #[tokio::test]
    async fn namespaces_are_listed_together_and_again_by_themselves() {
        let of = |namespace: &str, name: &str, version: &str| {
            let mut object = object(name, version);
            object.metadata.namespace = Some(namespace.to_owned());
            object
        };
        let (cache, filler) = cache();
        let [(team, team_watch), (other, other_watch)] = [unbounded(), unbounded()];
        let send = |watch: &UnboundedSender<_>, event| watch.unbounded_send(Ok(event)).unwrap();
        let mut following = Box::pin(
            filler.follow_each(vec![("team".to_owned(), team_watch), ("other".to_owned(), other_watch)]),
        );
        let mut run = || assert!((&mut following).now_or_never().is_none());
        send(&team, Event::Init);
        send(&team, Event::InitApply(of("team", "a", "1")));
        send(&team, Event::InitDone);
        send(&team, Event::Apply(of("team", "early", "2")));
        run();
        assert!(cache.synced().now_or_never().is_none(), "the other namespace is not listed");
        send(&other, Event::Init);
        send(&other, Event::InitApply(of("other", "a", "3")));
        send(&other, Event::InitDone);
        run();
        assert_eq!(cache.synced().now_or_never(), Some(true));
        let mut stream = Box::pin(cache.subscribe());
        assert_eq!(drain(&mut stream), ["+a", "+a", "+early"]);
        // The watch of one namespace is interrupted.
        send(&team, Event::Init);
        send(&team, Event::InitApply(of("team", "new", "5")));
        send(&team, Event::InitDone);
        run();
        assert_eq!(drain(&mut stream), ["+new", "-a", "-early"]);
        assert!(cache.object("other", "a").is_some());
        // The watches of both are interrupted, and one list fails at first.
        send(&other, Event::Init);
        send(&team, Event::Init);
        send(&team, Event::InitApply(of("team", "new", "5")));
        send(&team, Event::InitDone);
        run();
        assert_eq!(drain(&mut stream), [] as [&str; 0]);
        assert!(cache.object("other", "a").is_some(), "its list is not complete");
        send(&other, Event::Init);
        send(&other, Event::InitApply(of("other", "late", "6")));
        send(&team, Event::Init);
        send(&team, Event::InitApply(of("team", "new", "5")));
        send(&team, Event::InitDone);
        run();
        assert_eq!(drain(&mut stream), [] as [&str; 0]);
        send(&other, Event::InitDone);
        run();
        assert_eq!(drain(&mut stream), ["+late", "-a"]);
        // An object is replaced while the watch is interrupted.
        let mut replaced = of("other", "late", "7");
        replaced.metadata.uid = Some("another".to_owned());
        send(&other, Event::Init);
        send(&other, Event::InitApply(replaced));
        send(&other, Event::InitDone);
        run();
        assert_eq!(drain(&mut stream), ["+late", "-late"]);
    }

    #[rstest]
    #[case::status(|object: &mut ConfigMap| object.metadata.resource_version = Some("9".to_owned()), false)]
    #[case::spec(|object: &mut ConfigMap| object.metadata.generation = Some(2), true)]
    #[case::replaced(|object: &mut ConfigMap| object.metadata.uid = Some("u".to_owned()), true)]
    #[case::watched_annotation(
        |object: &mut ConfigMap| { object.annotations_mut().insert("watched".to_owned(), "x".to_owned()); }, true)]
    #[case::other_annotation(
        |object: &mut ConfigMap| { object.annotations_mut().insert("other".to_owned(), "x".to_owned()); }, false)]
    #[case::deletion(
        |object: &mut ConfigMap| object.metadata.deletion_timestamp = Some(
            k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH)), true)]
    fn only_relevant_changes_pass(#[case] change: fn(&mut ConfigMap), #[case] passes: bool) {
        let mut relevant = relevant(&["watched"]);
        let mut object = object("a", "1");
        assert!(relevant(&Change::Present(Arc::new(object.clone()))));
        assert!(!relevant(&Change::Present(Arc::new(object.clone()))));
        change(&mut object);
        assert_eq!(relevant(&Change::Present(Arc::new(object))), passes);
    }

    #[test]
    fn an_object_that_is_created_again_is_relevant() {
        let mut relevant = relevant(&[]);
        let object = object("a", "1");
        assert!(relevant(&Change::Present(Arc::new(object.clone()))));
        assert!(relevant(&Change::Gone(Arc::new(object.clone()))));
        assert!(relevant(&Change::Present(Arc::new(object))));
    }
}
