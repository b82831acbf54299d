//! Desired state in Git, observed state behind a REST API, and the plan between the two.
//!
//! Each module uses only the modules before it in this order:
//! [`error`] → [`control`] → [`digest`] → `atomic` → [`secret`] → [`path`] → [`payload`] → [`proxy`] → [`transport`] →
//! [`secrets`] → [`repository`] → [`language`] → [`metadata`] → [`bundle`] → [`server`] → [`sync`] → [`authoring`].
//!
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
pub mod secret;
pub mod secrets;
pub mod server;
pub mod sync;
pub mod transport;
