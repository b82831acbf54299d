//! Fetches one branch over the network.

use std::fs;
use std::path::Path;

use git2::{AutotagOption, FetchOptions, Repository};

use super::connection::{Connection, Left, Purpose};
use super::deadline::Deadline;
use super::objects::{check_history, tips};
use super::{Remote, RepositoryError, Revision};

/// The limits of fetches and mirrors, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Quota {
    /// The most that one fetch receives.
    pub fetch: u64,
    /// The most that a mirror occupies on disk.
    pub mirror: u64,
}

impl Default for Quota {
    /// Returns no limits.
    fn default() -> Self {
        Self { fetch: u64::MAX, mirror: u64::MAX }
    }
}

impl Quota {
    fn left(self, repository: &Repository, remote: &Remote) -> Result<Left, RepositoryError> {
        let exceeded = |what, limit, flag| {
            let url = remote.url.to_string();
            RepositoryError::Quota { url, what, limit, flag }
        };
        let by_fetch =
            || Left { bytes: self.fetch, exceeded: exceeded("a fetch", self.fetch, "--max-fetch-size") };
        if self.mirror == u64::MAX {
            return Ok(by_fetch());
        }
        let used = size_of(repository.path()).map_err(RepositoryError::io("measure", repository.path()))?;
        let room = self.mirror.saturating_sub(used);
        let exceeded = exceeded("its mirror", self.mirror, RepositoryError::MIRROR_LIMIT);
        // Even a mirror without room can notice that nothing has changed.
        Ok(if room < self.fetch { Left { bytes: room, exceeded } } else { by_fetch() })
    }
}

/// Returns the size of the files in a directory.
fn size_of(directory: &Path) -> std::io::Result<u64> {
    let (mut size, mut pending) = (0, vec![directory.to_owned()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            } else {
                size += entry.metadata()?.len();
            }
        }
    }
    Ok(size)
}

/// Fetches the branch of `remote` into the ref `tip`, by force, and returns its commit. The ref does not move if the
/// history has a commit that is too large.
pub(super) fn fetch(
    repository: &Repository,
    remote: &Remote,
    tip: &str,
    deadline: Deadline,
    quota: Quota,
) -> Result<Revision, RepositoryError> {
    let connection =
        Connection::new(remote, Purpose::Fetch, deadline)?.within(quota.left(repository, remote)?);
    let mut git_remote = repository
        .remote_anonymous(&connection.address())
        .map_err(RepositoryError::git("set up the remote"))?;
    let mut options = FetchOptions::new();
    options.remote_callbacks(connection.callbacks()).download_tags(AutotagOption::None);
    // The default message would contain the address of the connection.
    let reflog = format!("fetch {}", remote.url);
    let branch = format!("refs/heads/{}", remote.branch);
    let fetched = git_remote.download(&[&branch], Some(&mut options));
    connection.outcome(fetched)?;
    let heads = connection.outcome(git_remote.list())?;
    let head = heads.iter().find(|head| head.name() == branch).map(git2::RemoteHead::oid);
    let head = head.ok_or_else(|| RepositoryError::BranchMissing {
        url: remote.url.to_string(),
        branch: remote.branch.clone(),
    })?;
    let failed = || RepositoryError::git("move the tip of the mirror");
    check_history(repository, head, &tips(repository).map_err(failed())?)?;
    if repository.refname_to_id(tip).ok() != Some(head) {
        repository.reference(tip, head, true, &reflog).map_err(failed())?;
    }
    Ok(Revision::of(head))
}
