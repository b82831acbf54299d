//! Decides which request probes an endpoint, or why there is none. Pure.

use std::collections::BTreeMap;

use url::Url;

use super::model::{Contract, Endpoint, Protocol};
use super::ports;
use super::snapshot::{ProbeKind, Read, Snapshot};
use super::status::{CheckKind, Severity};
use super::target::{ProbeVia, Target, WorkloadKind};

/// The request of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The endpoint.
    pub kind: ProbeKind,
    /// The URL: for gRPC, the origin only.
    pub url: Url,
    /// The protocol.
    pub protocol: Protocol,
}

/// Why an endpoint is not probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unprobed {
    NotDeclared,
    NotApplicable,
    PortNotExposed(u16),
    NoReadyEndpoints,
    Failed(String),
}

/// Returns the requests of the probes of a snapshot, without those of disabled checks.
pub fn probe_requests(
    contract: &Contract,
    target: &Target,
    severities: &BTreeMap<CheckKind, Severity>,
    snapshot: &Snapshot,
) -> Vec<ProbeRequest> {
    if target.workload_name().is_none() {
        return Vec::new();
    }
    let enabled = |check| severities.get(&check) != Some(&Severity::Off);
    let kinds = [
        (ProbeKind::Health, CheckKind::HealthEndpointReachable),
        (ProbeKind::Metrics, CheckKind::MetricsEndpointReachable),
    ];
    let kinds = kinds.into_iter().filter(|(_, check)| enabled(*check));
    kinds.filter_map(|(kind, _)| request(kind, contract, target, snapshot).ok()).collect()
}

/// Returns the request of one probe.
pub(super) fn request(
    kind: ProbeKind,
    contract: &Contract,
    target: &Target,
    snapshot: &Snapshot,
) -> Result<ProbeRequest, Unprobed> {
    let endpoint = endpoint(kind, contract).ok_or(Unprobed::NotDeclared)?;
    if endpoint.protocol == Protocol::Grpc && kind == ProbeKind::Metrics {
        return Err(Unprobed::NotApplicable);
    }
    if let Some(workload) = snapshot.workload.found() {
        let idle = matches!(workload.kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet)
            && workload.desired() == Some(0);
        if idle || workload.kind.is_finite() {
            return Err(Unprobed::NotApplicable);
        }
    }
    let origin = match (&target.probe, &target.service) {
        (ProbeVia::Nothing, _) | (ProbeVia::Service(None), None) => return Err(Unprobed::NotApplicable),
        (ProbeVia::Origin(url), _) | (ProbeVia::Service(Some(url)), None) => origin_of(url),
        (ProbeVia::Service(_), Some(service)) => of_service(service, endpoint, target, snapshot)?,
    };
    let url = origin.and_then(|origin| origin.join(&endpoint.path).ok().filter(|url| same(url, &origin)));
    let url = url.ok_or_else(|| Unprobed::Failed("the URL of the endpoint is not valid".to_owned()))?;
    Ok(ProbeRequest { kind, url, protocol: endpoint.protocol })
}

fn endpoint(kind: ProbeKind, contract: &Contract) -> Option<&Endpoint> {
    let runtime = contract.runtime.as_ref()?;
    match kind {
        ProbeKind::Health => runtime.health.as_ref(),
        ProbeKind::Metrics => runtime.metrics.as_ref(),
    }
}

/// Returns the origin of the Service at the port of the endpoint.
fn of_service(
    name: &str,
    endpoint: &Endpoint,
    target: &Target,
    snapshot: &Snapshot,
) -> Result<Option<Url>, Unprobed> {
    let service = match &snapshot.service {
        Read::Found(service) if service.spec.kind != "ExternalName" => service,
        Read::Found(_) | Read::Absent => return Err(Unprobed::NotApplicable),
        Read::Failed(reason) => return Err(Unprobed::Failed(reason.clone())),
    };
    let pod = snapshot.workload.found().map(|workload| &workload.template().spec);
    let Some(port) = ports::find(endpoint.port, service, pod) else {
        return Err(match &snapshot.workload {
            Read::Failed(reason) => Unprobed::Failed(reason.clone()),
            _ => Unprobed::PortNotExposed(endpoint.port),
        });
    };
    match &snapshot.slices {
        Read::Failed(reason) => return Err(Unprobed::Failed(reason.clone())),
        Read::Absent => return Err(Unprobed::NoReadyEndpoints),
        Read::Found(slices) => {
            // An unknown condition counts as ready (API documentation of EndpointConditions).
            let mut ready = slices.iter().flat_map(|slice| &slice.endpoints);
            if !ready.any(|endpoint| endpoint.conditions.ready.unwrap_or(true)) {
                return Err(Unprobed::NoReadyEndpoints);
            }
        }
    }
    // A headless Service has no ports of its own: its name is resolved to the pods.
    let number = if service.spec.cluster_ip == "None" {
        ports::target(port, pod).ok_or(Unprobed::PortNotExposed(endpoint.port))?
    } else {
        port.port
    };
    let named = |name: &str| name == "https";
    let secure = named(&port.app_protocol) || named(&port.name) || matches!(port.port, 443 | 8443);
    let scheme = if secure { "https" } else { "http" };
    Ok(Url::parse(&format!("{scheme}://{name}.{}.svc:{number}/", target.namespace)).ok())
}

fn origin_of(url: &Url) -> Option<Url> {
    let origin = url.origin();
    origin.is_tuple().then(|| Url::parse(&origin.ascii_serialization()).ok()).flatten()
}

/// Whether both URLs have the same origin. A path must not lead elsewhere.
fn same(url: &Url, origin: &Url) -> bool {
    url.origin() == origin.origin() && url.username().is_empty() && url.password().is_none()
}
