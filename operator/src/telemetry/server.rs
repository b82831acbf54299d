//! The HTTP servers of metrics and probes.

use std::time::Duration;

use axum::Router;

use crate::http_server::{HttpServer, Limits};

/// Each probe and each scrape has its own connection, so that idle clients cannot keep others out.
const LIMITS: Limits = Limits {
    connections: 64,
    headers: Duration::from_secs(5),
    connection: Some(Duration::from_secs(30)),
    keep_alive: false,
    drain: Duration::from_secs(1),
};

/// Creates a server of plain HTTP for programs of the cluster.
pub fn server(purpose: &'static str, router: Router) -> HttpServer {
    HttpServer { purpose, router, limits: LIMITS, tls: None }
}
