//! Prepares and commits the changes of a command to the repository.

use std::cell::OnceCell;

use clap::Args;
use declarest_core::repository::{RepositoryError, Revision, Store, SyncState, Worktree};

use super::{Contact, Repository, RepositoryUseError, deadline, not_git, worktree};
use crate::context::{RepositoryPlace, ResolvedContext};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::lock::Lock;

/// The message of a command's commit.
#[derive(Clone, Debug, Default, Args)]
pub struct MessageArgument {
    /// Message of the commit
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

impl MessageArgument {
    /// Returns the message, which must not be blank, or `default` if none is given.
    fn or(&self, default: String) -> Result<String, RepositoryUseError> {
        match &self.message {
            None => Ok(default),
            Some(message) if message.trim().is_empty() => Err(RepositoryUseError::BlankMessage),
            Some(message) => Ok(message.clone()),
        }
    }
}

/// Whether the commit is pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// If the context has a remote and `autoSync` is not false.
    Configured,
    /// Always, as `--push` requests.
    Always,
    /// Never: deletions are pushed only on request.
    Never,
}

/// A change of the repository, from the checks before its first write to its commit.
///
/// In a Git repository, a change can begin only if there are no uncommitted changes, so that its commit contains
/// nothing else. Before the first commit, uncommitted files that declare resources or metadata are allowed. In a
/// filesystem repository, nothing is checked or committed.
///
/// Between begin and finish, the caller writes through [`Authoring::store`], or after [`Authoring::lock`]. If a write
/// fails, earlier writes stay uncommitted, and the next change reports them.
#[must_use = "a change that is not finished is not committed"]
pub struct Authoring<'i> {
    invocation: &'i Invocation,
    repository: Repository,
    message: String,
    push: Push,
    /// While it is held, other commands wait with their changes.
    lock: OnceCell<Option<Lock>>,
}

impl<'i> Authoring<'i> {
    /// Begins a change. `default` is the default message of its commit. Fails before anything is written on a blank
    /// message, on uncommitted changes, and on [`Push::Always`] without a Git repository or a remote.
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
        let authoring = Self { invocation, repository, message, push, lock: OnceCell::new() };
        // A change that another command has begun must not look like one of the user.
        let _lock = authoring.repository.lock()?;
        authoring.require_no_others(&[])?;
        authoring.require_related()?;
        Ok(authoring)
    }

    /// Fails if the checkout has no commit, and the branch of its remote has some: the commit of the change would be
    /// unrelated to them, and could never be pushed. A remote that the change is not pushed to is not contacted.
    fn require_related(&self) -> Result<(), Failure> {
        let Repository::Git(worktree) = &self.repository else { return Ok(()) };
        if worktree.remote().is_none() || worktree.head()?.is_some() {
            return Ok(());
        }
        let context = self.invocation.context()?;
        let is_pushed = match (self.push, context.repository()?) {
            (Push::Always, _) => true,
            (Push::Configured, RepositoryPlace::Git { auto_sync, .. }) => auto_sync,
            (Push::Configured | Push::Never, _) => false,
        };
        let status = if is_pushed {
            self::worktree(context, Contact::Remote, "a push")?.status(deadline())
        } else {
            worktree.status_offline()
        };
        match status {
            Ok(status) if status.behind > 0 => Err(RepositoryUseError::Unrelated {
                directory: worktree.directory().display().to_string(),
                branch: worktree.remote().map_or_else(String::new, |remote| remote.branch.clone()),
            }
            .into()),
            // A remote that cannot be reached does not prevent the commit, only its push.
            _ => Ok(()),
        }
    }

    /// Locks the repository until the change is finished, before its first write. An editor or a server may have taken
    /// time since the begin, so the checks are repeated.
    pub fn lock(&self) -> Result<(), Failure> {
        if self.lock.get().is_none() {
            let lock = self.repository.lock()?;
            self.require_no_others(&[])?;
            let _ = self.lock.set(lock);
        }
        Ok(())
    }

    /// Fails if the commit would not contain one of these files, which are relative to the repository.
    pub fn require_committable(&self, files: &[String]) -> Result<(), RepositoryError> {
        match &self.repository {
            Repository::Git(worktree) => worktree.require_committable(files.iter().map(String::as_str)),
            Repository::Filesystem(_) => Ok(()),
        }
    }

    /// Returns the files that the change has written so far.
    pub fn written(&self) -> Result<Vec<String>, Failure> {
        match &self.repository {
            Repository::Git(worktree) => Ok(worktree.changed_files()?),
            Repository::Filesystem(_) => Ok(Vec::new()),
        }
    }

    /// Fails if other files than those in `written` have uncommitted changes. Call it after requests to a server and
    /// before the next write: the lock does not stop the user, and the commit contains all changes.
    pub fn require_no_others(&self, written: &[String]) -> Result<(), Failure> {
        match &self.repository {
            Repository::Git(worktree) => worktree.require_clean_except(written).map_err(explained),
            Repository::Filesystem(_) => Ok(()),
        }
    }

    /// Returns the store to write to, and locks the repository.
    pub fn store(&self) -> Result<Store, Failure> {
        self.lock()?;
        Ok(self.repository.store()?)
    }

    /// Commits the changes, and pushes them if configured. Returns the commit, or `None` if nothing changed or the
    /// repository is not a Git repository.
    ///
    /// If the push fails, this is an error, and the commit is kept. The next change, or `repository push`, pushes it.
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

    /// Returns whether to push. Without a new commit, earlier unpushed commits are pushed. A remote that is known to
    /// be up to date is not contacted.
    fn pushes(&self, worktree: &Worktree, committed: bool) -> Result<bool, Failure> {
        let context = self.invocation.context()?;
        Ok(match (self.push, context.repository()?) {
            (Push::Always, _) => true,
            (Push::Configured, RepositoryPlace::Git { auto_sync: true, .. }) => {
                let has_commits =
                    || Ok::<_, Failure>(committed || worktree.status_offline()?.state == SyncState::Ahead);
                if worktree.remote().is_none() || !has_commits()? {
                    return Ok(false);
                }
                // Changes on another branch are not ready to be applied.
                let pushes = worktree.is_on_remote_branch()?;
                if !pushes {
                    self.invocation.messages.warn(
                        "not pushed, because the checkout is not on the configured branch of the remote; \
                         \"declarest repository push\" pushes it to that branch",
                    );
                }
                pushes
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

/// Returns the failure of a checkout, with what to do about uncommitted changes.
pub fn explained(error: RepositoryError) -> Failure {
    match error {
        changes @ RepositoryError::Uncommitted { .. } => RepositoryUseError::Uncommitted { changes }.into(),
        other => other.into(),
    }
}

/// Returns the failure of a push, with the commit that was created.
fn unpushed(committed: Option<&Revision>, failure: &Failure) -> Failure {
    let message = match committed {
        Some(revision) => format!("{revision} is committed, but could not be pushed: {}", failure.message()),
        None => failure.message().to_owned(),
    };
    Failure::new(failure.category(), message)
}

#[cfg(test)]
#[path = "authoring_tests.rs"]
mod tests;
