//! The Vault store against a real Vault: the program that `make vault` builds, or any that `VAULT_BIN` names.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

mod failures;
mod logins;
#[path = "../support/network.rs"]
mod network;
mod process;
mod secrets;
mod vault;
mod ways;
