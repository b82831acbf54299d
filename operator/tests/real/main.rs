//! The operator with real servers: installed and upgraded on a kube-apiserver, and with sshd, a Vault and a registry.
//! Each module needs a process of its own, because the operators of several would act on the same objects.
//! `make test-cluster` and `make test-real` run them one by one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

#[path = "../../../core/tests/vault/process.rs"]
mod process;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../core/tests/vault/vault.rs"]
#[allow(dead_code, reason = "the tests of the library use the rest")]
mod vault;

mod chart;
mod install;
mod manifests;
mod registry;
mod samples;
mod secret_store;
mod sharded;
mod shipped;
mod ssh;
mod ssh_fixture;
mod upgrade;
