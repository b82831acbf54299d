//! What a managed server sees of its client: how many requests at once, when, and over which connections.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

mod bodies;
mod connections;
mod documents;
mod echoes;
mod headers;
#[path = "../support/network.rs"]
mod network;
mod oauth2;
mod origin;
mod proxied;
mod proxies;
mod recorder;
mod redirects;
mod retries;
mod server;
#[path = "../support/session.rs"]
mod session;
mod templates;
mod throttling;
mod tls;
