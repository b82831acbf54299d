//! The bundles in `bundles/` on the real products, which `make test-products` installs. Each product starts on loopback,
//! empty, for each test. Its requests are counted by a proxy in front of it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]
#![allow(clippy::print_stdout, reason = "figures for docs/performance.md")]

mod command_line;
mod keycloak;
mod powerdns;
mod process;
mod product;
mod published;
mod rabbitmq;
mod scene;
#[path = "../support/mod.rs"]
mod support;
mod traffic;
mod vault;
