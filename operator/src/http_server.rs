//! The listeners of the process and their HTTP servers, with limits that a slow or hostile client cannot exceed.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use declarest_core::secrets::Secret;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ring::hmac;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::args::BindAddress;

/// Limit of the headers in bytes; larger ones get 431.
const MAX_HEADERS: usize = 16 << 10;
/// The time in which a TLS handshake must end.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The pause after a failed accept, for example because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {purpose}: {source}")]
pub struct ListenError {
    purpose: &'static str,
    address: String,
    source: std::io::Error,
}

/// Binds `address`. Returns `None` if it is off.
pub async fn listen(
    address: &BindAddress,
    purpose: &'static str,
) -> Result<Option<TcpListener>, ListenError> {
    let (shown, bound) = match address {
        BindAddress::Off => return Ok(None),
        BindAddress::Host(host) => (host.clone(), TcpListener::bind(host).await),
        BindAddress::EveryInterface(port) => (format!(":{port}"), bind_every_interface(*port).await),
    };
    bound.map(Some).map_err(|source| ListenError { purpose, address: shown, source })
}

/// Binds the IPv6 wildcard, which also accepts IPv4 connections. If the kernel lacks IPv6, binds the IPv4 wildcard.
async fn bind_every_interface(port: u16) -> std::io::Result<TcpListener> {
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))).await {
        Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => {
            TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await
        }
        other => other,
    }
}

/// Returns the bearer token in the headers of a request (RFC 6750 section 2.1).
pub fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// Returns whether a client sent the expected secret. The comparison takes the same time wherever they differ.
pub fn is_same(sent: &str, expected: &Secret) -> bool {
    // Two equal texts have equal codes, and `verify` compares codes in constant time.
    let expected = expected.expose().as_bytes();
    let key = hmac::Key::new(hmac::HMAC_SHA256, expected);
    hmac::verify(&key, sent.as_bytes(), hmac::sign(&key, expected).as_ref()).is_ok()
}

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of connections at the same time; others wait in the queue of the system.
    pub connections: usize,
    /// The time in which the headers of a request must arrive. A connection without a request is closed after this time, too.
    pub headers: Duration,
    /// The time of one connection, from its start to its end. Then a request in flight is dropped.
    pub connection: Option<Duration>,
    /// Whether a connection may carry several requests.
    pub keep_alive: bool,
    /// The time that requests in flight have to end after the server began to close. Then they are dropped.
    pub drain: Duration,
}

/// One HTTP server.
pub struct HttpServer {
    pub purpose: &'static str,
    pub router: Router,
    pub limits: Limits,
    /// Absent for plain HTTP.
    pub tls: Option<TlsAcceptor>,
}

impl HttpServer {
    /// Returns a name for the log.
    pub fn name(&self) -> String {
        format!("server of {}", self.purpose)
    }

    /// Serves until `close` is cancelled. Requests in flight are completed, if they end in time.
    pub async fn serve(self, listener: TcpListener, close: CancellationToken) {
        let address = listener.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
        tracing::info!(%address, "listening for {}", self.purpose);
        let slots = Arc::new(Semaphore::new(self.limits.connections));
        let (server, connections) = (Arc::new(self), TaskTracker::new());
        loop {
            let accepted = tokio::select! {
                () = close.cancelled() => break,
                accepted = accept(&listener, &slots) => accepted,
            };
            match accepted {
                Ok((stream, slot)) => {
                    let (server, close) = (Arc::clone(&server), close.clone());
                    connections.spawn(async move {
                        server.connection(stream, &close).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, purpose = server.purpose, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        connections.close();
        connections.wait().await;
    }

    /// Serves one connection, within its limits.
    async fn connection(&self, stream: TcpStream, close: &CancellationToken) {
        let exchange = async {
            match &self.tls {
                None => self.http(stream, close).await,
                Some(tls) => {
                    let handshake = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await;
                    let stream = handshake.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                    self.http(stream, close).await
                }
            }
        };
        let ended = match self.limits.connection {
            Some(limit) => tokio::time::timeout(limit, exchange).await,
            None => Ok(exchange.await),
        };
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, purpose = self.purpose, "a connection ended early"),
            Err(_) => tracing::debug!(purpose = self.purpose, "a connection took too long"),
        }
    }

    async fn http(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        close: &CancellationToken,
    ) -> io::Result<()> {
        let service = TowerToHyperService::new(self.router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .max_buf_size(MAX_HEADERS)
            .keep_alive(self.limits.keep_alive)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = close.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let drained = tokio::time::timeout(self.limits.drain, connection.as_mut()).await;
                drained.unwrap_or(Ok(()))
            }
        };
        ended.map_err(io::Error::other)
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, slot))
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::time::Instant;

    use super::*;
    use crate::tls::SelfSigned;

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_does_not_end_is_closed_soon() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (minutes, drain) = (Duration::from_mins(3), Duration::ZERO);
        let limits = Limits { connections: 1, headers: minutes, connection: None, keep_alive: true, drain };
        let tls = Some(SelfSigned::new(&["localhost"]).unwrap().acceptor);
        let server = HttpServer { purpose: "tests", router: Router::new(), limits, tls };
        tokio::spawn(server.serve(listener, CancellationToken::new()));
        let started = Instant::now();
        let mut silent = TcpStream::connect(address).await.unwrap();
        assert_eq!(silent.read(&mut [0]).await.unwrap_or_default(), 0);
        assert!(started.elapsed() < minutes / 2);
    }
}
