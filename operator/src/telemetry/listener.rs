//! Plain HTTP listeners for probes and metrics.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::args::BindAddress;

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

/// Serves `router` until `close` is cancelled. Requests in flight are completed.
pub async fn serve(listener: TcpListener, router: Router, close: CancellationToken) {
    let address = listener.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
    tracing::info!(%address, "listening");
    if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(close.cancelled_owned()).await {
        tracing::error!(%address, %error, "listener ended");
    }
}
