//! The loopback listener of the in-process API, for `kubectl --kubeconfig`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::access::Access;
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
    /// Returns a server of HTTP/1.1 with TLS on `listener` until `shutdown`, on loopback addresses only. Requests without the
    /// token of `access` get 401.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if the listener is not bound to a loopback address.
    pub fn serve(
        &self,
        listener: TcpListener,
        access: Access,
        shutdown: CancellationToken,
    ) -> io::Result<impl Future<Output = ()> + Send + use<>> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let message = format!(
                "the in-process Kubernetes API is for this machine and cannot listen on {address}; \
                 use a loopback address such as 127.0.0.1"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let (api, tls, access) = (self.clone(), access.tls(), Arc::new(access));
        let router = Router::new().fallback(move |request: Request<Body>| {
            let (api, access) = (api.clone(), Arc::clone(&access));
            async move { api.respond_to_network(&access, request).await.map(Body::new) }
        });
        let server = HttpServer { purpose: "the in-process API", router, limits: LIMITS, tls: Some(tls) };
        Ok(server.serve(listener, shutdown))
    }

    async fn respond_to_network(&self, access: &Access, request: Request<Body>) -> Response<api::Body> {
        if !access.admits(request.headers()) {
            return Self::refuse_unknown();
        }
        let (parts, body) = request.into_parts();
        match Limited::new(body, MAX_BODY).collect().await {
            Ok(body) => self.respond(Request::from_parts(parts, body.to_bytes())).await,
            Err(error) if error.is::<LengthLimitError>() => Self::refuse_large(MAX_BODY),
            Err(error) => Self::refuse_unread(error.as_ref()),
        }
    }
}
