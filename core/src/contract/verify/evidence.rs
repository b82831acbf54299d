//! What the checks compared, for dashboards.

use super::super::finding::clip;
use super::super::model::Contract;
use super::super::snapshot::{FoundWorkload, ProbeAnswer, ProbeKind, Probed, Read, Snapshot};
use super::super::status::{
    Agreement, AutoscalerRange, Check, CheckKind, CheckStatus, Comparison, ContainerImage, EndpointResult,
    Observed, Ports, Replicas, Resources, ServiceResource, Storage as StorageStatus, WorkloadResource,
};
use super::super::target::{ProbeVia, Target};
use super::super::time;
use super::lifecycle::{DEFAULT_GRACE, pod_management, strategy};
use super::presence::alignment;
use super::storage::Storage;

/// The most ports in one list.
const MAX_PORTS: usize = 50;
/// The most images and claims.
const MAX_ITEMS: usize = 10;
/// The longest name or value, in characters.
const MAX_TEXT: usize = 256;
/// The longest error of a probe, in characters.
const MAX_ERROR: usize = 256;

pub fn resources(target: &Target, snapshot: &Snapshot) -> Resources {
    fn exists<T>(read: &Read<T>) -> Option<bool> {
        match read {
            Read::Found(_) => Some(true),
            Read::Absent => Some(false),
            Read::Failed(_) => None,
        }
    }
    let service = target.service.as_ref().map(|name| ServiceResource {
        name: name.clone(),
        kind: snapshot.service.found().map(|service| match service.spec.kind.as_str() {
            "" => "ClusterIP".to_owned(),
            kind => clip(kind, MAX_TEXT),
        }),
        exists: exists(&snapshot.service),
    });
    let workload = target.workload_name().map(|name| WorkloadResource {
        kind: snapshot.workload.found().map(|found| found.kind).or(target.kind),
        name: name.to_owned(),
        exists: exists(&snapshot.workload),
    });
    Resources { service, workload }
}

pub fn ports(contract: &Contract, snapshot: &Snapshot) -> Option<Ports> {
    let aligned = alignment(contract, snapshot)?;
    let listed = |ports: &[u16]| ports.iter().take(MAX_PORTS).map(|port| i32::from(*port)).collect();
    Some(Ports {
        expected: listed(&contract.ports()),
        observed: listed(&aligned.observed),
        missing: listed(&aligned.missing),
        unexpected: listed(&aligned.unexpected),
    })
}

/// Returns the results of probes that were sent.
pub fn endpoints(target: &Target, snapshot: &Snapshot) -> Vec<EndpointResult> {
    if target.probe == ProbeVia::Nothing {
        return Vec::new();
    }
    let result = |(kind, probed): (&ProbeKind, &Probed)| {
        let (reachable, error) = match &probed.answer {
            ProbeAnswer::Healthy { empty } => {
                let missing = *empty && *kind == ProbeKind::Metrics;
                (!missing, if missing { "the body is empty" } else { "" })
            }
            ProbeAnswer::Status => (false, "the status is not 2xx"),
            ProbeAnswer::Redirected => (false, "the redirect is not followed"),
            ProbeAnswer::Timeout => (false, "no answer in time"),
            ProbeAnswer::Unimplemented => (false, "the gRPC health check is not implemented"),
            ProbeAnswer::ConnectionFailed(reason)
            | ProbeAnswer::TlsFailed(reason)
            | ProbeAnswer::NotServing(reason)
            | ProbeAnswer::Unresolved(reason) => (false, reason.as_str()),
        };
        let kind = match kind {
            ProbeKind::Health => "health",
            ProbeKind::Metrics => "metrics",
        };
        EndpointResult {
            kind: kind.to_owned(),
            url: probed.url.clone(),
            reachable,
            status_code: probed.status.map(i32::from),
            latency_ms: i64::try_from(probed.latency_ms).unwrap_or(i64::MAX),
            error: clip(error, MAX_ERROR),
            time: time::format(snapshot.now),
        }
    };
    snapshot.probes.iter().map(result).collect()
}

pub fn observed(snapshot: &Snapshot) -> Option<Observed> {
    let found = snapshot.workload.found()?;
    let template = found.template();
    let image = |(container, image): (&String, &String)| ContainerImage {
        container: clip(container, MAX_TEXT),
        image: clip(image, MAX_TEXT),
    };
    let containers = template.spec.containers.iter().take(MAX_ITEMS);
    let scaler = snapshot.autoscaler.found().map(|scaler| AutoscalerRange {
        name: clip(&scaler.metadata.name, MAX_TEXT),
        min: scaler.spec.min.unwrap_or(1),
        max: scaler.spec.max,
    });
    Some(Observed {
        workload_kind: Some(found.kind),
        strategy: strategy(found).map(|text| clip(&text, MAX_TEXT)),
        pod_management_policy: pod_management(found).map(|text| clip(&text, MAX_TEXT)),
        termination_grace_period_seconds: Some(template.spec.grace.unwrap_or(DEFAULT_GRACE)),
        images: containers.map(|container| image((&container.name, &container.image))).collect(),
        storage: Some(storage(found)),
        replicas: found.desired().map(|desired| Replicas {
            desired,
            current: found.current(),
            ready: found.ready(),
        }),
        autoscaler: scaler,
    })
}

fn storage(found: &FoundWorkload) -> StorageStatus {
    let storage = Storage::of(found);
    let claims = storage.claims.iter().chain(&storage.templates).take(MAX_ITEMS);
    StorageStatus { claims: claims.map(|name| clip(name, MAX_TEXT)).collect(), empty_dir: storage.ephemeral }
}

/// Returns the declared fields with their observed values, one for each check that compares a field.
pub fn comparison(checks: &[Check]) -> Vec<Comparison> {
    let compared = |check: &Check| {
        let field = match check.kind {
            CheckKind::ServiceExists | CheckKind::WorkloadExists => return None,
            CheckKind::PortsAligned => "interfaces.port",
            CheckKind::WorkloadKindMatches => "runtime.workload",
            CheckKind::HealthEndpointReachable => "runtime.health",
            CheckKind::ImageMatches => "service.image.ref",
            CheckKind::UpgradeStrategyMatches => "runtime.lifecycle.upgradeStrategy",
            CheckKind::GracefulShutdownMatches => "runtime.lifecycle.gracefulShutdownSeconds",
            CheckKind::StateModelMatches => "runtime.state",
            CheckKind::MetricsEndpointReachable => "runtime.metrics",
            CheckKind::ScalingMatches => "scaling",
        };
        (!check.expected.is_empty()).then(|| Comparison {
            field: field.to_owned(),
            expected: check.expected.clone(),
            observed: check.observed.clone(),
            result: match check.status {
                CheckStatus::True => Agreement::Match,
                CheckStatus::False => Agreement::Mismatch,
                CheckStatus::Unknown => Agreement::Unknown,
            },
        })
    };
    checks.iter().filter_map(compared).collect()
}
