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
    /// Create the repository of the context, unless it exists
    Init,
    /// Show the state of the repository: commits ahead and behind, and uncommitted changes
    Status(StatusArguments),
    /// Print the directories of the repository
    Tree,
    /// Fetch from the remote, and fast-forward if no changes are lost
    Refresh,
    /// Commit all changes
    Commit(CommitArguments),
    /// Push the commits that the remote does not have
    Push(PushArguments),
    /// Unstage all changes
    Reset(ResetArguments),
    /// Discard all uncommitted changes, except ignored files
    Clean,
    /// Check the repository, and warn about files without effect
    Check,
    /// List commits, the newest first
    History(HistoryArguments),
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Compare with the last fetched state of the remote, without contacting it
    #[arg(long)]
    offline: bool,
}

#[derive(Debug, Args)]
pub struct CommitArguments {
    /// Message of the commit; required
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

#[derive(Debug, Args)]
pub struct PushArguments {
    /// Overwrite the remote branch, even if it loses commits
    #[arg(long)]
    force_push: bool,
}

#[derive(Debug, Args)]
pub struct ResetArguments {
    /// Discard uncommitted changes of tracked files
    #[arg(long)]
    hard: bool,
}

#[derive(Debug, Args)]
pub struct HistoryArguments {
    /// Maximum number of commits; 0 does not limit
    #[arg(long, value_name = "N")]
    max_count: Option<usize>,
    /// Part of the author's name or address; case-insensitive
    #[arg(long, value_name = "TEXT")]
    author: Option<String>,
    /// Part of the message; case-insensitive
    #[arg(long, value_name = "TEXT")]
    grep: Option<String>,
    /// Commits at or after this time: YYYY-MM-DD or "YYYY-MM-DD HH:MM:SS" (in UTC), or RFC 3339
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Commits at or before this time; a date is its beginning
    #[arg(long, value_name = "DATE")]
    until: Option<String>,
    /// Commits that changed a file whose path begins with PREFIX, such as shops/rio/; may be repeated
    #[arg(long, value_name = "PREFIX")]
    path: Vec<String>,
    /// List the oldest commits first
    #[arg(long)]
    reverse: bool,
    /// Print one line per commit
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
