//! Whether the objects exist, with the right kind and ports.

use super::super::model::{Contract, StateKind, Workload};
use super::super::ports::{self, Alignment};
use super::super::snapshot::{Read, Snapshot};
use super::super::target::{Target, WorkloadKind};
use super::judged::{Judged, listed, workload};

/// `ServiceExists`
pub fn service_exists(target: &Target, snapshot: &Snapshot) -> Judged {
    let Some(name) = &target.service else {
        return Judged::not_applicable("the target has no Service");
    };
    let expected = format!("Service {name}");
    match &snapshot.service {
        Read::Found(_) => Judged::matches(expected.clone(), expected),
        Read::Absent => Judged::differs("NotFound", "Service", expected, "none"),
        Read::Failed(reason) => Judged::failed(reason).expecting(expected),
    }
}

/// `WorkloadExists`
pub fn workload_exists(target: &Target, snapshot: &Snapshot) -> Judged {
    let name = target.workload_name().unwrap_or_default();
    let expected = match target.kind {
        Some(kind) => format!("{kind} {name}"),
        None => format!("workload {name}"),
    };
    match &snapshot.workload {
        Read::Found(found) => Judged::matches(expected, format!("{} {name}", found.kind)),
        Read::Absent => Judged::differs("NotFound", "workload", expected, "none"),
        Read::Failed(reason) => Judged::failed(reason).expecting(expected),
    }
}

/// `WorkloadKindMatches`
pub fn kind_matches(contract: &Contract, snapshot: &Snapshot) -> Judged {
    let Some(runtime) = &contract.runtime else { return Judged::not_declared() };
    let expected: &[WorkloadKind] = match (runtime.workload, runtime.state.kind) {
        (Workload::Job, _) => &[WorkloadKind::Job],
        (Workload::Scheduled, _) => &[WorkloadKind::CronJob],
        (Workload::Service, StateKind::Stateful) => &[WorkloadKind::StatefulSet],
        (Workload::Service, _) => {
            &[WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet]
        }
    };
    let names = listed(expected.iter().map(|kind| kind.as_str()));
    match workload(snapshot) {
        Ok(found) => {
            let observed = found.kind.as_str().to_owned();
            Judged::compared(expected.contains(&found.kind), "workload kind", names, observed)
        }
        Err(judged) => judged.expecting(names),
    }
}

/// Compares the ports; `None` if there are no ports to compare.
pub fn alignment(contract: &Contract, snapshot: &Snapshot) -> Option<Alignment> {
    let declared = contract.ports();
    let service = snapshot.service.found().filter(|service| service.spec.kind != "ExternalName")?;
    let pod = snapshot.workload.found().map(|workload| &workload.template().spec);
    (!declared.is_empty()).then(|| ports::align(&declared, service, pod))
}

/// `PortsAligned`
pub fn ports_aligned(contract: &Contract, target: &Target, snapshot: &Snapshot) -> Judged {
    let declared = contract.ports();
    if declared.is_empty() {
        return Judged::not_declared();
    }
    let expected = listed(declared);
    if target.service.is_none() {
        return Judged::not_applicable("the target has no Service").expecting(expected);
    }
    match &snapshot.service {
        Read::Failed(reason) => return Judged::failed(reason).expecting(expected),
        Read::Absent => return Judged::not_applicable("the Service does not exist").expecting(expected),
        Read::Found(_) => {}
    }
    let Some(Alignment { observed, missing, unexpected, unresolved }) = alignment(contract, snapshot) else {
        return Judged::not_applicable("the Service is of type ExternalName").expecting(expected);
    };
    let observed = if observed.is_empty() { "none".to_owned() } else { listed(observed) };
    match (&snapshot.workload, missing.is_empty(), unexpected.is_empty()) {
        (Read::Failed(reason), false, _) if unresolved => Judged::failed(reason).expecting(expected),
        (_, false, _) => Judged::differs("MissingPorts", "Service ports", expected, observed),
        (_, true, false) => {
            Judged::differs("UnexpectedPorts", "Service ports", expected, observed).at_most_warning()
        }
        (_, true, true) => Judged::matches(expected, observed),
    }
}
