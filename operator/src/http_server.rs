//! HTTP servers for other programs, with limits that a slow or hostile client cannot exceed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Limit of the headers in bytes; larger ones get 431.
const MAX_HEADERS: usize = 16 << 10;
/// The pause after a failed accept, for example because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of connections at the same time; others wait in the queue of the system.
    pub connections: usize,
    /// The time in which a TLS handshake must end and the headers of a request must arrive. A connection without a
    /// request is closed after this time, too.
    pub headers: Duration,
    /// The time of one connection, from its start to its end. Then a request in flight is dropped.
    pub connection: Option<Duration>,
    /// Whether a connection may carry several requests.
    pub keep_alive: bool,
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
    /// Serves until `close` is cancelled. Requests in flight are completed.
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
                    let server = Arc::clone(&server);
                    connections.spawn(async move {
                        server.connection(stream).await;
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
    async fn connection(&self, stream: TcpStream) {
        let exchange = async {
            match &self.tls {
                None => self.http(stream).await,
                Some(tls) => {
                    let handshake = tokio::time::timeout(self.limits.headers, tls.accept(stream)).await;
                    self.http(handshake.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??).await
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

    async fn http(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let service = TowerToHyperService::new(self.router.clone());
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .max_buf_size(MAX_HEADERS)
            .keep_alive(self.limits.keep_alive)
            .serve_connection(TokioIo::new(stream), service)
            .await
            .map_err(io::Error::other)
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
