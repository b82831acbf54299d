//! Upgrades, graceful shutdown and the number of replicas.

use super::super::model::{Contract, UpgradeStrategy};
use super::super::snapshot::{FoundWorkload, Read, Snapshot};
use super::super::target::WorkloadKind;
use super::judged::{Judged, listed, workload};

/// The time that a pod has to end unless its spec states another, in seconds (Kubernetes API, `PodSpec`).
pub const DEFAULT_GRACE: i64 = 30;

/// Returns the type of the upgrade strategy, with the defaults of the API; `None` for jobs.
pub fn strategy(found: &FoundWorkload) -> Option<String> {
    let spec = &found.object.spec;
    let strategy = match found.kind {
        WorkloadKind::Deployment => &spec.strategy,
        WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => &spec.update_strategy,
        WorkloadKind::Job | WorkloadKind::CronJob => return None,
    };
    Some(strategy.kind.clone().unwrap_or_else(|| "RollingUpdate".to_owned()))
}

/// Returns the pod management policy of a `StatefulSet`.
pub fn pod_management(found: &FoundWorkload) -> Option<String> {
    let policy = &found.object.spec.pod_management_policy;
    (found.kind == WorkloadKind::StatefulSet)
        .then(|| policy.clone().unwrap_or_else(|| "OrderedReady".to_owned()))
}

/// `UpgradeStrategyMatches`
pub fn upgrade_matches(contract: &Contract, snapshot: &Snapshot) -> Judged {
    let declared = contract.runtime.as_ref().and_then(|runtime| runtime.upgrade_strategy);
    let Some(declared) = declared else { return Judged::not_declared() };
    let expected = declared.as_str().to_owned();
    let found = match workload(snapshot) {
        Ok(found) => found,
        Err(judged) => return judged.expecting(expected),
    };
    let Some(strategy) = strategy(found) else {
        return Judged::not_applicable("jobs have no upgrade strategy").expecting(expected);
    };
    let policy = pod_management(found);
    let provided: &[UpgradeStrategy] = match (strategy.as_str(), policy.as_deref()) {
        ("RollingUpdate", Some("OrderedReady")) => &[UpgradeStrategy::Rolling, UpgradeStrategy::Ordered],
        ("RollingUpdate", _) => &[UpgradeStrategy::Rolling],
        ("Recreate", _) => &[UpgradeStrategy::Recreate],
        _ => &[],
    };
    let observed = match policy {
        Some(policy) => format!("{strategy} {policy}"),
        None => strategy,
    };
    Judged::compared(provided.contains(&declared), "upgrade strategy", expected, observed)
}

/// `GracefulShutdownMatches`
pub fn shutdown_matches(contract: &Contract, snapshot: &Snapshot) -> Judged {
    let declared = contract.runtime.as_ref().and_then(|runtime| runtime.graceful_shutdown);
    let Some(declared) = declared else { return Judged::not_declared() };
    match workload(snapshot) {
        Ok(found) => {
            let observed = found.template().spec.grace.unwrap_or(DEFAULT_GRACE);
            let texts = (format!("{declared}s"), format!("{observed}s"));
            Judged::compared(declared == observed, "termination grace period", texts.0, texts.1)
        }
        Err(judged) => judged.expecting(format!("{declared}s")),
    }
}

/// `ScalingMatches`
pub fn scaling_matches(contract: &Contract, snapshot: &Snapshot) -> Judged {
    let Some(scaling) = &contract.scaling else { return Judged::not_declared() };
    let expected = range(scaling.min, scaling.max);
    let found = match workload(snapshot) {
        Ok(found) => found,
        Err(judged) => return judged.expecting(expected),
    };
    if !matches!(found.kind, WorkloadKind::Deployment | WorkloadKind::StatefulSet) {
        let message = format!("a {} has no number of replicas", found.kind);
        return Judged::not_applicable(&message).expecting(expected);
    }
    let desired = found.desired().unwrap_or_default();
    let allowed = scaling.min..=scaling.max;
    let observed = match &snapshot.autoscaler {
        Read::Failed(reason) => return Judged::failed(reason).expecting(expected),
        Read::Found(scaler) => {
            let (min, max) = (scaler.spec.min.unwrap_or(1), scaler.spec.max);
            let observed = range(min, max);
            if !allowed.contains(&min) || !allowed.contains(&max) {
                return Judged::differs("AutoscalerOutOfRange", "autoscaler range", expected, observed);
            }
            observed
        }
        Read::Absent => {
            if !allowed.contains(&desired) {
                return Judged::differs("ReplicasOutOfRange", "replicas", expected, desired.to_string());
            }
            desired.to_string()
        }
    };
    let ready = found.ready();
    if !found.is_rolling_out() && ready < scaling.min {
        return Judged::differs("ReplicasNotReady", "ready replicas", expected, ready.to_string());
    }
    Judged::matches(expected, observed)
}

fn range(min: i64, max: i64) -> String {
    if min == max { listed([min]) } else { format!("{min}-{max}") }
}
