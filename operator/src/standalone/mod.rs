//! Standalone mode: the controllers without a cluster.
//!
//! [`Api`] replaces kube-apiserver; the controllers use it through a `kube::Client`. [`Manifests`] replaces
//! `kubectl apply`. The controllers are the same as in a cluster.

mod access;
mod api;
mod listen;
mod manifests;
mod state;

#[cfg(test)]
mod tests;

pub use access::{Access, AccessError};
pub use api::{Api, ApiError};
pub use manifests::{LoadReport, Manifests, ManifestsError, Problem};
pub use state::{StateError, write_private};
