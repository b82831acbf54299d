//! The contract of a service, as a valid document declares it.

use super::image::ImageRef;

/// A valid contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// `service.name`.
    pub name: String,
    /// `service.version`, as it is written.
    pub version: String,
    /// `service.image.ref`.
    pub image: Option<ImageRef>,
    /// `interfaces`.
    pub interfaces: Vec<Interface>,
    /// `runtime`.
    pub runtime: Option<Runtime>,
    /// `scaling`.
    pub scaling: Option<Scaling>,
}

/// An interface of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, unique in the contract.
    pub name: String,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its port. Interfaces of events have none.
    pub port: Option<u16>,
    /// The file that describes it.
    pub contract: Option<String>,
}

/// The protocol of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP.
    Http,
    /// gRPC.
    Grpc,
    /// Messages, which this module does not check.
    Event,
}

/// How the service runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// The form of its workload.
    pub workload: Workload,
    /// The state that it keeps.
    pub state: State,
    /// The strategy of its upgrades.
    pub upgrade_strategy: Option<UpgradeStrategy>,
    /// The time that a pod has to end, in seconds.
    pub graceful_shutdown: Option<i64>,
    /// Its health endpoint.
    pub health: Option<Endpoint>,
    /// The time after the start of a pod before its health counts, in seconds.
    pub initial_delay: i64,
    /// Its metrics endpoint.
    pub metrics: Option<Endpoint>,
}

/// The form of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// It runs until it is stopped.
    Service,
    /// It runs once.
    Job,
    /// It runs at certain times.
    Scheduled,
}

/// The state of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether it keeps state.
    pub kind: StateKind,
    /// Which pods share it.
    pub scope: Scope,
    /// Whether it survives the pod.
    pub durability: Durability,
}

/// Whether a service keeps state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// It keeps none.
    Stateless,
    /// It keeps state.
    Stateful,
    /// A part of it keeps state.
    Hybrid,
}

/// Which pods share a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each pod has its own.
    Local,
    /// All pods share it.
    Shared,
}

/// Whether a state survives the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It ends with the pod.
    Ephemeral,
    /// It survives the pod.
    Persistent,
}

/// The strategy of upgrades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum UpgradeStrategy {
    /// Pods are replaced step by step.
    Rolling,
    /// All pods end before new ones start.
    Recreate,
    /// Pods are replaced step by step, in their order.
    Ordered,
}

impl UpgradeStrategy {
    /// Returns its name in documents.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// An endpoint of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The protocol of the interface.
    pub protocol: Protocol,
    /// The port of the interface.
    pub port: u16,
    /// Its path, with a leading slash; empty for gRPC.
    pub path: String,
}

/// The allowed number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// The smallest number.
    pub min: i64,
    /// The largest number.
    pub max: i64,
}

impl Contract {
    /// Returns the ports of the HTTP and gRPC interfaces, sorted.
    pub fn ports(&self) -> Vec<u16> {
        let served = self.interfaces.iter().filter(|interface| interface.protocol != Protocol::Event);
        let mut ports: Vec<u16> = served.filter_map(|interface| interface.port).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}
