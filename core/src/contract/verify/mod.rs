//! The checks: pure functions of a contract and a [`Snapshot`].

mod evidence;
mod images;
mod judged;
mod lifecycle;
mod presence;
mod probing;
mod storage;

use std::collections::BTreeMap;

use judged::{DISABLED, Judged, OBSERVATION_FAILED};

use super::model::Contract;
use super::snapshot::{ProbeKind, Snapshot};
use super::status::{
    Check, CheckKind, CheckStatus, Comparison, EndpointResult, Gate, Observed, Phase, Ports, Resources,
    Severity, Summary,
};
use super::target::Target;

/// The severities of checks that differ from [`CheckKind::default_severity`].
pub type Severities = BTreeMap<CheckKind, Severity>;

/// The result of all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Verification {
    /// The results, in the order of [`CheckKind::ALL`].
    pub checks: Vec<Check>,
    /// The objects that were compared.
    pub resources: Resources,
    /// The ports that were compared.
    pub ports: Option<Ports>,
    /// The results of the probes.
    pub endpoints: Vec<EndpointResult>,
    /// The workload as it was observed.
    pub observed: Option<Observed>,
    /// The fields that were compared.
    pub comparison: Vec<Comparison>,
}

/// Compares a contract with a snapshot of its target. Without a target there are no checks.
pub fn verify(
    contract: &Contract,
    target: &Target,
    severities: &Severities,
    snapshot: &Snapshot,
) -> Verification {
    let has_target = target.workload_name().is_some();
    let kinds = CheckKind::ALL.into_iter().filter(|_| has_target);
    let checks: Vec<Check> = kinds.map(|kind| check(kind, contract, target, severities, snapshot)).collect();
    Verification {
        resources: evidence::resources(target, snapshot),
        ports: evidence::ports(contract, snapshot),
        endpoints: evidence::endpoints(target, snapshot),
        observed: evidence::observed(snapshot),
        comparison: evidence::comparison(&checks),
        checks,
    }
}

fn check(
    kind: CheckKind,
    contract: &Contract,
    target: &Target,
    severities: &Severities,
    snapshot: &Snapshot,
) -> Check {
    let severity = severities.get(&kind).copied().unwrap_or(kind.default_severity());
    let judged = if severity == Severity::Off {
        Judged::unknown(DISABLED, "")
    } else {
        judge(kind, contract, target, snapshot)
    };
    Check {
        kind,
        status: judged.status,
        reason: judged.reason.to_owned(),
        severity: severity.max(judged.at_most),
        message: judged.message,
        expected: judged.expected,
        observed: judged.observed,
        last_transition_time: None,
    }
}

fn judge(kind: CheckKind, contract: &Contract, target: &Target, snapshot: &Snapshot) -> Judged {
    match kind {
        CheckKind::ServiceExists => presence::service_exists(target, snapshot),
        CheckKind::WorkloadExists => presence::workload_exists(target, snapshot),
        CheckKind::PortsAligned => presence::ports_aligned(contract, target, snapshot),
        CheckKind::WorkloadKindMatches => presence::kind_matches(contract, snapshot),
        CheckKind::HealthEndpointReachable => {
            probing::reachable(ProbeKind::Health, contract, target, snapshot)
        }
        CheckKind::ImageMatches => images::image_matches(contract, target, snapshot),
        CheckKind::UpgradeStrategyMatches => lifecycle::upgrade_matches(contract, snapshot),
        CheckKind::GracefulShutdownMatches => lifecycle::shutdown_matches(contract, snapshot),
        CheckKind::StateModelMatches => storage::state_matches(contract, snapshot),
        CheckKind::MetricsEndpointReachable => {
            probing::reachable(ProbeKind::Metrics, contract, target, snapshot)
        }
        CheckKind::ScalingMatches => lifecycle::scaling_matches(contract, snapshot),
    }
}

impl Check {
    /// Whether it makes the contract degraded.
    pub fn degrades(&self) -> bool {
        self.status == CheckStatus::False || self.is_unobserved()
    }

    fn is_unobserved(&self) -> bool {
        self.status == CheckStatus::Unknown && self.reason == OBSERVATION_FAILED
    }
}

/// Returns the phase of a valid contract with these checks; without checks it has no target.
pub fn phase(checks: &[Check]) -> Phase {
    if checks.is_empty() {
        Phase::Reference
    } else if checks.iter().any(Check::degrades) {
        Phase::Degraded
    } else {
        Phase::Healthy
    }
}

/// Returns the gate of a valid contract. What could not be observed keeps the `former` gate, if nothing else closes it.
pub fn gate(checks: &[Check], former: Option<Gate>) -> Gate {
    let mut important = checks.iter().filter(|check| check.severity == Severity::Error);
    if important.clone().any(|check| check.status == CheckStatus::False) {
        Gate::Closed
    } else if important.any(Check::is_unobserved) {
        former.unwrap_or(Gate::Closed)
    } else {
        Gate::Open
    }
}

/// Counts the checks that are not disabled.
pub fn summary(checks: &[Check]) -> Summary {
    let counted = checks.iter().filter(|check| check.reason != DISABLED);
    counted.fold(Summary::default(), |mut summary, check| {
        summary.total += 1;
        *match check.status {
            CheckStatus::True => &mut summary.passed,
            CheckStatus::False => &mut summary.failed,
            CheckStatus::Unknown => &mut summary.unknown,
        } += 1;
        summary
    })
}

#[cfg(test)]
mod tests;
