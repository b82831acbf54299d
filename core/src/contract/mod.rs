//! Contracts of services in the Pacto format 1.0, and their comparison with the objects of a cluster.
//!
//! [`ContractSource::load`] finds a document, [`Document::read`] validates it. [`observe`] reads the objects of a
//! [`Target`] through a [`Cluster`], [`Prober`] asks its endpoints, and [`verify`] compares everything: it is a pure
//! function of the contract and a [`Snapshot`]. [`report`] makes a [`status`] of the result. Nothing is written.
//!
//! ```
//! use declarest_core::contract::Document;
//!
//! let document = Document::read(b"{pactoVersion: '1.0', service: {name: tides, version: 0.3.0}}", None);
//! assert_eq!(document.contract.unwrap().name, "tides");
//! ```

mod document;
mod error;
mod finding;
mod image;
mod model;
pub mod objects;
mod observe;
mod ports;
mod probe;
mod reads;
pub mod report;
mod request;
mod rules;
mod snapshot;
mod source;
mod spec;
pub mod status;
mod structure;
mod target;
mod time;
mod verify;

pub use document::{Document, MAX_DOCUMENT};
pub use error::ContractError;
pub use finding::{Code, Finding};
pub use image::ImageRef;
pub use model::{
    Contract, Durability, Endpoint, Interface, Protocol, Runtime, Scaling, Scope, State, StateKind,
    UpgradeStrategy, Workload,
};
pub use observe::{Cluster, ObjectKind, observe};
pub use probe::{Prober, unsent};
pub use reads::{ClusterReads, KubernetesApi, ReadFailure};
pub use request::{ProbeRequest, probe_requests};
pub use snapshot::{FoundWorkload, ProbeAnswer, ProbeKind, Probed, Read, Snapshot};
pub use source::{ContractSource, FILE, Loaded, Loading, OciSource, read_local};
pub use spec::{ContractBinding, ContractTarget, HTTP_URL, WorkloadRef, without_credentials};
pub use target::{ProbeVia, Target, WorkloadKind};
pub use verify::{Severities, Verification, gate, phase, summary, verify};
