//! The remote as the checkout records it: its address, and where its branch was last seen.

use std::time::Instant;

use git2::{ErrorCode, Oid, Repository};

use super::super::connection::{self, Purpose};
use super::super::{Remote, RepositoryError, fetch, handles};
use super::Worktree;

const ORIGIN: &str = "origin";

/// The ref that remembers where a branch of the remote was last seen.
pub(super) fn tracking_ref(branch: &str) -> String {
    format!("refs/remotes/{ORIGIN}/{branch}")
}

impl Worktree {
    /// Makes `origin` the configured remote. Without one, what is there stays.
    pub(super) fn record_origin(&self, repository: &Repository) -> Result<(), RepositoryError> {
        let Some(remote) = &self.remote else { return Ok(()) };
        let url = remote.url.recorded_text();
        let recorded = match repository.find_remote(ORIGIN) {
            Ok(origin) if origin.url_bytes() == url.as_bytes() => Ok(()),
            Ok(_) => repository.remote_set_url(ORIGIN, &url),
            Err(error) if error.code() == ErrorCode::NotFound => repository.remote(ORIGIN, &url).map(|_| ()),
            Err(error) => Err(error),
        };
        recorded.map_err(self.git("record the remote of"))
    }

    /// Fetches the branch of the remote by force, and returns where it is. `None`: the remote does not have
    /// it, and the trace of an earlier time is removed.
    pub(super) fn fetch_origin(
        &self,
        repository: &Repository,
        remote: &Remote,
        deadline: Instant,
    ) -> Result<Option<Oid>, RepositoryError> {
        self.record_origin(repository)?;
        let tracking = tracking_ref(&remote.branch);
        let (directory, job, tip) = (repository.commondir().to_owned(), remote.clone(), tracking.clone());
        let fetched = connection::until(deadline, remote, Purpose::Fetch, move || {
            // Without the user's configuration, which could lead elsewhere (`url.insteadOf`).
            fetch::fetch(&handles::open(&directory)?, &job, &tip, deadline)
        });
        match fetched {
            Ok(revision) => revision.oid().map(Some),
            Err(RepositoryError::BranchMissing { .. }) => {
                let forgotten = repository.find_reference(&tracking).and_then(|mut found| found.delete());
                match forgotten {
                    Err(error) if error.code() != ErrorCode::NotFound => {
                        Err(self.git("forget a branch of the remote in")(error))
                    }
                    _ => Ok(None),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Where a ref leads; `None` if it does not exist.
    pub(super) fn tip(&self, repository: &Repository, name: &str) -> Result<Option<Oid>, RepositoryError> {
        match repository.find_reference(name).and_then(|found| found.peel_to_commit()) {
            Ok(commit) => Ok(Some(commit.id())),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(self.git(&format!("read {name} of"))(error)),
        }
    }
}
