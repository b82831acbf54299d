//! Checkouts against real remotes: `file://`, `git http-backend`, and OpenSSH. Needs git and openssh-server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails where it cannot go on"
)]

#[path = "../../../operator/tests/support/git_http.rs"]
mod git_http;
#[path = "../../../operator/tests/support/git_remote.rs"]
mod git_remote;
#[path = "../../../operator/tests/support/sshd.rs"]
mod sshd;

mod authors;
mod checkout;
mod history;
mod init;
#[path = "../support/network.rs"]
mod network;
mod push;
mod refresh;
mod status;
mod transport;
