//! The loopback listener of the in-process API, for `kubectl --server http://127.0.0.1:PORT`.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::api::{self, Api};
use crate::http_server::{HttpServer, Limits};

/// Limit of a request body in bytes; kube-apiserver has the same limit.
const MAX_BODY: usize = 3 * 1024 * 1024;
/// A watch is a connection, and clients keep others open.
const LIMITS: Limits = Limits {
    connections: 1024,
    headers: Duration::from_mins(3),
    connection: None,
    keep_alive: true,
    // Then watches are closed.
    drain: Duration::from_secs(1),
};

impl Api {
    /// Serves HTTP/1.1 on `listener` until `shutdown`.
    ///
    /// The API has no authentication. It is therefore served on loopback addresses only, and requests that a web
    /// page can cause a browser to send (a foreign `Host`, any `Origin`) are rejected.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if the listener is not bound to a loopback address.
    pub async fn serve(&self, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let message = format!(
                "the in-process Kubernetes API has no authentication and cannot listen on {address}; \
                 use a loopback address such as 127.0.0.1"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let api = self.clone();
        let router = Router::new().fallback(move |request: Request<Body>| {
            let api = api.clone();
            async move { api.respond_to_network(request).await.map(Body::new) }
        });
        HttpServer { purpose: "the in-process API", router, limits: LIMITS, tls: None }
            .serve(listener, shutdown)
            .await;
        Ok(())
    }

    async fn respond_to_network(&self, request: Request<Body>) -> Response<api::Body> {
        if is_foreign(request.headers()) {
            return Self::refuse_foreign();
        }
        let (parts, body) = request.into_parts();
        match Limited::new(body, MAX_BODY).collect().await {
            Ok(body) => self.respond(Request::from_parts(parts, body.to_bytes())).await,
            Err(error) if error.is::<LengthLimitError>() => Self::refuse_large(MAX_BODY),
            Err(error) => Self::refuse_unread(error.as_ref()),
        }
    }
}

/// Returns whether a web page may have caused a browser to send the request.
fn is_foreign(headers: &HeaderMap) -> bool {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    header(ORIGIN).is_some() || !header(HOST).is_some_and(is_loopback_host)
}

/// Returns whether a `Host` header names a loopback address.
fn is_loopback_host(host: &str) -> bool {
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
