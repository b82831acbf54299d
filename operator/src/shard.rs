//! Shards: several operators that divide the namespaces of a cluster.
//!
//! A shard reconciles in the namespaces that its list or its selector names, and only while it holds the claim on them:
//! a Lease for each namespace, in the namespace of the operator, whose holder is the name of a shard. The claim is what
//! makes it safe to move a namespace, because two shards may see its new labels at different times:
//!
//! - A shard that no longer selects a namespace ends its work there, and only then deletes the claim. A former version
//!   emptied it instead; a new leader deletes such claims.
//! - A shard takes a claim that does not exist, is empty, or whose holder has no leader: the lease of that shard is
//!   free, or has not changed for its whole duration. A leader that cannot renew its lease ends before that.
//! - A new leader writes the claims of its own shard before it uses them. Every write and deletion is guarded by the
//!   version that was read, so of two shards that take a claim at the same time only one succeeds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::{Stream, StreamExt as _, pin_mut};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams, Preconditions};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher as watch;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::fanout::Fanout;
use crate::leader::{Timing, lease_name};
use crate::watching::{LONGEST_OF_REQUIRED, with_pauses};

/// Which namespaces a shard reconciles in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    Listed(Vec<String>),
    /// A label selector, which the API server evaluates.
    Selected(String),
}

/// Returns the name of a shard without a configured one. It is the same for all replicas, and differs between shards.
pub fn name(members: &Members) -> String {
    let text = match members {
        Members::Listed(names) => names.join(","),
        Members::Selected(selector) => selector.clone(),
    };
    declarest_core::digest::hex(&Sha256::digest(text)[..5])
}

/// The namespaces that this process may reconcile in. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Namespaces(Option<Arc<Owned>>);

#[derive(Debug, Default)]
struct Owned {
    namespaces: Mutex<HashMap<String, Membership>>,
    /// Receive each namespace that is gained, and each one whose work has ended.
    moved: Fanout<String>,
    /// Notified when work ends.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Membership {
    rounds: usize,
    /// Cancelled when the namespace leaves.
    left: CancellationToken,
}

/// Work in a namespace, which keeps the claim on it until this is dropped.
#[derive(Debug)]
pub struct Stay(Option<(Arc<Owned>, String)>);

impl Namespaces {
    /// All namespaces, always.
    pub fn all() -> Self {
        Self(None)
    }

    /// No namespace yet.
    fn none() -> Self {
        Self(Some(Arc::default()))
    }

    /// Begins work in a namespace; `None` if this process must not work there.
    pub fn enter(&self, namespace: &str) -> Option<Stay> {
        let Some(owned) = &self.0 else { return Some(Stay(None)) };
        let mut namespaces = owned.namespaces.lock();
        let membership =
            namespaces.get_mut(namespace).filter(|membership| !membership.left.is_cancelled())?;
        membership.rounds += 1;
        Some(Stay(Some((Arc::clone(owned), namespace.to_owned()))))
    }

    /// Returns the token that is cancelled when the namespace leaves; cancelled if it is not of this process.
    pub fn left(&self, namespace: &str) -> CancellationToken {
        let gone = || {
            let token = CancellationToken::new();
            token.cancel();
            token
        };
        match &self.0 {
            None => CancellationToken::new(),
            Some(owned) => {
                owned.namespaces.lock().get(namespace).map_or_else(gone, |found| found.left.clone())
            }
        }
    }

    /// Returns the namespaces of this process, followed by those that it gains or has left. What is known of their objects
    /// must be forgotten, and those of gained ones must be reconciled.
    pub fn moved(&self) -> impl Stream<Item = String> + Send + use<> {
        let owned = self.0.as_ref().map(|owned| owned.moved.subscribe(|| self.names()));
        futures::stream::iter(owned).flatten()
    }

    fn gain(&self, namespace: &str) {
        let Some(owned) = &self.0 else { return };
        owned.moved.send(|| {
            owned.namespaces.lock().insert(namespace.to_owned(), Membership::default());
            vec![namespace.to_owned()]
        });
    }

    fn owns(&self, namespace: &str) -> bool {
        self.0.as_ref().is_some_and(|owned| owned.namespaces.lock().contains_key(namespace))
    }

