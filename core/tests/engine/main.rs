//! The engine against a real server: how much it asks, and what it believes.

#[path = "../../../demo/rest_server/mod.rs"]
mod rest_server;

mod bulk;
mod scene;
