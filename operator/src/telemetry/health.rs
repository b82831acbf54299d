//! The probes `/healthz` and `/readyz`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

/// The state that readiness depends on: the caches are synced, and the process is not draining. Readiness does not
/// depend on leadership, because standby replicas must be ready. It does not depend on remote systems, because
/// their outages must not take the replica out of service.
#[derive(Debug, Default)]
pub struct Health {
    synced: AtomicBool,
    draining: AtomicBool,
    /// Whether the certificate of the admission webhooks is loaded, if they are served.
    certificate: OnceLock<Arc<AtomicBool>>,
}

impl Health {
    /// Records that every cache has been filled once.
    pub fn caches_synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    /// Makes readiness depend on the certificate of the admission webhooks.
    pub fn await_certificate(&self, loaded: Arc<AtomicBool>) {
        // There is one server of admission webhooks, so this is called once.
        let _ = self.certificate.set(loaded);
    }

    /// Records that the process is about to end; this is final.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn readiness(&self) -> (StatusCode, &'static str) {
        if self.draining.load(Ordering::Relaxed) {
            (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
        } else if self.certificate.get().is_some_and(|loaded| !loaded.load(Ordering::Relaxed)) {
            (StatusCode::SERVICE_UNAVAILABLE, "the certificate of the admission webhooks is not loaded\n")
        } else if self.synced.load(Ordering::Relaxed) {
            (StatusCode::OK, "ok\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "caches are not synced yet\n")
        }
    }
}

/// Returns the routes of the probes. `/healthz` shows that the event loop runs, because the event loop serves it.
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
    fn the_process_is_ready_after_sync_and_before_drain() {
        let health = Health::default();
        assert_eq!(health.readiness().0, StatusCode::SERVICE_UNAVAILABLE);
        health.caches_synced();
        assert_eq!(health.readiness().0, StatusCode::OK);
        let loaded = Arc::new(AtomicBool::new(false));
        health.await_certificate(Arc::clone(&loaded));
        assert_eq!(health.readiness().0, StatusCode::SERVICE_UNAVAILABLE);
        loaded.store(true, Ordering::Relaxed);
        assert_eq!(health.readiness().0, StatusCode::OK);
        health.drain();
        assert_eq!(health.readiness().0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
