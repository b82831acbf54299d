//! The four controllers, one file per kind, and the reconcile loop that they share (`frame`).

pub mod artifacts;
mod backoff;
pub mod cache;
pub mod conditions;
pub mod connections;
pub mod context;
pub mod dependencies;
pub mod error;
pub mod events;
pub mod expand;
pub mod frame;
pub mod identity;
pub mod kind;
pub mod managed_server;
pub mod mirrors;
pub mod outcome;
pub mod references;
pub mod resource_repository;
pub mod secret_store;
pub mod seeds;
pub mod servers;
pub mod status;
pub mod stores;
pub mod sync_policy;
pub mod volumes;

use std::sync::Arc;

use context::Context;

/// Runs all controllers until `context.stop` is cancelled and the work in flight has ended.
pub async fn run(context: Arc<Context>) {
    tokio::join!(
        resource_repository::run(Arc::clone(&context)),
        managed_server::run(Arc::clone(&context)),
        secret_store::run(Arc::clone(&context)),
        sync_policy::run(context),
    );
}
