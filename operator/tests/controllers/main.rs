//! The controllers on the in-process API, as standalone mode runs them.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "each is a failed test")]

mod life;
mod malformed;
mod managed_server;
mod resource_repository;
mod world;
