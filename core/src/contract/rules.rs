//! The rules between the fields of a document whose structure is valid.

use std::collections::{BTreeSet, HashSet};

use super::finding::{Code, Findings};
use super::model::{
    Contract, Durability, Endpoint, Interface, Protocol, Runtime, Scaling, StateKind, UpgradeStrategy,
    Workload,
};
use super::structure::{EndpointFields, Fields, RuntimeFields, ScalingFields};

/// Checks all rules, and returns the contract. It is complete only if there are no errors.
pub(super) fn check(
    fields: Fields,
    files: Option<&BTreeSet<String>>,
    findings: &mut Findings,
) -> Option<Contract> {
    let interfaces = interfaces(&fields, files, findings);
    let workload = fields.runtime.as_ref().and_then(|runtime| runtime.workload);
    let scaling = fields.scaling.as_ref().and_then(|fields| scaling(fields, workload, findings));
    let runtime = match &fields.runtime {
        Some(fields) => Some(runtime(fields, &interfaces, findings)?),
        None => None,
    };
    let Fields { name, version, image, .. } = fields;
    Some(Contract { name: name?, version: version?, image, interfaces, runtime, scaling })
}

fn interfaces(fields: &Fields, files: Option<&BTreeSet<String>>, findings: &mut Findings) -> Vec<Interface> {
    let mut names = HashSet::new();
    let mut interfaces = Vec::new();
    for (index, interface) in fields.interfaces.iter().enumerate() {
        let at = |field: &str| format!("interfaces[{index}].{field}");
        let Some(protocol) = interface.protocol else { continue };
        if !names.insert(&interface.name) {
            findings.error(Code::DuplicateInterfaceName, &at("name"), "is the name of another interface");
        }
        match (protocol, interface.port) {
            (Protocol::Http | Protocol::Grpc, None) => {
                findings.error(Code::PortRequired, &at("port"), "is required for http and grpc");
            }
            (Protocol::Event, Some(_)) => {
                findings.warn(Code::PortIgnored, &at("port"), "is ignored for events");
            }
            _ => {}
        }
        match (&interface.contract, files) {
            (None, _) if protocol != Protocol::Http => {
                findings.error(Code::ContractRequired, &at("contract"), "is required for grpc and event");
            }
            (Some(file), Some(files)) if !files.contains(&plain(file)) => {
                findings.error(Code::FileNotFound, &at("contract"), "is not a file in the bundle");
            }
            _ => {}
        }
        let (name, contract) = (interface.name.clone(), interface.contract.clone());
        let port = interface.port.filter(|_| protocol != Protocol::Event);
        interfaces.push(Interface { name, protocol, port, contract });
    }
    interfaces
}

/// Returns a path without `.` and empty segments.
fn plain(file: &str) -> String {
    let segments: Vec<&str> = file.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    segments.join("/")
}

fn runtime(fields: &RuntimeFields, interfaces: &[Interface], findings: &mut Findings) -> Option<Runtime> {
    let (workload, state) = (fields.workload?, fields.state?);
    if state.kind == StateKind::Stateless {
        if state.durability == Durability::Persistent {
            let message = "is persistent, but the service is stateless";
            findings.error(
                Code::StatelessPersistentConflict,
                "runtime.state.persistence.durability",
                message,
            );
        }
        if fields.upgrade_strategy == Some(UpgradeStrategy::Ordered) {
            findings.warn(
                Code::UpgradeStrategyStateMismatch,
                "runtime.lifecycle.upgradeStrategy",
                "is ordered, but the service is stateless",
            );
        }
    }
    let health = fields.health.as_ref().map(|fields| endpoint(fields, &HEALTH, interfaces, findings));
    let metrics = fields.metrics.as_ref().map(|fields| endpoint(fields, &METRICS, interfaces, findings));
    Some(Runtime {
        workload,
        state,
        upgrade_strategy: fields.upgrade_strategy,
        graceful_shutdown: fields.graceful_shutdown,
        health: health.flatten(),
        initial_delay: fields.initial_delay,
        metrics: metrics.flatten(),
    })
}

/// The field of an endpoint, and the codes of its rules.
struct EndpointRules {
    field: &'static str,
    not_found: Code,
    invalid: Code,
    path_required: Code,
    path_ignored: Code,
}

const HEALTH: EndpointRules = EndpointRules {
    field: "runtime.health",
    not_found: Code::HealthInterfaceNotFound,
    invalid: Code::HealthInterfaceInvalid,
    path_required: Code::HealthPathRequired,
    path_ignored: Code::HealthPathIgnored,
};

const METRICS: EndpointRules = EndpointRules {
    field: "runtime.metrics",
    not_found: Code::MetricsInterfaceNotFound,
    invalid: Code::MetricsInterfaceInvalid,
    path_required: Code::MetricsPathRequired,
    path_ignored: Code::MetricsPathIgnored,
};

fn endpoint(
    fields: &EndpointFields,
    rules: &EndpointRules,
    interfaces: &[Interface],
    findings: &mut Findings,
) -> Option<Endpoint> {
    let at = |field: &str| format!("{}.{field}", rules.field);
    let Some(interface) = interfaces.iter().find(|interface| interface.name == fields.interface) else {
        findings.error(rules.not_found, &at("interface"), "is not the name of an interface");
        return None;
    };
    let path = match (interface.protocol, &fields.path) {
        (Protocol::Event, _) => {
            findings.error(rules.invalid, &at("interface"), "is of type event; use http or grpc");
            return None;
        }
        (Protocol::Http, None) => {
            findings.error(rules.path_required, &at("path"), "is required for http");
            return None;
        }
        (Protocol::Http, Some(path)) => path.clone(),
        (Protocol::Grpc, path) => {
            if path.is_some() {
                findings.warn(rules.path_ignored, &at("path"), "is ignored for grpc");
            }
            String::new()
        }
    };
    Some(Endpoint { protocol: interface.protocol, port: interface.port?, path })
}

fn scaling(fields: &ScalingFields, workload: Option<Workload>, findings: &mut Findings) -> Option<Scaling> {
    if workload == Some(Workload::Job) {
        findings.error(Code::JobScalingNotAllowed, "scaling", "is not allowed for a job");
    }
    match (fields.replicas, fields.min, fields.max) {
        (Some(replicas), None, None) => Some(Scaling { min: replicas, max: replicas }),
        (None, Some(min), Some(max)) if min <= max => Some(Scaling { min, max }),
        (None, Some(_), Some(_)) => {
            findings.error(Code::ScalingMinExceedsMax, "scaling", "min is larger than max");
            None
        }
        _ => {
            findings.error(Code::ScalingForm, "scaling", "set either replicas, or min and max");
            None
        }
    }
}
