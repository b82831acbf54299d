//! The DeclaREST operator: its custom resources and their controllers.
//!
//! A module uses only the modules before it, in this order: [`crd`] → [`directories`] → [`args`] → [`crds`] → [`access`]
//! → [`leader`] → [`watching`] → [`fanout`] → [`shard`] → [`tls`] → [`http_server`] → [`telemetry`] → [`controller`] → [`admission`] → [`webhooks`] → [`standalone`] → [`runtime`].
#![forbid(unsafe_code)]

pub mod access;
pub mod admission;
pub mod args;
pub mod controller;
pub mod crd;
pub mod crds;
pub mod directories;
pub mod fanout;
pub mod http_server;
pub mod leader;
pub mod runtime;
pub mod shard;
pub mod standalone;
pub mod telemetry;
pub mod tls;
pub mod watching;
pub mod webhooks;

/// Configured in `.cargo/config.toml`. It is declared in the library so that benchmarks use the same allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
