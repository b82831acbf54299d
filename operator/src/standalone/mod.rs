//! Standalone mode: the controllers without a cluster.
//!
//! [`Api`] takes the place of kube-apiserver and is handed to the controllers as a `kube::Client`;
//! [`Manifests`] takes the place of `kubectl apply`. The controllers cannot tell the difference.

mod api;
mod listen;
mod manifests;
mod state;

#[cfg(test)]
mod tests;

pub use api::{Api, ApiError};
pub use manifests::{LoadReport, Manifests, ManifestsError, Problem};
pub use state::StateError;
