//! Desired state in Git, observed state behind a REST API, and the plan between the two.
//!
//! Data flows through the modules in this order; each may use only those before it:
//! [`path`] → [`payload`] → [`secrets`] → [`proxy`] → [`transport`] → [`repository`] → [`metadata`] → [`server`] →
//! [`sync`].
//! Only the secret store in [`secrets::vault`] reaches ahead, as its Vault is behind HTTP.
//! Nothing here knows Kubernetes or a terminal.
#![warn(missing_docs)]

mod atomic;
pub mod authoring;
pub mod control;
pub mod digest;
pub mod error;
pub mod metadata;
pub mod path;
pub mod payload;
pub mod proxy;
pub mod repository;
pub mod secrets;
pub mod server;
pub mod sync;
pub mod transport;
