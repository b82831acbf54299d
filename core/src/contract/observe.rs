//! Reads the objects of a target: at most 16 by name and three lists.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::model::Contract;
use super::objects::{self, Autoscaler, Claim, Selector, Service, Workload};
use super::snapshot::{FoundWorkload, Read, Snapshot};
use super::target::{ProbeVia, Target, WorkloadKind};

/// The label of `EndpointSlices` with the name of their Service (Kubernetes, "Well-Known Labels, Annotations and Taints").
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The maximum number of `EndpointSlices` that are read.
const MAX_SLICES: usize = 20;
/// The maximum number of pods that are read.
const MAX_PODS: usize = 100;
/// The maximum number of claims that are read.
const MAX_CLAIMS: usize = 10;
/// The maximum number of autoscalers of the namespace that are read.
const MAX_AUTOSCALERS: usize = 500;

/// The kind of an object that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// A Service.
    Service,
    /// A workload.
    Workload(WorkloadKind),
    /// An `EndpointSlice`.
    EndpointSlice,
    /// A Pod.
    Pod,
    /// A `PersistentVolumeClaim`.
    Claim,
    /// A `HorizontalPodAutoscaler`.
    Autoscaler,
}

impl ObjectKind {
    /// Returns its API version, its kind and its plural.
    pub const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Service => ("v1", "Service", "services"),
            Self::Workload(WorkloadKind::Deployment) => ("apps/v1", "Deployment", "deployments"),
            Self::Workload(WorkloadKind::StatefulSet) => ("apps/v1", "StatefulSet", "statefulsets"),
            Self::Workload(WorkloadKind::DaemonSet) => ("apps/v1", "DaemonSet", "daemonsets"),
            Self::Workload(WorkloadKind::Job) => ("batch/v1", "Job", "jobs"),
            Self::Workload(WorkloadKind::CronJob) => ("batch/v1", "CronJob", "cronjobs"),
            Self::EndpointSlice => ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
            Self::Pod => ("v1", "Pod", "pods"),
            Self::Claim => ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Autoscaler => ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        }
    }

    /// Returns the path of the collection of a namespace in the Kubernetes API.
    pub fn path(self, namespace: &str) -> String {
        let (version, _, plural) = self.names();
        let root = if version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{version}/namespaces/{namespace}/{plural}")
    }
}

/// Read access to the objects of one namespace. Errors are texts for users, without secrets.
pub trait Cluster: Sync {
    /// Returns an object; `None` if it does not exist.
    fn get(&self, kind: ObjectKind, name: &str)
    -> impl Future<Output = Result<Option<Value>, String>> + Send;

    /// Returns at most `limit` objects with these labels.
    fn list(
        &self,
        kind: ObjectKind,
        selector: Option<&Selector>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Value>, String>> + Send;
}

/// Reads the objects of `target` that checks of `contract` need. `now` is in seconds since 1970.
pub async fn observe<C: Cluster>(contract: &Contract, target: &Target, cluster: &C, now: i64) -> Snapshot {
    let mut snapshot = Snapshot::empty(now);
    let Some(name) = target.workload_name() else { return snapshot };
    if let Some(service) = &target.service {
        snapshot.service = get::<Service, _>(cluster, ObjectKind::Service, service).await;
    }
    snapshot.workload = workload(contract, target, cluster, name).await;
    let runtime = contract.runtime.as_ref();
    let probes = runtime.is_some_and(|runtime| runtime.health.is_some() || runtime.metrics.is_some());
    if let (Some(service), Some(_)) = (&target.service, snapshot.service.found())
        && matches!(target.probe, ProbeVia::Service(_))
        && probes
    {
        let labels = BTreeMap::from([(SERVICE_NAME.to_owned(), service.clone())]);
        let selector = Selector { labels, ..Selector::default() };
        snapshot.slices = list(cluster, ObjectKind::EndpointSlice, Some(&selector), MAX_SLICES).await;
    }
    let Some(workload) = snapshot.workload.found() else { return snapshot };
    let delays = runtime.is_some_and(|runtime| runtime.initial_delay > 0);
    if contract.image.is_some() || delays {
        let selector = &workload.object.spec.selector;
        snapshot.pods = match selector.text() {
            Some(_) => list(cluster, ObjectKind::Pod, Some(selector), MAX_PODS).await,
            None => Read::Absent,
        };
    }
    if runtime.is_some() {
        snapshot.claims = claims(workload, cluster).await;
    }
    if contract.scaling.is_some()
        && matches!(workload.kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet)
    {
        snapshot.autoscaler = autoscaler(workload, cluster, name).await;
    }
    snapshot
}

async fn workload<C: Cluster>(
    contract: &Contract,
    target: &Target,
    cluster: &C,
    name: &str,
) -> Read<FoundWorkload> {
    for kind in target.kinds(contract) {
        match get::<Workload, _>(cluster, ObjectKind::Workload(kind), name).await {
            Read::Found(object) => return Read::Found(FoundWorkload { kind, object }),
            Read::Absent => {}
            // Another kind may exist, but it may be the wrong one.
            Read::Failed(reason) => return Read::Failed(reason),
        }
    }
    Read::Absent
}

async fn claims<C: Cluster>(workload: &FoundWorkload, cluster: &C) -> BTreeMap<String, Read<Claim>> {
    let volumes = &workload.template().spec.volumes;
    let names = volumes.iter().filter_map(|volume| volume.claim.as_ref().map(|claim| claim.name.clone()));
    let names: BTreeSet<String> = names.collect();
    let mut claims = BTreeMap::new();
    for name in names.into_iter().take(MAX_CLAIMS) {
        let claim = get(cluster, ObjectKind::Claim, &name).await;
        claims.insert(name, claim);
    }
    claims
}

async fn autoscaler<C: Cluster>(workload: &FoundWorkload, cluster: &C, name: &str) -> Read<Autoscaler> {
    let all = list::<Autoscaler, _>(cluster, ObjectKind::Autoscaler, None, MAX_AUTOSCALERS).await;
    let all = match all {
        Read::Found(all) => all,
        Read::Absent => return Read::Absent,
        Read::Failed(reason) => return Read::Failed(reason),
    };
    let is_of = |scaler: &Autoscaler| {
        scaler.spec.target.kind == workload.kind.as_str() && scaler.spec.target.name == name
    };
    let own = all.into_iter().filter(is_of).min_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    own.map_or(Read::Absent, Read::Found)
}

async fn get<T: DeserializeOwned, C: Cluster>(cluster: &C, kind: ObjectKind, name: &str) -> Read<T> {
    match cluster.get(kind, name).await {
        Ok(Some(object)) => match objects::decode(object) {
            Ok(object) => Read::Found(object),
            Err(reason) => Read::Failed(format!("{} {name} cannot be decoded: {reason}", kind.names().1)),
        },
        Ok(None) => Read::Absent,
        Err(reason) => Read::Failed(reason),
    }
}

async fn list<T: DeserializeOwned, C: Cluster>(
    cluster: &C,
    kind: ObjectKind,
    selector: Option<&Selector>,
    limit: usize,
) -> Read<Vec<T>> {
    match cluster.list(kind, selector, limit).await {
        Ok(all) => {
            let decoded: Result<Vec<T>, String> = all.into_iter().take(limit).map(objects::decode).collect();
            decoded.map_or_else(
                |reason| Read::Failed(format!("a {} cannot be decoded: {reason}", kind.names().1)),
                Read::Found,
            )
        }
        Err(reason) => Read::Failed(reason),
    }
}