    fn names(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |owned| owned.namespaces.lock().keys().cloned().collect())
    }

    /// Returns the namespaces whose work must end: those that are not wanted now, and those that were not wanted when their
    /// work was ended.
    fn leaving(&self, wanted: &HashSet<String>) -> Vec<String> {
        let Some(owned) = &self.0 else { return Vec::new() };
        let namespaces = owned.namespaces.lock();
        let leaving = namespaces
            .iter()
            .filter(|(namespace, membership)| !wanted.contains(*namespace) || membership.left.is_cancelled());
        leaving.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Ends the work in a namespace. Returns whether all of it has ended.
    fn leave(&self, namespace: &str) -> bool {
        let Some(owned) = &self.0 else { return true };
        let mut namespaces = owned.namespaces.lock();
        let Some(membership) = namespaces.get(namespace) else { return true };
        membership.left.cancel();
        if membership.rounds > 0 {
            return false;
        }
        namespaces.remove(namespace);
        drop(namespaces);
        owned.moved.send(|| vec![namespace.to_owned()]);
        true
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let Some((owned, namespace)) = self.0.take() else { return };
        let has_left = owned.namespaces.lock().get_mut(&namespace).is_some_and(|membership| {
            membership.rounds -= 1;
            membership.rounds == 0 && membership.left.is_cancelled()
        });
        if has_left {
            owned.ended.notify_one();
        }
    }
}

/// Claims the namespaces of a shard while this process leads it.
pub struct Keeper {
    client: Client,
    leases: Api<Lease>,
    shard: String,
    members: Members,
    timing: Timing,
    namespaces: Namespaces,
    /// Namespaces without work of this process, whose claims must be deleted.
    releasing: HashSet<String>,
    /// The states of the leases of other shards, and when each was first seen.
    seen: HashMap<String, (LeaseSpec, Instant)>,
}

impl Keeper {
    pub fn new(client: Client, leases: Api<Lease>, shard: String, members: Members, timing: Timing) -> Self {
        let namespaces = Namespaces::none();
        let (releasing, seen) = Default::default();
        Self { client, leases, shard, members, timing, namespaces, releasing, seen }
    }

    /// Returns the namespaces of the shard, which is empty until [`Self::run`] claims them.
    pub fn namespaces(&self) -> Namespaces {
        self.namespaces.clone()
    }

    /// Claims and releases namespaces. Never returns. Call it only while this process leads the shard.
    pub async fn run(mut self) {
        let wanted = wanted(&self.client, &self.members);
        pin_mut!(wanted);
        let mut current = None;
        let mut pause = self.timing.retry_period;
        let owned = self.namespaces.0.clone().unwrap_or_default();
        self.recall().await;
        loop {
            let longer = tokio::select! {
                Some(wanted) = wanted.next() => {
                    current = Some(wanted);
                    None
                }
                () = owned.ended.notified(),
                    if current.as_ref().is_some_and(|wanted| self.is_leaving(wanted)) => None,
                // Claims of other shards are read again, with increasing pauses: another shard may hold them for ever.
                () = tokio::time::sleep(pause),
                    if current.as_ref().is_some_and(|wanted| self.is_incomplete(wanted)) => Some(pause * 2),
            };
            pause = longer.map_or(self.timing.retry_period, |pause| pause.min(self.timing.duration));
            if let Some(wanted) = &current {
                self.settle(wanted).await;
            }
        }
    }

    fn is_leaving(&self, wanted: &HashSet<String>) -> bool {
        !self.namespaces.leaving(wanted).is_empty()
    }

    fn is_incomplete(&self, wanted: &HashSet<String>) -> bool {
        self.is_leaving(wanted)
            || !self.releasing.is_empty()
            || wanted.iter().any(|namespace| !self.namespaces.owns(namespace))
    }

