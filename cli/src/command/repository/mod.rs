//! `declarest repository`.

mod check;
mod discard;
mod history;
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
    /// Forget what is staged for a commit
    Reset(ResetArguments),
    /// Discard all that is not committed, except ignored files
    Clean,
    /// Check that the repository can be used, and warn about files without effect
    Check,
    /// List commits, the newest first
    History(HistoryArguments),
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

#[derive(Debug, Args)]
pub struct ResetArguments {
    /// Discard what is not committed of files that are in the last commit
    #[arg(long)]
    hard: bool,
}

#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// At most so many commits
    #[arg(long, value_name = "N")]
    max_count: Option<usize>,
    /// Part of the author's name or address, in any case
    #[arg(long, value_name = "TEXT")]
    author: Option<String>,
    /// Part of the message, in any case
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Commits of this time and later: YYYY-MM-DD (in UTC) or RFC 3339
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Commits of this time and earlier; a date means all of that day
    #[arg(long, value_name = "DATE")]
    until: Option<String>,
    /// Commits that changed this file or directory; may be repeated
    #[arg(long, value_name = "PREFIX")]
    path: Vec<String>,
    /// List the oldest first
    #[arg(long)]
    reverse: bool,
    /// One line for each commit
    #[arg(long)]
    oneline: bool,
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
        RepositoryCommand::Reset(arguments) => discard::reset(arguments, invocation),
        RepositoryCommand::Clean => discard::clean(invocation),
        RepositoryCommand::Check => check::check(invocation),
        RepositoryCommand::History(arguments) => history::history(arguments, invocation),
    }
}
