//! The loopback listener of the in-process API, for `kubectl --server http://127.0.0.1:PORT`.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use http::header::{HOST, ORIGIN};
use http::{Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::api::{Api, Body};

/// Limit of a request body in bytes; kube-apiserver has the same limit.
const MAX_BODY: usize = 3 * 1024 * 1024;
/// The time that open requests have to end after shutdown began. Then watches are closed.
const DRAIN: Duration = Duration::from_secs(1);

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
        let connections = TaskTracker::new();
        loop {
            let stream = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection to the in-process API");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            let (api, shutdown) = (self.clone(), shutdown.clone());
            connections.spawn(async move { api.serve_connection(TokioIo::new(stream), shutdown).await });
        }
        connections.close();
        connections.wait().await;
        Ok(())
    }

    async fn serve_connection(&self, io: TokioIo<tokio::net::TcpStream>, shutdown: CancellationToken) {
        let service = service_fn(|request: Request<Incoming>| async {
            Ok::<_, Infallible>(self.respond_to_network(request).await)
        });
        let connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(io, service);
        let mut connection = std::pin::pin!(connection);
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                match tokio::time::timeout(DRAIN, connection.as_mut()).await {
                    Ok(result) => result,
                    Err(_) => return,
                }
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "a connection to the in-process API ended early");
        }
    }

    async fn respond_to_network(&self, request: Request<Incoming>) -> Response<Body> {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        if header(ORIGIN).is_some() || !header(HOST).is_some_and(is_loopback_host) {
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

/// Returns whether a `Host` header names a loopback address.
fn is_loopback_host(host: &str) -> bool {
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
