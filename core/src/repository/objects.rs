//! Reads the headers of objects before their content: a small object may be inflated to any size.

use std::collections::{BTreeSet, BinaryHeap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use git2::{Commit, ErrorClass, ErrorCode, Oid, Repository};

use super::RepositoryError;
use super::handles::found;

/// The largest commit object that is read, in bytes. Its message and its signatures have no limit of their own.
const MAX_COMMIT: u64 = 1 << 20;

/// Returns the size of an object from its header.
pub(super) fn size_of(repository: &Repository, id: Oid) -> Result<u64, git2::Error> {
    let odb = repository.odb()?;
    // git2 panics if the type in the header of a damaged object is unknown.
    let header = catch_unwind(AssertUnwindSafe(|| odb.read_header(id)));
    let damaged =
        || git2::Error::new(ErrorCode::GenericError, ErrorClass::Odb, "the type of the object is unknown");
    Ok(header.unwrap_or_else(|_| Err(damaged()))?.0 as u64)
}

/// Whether the repository has a commit. A commit that is too large to be read is an error.
fn has_commit(
    repository: &Repository,
    id: Oid,
    failed: impl FnOnce(git2::Error) -> RepositoryError,
) -> Result<bool, RepositoryError> {
    match found(size_of(repository, id)).map_err(failed)? {
        Some(size) if size > MAX_COMMIT => {
            Err(RepositoryError::CommitTooLarge { commit: id.to_string(), size, limit: MAX_COMMIT })
        }
        size => Ok(size.is_some()),
    }
}

/// Reads a commit; `None` if the repository does not have it. A commit that is too large is not read, and fails.
pub(super) fn commit<F: FnOnce(git2::Error) -> RepositoryError>(
    repository: &Repository,
    id: Oid,
    failed: impl Fn() -> F,
) -> Result<Option<Commit<'_>>, RepositoryError> {
    if !has_commit(repository, id, failed())? {
        return Ok(None);
    }
    found(repository.find_commit(id)).map_err(failed())
}

/// Returns the targets of all refs.
pub(super) fn tips(repository: &Repository) -> Result<BTreeSet<Oid>, git2::Error> {
    let targets = repository.references()?.map(|reference| Ok(reference?.target()));
    // A symbolic ref leads to another one of them.
    targets.filter_map(Result::transpose).collect()
}

/// Fails if the history of the commit `new` has a commit that is too large. libgit2 reads the commits that refs reach
/// without a limit, so each commit is checked before a ref leads to it. Those that the commits in `checked` reach are not
/// checked again.
pub(super) fn check_history(
    repository: &Repository,
    new: Oid,
    checked: &BTreeSet<Oid>,
) -> Result<(), RepositoryError> {
    if checked.contains(&new) {
        return Ok(());
    }
    let mut walk = Walk { repository, pending: BinaryHeap::new(), seen: HashSet::new() };
    let mut unchecked = HashSet::from([new]);
    for id in checked {
        // What refs reach is not the fault of the new commit.
        let _ = walk.add(*id);
    }
    walk.add(new)?;
    while !unchecked.is_empty()
        && let Some((_, id, parents)) = walk.pending.pop()
    {
        let is_new = unchecked.remove(&id);
        for parent in parents {
            if !is_new {
                let _ = walk.add(parent);
                unchecked.remove(&parent);
            } else if walk.add(parent)? {
                unchecked.insert(parent);
            }
        }
    }
    Ok(())
}

struct Walk<'r> {
    repository: &'r Repository,
    /// The times, ids and parents of commits. The newest is next, so that the walk meets the checked commits soon.
    pending: BinaryHeap<(i64, Oid, Vec<Oid>)>,
    seen: HashSet<Oid>,
}

impl Walk<'_> {
    /// Adds a commit. Returns whether it is one that the walk had not seen, and not one that is absent, as the parent of the
    /// oldest commit of a shallow clone is.
    fn add(&mut self, id: Oid) -> Result<bool, RepositoryError> {
        let failed = || RepositoryError::damaged(self.repository, format!("read commit {id}"));
        if !self.seen.insert(id) || !has_commit(self.repository, id, failed())? {
            return Ok(false);
        }
        let objects = self.repository.odb().map_err(failed())?;
        let (time, parents) = origin(objects.read(id).map_err(failed())?.data());
        self.pending.push((time, id, parents));
        Ok(true)
    }
}

/// Returns the time and the parents of a commit. Histories have commits that libgit2 cannot parse, such as those with an
/// invalid author. They are not an error before a run needs them.
fn origin(commit: &[u8]) -> (i64, Vec<Oid>) {
    let (mut time, mut parents) = (0, Vec::new());
    let headers = commit.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty());
    for line in headers.map(String::from_utf8_lossy) {
        if let Some(id) = line.strip_prefix("parent ") {
            parents.extend(Oid::from_str(id));
        } else if let Some(committer) = line.strip_prefix("committer ") {
            time = committer.rsplit(' ').nth(1).and_then(|time| time.parse().ok()).unwrap_or_default();
        }
    }
    (time, parents)
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;
