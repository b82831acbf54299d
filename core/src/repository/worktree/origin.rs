//! The remote in the repository's configuration, and the last known commit of its branch.

use std::time::Instant;

use git2::{ErrorCode, Oid, Repository};

use super::super::connection::{self, Purpose};
use super::super::{Quota, Remote, RepositoryError, fetch, handles};
use super::Worktree;

const ORIGIN: &str = "origin";

/// Returns the ref with the last known commit of a branch of the remote.
pub(super) fn tracking_ref(branch: &str) -> String {
    format!("refs/remotes/{ORIGIN}/{branch}")
}

impl Worktree {
    /// Sets `origin` to the configured remote. If none is configured, `origin` stays.
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

    /// Fetches the branch of the remote by force, and returns its commit. If the remote does not have the branch,
    /// removes its tracking ref and returns `None`.
    pub(super) fn fetch_origin(
        &self,
        repository: &Repository,
        remote: &Remote,
        deadline: Instant,
    ) -> Result<Option<Oid>, RepositoryError> {
        self.record_origin(repository)?;
        let tracking = tracking_ref(&remote.branch);
        let directory = repository.commondir();
        let fetched = connection::on_thread(remote, Purpose::Fetch, || {
            // Opened without the user's configuration, which could redirect the fetch (`url.insteadOf`).
            fetch::fetch(&handles::open(directory)?, remote, &tracking, deadline.into(), Quota::default())
        });
        match fetched {
            Ok(revision) => revision.oid().map(Some),
            Err(RepositoryError::BranchMissing { .. }) => {
                let forgotten = repository.find_reference(&tracking).and_then(|mut found| found.delete());
                let absent = handles::found(forgotten).map(|_| None);
                absent.map_err(self.git("forget a branch of the remote in"))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the commit of a ref; `None` if the ref does not exist.
    pub(super) fn tip(&self, repository: &Repository, name: &str) -> Result<Option<Oid>, RepositoryError> {
        let commit = repository.find_reference(name).and_then(|found| found.peel_to_commit());
        let commit = handles::found(commit).map_err(self.git(&format!("read {name} of")))?;
        Ok(commit.map(|commit| commit.id()))
    }
}
