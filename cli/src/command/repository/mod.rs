//! `declarest repository`.

mod status;
mod sync;
mod tree;

use clap::{Args, Subcommand};

use crate::error::Failure;
use crate::invocation::Invocation;

#[derive(Debug, Subcommand)]
pub enum RepositoryCommand {
    /// Make the repository of the context, unless it exists
    Init,
    /// Tell where the repository stands towards its remote and its last commit
    Status(StatusArguments),
    /// Print the directories of the repository
    Tree,
    /// Fetch what the remote has, and take it where that loses nothing
    Refresh,
    /// Commit everything that is not committed
    Commit(CommitArguments),
    /// Push the commits that the remote does not have
    Push(PushArguments),
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Compare with what was last seen of the remote, without contacting it
    #[arg(long)]
    offline: bool,
}

#[derive(Debug, Args)]
pub struct CommitArguments {
    /// Message of the commit
    #[arg(short, long, value_name = "TEXT", required = true)]
    message: String,
}

#[derive(Debug, Args)]
pub struct PushArguments {
    /// Make the remote what the repository is, even if it loses commits
    #[arg(long)]
    force_push: bool,
}

/// Runs a command of the group.
pub fn run(command: &RepositoryCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        RepositoryCommand::Init => sync::init(invocation),
        RepositoryCommand::Status(arguments) => status::status(arguments, invocation),
        RepositoryCommand::Tree => tree::tree(invocation),
        RepositoryCommand::Refresh => sync::refresh(invocation),
        RepositoryCommand::Commit(arguments) => sync::commit(arguments, invocation),
        RepositoryCommand::Push(arguments) => sync::push(arguments, invocation),
    }
}
