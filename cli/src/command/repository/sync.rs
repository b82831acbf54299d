//! Commands that create a repository and sync it with its remote: `init`, `refresh`, `commit`, `push`.

use declarest_core::repository::{Kept, Refreshed};
use serde::Serialize;

use super::{CommitArguments, PushArguments};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::repository::{Contact, Repository, RepositoryUseError, deadline, not_git, worktree};

/// `repository init`.
pub fn init(invocation: &Invocation) -> Result<(), Failure> {
    Repository::init(invocation.context()?).map(drop)
}

/// `repository refresh`.
pub fn refresh(invocation: &Invocation) -> Result<(), Failure> {
    let messages = &invocation.messages;
    let repository = Repository::open(invocation.context()?, Contact::Remote)?;
    let _lock = repository.lock()?;
    let Repository::Git(worktree) = &repository else {
        messages.verbose(1, "nothing to refresh: a filesystem repository has no remote");
        return Ok(());
    };
    match worktree.refresh(deadline())? {
        Refreshed::NoRemote => messages.verbose(1, "no remote is configured"),
        Refreshed::UpToDate => messages.verbose(1, "up to date"),
        Refreshed::FastForwarded { from: Some(from), to } => {
            messages.verbose(1, &format!("fast-forwarded from {from} to {to}"));
        }
        Refreshed::FastForwarded { from: None, to } => {
            messages.verbose(1, &format!("fast-forwarded to {to}"));
        }
        Refreshed::BranchMissing => {
            let branch = worktree.remote().map_or("", |remote| &remote.branch);
            messages.note(&format!("the remote has no branch \"{branch}\" yet; nothing was fetched"));
        }
        Refreshed::Kept(Kept::Ahead) => messages.verbose(1, "up to date, with commits that are not pushed"),
        Refreshed::Kept(reason) => {
            messages.note(&format!("fetched, but the files were not changed: {}", why(reason)));
        }
    }
    Ok(())
}

/// Returns why the files of a repository were not changed, and the correction.
const fn why(reason: Kept) -> &'static str {
    match reason {
        Kept::Uncommitted => "there are uncommitted changes; commit or discard them, then refresh again",
        Kept::OtherBranch => "the checked out branch is not the configured one",
        Kept::Ahead => "there are commits that are not pushed",
        Kept::Diverged => {
            "both the repository and its remote have commits that the other lacks; merge or rebase with git, \
             or push with --force-push to discard those of the remote"
        }
    }
}

/// The result of a commit.
#[derive(Debug, Serialize)]
struct Committed {
    committed: bool,
}

/// `repository commit`.
pub fn commit(arguments: &CommitArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let Some(message) = &arguments.message else {
        return Err(Failure::invalid("message is required: give it with --message"));
    };
    if message.trim().is_empty() {
        return Err(RepositoryUseError::BlankMessage.into());
    }
    let context = invocation.context()?;
    let repository = Repository::open(context, Contact::None)?;
    // A change that another command has begun belongs to its own commit.
    let _lock = repository.lock()?;
    let Repository::Git(worktree) = &repository else { return Err(not_git(context, "a commit")) };
    let revision = worktree.commit(message)?;
    let summary = match &revision {
        Some(revision) => format!("committed {revision}"),
        None => "there is nothing to commit".to_owned(),
    };
    invocation.messages.verbose(1, &summary);
    Ok(output.show(&Committed { committed: revision.is_some() }, Some(""))?)
}

/// `repository push`.
pub fn push(arguments: &PushArguments, invocation: &Invocation) -> Result<(), Failure> {
    let worktree = worktree(invocation.context()?, Contact::Remote, "a push")?;
    let pushed = worktree.push(arguments.force_push, deadline())?;
    let summary = if pushed.up_to_date { "the remote is already at" } else { "pushed" };
    invocation.messages.verbose(1, &format!("{summary} {}", pushed.revision));
    Ok(())
}
