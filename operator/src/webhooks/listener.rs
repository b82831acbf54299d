//! Accepts connections of Git hosts, with limits that a slow or hostile sender cannot exceed.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The number of connections at the same time; others wait in the queue of the system.
const MAX_CONNECTIONS: usize = 64;
/// Limit of the headers in bytes; larger ones get 431.
const MAX_HEADERS: usize = 16 << 10;
/// Limit of the time in which the headers must arrive.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit of the time of one connection: headers, body, work, and response.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after a failed accept, for example because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` until `close` is cancelled. Each connection carries one request. Requests in flight are completed.
pub async fn serve(listener: TcpListener, router: Router, close: CancellationToken) {
    let address = listener.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
    tracing::info!(%address, "listening for webhooks");
    let (slots, connections) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), TaskTracker::new());
    loop {
        let accepted = tokio::select! {
            () = close.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        match accepted {
            Ok((stream, slot)) => {
                let router = router.clone();
                connections.spawn(async move {
                    exchange(stream, router).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for a webhook");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, slot))
}

async fn exchange(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    match tokio::time::timeout(EXCHANGE_TIMEOUT, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection for a webhook ended early"),
        Err(_) => tracing::debug!("a connection for a webhook took too long"),
    }
}
