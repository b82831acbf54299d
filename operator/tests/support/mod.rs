//! What the tests of the operator share.

// Each test target uses its own part of this.
#![allow(dead_code, reason = "shared by several test targets")]

pub mod admission;
#[path = "../../../core/tests/support/api_server.rs"]
pub mod api_server;
pub mod authority;
pub mod bearer;
pub mod cgroup;
pub mod cluster;
mod control_plane;
pub mod faulty_api;
pub mod git_http;
pub mod git_remote;
pub mod manifests;
#[path = "../../../core/tests/support/network.rs"]
pub mod network;
pub mod otlp;
#[path = "../../../core/tests/support/ports.rs"]
pub mod ports;
pub mod published;
#[path = "../../../demo/rest_server/mod.rs"]
pub mod rest_server;
pub mod root;
mod served;
pub mod shipped;
pub mod signature;
pub mod simulated_clock;
pub mod sshd;
pub mod vault;
pub mod widgets;
pub mod world;
