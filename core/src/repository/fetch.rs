//! Fetches one branch over the network.

use std::time::Instant;

use git2::{AutotagOption, FetchOptions, Repository};

use super::connection::{Connection, Purpose};
use super::{Remote, RepositoryError, Revision};

/// Fetches the branch of `remote` into the ref `tip`, by force, and returns its commit.
pub(super) fn fetch(
    repository: &Repository,
    remote: &Remote,
    tip: &str,
    deadline: Instant,
) -> Result<Revision, RepositoryError> {
    let connection = Connection::new(remote, Purpose::Fetch, deadline)?;
    let mut git_remote = repository
        .remote_anonymous(&connection.address())
        .map_err(RepositoryError::git("set up the remote"))?;
    let mut options = FetchOptions::new();
    options
        .remote_callbacks(connection.callbacks())
        .download_tags(AutotagOption::None)
        .update_fetchhead(false);
    // The default message would contain the address of the connection.
    let reflog = format!("fetch {}", remote.url);
    let branch = format!("refs/heads/{}", remote.branch);
    let fetched = git_remote.fetch(&[format!("+{branch}:{tip}")], Some(&mut options), Some(&reflog));
    connection.outcome(fetched)?;
    let heads = connection.outcome(git_remote.list())?;
    let head = heads.iter().find(|head| head.name() == branch).map(git2::RemoteHead::oid);
    head.map(Revision::of).ok_or_else(|| RepositoryError::BranchMissing {
        url: remote.url.to_string(),
        branch: remote.branch.clone(),
    })
}
