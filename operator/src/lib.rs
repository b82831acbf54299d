//! The DeclaREST operator: its resource kinds and everything that works on them.

pub mod args;
pub mod controller;
pub mod crd;
pub mod crds;
pub mod directories;
pub mod leader;
pub mod runtime;
pub mod standalone;
pub mod telemetry;

/// Built in with the settings in `.cargo/config.toml`; it stands here so that benchmarks measure what runs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
