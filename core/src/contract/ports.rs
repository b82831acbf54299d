//! Matches the ports of interfaces with those of a Service.

use super::objects::{PodSpec, PortRef, Service, ServicePort};

/// How the ports of a contract and of a Service correspond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alignment {
    /// TCP ports of the Service.
    pub observed: Vec<u16>,
    pub missing: Vec<u16>,
    pub unexpected: Vec<u16>,
    /// Whether a missing port may be the number of a target port whose name could not be resolved.
    pub unresolved: bool,
}

/// Compares declared ports with those of `service`. `pod` is the template of the pods, if it is known.
pub(super) fn align(declared: &[u16], service: &Service, pod: Option<&PodSpec>) -> Alignment {
    let served: Vec<&ServicePort> = service.spec.ports.iter().filter(|port| port.is_tcp()).collect();
    let matched: Vec<Option<&ServicePort>> = declared.iter().map(|port| find(*port, service, pod)).collect();
    let missing = declared.iter().zip(&matched).filter(|(_, found)| found.is_none());
    let missing: Vec<u16> = missing.map(|(port, _)| *port).collect();
    let is_matched = |port: &ServicePort| matched.iter().flatten().any(|found| *found == port);
    let unexpected = served.iter().filter(|port| !is_matched(port)).map(|port| port.port).collect();
    let is_named = |port: &&&ServicePort| matches!(port.target_port, Some(PortRef::Name(_)));
    let unresolved = !missing.is_empty() && pod.is_none() && served.iter().any(|port| is_named(&port));
    let mut observed: Vec<u16> = served.iter().map(|port| port.port).collect();
    observed.sort_unstable();
    Alignment { observed, missing, unexpected, unresolved }
}

/// Returns the TCP port of the Service with this number, else the one whose target is this number.
pub(super) fn find<'s>(
    declared: u16,
    service: &'s Service,
    pod: Option<&PodSpec>,
) -> Option<&'s ServicePort> {
    let served = || service.spec.ports.iter().filter(|port| port.is_tcp());
    served()
        .find(|port| port.port == declared)
        .or_else(|| served().find(|port| target(port, pod) == Some(declared)))
}

/// Returns the container port that a port of a Service leads to; `None` if its name cannot be resolved.
pub(super) fn target(port: &ServicePort, pod: Option<&PodSpec>) -> Option<u16> {
    match &port.target_port {
        // Without a target port, Kubernetes uses the port.
        None => Some(port.port),
        Some(PortRef::Number(number)) => Some(*number),
        Some(PortRef::Name(name)) => pod?.named_port(name),
    }
}
