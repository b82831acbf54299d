//! `/healthz` and `/readyz`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

/// What readiness depends on: caches that are synced, and a process that is not about to end. Never
/// leadership, or a standby replica would not be ready; never a remote system, or its outage would take
/// the replica out of service.
#[derive(Debug, Default)]
pub struct Health {
    synced: AtomicBool,
    draining: AtomicBool,
}

impl Health {
    /// Every cache has been filled once.
    pub fn caches_synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    /// The process is on its way out; this is final.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn readiness(&self) -> (StatusCode, &'static str) {
        if self.draining.load(Ordering::Relaxed) {
            (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
        } else if self.synced.load(Ordering::Relaxed) {
            (StatusCode::OK, "ok\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "caches are not synced yet\n")
        }
    }
}

/// Answers the probes. `/healthz` is served by the event loop whose life it proves.
pub fn probes(health: Arc<Health>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async |State(health): State<Arc<Health>>| health.readiness()))
        .with_state(health)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_between_synced_and_draining() {
        let health = Health::default();
        assert_eq!(health.readiness().0, StatusCode::SERVICE_UNAVAILABLE);
        health.caches_synced();
        assert_eq!(health.readiness().0, StatusCode::OK);
        health.drain();
        assert_eq!(health.readiness().0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
