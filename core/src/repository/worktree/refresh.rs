//! Taking what the remote has, where that loses nothing.

use std::time::Instant;

use git2::build::CheckoutBuilder;
use git2::{Oid, Repository};

use super::super::{RepositoryError, Revision};
use super::Worktree;

/// What a refresh did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// No remote is configured; nothing was fetched.
    NoRemote,
    /// The remote has no such branch, or no commit at all.
    BranchMissing,
    /// The checkout is at the remote's commit already.
    UpToDate,
    /// Branch and files moved to the remote's commit.
    FastForwarded {
        /// Where the branch was; `None`: it had no commit.
        from: Option<Revision>,
        /// Where it is now.
        to: Revision,
    },
    /// The remote's commits were fetched, but branch and files stayed as they are.
    Kept(Kept),
}

/// Why a refresh left branch and files alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The checkout has uncommitted changes.
    Uncommitted,
    /// HEAD is detached or on another branch than the configured one.
    OtherBranch,
    /// The local branch has commits that the remote lacks, and all of the remote's.
    Ahead,
    /// Both branches have commits that the other lacks.
    Diverged,
}

/// What to do about a fetched branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    UpToDate,
    FastForward,
    Keep(Kept),
}

/// Fast-forwards only what loses nothing: a clean checkout of a branch that has no commit of its own.
fn decide(on_branch: bool, clean: bool, ahead: usize, behind: usize) -> Decision {
    match (ahead, behind) {
        _ if !on_branch => Decision::Keep(Kept::OtherBranch),
        (0, 0) => Decision::UpToDate,
        (_, 0) => Decision::Keep(Kept::Ahead),
        (0, _) if clean => Decision::FastForward,
        (0, _) => Decision::Keep(Kept::Uncommitted),
        _ => Decision::Keep(Kept::Diverged),
    }
}

impl Worktree {
    /// Fetches the branch of the remote by force, and fast-forwards the checkout if that loses nothing: it is
    /// on the branch, clean, and without commits that the remote lacks. It never merges.
    pub fn refresh(&self, deadline: Instant) -> Result<Refreshed, RepositoryError> {
        let repository = self.repository()?;
        let Some(remote) = &self.remote else { return Ok(Refreshed::NoRemote) };
        let Some(target) = self.fetch_origin(&repository, remote, deadline)? else {
            return Ok(Refreshed::BranchMissing);
        };
        let branch = format!("refs/heads/{}", remote.branch);
        let on_branch = self.head_branch(&repository)?.is_some_and(|head| head == branch);
        let local = self.tip(&repository, &branch)?;
        let (ahead, behind) = self.distance(&repository, local, Some(target))?;
        let clean = self.uncommitted(&repository)?.is_empty();
        match decide(on_branch, clean, ahead, behind) {
            Decision::UpToDate => Ok(Refreshed::UpToDate),
            Decision::Keep(reason) => Ok(Refreshed::Kept(reason)),
            Decision::FastForward => {
                self.move_to(&repository, &branch, target)?;
                Ok(Refreshed::FastForwarded { from: local.map(Revision::of), to: Revision::of(target) })
            }
        }
    }

    /// Files first: should one not be writable, the branch still tells where they came from.
    fn move_to(&self, repository: &Repository, branch: &str, target: Oid) -> Result<(), RepositoryError> {
        let failed = || self.git("fast-forward");
        let tree = repository.find_commit(target).and_then(|commit| commit.tree()).map_err(failed())?;
        repository
            .checkout_tree(tree.as_object(), Some(CheckoutBuilder::new().safe()))
            .and_then(|()| repository.reference(branch, target, true, "refresh: fast-forward"))
            .map_err(failed())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::up_to_date(true, true, 0, 0, Decision::UpToDate)]
    #[case::up_to_date_and_dirty(true, false, 0, 0, Decision::UpToDate)]
    #[case::behind(true, true, 0, 3, Decision::FastForward)]
    #[case::behind_and_dirty(true, false, 0, 3, Decision::Keep(Kept::Uncommitted))]
    #[case::ahead(true, true, 1, 0, Decision::Keep(Kept::Ahead))]
    #[case::ahead_and_dirty(true, false, 1, 0, Decision::Keep(Kept::Ahead))]
    #[case::diverged(true, true, 1, 1, Decision::Keep(Kept::Diverged))]
    #[case::diverged_and_dirty(true, false, 1, 1, Decision::Keep(Kept::Diverged))]
    #[case::elsewhere(false, true, 0, 3, Decision::Keep(Kept::OtherBranch))]
    #[case::elsewhere_and_equal(false, true, 0, 0, Decision::Keep(Kept::OtherBranch))]
    fn only_what_loses_nothing_is_fast_forwarded(
        #[case] on_branch: bool,
        #[case] clean: bool,
        #[case] ahead: usize,
        #[case] behind: usize,
        #[case] expected: Decision,
    ) {
        assert_eq!(decide(on_branch, clean, ahead, behind), expected);
    }
}
