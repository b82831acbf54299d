//! The context that all controllers share: client, caches, settings and indexes.

use std::sync::Arc;
use std::time::Duration;

use declarest_core::digest::hex;
use declarest_core::repository::Quota;
use declarest_core::transport::Names;
use futures::future::join_all;
use futures::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::cache::{self, Cache, Cached, Change};
use super::dependencies::{Dependencies, Dependency};
use super::error::Failure;
use super::events::Events;
use super::expand::Expansion;
use super::kind::{Key, Kind};
use crate::crd::{Limits, ManagedServer, ResourceRepository, SecretStore, SyncPolicy};
use crate::directories::Directories;
use crate::leader::Leadership;
use crate::shard::Namespaces;
use crate::telemetry::{self, Metrics};
use crate::watching::{LONGEST_OF_REQUIRED, with_pauses};

/// A cached object of one of the four kinds: decoded, or with the error of decoding.
pub type Guarded<K> = DeserializeGuard<K>;

/// The context that all controllers share.
pub struct Context {
    pub client: Client,
    pub caches: Caches,
    pub metrics: Arc<Metrics>,
    pub directories: Directories,
    pub settings: Settings,
    pub events: Events,
    pub dependencies: Dependencies,
    /// The namespaces that this process may reconcile in.
    pub namespaces: Namespaces,
    /// Requests to managed servers are sent only while it is held.
    pub leadership: Leadership,
    /// Cancelled when this process must stop reconciling: it shuts down, or no longer leads.
    pub stop: CancellationToken,
}

/// The settings of the controllers from the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum number of objects that each controller reconciles at the same time.
    pub workers: usize,
    /// Maximum duration of a sync.
    pub sync_timeout: Duration,
    /// Limits of fetches and mirrors.
    pub quota: Quota,
    /// Limits for the validation of specs.
    pub limits: Limits,
    /// The environment variables that specs may use.
    pub expansion: Expansion,
    /// The addresses of hosts that probes of contracts use instead of DNS.
    pub names: Names,
}

impl Settings {
    /// Returns the object with expanded placeholders, validated. It must never be written back or shown. Messages do not
    /// hide the values of its placeholders.
    pub fn expanded<K: Kind>(&self, object: &K) -> Result<K, Failure> {
        self.parsed_with(object, |_, _| {}).map(|(expanded, _)| expanded)
    }

    /// Like [`Self::expanded`], with the values that the validation parsed. Calls `note` for each placeholder with its
    /// name and value.
    fn parsed_with<K: Kind>(&self, object: &K, note: impl Fn(&str, &str)) -> Result<(K, K::Parsed), Failure> {
        let expanded = self.expand_with(object, note)?;
        let parsed = expanded.validate(&self.limits);
        let parsed = parsed.map_err(|errors| {
            let failure = Failure::spec_invalid(errors.to_string());
            let is_of_proxy = errors.fields().any(|field| field.contains(".proxy"));
            if is_of_proxy { failure.with_event("ProxyConfigFailed") } else { failure }
        })?;
        Ok((expanded, parsed))
    }

    /// Returns the object with expanded placeholders, not validated. Its values are not hidden in messages.
    pub fn expand<K: Kind>(&self, object: &K) -> Result<K, Failure> {
        self.expand_with(object, |_, _| {})
    }

    /// Like [`Self::expand`]. Calls `note` for each placeholder with its name and value.
    fn expand_with<K: Kind>(&self, object: &K, note: impl Fn(&str, &str)) -> Result<K, Failure> {
        let invalid = |error: serde_json::Error| Failure::spec_invalid(format!("spec: {error}"));
        let mut spec = serde_json::to_value(object.spec()).map_err(invalid)?;
        self.expansion
            .expand("spec", &mut spec, &|name| {
                let value = std::env::var(name).ok()?;
                note(name, &value);
                Some(value)
            })
            .map_err(|error| Failure::spec_invalid(error.to_string()))?;
        let mut expanded = object.clone();
        *expanded.spec_mut() = serde_json::from_value(spec).map_err(invalid)?;
        Ok(expanded)
    }
}

impl Context {
    /// Returns the object with expanded placeholders, validated. It must never be written back or shown.
    pub fn expanded<K: Kind>(&self, object: &K) -> Result<K, Failure> {
        self.parsed(object).map(|(expanded, _)| expanded)
    }

    /// Like [`Self::expanded`], with the values that the validation parsed. Messages about the namespace of the object
    /// hide the values of its placeholders from now on.
    pub fn parsed<K: Kind>(&self, object: &K) -> Result<(K, K::Parsed), Failure> {
        let namespace = object.key().namespace;
        self.settings.parsed_with(object, |name, value| telemetry::remember(&namespace, name, value))
    }

