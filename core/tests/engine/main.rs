//! The engine against a real server: how much it asks, and what it believes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap is a failed test")]

#[path = "../../../demo/rest_server/mod.rs"]
mod rest_server;

mod bulk;
mod scene;
