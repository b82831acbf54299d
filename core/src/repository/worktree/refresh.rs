//! Fast-forwards the checkout to the remote.

use std::time::Instant;

use git2::build::CheckoutBuilder;
use git2::{Oid, Repository};

use super::super::{RepositoryError, Revision};
use super::Worktree;

/// The result of a refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// No remote is configured; there was no fetch.
    NoRemote,
    /// The remote does not have the branch, or has no commits.
    BranchMissing,
    /// The checkout already has the remote's commit.
    UpToDate,
    /// Branch and files moved to the remote's commit.
    FastForwarded {
        /// The previous commit; `None` if there was none.
        from: Option<Revision>,
        /// The new commit.
        to: Revision,
    },
    /// The remote's commits were fetched, but branch and files did not change.
    Kept(Kept),
}

/// The reason why a refresh did not change branch and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The checkout has uncommitted changes.
    Uncommitted,
    /// HEAD is detached or on another branch than the configured one.
    OtherBranch,
    /// The local branch has commits that the remote lacks, and all commits of the remote.
    Ahead,
    /// Both branches have commits that the other one lacks.
    Diverged,
}

/// The decision about a fetched branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    UpToDate,
    FastForward,
    Keep(Kept),
}

/// Returns a fast-forward only if nothing is lost: the checkout is clean and the branch has no commits of its own.
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
    /// Fetches the branch of the remote by force. Fast-forwards the checkout if it is on the branch, clean, and
    /// without commits that the remote lacks. It never merges.
    pub fn refresh(&self, deadline: Instant) -> Result<Refreshed, RepositoryError> {
        let repository = self.repository()?;
        let Some(remote) = &self.remote else { return Ok(Refreshed::NoRemote) };
        // Stage 1: fetch.
        let Some(target) = self.fetch_origin(&repository, remote, deadline)? else {
            return Ok(Refreshed::BranchMissing);
        };
        // Stage 2: compare and decide.
        let branch = format!("refs/heads/{}", remote.branch);
        let on_branch = self.head_branch(&repository)?.is_some_and(|head| head == branch);
        let local = self.tip(&repository, &branch)?;
        let (ahead, behind) = self.distance(&repository, local, Some(target))?;
        let clean = self.uncommitted(&repository)?.is_empty();
        match decide(on_branch, clean, ahead, behind) {
            Decision::UpToDate => Ok(Refreshed::UpToDate),
            Decision::Keep(reason) => Ok(Refreshed::Kept(reason)),
            // Stage 3: move branch and files.
            Decision::FastForward => {
                self.move_to(&repository, &branch, target)?;
                Ok(Refreshed::FastForwarded { from: local.map(Revision::of), to: Revision::of(target) })
            }
        }
    }

    /// Updates the files first. If one is not writable, the branch still has their commit.
    fn move_to(&self, repository: &Repository, branch: &str, target: Oid) -> Result<(), RepositoryError> {
        let failed = || self.git("fast-forward");
        let tree = repository.find_commit(target).and_then(|commit| commit.tree()).map_err(failed())?;
        repository
            .checkout_tree(tree.as_object(), Some(CheckoutBuilder::new().safe().overwrite_ignored(false)))
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
    fn only_a_clean_checkout_without_own_commits_is_fast_forwarded(
        #[case] on_branch: bool,
        #[case] clean: bool,
        #[case] ahead: usize,
        #[case] behind: usize,
        #[case] expected: Decision,
    ) {
        assert_eq!(decide(on_branch, clean, ahead, behind), expected);
    }
}