    /// Returns the SHA-256 of the names, uids and versions of all Secrets that an object uses. The reconcile loop records
    /// them at the start of each round.
    pub fn secrets_hash<K: Kind>(&self, key: &Key) -> String {
        let mut hash = Sha256::new();
        for name in self.dependencies.secrets(K::NAME, key) {
            match self.caches.secrets.object(&key.namespace, &name) {
                Some(secret) => {
                    let uid = secret.uid().unwrap_or_default();
                    let version = secret.resource_version().unwrap_or_default();
                    hash.update(format!("{name}\0{uid}\0{version}\n"));
                }
                None => hash.update(format!("{name}\0missing\n")),
            }
        }
        hex(&hash.finalize())
    }

    /// Returns the objects of kind `K` to reconcile because a Secret or claim that they use changed.
    pub fn dependents<K: Kind>(self: &Arc<Self>) -> impl Stream<Item = Key> + Send + use<K> {
        let secrets = changed_names(&self.caches.secrets, Dependency::Secret);
        let claims = changed_names(&self.caches.claims, Dependency::Claim);
        let context = Arc::clone(self);
        stream::select(secrets, claims).flat_map(move |(namespace, dependency)| {
            stream::iter(context.dependencies.users(K::NAME, &namespace, &dependency))
        })
    }
}

/// The kind that a watch is about, and its work.
pub type Watch = (String, BoxFuture<'static, ()>);

/// The watched collections.
#[derive(Clone)]
pub struct Caches {
    pub repositories: Cache<Guarded<ResourceRepository>>,
    pub servers: Cache<Guarded<ManagedServer>>,
    pub stores: Cache<Guarded<SecretStore>>,
    pub policies: Cache<Guarded<SyncPolicy>>,
    /// Metadata only: the content of Secrets is not kept in memory.
    pub secrets: Cache<PartialObjectMeta<Secret>>,
    pub claims: Cache<PartialObjectMeta<PersistentVolumeClaim>>,
}

impl Caches {
    /// Creates empty caches of these namespaces, or of all if there are none, and the watches that fill them, which end
    /// with the client.
    pub fn open(client: &Client, namespaces: &[String]) -> (Self, Vec<Watch>) {
        let mut watches = Vec::new();
        let caches = Self {
            repositories: watched(client, namespaces, &mut watches),
            servers: watched(client, namespaces, &mut watches),
            stores: watched(client, namespaces, &mut watches),
            policies: watched(client, namespaces, &mut watches),
            secrets: watched(client, namespaces, &mut watches),
            claims: watched(client, namespaces, &mut watches),
        };
        (caches, watches)
    }

    /// Waits until every cache holds its first list. Returns `false` if a watch ended before.
    pub async fn synced(&self) -> bool {
        let all = [
            self.repositories.synced().boxed(),
            self.servers.synced().boxed(),
            self.stores.synced().boxed(),
            self.policies.synced().boxed(),
            self.secrets.synced().boxed(),
            self.claims.synced().boxed(),
        ];
        join_all(all).await.into_iter().all(|synced| synced)
    }
}

fn watched<T>(client: &Client, namespaces: &[String], watches: &mut Vec<Watch>) -> Cache<T>
where
    T: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Cached + DeserializeOwned,
{
    let (cache, filler) = cache::cache();
    let events = |api: Api<T>| lean(watcher(api, watcher::Config::default()));
    let filling = if namespaces.is_empty() {
        filler.follow(events(Api::all(client.clone()))).boxed()
    } else {
        let each = namespaces
            .iter()
            .map(|namespace| (namespace.clone(), events(Api::namespaced(client.clone(), namespace))));
        filler.follow_each(each.collect()).boxed()
    };
    watches.push((T::kind(&()).into_owned(), filling));
    cache
}

/// Restarts a watch after errors, with increasing pauses. Drops `managedFields`, which use much memory.
fn lean<T: Cached>(
    events: impl Stream<Item = watcher::Result<watcher::Event<T>>> + Send + 'static,
) -> impl Stream<Item = watcher::Result<watcher::Event<T>>> + Send {
    with_pauses(events, LONGEST_OF_REQUIRED).modify(|object| object.managed_fields_mut().clear())
}

fn changed_names<K>(
    cache: &Cache<PartialObjectMeta<K>>,
    dependency: fn(String) -> Dependency,
) -> impl Stream<Item = (String, Dependency)> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Cached,
{
    cache.subscribe().map(move |change| {
        let (namespace, name) = match change {
            Change::Present(object) | Change::Gone(object) => (object.namespace(), object.name_any()),
        };
        (namespace.unwrap_or_default(), dependency(name))
    })
}