    async fn settle(&mut self, wanted: &HashSet<String>) {
        for namespace in self.namespaces.leaving(wanted) {
            if self.namespaces.leave(&namespace) {
                self.releasing.insert(namespace);
            }
        }
        self.releasing.retain(|namespace| !wanted.contains(namespace));
        for namespace in self.releasing.clone() {
            match self.release(&namespace).await {
                Ok(()) => {
                    self.releasing.remove(&namespace);
                    tracing::info!(namespace, shard = self.shard, "released the namespace");
                }
                Err(error) => tracing::warn!(namespace, %error, "cannot release the namespace"),
            }
        }
        let missing: Vec<&String> =
            wanted.iter().filter(|namespace| !self.namespaces.owns(namespace)).collect();
        if missing.is_empty() {
            return;
        }
        // One list has all claims, and the leases of their holders.
        let leases = match self.leases.list(&ListParams::default()).await {
            Ok(leases) => leases.into_iter().map(|lease| (lease.name_any(), lease)).collect(),
            Err(error) => return tracing::warn!(%error, "cannot list the claims on namespaces"),
        };
        for namespace in missing {
            match self.claim(namespace, &leases).await {
                Ok(true) => {
                    tracing::info!(namespace, shard = self.shard, "claimed the namespace");
                    self.namespaces.gain(namespace);
                }
                Ok(false) => tracing::debug!(namespace, "another shard still has the namespace"),
                Err(error) => tracing::warn!(namespace, %error, "cannot claim the namespace"),
            }
        }
    }

    /// Finds the claims that an earlier leader of this shard left. Those of other namespaces must be deleted. Also
    /// deletes claims without a holder, whose namespaces may not exist any longer.
    async fn recall(&mut self) {
        let claims = loop {
            match self.leases.list(&ListParams::default()).await {
                Ok(claims) => break claims,
                Err(error) => tracing::warn!(%error, "cannot list the claims on namespaces"),
            }
            tokio::time::sleep(self.timing.retry_period).await;
        };
        for claim in claims {
            let name = claim.name_any();
            let Some(namespace) = name.strip_prefix(CLAIM) else { continue };
            match holder(&claim) {
                "" => match self.delete(&claim).await {
                    Ok(()) => tracing::info!(namespace, "deleted the empty claim on the namespace"),
                    // Another shard may have taken or deleted it, and an older Role does not allow it.
                    Err(error) => tracing::debug!(namespace, %error, "did not delete the empty claim"),
                },
                holder if holder == self.shard => {
                    self.releasing.insert(namespace.to_owned());
                }
                _ => {}
            }
        }
    }

    /// Takes the claim on a namespace. Returns whether this shard has it.
    async fn claim(&mut self, namespace: &str, leases: &Leases) -> Result<bool, kube::Error> {
        // An operator of all namespaces has no claims.
        if self.has_leader(&lease_name(None), leases) {
            return Ok(false);
        }
        let name = claim_name(namespace);
        let Some(claim) = leases.get(&name) else {
            let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
            let claim = Lease { metadata, spec: Some(self.held(None)) };
            return written(self.leases.create(&PostParams::default(), &claim).await);
        };
        let holder = holder(claim);
        let is_free = holder.is_empty() || holder == self.shard;
        if !is_free && self.has_leader(&lease_name(Some(holder)), leases) {
            return Ok(false);
        }
        // If the claim has changed after it was listed, the write fails.
        let claim = Lease { spec: Some(self.held(claim.spec.as_ref())), ..claim.clone() };
        written(self.leases.replace(&name, &PostParams::default(), &claim).await)
    }

    async fn release(&self, namespace: &str) -> Result<(), kube::Error> {
        let name = claim_name(namespace);
        let Some(mut claim) = self.leases.get_opt(&name).await? else { return Ok(()) };
        if holder(&claim) != self.shard {
            return Ok(());
        }
        match self.delete(&claim).await {
            // The Role of a former version does not allow deletions.
            Err(kube::Error::Api(status)) if status.code == 403 => {
                claim.spec.get_or_insert_default().holder_identity = None;
                self.leases.replace(&name, &PostParams::default(), &claim).await.map(drop)
            }
            deleted => deleted,
        }
    }

    /// Deletes a claim, unless it has changed after it was read.
    async fn delete(&self, claim: &Lease) -> Result<(), kube::Error> {
        let preconditions = Preconditions { uid: claim.uid(), resource_version: claim.resource_version() };
        let parameters = DeleteParams::default().preconditions(preconditions);
        match self.leases.delete(&claim.name_any(), &parameters).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// Returns the claim of this shard. The number of transitions makes each one a new version.
    fn held(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.shard.clone()),
            lease_transitions: Some(transitions.saturating_add(1)),
            ..LeaseSpec::default()
        }
    }

    /// Returns whether a lease may be held: it has a holder, and this process has not seen it unchanged for its whole
    /// duration.
    fn has_leader(&mut self, lease: &str, leases: &Leases) -> bool {
        let spec = leases.get(lease).and_then(|lease| lease.spec.clone()).unwrap_or_default();
        if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
            return false;
        }
        let now = Instant::now();
        let since = match self.seen.get(lease) {
            Some((seen, at)) if *seen == spec => *at,
            _ => now,
        };
        self.seen.insert(lease.to_owned(), (spec, since));
        now.duration_since(since) < self.timing.duration
    }
}

