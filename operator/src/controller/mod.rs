//! The four controllers, one file per kind, and the reconcile loop that they share (`frame`). A round is one reconcile
//! of one object.
//!
//! ```text
//! outcome, error, conditions       the result of a round, and its conditions (pure)
//! kind, expand, references         the four kinds, their placeholders, the Secrets that they refer to
//! cache, dependencies, events      the watched objects, the Secrets and claims that they use, events for users
//! context, outdated                the state that all rounds share; changes of an object during its round
//! workers                          the selection of the rounds that run at the same time
//! identity, volumes, seeds         the inputs of clients and stores
//! servers, artifacts, stores, mirrors
//!                                  the clients, documents, stores and mirrors in use, together in pools
//! frame                            one round
//! cluster_reads, target_watches, contracts
//!                                  the contracts of servers, and the objects that they are compared with
//! resource_repository, managed_server, secret_store, sync_policy
//!                                  the work of each kind
//! ```
//!
//! Each file uses those above it.

pub mod artifacts;
mod backoff;
pub mod cache;
pub mod cluster_reads;
pub mod conditions;
pub mod connections;
pub mod context;
pub mod contracts;
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
mod outdated;
pub mod pools;
pub mod references;
pub mod resource_repository;
pub mod secret_store;
pub mod seeds;
pub mod servers;
pub mod status;
pub mod stores;
pub mod sync_policy;
pub mod target_watches;
pub mod volumes;
pub mod workers;

use std::sync::Arc;

use context::Context;
use pools::Pools;

/// Runs all controllers until `context.stop` is cancelled and the work in flight has ended.
pub async fn run(context: Arc<Context>) {
    let pools = Arc::<Pools>::default();
    tokio::join!(
        resource_repository::run(Arc::clone(&context), Arc::clone(&pools)),
        managed_server::run(Arc::clone(&context), Arc::clone(&pools)),
        secret_store::run(Arc::clone(&context), Arc::clone(&pools)),
        sync_policy::run(context, pools),
    );
}
