//! What a command does around its writes to the repository.

use clap::Args;
use declarest_core::repository::{RepositoryError, Revision, Store, SyncState, Worktree};

use super::{Contact, Repository, RepositoryUseError, deadline, not_git, worktree};
use crate::context::{RepositoryPlace, ResolvedContext};
use crate::error::Failure;
use crate::invocation::Invocation;

/// The message of the commit that a command makes.
#[derive(Clone, Debug, Default, Args)]
pub struct MessageArgument {
    /// Message of the commit
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

impl MessageArgument {
    /// The message, which must say something; `default` if none is given.
    fn or(&self, default: String) -> Result<String, RepositoryUseError> {
        match &self.message {
            None => Ok(default),
            Some(message) if message.trim().is_empty() => Err(RepositoryUseError::BlankMessage),
            Some(message) => Ok(message.clone()),
        }
    }
}

/// Whether what is committed is pushed as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// If the context has a remote and does not turn `autoSync` off.
    Configured,
    /// In any case, as `--push` asks.
    Always,
    /// In no case: what deletes waits for a push that somebody asks for.
    Never,
}

/// A change to the repository, from before its first write to its commit.
///
/// In a Git repository nothing may be uncommitted when it begins, so that its commit holds nothing else. This
/// looks at the disk alone, and does not apply before the first commit. In a plain directory there is nothing
/// to commit, and beginning and finishing do nothing.
///
/// Between the two the caller writes through [`Authoring::store`]. If it fails there, what it wrote stays
/// uncommitted, and the next change says so.
#[must_use = "a change that is not finished is not committed"]
pub struct Authoring<'i> {
    invocation: &'i Invocation,
    repository: Repository,
    message: String,
    push: Push,
}

impl<'i> Authoring<'i> {
    /// Begins a change whose commit is called `default` unless the user has another message. Everything
    /// that can be known to fail fails here, before anything is written: a blank message, uncommitted
    /// changes, [`Push::Always`] without a Git repository or a remote.
    pub fn begin(
        invocation: &'i Invocation,
        message: &MessageArgument,
        default: String,
        push: Push,
    ) -> Result<Self, Failure> {
        let message = message.or(default)?;
        let context = invocation.context()?;
        if push == Push::Always {
            require_remote(context)?;
        }
        let repository = Repository::open(context, Contact::None)?;
        if let Repository::Git(worktree) = &repository {
            worktree.require_clean().map_err(explained)?;
        }
        Ok(Self { invocation, repository, message, push })
    }

    /// The place to write to.
    pub fn store(&self) -> Result<Store, Failure> {
        Ok(self.repository.store()?)
    }

    /// Commits what was written, and pushes it if that is wanted. Returns the commit; `None` if nothing
    /// changed or there is no Git.
    ///
    /// A push that fails is an error, and the commit stays. The next change, or `repository push`, brings it
    /// to the remote.
    pub fn finish(self) -> Result<Option<Revision>, Failure> {
        let Repository::Git(worktree) = &self.repository else { return Ok(None) };
        let committed = worktree.commit(&self.message)?;
        if let Some(revision) = &committed {
            self.invocation.messages.verbose(1, &format!("committed {revision}"));
        }
        if self.pushes(worktree, committed.is_some())? {
            self.push().map_err(|failure| unpushed(committed.as_ref(), &failure))?;
        }
        Ok(committed)
    }

    /// Whether to push. Without a commit of its own a change pushes what an earlier one could not, but does
    /// not contact a remote that is known to have everything.
    fn pushes(&self, worktree: &Worktree, committed: bool) -> Result<bool, Failure> {
        let context = self.invocation.context()?;
        Ok(match (self.push, context.repository()?) {
            (Push::Always, _) => true,
            (Push::Configured, RepositoryPlace::Git { auto_sync: true, .. }) => {
                worktree.remote().is_some()
                    && (committed || worktree.status_offline()?.state == SyncState::Ahead)
            }
            (Push::Configured | Push::Never, _) => false,
        })
    }

    fn push(&self) -> Result<(), Failure> {
        let context = self.invocation.context()?;
        let pushed = worktree(context, Contact::Remote, "a push")?.push(false, deadline())?;
        self.invocation.messages.verbose(1, &format!("pushed {}", pushed.revision));
        Ok(())
    }
}

fn require_remote(context: &ResolvedContext) -> Result<(), Failure> {
    match context.repository()? {
        RepositoryPlace::Filesystem { .. } => Err(not_git(context, "--push")),
        RepositoryPlace::Git { .. } if context.git_origin()?.is_none() => {
            Err(RepositoryUseError::NoRemote { context: context.name.clone() }.into())
        }
        RepositoryPlace::Git { .. } => Ok(()),
    }
}

fn explained(error: RepositoryError) -> Failure {
    match error {
        changes @ RepositoryError::Uncommitted { .. } => RepositoryUseError::Uncommitted { changes }.into(),
        other => other.into(),
    }
}

/// The failure of a push that leaves a commit behind.
fn unpushed(committed: Option<&Revision>, failure: &Failure) -> Failure {
    let message = match committed {
        Some(revision) => format!("{revision} is committed, but could not be pushed: {}", failure.message()),
        None => failure.message().to_owned(),
    };
    Failure::Failed { category: failure.category(), message }
}

#[cfg(test)]
#[path = "authoring_tests.rs"]
mod tests;