/// The claims, and the leases of the leader elections, by their names.
type Leases = HashMap<String, Lease>;

/// The start of the names of claims.
const CLAIM: &str = "declarest-operator-namespace-";

/// Returns the name of the Lease that is the claim on a namespace.
fn claim_name(namespace: &str) -> String {
    format!("{CLAIM}{namespace}")
}

/// Returns the name of the shard that holds a claim; empty if none does.
fn holder(claim: &Lease) -> &str {
    claim.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// Another client wrote or deleted it first: then this shard does not have the claim.
fn written(result: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the namespaces of a shard, and again after each change.
fn wanted(client: &Client, members: &Members) -> impl Stream<Item = HashSet<String>> + Send + use<> {
    match members {
        Members::Listed(names) => {
            let names = names.iter().cloned().collect();
            // It never changes.
            futures::stream::iter([names]).chain(futures::stream::pending()).left_stream()
        }
        Members::Selected(selector) => {
            let api: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
            let events = watch(api, watcher::Config::default().labels(selector));
            let events = with_pauses(events, LONGEST_OF_REQUIRED);
            let mut known = HashSet::new();
            let mut listed = HashSet::new();
            events
                .filter_map(move |event| {
                    futures::future::ready(match event {
                        Ok(Event::Init) => {
                            listed.clear();
                            None
                        }
                        Ok(Event::InitApply(namespace)) => {
                            listed.insert(namespace.name_any());
                            None
                        }
                        Ok(Event::InitDone) => {
                            known = std::mem::take(&mut listed);
                            Some(known.clone())
                        }
                        Ok(Event::Apply(namespace)) => {
                            known.insert(namespace.name_any()).then(|| known.clone())
                        }
                        Ok(Event::Delete(namespace)) => {
                            known.remove(&namespace.name_any()).then(|| known.clone())
                        }
                        Err(error) => {
                            let error = declarest_core::error::with_causes(&error);
                            tracing::warn!(kind = "Namespace", error, "watch interrupted");
                            None
                        }
                    })
                })
                .right_stream()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// All requests are lists: the claims of other shards are neither read one by one nor written.
    #[tokio::test(start_paused = true)]
    async fn claims_of_another_shard_are_listed_rarely() {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, started) = (Arc::clone(&requests), Instant::now());
        let service = tower::service_fn(move |request: Request<Body>| {
            seen.lock().push(format!("{} {}", request.method(), request.uri().path()));
            let lease = |name: &str, holder: &str, transitions: u64| {
                json!({
                    "metadata": {"name": name, "resourceVersion": "1"},
                    "spec": {"holderIdentity": holder, "leaseTransitions": transitions},
                })
            };
            let claims = ["a", "b", "c"].map(|namespace| lease(&claim_name(namespace), "other", 1));
            // The other shard renews its lease.
            let leader = lease(&lease_name(Some("other")), "pod", started.elapsed().as_secs());
            let items: Vec<_> = claims.into_iter().chain([leader]).collect();
            let list = json!({"metadata": {}, "items": items}).to_string();
            std::future::ready(Ok::<_, Infallible>(Response::new(Body::from(list.into_bytes()))))
        });
        let client = Client::new(service, "system");
        let members = Members::Listed(["a", "b", "c"].map(str::to_owned).to_vec());
        let leases = Api::default_namespaced(client.clone());
        let keeper = Keeper::new(client, leases, "own".to_owned(), members, Timing::default());
        let namespaces = keeper.namespaces();
        let _ = tokio::time::timeout(Duration::from_mins(10), keeper.run()).await;
        assert!(namespaces.names().is_empty());
        let requests = requests.lock();
        let list = "GET /apis/coordination.k8s.io/v1/namespaces/system/leases";
        assert!(requests.iter().all(|request| request.split('?').next() == Some(list)), "{requests:?}");
        assert!((40..60).contains(&requests.len()), "{}", requests.len());
    }
}
