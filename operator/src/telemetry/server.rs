//! The HTTP servers of metrics and probes.

use std::time::Duration;

use axum::Router;

use crate::http_server::{HttpServer, Limits};

const LIMITS: Limits = Limits {
    connections: 64,
    headers: Duration::from_mins(3),
    connection: None,
    keep_alive: true,
    drain: Duration::from_secs(1),
};

/// Creates a server of plain HTTP for programs of the cluster.
pub fn server(purpose: &'static str, router: Router) -> HttpServer {
    HttpServer { purpose, router, limits: LIMITS, tls: None }
}
