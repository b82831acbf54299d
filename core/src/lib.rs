//! Desired state in Git, observed state behind a REST API, and the plan between the two.
//!
//! Data flows through the modules in this order; each may use only the modules before it:
//! [`path`] → [`payload`] → [`secrets`] → [`proxy`] → [`transport`] → [`repository`] → [`language`] → [`metadata`] →
//! [`bundle`] → [`server`] → [`sync`].
//! The only exception is [`secrets::vault`], whose Vault is reached over HTTP.
//! The crate does not depend on Kubernetes or a terminal.
#![warn(missing_docs)]

mod atomic;
pub mod authoring;
pub mod bundle;
pub mod control;
pub mod digest;
pub mod error;
pub mod language;
pub mod metadata;
pub mod path;
pub mod payload;
pub mod proxy;
pub mod repository;
pub mod secrets;
pub mod server;
pub mod sync;
pub mod transport;
