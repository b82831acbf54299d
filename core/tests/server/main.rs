//! What a managed server sees of its client: how many requests at once, when, and over which connections.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

mod bodies;
mod connections;
mod documents;
#[path = "../support/network.rs"]
mod network;
mod oauth2;
mod origin;
mod proxies;
mod recorder;
mod redirects;
mod server;
mod throttling;
mod tls;
