//! Whether the declared endpoints answer.

use super::super::model::Contract;
use super::super::objects::Pod;
use super::super::request::{self, Unprobed};
use super::super::snapshot::{ProbeAnswer, ProbeKind, Probed, Read, Snapshot};
use super::super::target::Target;
use super::judged::{Judged, STARTING};

/// `HealthEndpointReachable` and `MetricsEndpointReachable`
pub fn reachable(kind: ProbeKind, contract: &Contract, target: &Target, snapshot: &Snapshot) -> Judged {
    let expected = match kind {
        ProbeKind::Health => "healthy answer",
        ProbeKind::Metrics => "metrics",
    };
    let what = match kind {
        ProbeKind::Health => "health endpoint",
        ProbeKind::Metrics => "metrics endpoint",
    };
    let differs = |reason, observed: &str| Judged::differs(reason, what, expected, observed);
    let judged = match request::request(kind, contract, target, snapshot) {
        Err(Unprobed::NotDeclared) => Judged::not_declared(),
        Err(Unprobed::NotApplicable) => {
            Judged::not_applicable("the endpoint cannot be probed at this target")
        }
        Err(Unprobed::Failed(reason)) => Judged::failed(&reason),
        Err(Unprobed::PortNotExposed(port)) => {
            differs("PortNotExposed", &format!("no Service port for {port}"))
        }
        Err(Unprobed::NoReadyEndpoints) => differs("NoReadyEndpoints", "no ready endpoint"),
        Ok(_) => match snapshot.probes.get(&kind) {
            Some(probed) => answered(kind, probed, expected, differs),
            None => Judged::not_applicable("endpoints are not probed"),
        },
    };
    if judged.status == super::super::status::CheckStatus::False && is_starting(contract, snapshot) {
        let message = format!("a pod is younger than initialDelaySeconds: {}", judged.message);
        return Judged::unknown(STARTING, &message);
    }
    judged
}

fn answered(
    kind: ProbeKind,
    probed: &Probed,
    expected: &str,
    differs: impl Fn(&'static str, &str) -> Judged,
) -> Judged {
    let status = probed.status.map_or_else(|| "no status".to_owned(), |status| format!("status {status}"));
    match &probed.answer {
        ProbeAnswer::Healthy { empty: true } if kind == ProbeKind::Metrics => {
            differs("EmptyResponse", &format!("{status} with an empty body"))
        }
        ProbeAnswer::Healthy { .. } => Judged::matches(expected, status),
        ProbeAnswer::Status => differs("InvalidStatus", &status),
        ProbeAnswer::Redirected => differs("Redirected", "a redirect that is not followed"),
        ProbeAnswer::ConnectionFailed(reason) => differs("ConnectionFailed", reason),
        ProbeAnswer::Timeout => differs("Timeout", "no answer in time"),
        ProbeAnswer::TlsFailed(reason) => differs("TLSFailed", reason),
        ProbeAnswer::NotServing(reason) => differs("NotServing", reason),
        ProbeAnswer::Unimplemented => {
            Judged::not_applicable("the server does not implement the gRPC health check")
        }
        ProbeAnswer::Unresolved(reason) => Judged::failed(reason),
    }
}

/// Whether the youngest pod is younger than the declared delay.
fn is_starting(contract: &Contract, snapshot: &Snapshot) -> bool {
    let delay = contract.runtime.as_ref().map_or(0, |runtime| runtime.initial_delay);
    let Read::Found(pods) = &snapshot.pods else { return false };
    let youngest = pods.iter().filter(|pod| pod.stays()).filter_map(Pod::created).max();
    youngest.is_some_and(|created| snapshot.now - created < delay)
}
