//! The HTTPS server of the admission webhooks.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionReview};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::review::{Reviewed, Reviewer};
use crate::crd::{ManagedServer, ResourceRepository, SecretStore, SyncPolicy};
use crate::http_server::{HttpServer, Limits};

/// Limit of a body in bytes. The API server has the same limit for objects.
const MAX_BODY: usize = 3 << 20;

/// The number of bodies that are read at once; others wait. It limits their memory.
const AT_ONCE: usize = 32;
/// Limit of the time in which a body must arrive. An API server waits 10 s for the response.
const BODY_TIMEOUT: Duration = Duration::from_secs(3);

/// An API server closes a connection that it did not use for 90 s. If the webhook closed it earlier, a request that is
/// sent at that time would fail.
const LIMITS: Limits = Limits {
    connections: 256,
    headers: Duration::from_mins(3),
    connection: None,
    keep_alive: true,
    drain: Duration::from_secs(10),
};

/// Creates the server.
pub fn server(reviewer: Reviewer, tls: TlsAcceptor) -> HttpServer {
    let router = Router::new()
        .route(&path::<ResourceRepository>(), post(respond::<ResourceRepository>))
        .route(&path::<ManagedServer>(), post(respond::<ManagedServer>))
        .route(&path::<SecretStore>(), post(respond::<SecretStore>))
        .route(&path::<SyncPolicy>(), post(respond::<SyncPolicy>))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(Arc::new(Semaphore::new(AT_ONCE)), limited))
        .with_state(Arc::new(reviewer));
    HttpServer { purpose: "admission reviews", router, limits: LIMITS, tls: Some(tls) }
}

/// Returns the path of a kind, as controller-runtime names it.
fn path<K: Reviewed>() -> String {
    format!("/validate-declarest-io-v1alpha1-{}", K::NAME.to_lowercase())
}

/// Reads the body of a request. Answers 408 if it does not arrive in time, and 413 if it is too large.
async fn limited(State(slots): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let slot = slots.acquire().await;
    let (parts, body) = request.into_parts();
    let body = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    drop(slot);
    next.run(Request::from_parts(parts, Body::from(body))).await
}

async fn respond<K: Reviewed>(
    State(reviewer): State<Arc<Reviewer>>,
    Json(review): Json<AdmissionReview<DynamicObject>>,
) -> Result<Json<AdmissionReview<DynamicObject>>, StatusCode> {
    let request: AdmissionRequest<DynamicObject> = review.try_into().map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok(Json(reviewer.review::<K>(&request).await.into_review()))
}
