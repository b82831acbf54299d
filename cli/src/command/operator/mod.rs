//! `declarest operator`.

mod change;
mod objects;
mod status;

use clap::{Args, Subcommand};

use crate::cluster::ClusterArguments;
use crate::error::Failure;
use crate::invocation::Invocation;

#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Show whether the operator's objects are ready, with their revision and the result of the last run
    Status(status::StatusArguments),
    /// Request a full run of a SyncPolicy now
    Sync(change::SyncArguments),
    /// Stop the runs of a SyncPolicy until it is resumed
    Suspend(PolicyArguments),
    /// Continue the runs of a suspended SyncPolicy
    Resume(PolicyArguments),
}

/// A SyncPolicy of a cluster.
#[derive(Debug, Args)]
pub struct PolicyArguments {
    /// Name of the SyncPolicy
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Runs a command of the group.
pub fn run(command: &OperatorCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        OperatorCommand::Status(arguments) => status::run(arguments, invocation),
        OperatorCommand::Sync(arguments) => change::sync(arguments, invocation),
        OperatorCommand::Suspend(arguments) => change::suspend(arguments, true, invocation),
        OperatorCommand::Resume(arguments) => change::suspend(arguments, false, invocation),
    }
}
