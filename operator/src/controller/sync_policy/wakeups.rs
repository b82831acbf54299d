//! Changes of other objects that trigger a round of a policy.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{Stream, StreamExt as _, future, stream};

use super::overlap::Claim;
use crate::controller::cache::{Cache, Cached, Change};
use crate::controller::conditions;
use crate::controller::context::{Context, Guarded};
use crate::controller::kind::{Key, Kind};
use crate::controller::mirrors::Mirrors;
use crate::crd::{LocalRef, ManagedServer, ResourceRepository, SecretStore, SyncPolicy};

/// Returns the policies to reconcile because a dependency or an overlapping policy changed.
pub fn wakeups(context: &Arc<Context>, mirrors: &Mirrors) -> impl Stream<Item = Key> + Send + 'static {
    // A mirror that is fetched again may be at the same revision.
    let repositories = stream::select(changed(&context.caches.repositories), mirrors.renewals());
    let repositories = users::<ResourceRepository, _>(context, repositories);
    let servers = users::<ManagedServer, _>(context, changed(&context.caches.servers));
    let stores = users::<SecretStore, _>(context, changed(&context.caches.stores));
    let secrets = context.dependents::<SyncPolicy>();
    stream::select_all([
        repositories.boxed(),
        servers.boxed(),
        stores.boxed(),
        secrets.boxed(),
        peers(context).boxed(),
    ])
}

/// Returns the policies that refer to one of `objects`.
fn users<K: Kind, S: Stream<Item = Key> + Send>(
    context: &Arc<Context>,
    objects: S,
) -> impl Stream<Item = Key> + Send + use<K, S> {
    let context = Arc::clone(context);
    let refers = |policy: &SyncPolicy, name: &str| {
        K::reference(policy).is_some_and(|reference| names(reference, name))
    };
    objects.flat_map(move |key| {
        let policies = &context.caches.policies;
        stream::iter(
            policies.select(&key.namespace, |policy| refers(policy, &key.name).then(|| policy.key())),
        )
    })
}

/// Returns the objects whose readiness, spec, revision or artifacts differ from their last known state.
fn changed<K: Kind + Facts>(objects: &Cache<Guarded<K>>) -> impl Stream<Item = Key> + Send + use<K>
where
    Guarded<K>: Cached,
{
    let mut seen: HashMap<Key, Option<String>> = HashMap::new();
    objects.subscribe().filter_map(move |change| {
        let (key, is_changed) = match change {
            Change::Present(object) => {
                let key = Key::of(kube::Resource::meta(object.as_ref()));
                let facts = object.0.as_ref().ok().map(|object| format!("{:?}", object.facts()));
                let before = seen.insert(key.clone(), facts.clone());
                (key, before != Some(facts))
            }
            Change::Gone(object) => {
                let key = Key::of(kube::Resource::meta(object.as_ref()));
                seen.remove(&key);
                (key, true)
            }
        };
        future::ready(is_changed.then_some(key))
    })
}

/// The facts of a dependency that matter to the policies that refer to it.
trait Facts {
    fn facts(&self) -> impl std::fmt::Debug;
}

/// Returns the uid, the generation and the readiness of an object as text, with the reason, which policies quote.
fn readiness<K: Kind>(object: &K) -> String {
    let ready = conditions::find(object.conditions(), "Ready")
        .map(|ready| (ready.status.as_str(), ready.reason.as_str(), ready.observed_generation));
    format!("{:?} {:?} {ready:?}", object.meta().uid, object.meta().generation)
}

impl Facts for ResourceRepository {
    fn facts(&self) -> impl std::fmt::Debug {
        let revision = self.status.as_ref().and_then(|status| status.last_fetched_revision.clone());
        (readiness(self), revision)
    }
}

impl Facts for ManagedServer {
    fn facts(&self) -> impl std::fmt::Debug {
        let status = self.status.as_ref();
        let digests = status.and_then(|status| status.artifact_digests.clone());
        let gate = status.and_then(|status| status.contract.as_ref()?.gate);
        (readiness(self), digests, gate)
    }
}

impl Facts for SecretStore {
    fn facts(&self) -> impl std::fmt::Debug {
        readiness(self)
    }
}

/// Returns whether a reference may name the object. A placeholder may name any object.
fn names(reference: &LocalRef, name: &str) -> bool {
    reference.name == name || reference.name.contains("${")
}

/// Returns the policies whose claim overlaps a claim that another policy added, changed or removed. They must check
/// again which policy is older.
fn peers(context: &Arc<Context>) -> impl Stream<Item = Key> + Send + use<> {
    let mut claims: HashMap<Key, Claim> = HashMap::new();
    let (policies, context) = (context.caches.policies.subscribe(), Arc::clone(context));
    policies.flat_map(move |change| {
        let (key, claim) = match change {
            Change::Present(policy) => {
                let policy_claim = |policy| Claim::expanded(policy, &context.settings);
                let claim = policy.0.as_ref().ok().and_then(policy_claim);
                (Key::of(kube::Resource::meta(policy.as_ref())), claim)
            }
            Change::Gone(policy) => (Key::of(kube::Resource::meta(policy.as_ref())), None),
        };
        let before = match claim.clone() {
            Some(claim) => claims.insert(key.clone(), claim),
            None => claims.remove(&key),
        };
        let concerned: Vec<Key> = if before == claim {
            Vec::new()
        } else {
            let disputed: Vec<Claim> = before.into_iter().chain(claim).collect();
            let others =
                claims.iter().filter(|(other, _)| other.namespace == key.namespace && **other != key);
            let conflicts = |own: &Claim| disputed.iter().any(|claim| claim.conflicts_with(own));
            others.filter(|(_, own)| conflicts(own)).map(|(other, _)| other.clone()).collect()
        };
        stream::iter(concerned)
    })
}
