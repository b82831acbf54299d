//! Desired state in Git, observed state behind a REST API, and the plan between the two.
//!
//! Each module uses only the modules before it in this order:
//! [`error`] → [`control`] → [`variable`] → [`digest`] → [`memory`] → `atomic` → [`confined`] → [`lock`] → [`secret`] → [`path`] → [`spans`] →
//! [`payload`] → [`proxy`] → [`transport`] →
//! [`secrets`] → [`repository`] → [`language`] → [`metadata`] → [`bundle`] → [`contract`] → [`server`] → [`sync`] → [`authoring`].
//!
//! The crate does not depend on Kubernetes or a terminal.
#![warn(missing_docs)]

mod atomic;
pub mod authoring;
pub mod bundle;
#[cfg(target_os = "linux")]
pub mod confined;
pub mod contract;
pub mod control;
pub mod digest;
pub mod error;
pub mod language;
pub mod lock;
pub mod memory;
pub mod metadata;
pub mod path;
pub mod payload;
pub mod proxy;
pub mod repository;
pub mod secret;
pub mod secrets;
pub mod server;
pub mod spans;
pub mod sync;
pub mod transport;
pub mod variable;
