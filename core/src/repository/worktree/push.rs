//! Pushes the checkout to the remote.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Instant;

use git2::PushOptions;

use super::super::connection::{self, Connection, Purpose};
use super::super::{Remote, RepositoryError, Revision, handles};
use super::Worktree;
use super::origin::tracking_ref;

/// A successful push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The commit of the remote's branch.
    pub revision: Revision,
    /// Whether the remote already had this commit.
    pub up_to_date: bool,
}

impl Worktree {
    /// Pushes the branch of HEAD to the configured branch of the remote; the names may differ.
    ///
    /// Without `force`, a push that would lose commits of the remote is rejected.
    pub fn push(&self, force: bool, deadline: Instant) -> Result<Pushed, RepositoryError> {
        let repository = self.repository()?;
        let directory = self.shown();
        let Some(remote) = &self.remote else { return Err(RepositoryError::NoRemote(directory)) };
        let Some(branch) = self.head_branch(&repository)? else {
            return Err(RepositoryError::DetachedHead(directory));
        };
        let Some(tip) = self.tip(&repository, &branch)? else {
            let branch = branch.trim_start_matches("refs/heads/").to_owned();
            return Err(RepositoryError::NoCommit { directory, branch });
        };
        self.record_origin(&repository)?;
        let directory = repository.commondir();
        let up_to_date = connection::on_thread(remote, Purpose::Push, || {
            push(directory, remote, &branch, force, deadline)
        })?;
        repository
            .reference(&tracking_ref(&remote.branch), tip, true, "push")
            .map_err(self.git("record the push of"))?;
        Ok(Pushed { revision: Revision::of(tip), up_to_date })
    }
}

/// Pushes the ref `branch` of a repository, and returns whether the remote already had its commit.
fn push(
    directory: &Path,
    remote: &Remote,
    branch: &str,
    force: bool,
    deadline: Instant,
) -> Result<bool, RepositoryError> {
    let connection = Connection::new(remote, Purpose::Push, deadline.into())?;
    // Opened without the user's configuration, which could redirect the push (`url.insteadOf`).
    let repository = handles::open(directory)?;
    let mut git_remote = repository
        .remote_anonymous(&connection.address())
        .map_err(RepositoryError::git("set up the remote"))?;
    let (rejected, up_to_date) = (RefCell::new(None), Cell::new(false));
    let mut callbacks = connection.callbacks();
    callbacks
        .push_negotiation(|updates| {
            up_to_date.set(updates.iter().all(|update| update.src() == update.dst()));
            if connection.in_time() { Ok(()) } else { Err(git2::Error::from_str("out of time")) }
        })
        // The remote reports rejected refs here, while the push itself succeeds.
        .push_update_reference(|_, refusal| {
            *rejected.borrow_mut() = refusal.map(str::to_owned);
            Ok(())
        });
    let mut options = PushOptions::new();
    options.remote_callbacks(callbacks);
    let sign = if force { "+" } else { "" };
    let refspec = format!("{sign}{branch}:refs/heads/{}", remote.branch);
    let pushed = git_remote.push(&[refspec], Some(&mut options));
    drop(options);
    connection.outcome(pushed)?;
    match rejected.take() {
        Some(reason) => Err(connection.rejected_push(&reason)),
        None => Ok(up_to_date.get()),
    }
}
