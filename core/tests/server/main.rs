//! What a managed server sees of its client: how many requests at once, when, and over which connections.

mod connections;
mod server;
mod throttling;
