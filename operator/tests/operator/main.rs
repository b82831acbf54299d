//! The operator as its users meet it: a process, an API with four kinds, a Git remote and a REST server.
//! The same tests run on the in-process API and, with `KUBEBUILDER_ASSETS`, on a real kube-apiserver.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

#[path = "../../../core/tests/support/canary.rs"]
mod canaries;
#[path = "../support/mod.rs"]
mod support;

mod admission;
mod approval;
mod artifacts;
mod attached;
mod canary;
mod cancellation;
mod chaos;
mod clock;
mod command_line;
mod command_line_tree;
mod confinement;
mod contract_network;
mod contract_rounds;
mod contract_server;
mod contract_table;
mod contracts;
mod control_plane;
mod destinations;
mod election;
mod events;
mod failure_modes;
mod faults;
mod full_disk;
mod in_process;
mod interruption;
mod inventory;
mod lifecycle;
mod limits;
mod metadata;
mod metrics;
mod mirrors;
mod observed;
mod otlp;
mod pruning;
mod references;
mod repositories;
mod safety;
mod scale;
mod secrets;
mod servers;
mod settled;
mod shards;
mod stores;
mod tenants;
mod unsettled;
mod webhooks;
