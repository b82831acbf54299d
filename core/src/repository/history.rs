//! Questions about the commits between two revisions.
//!
//! The walks here tolerate missing parents, as in a clone of a shallow remote: history then simply ends.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

use git2::{ErrorCode, Oid, Repository};

use super::diff::{self, ChangeStatus, FileChange};
use super::git_tree::root_of;
use super::payload_name::is_payload;
use super::{EntryKind, RepositoryError, Revision, Tree};
use crate::path::LogicalPath;

/// A resource that was declared once and is not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// The resource.
    pub path: LogicalPath,
    /// The last commit that declared it.
    pub revision: Revision,
    /// Its payload file in that commit.
    pub file: String,
}

/// Seconds by which the clock of a committer may be wrong without confusing a walk ordered by time.
const CLOCK_SKEW: i64 = 24 * 60 * 60;

struct Commit {
    time: i64,
    parents: Vec<Oid>,
    /// Reachable from the base of the walk.
    in_base: bool,
}

/// Reads a commit; `None` if the repository lacks it.
fn read(repository: &Repository, id: Oid, in_base: bool) -> Result<Option<Commit>, RepositoryError> {
    match repository.find_commit(id) {
        Ok(commit) => Ok(Some(Commit {
            time: commit.time().seconds(),
            parents: commit.parent_ids().collect(),
            in_base,
        })),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(RepositoryError::git(format!("read commit {id}"))(error)),
    }
}

/// Whether `target` is `base` or descends from it. False if `base` is not in the repository.
pub(super) fn descends(
    repository: &Repository,
    target: &Revision,
    base: &Revision,
) -> Result<bool, RepositoryError> {
    let (target, base) = (target.oid()?, base.oid()?);
    let Some(Commit { time: oldest, .. }) = read(repository, base, true)? else { return Ok(false) };
    let mut seen = HashSet::from([target]);
    let mut pending = vec![target];
    while let Some(id) = pending.pop() {
        if id == base {
            return Ok(true);
        }
        let Some(commit) = read(repository, id, false)? else { continue };
        // No ancestor of a commit that is older than the base can be the base.
        if commit.time >= oldest - CLOCK_SKEW {
            pending.extend(commit.parents.into_iter().filter(|parent| seen.insert(*parent)));
        }
    }
    Ok(false)
}

/// The commits reachable from `target` but not from `base`, children before parents.
fn between(repository: &Repository, base: Oid, target: Oid) -> Result<Vec<(Oid, Vec<Oid>)>, RepositoryError> {
    let mut walk =
        Walk { repository, commits: HashMap::new(), queue: BinaryHeap::new(), open: HashSet::new() };
    walk.reach(base, true)?;
    walk.reach(target, false)?;
    while let Some((time, id)) = walk.queue.pop() {
        if walk.open.is_empty() && time < walk.oldest_outside_base() - CLOCK_SKEW {
            break;
        }
        walk.open.remove(&id);
        let Some((parents, in_base)) = walk.commits.get(&id).map(|c| (c.parents.clone(), c.in_base)) else {
            continue;
        };
        for parent in parents {
            walk.reach(parent, in_base)?;
        }
    }
    Ok(children_first(walk.commits))
}

struct Walk<'r> {
    repository: &'r Repository,
    commits: HashMap<Oid, Commit>,
    /// By time, newest first.
    queue: BinaryHeap<(i64, Oid)>,
    /// Queued commits not known to be reachable from the base.
    open: HashSet<Oid>,
}

impl Walk<'_> {
    fn reach(&mut self, id: Oid, in_base: bool) -> Result<(), RepositoryError> {
        let time = match self.commits.get_mut(&id) {
            Some(known) if known.in_base || !in_base => return Ok(()),
            Some(known) => {
                known.in_base = true;
                self.open.remove(&id);
                known.time
            }
            None => {
                let Some(commit) = read(self.repository, id, in_base)? else { return Ok(()) };
                let time = commit.time;
                self.commits.insert(id, commit);
                if !in_base {
                    self.open.insert(id);
                }
                time
            }
        };
        self.queue.push((time, id));
        Ok(())
    }

    fn oldest_outside_base(&self) -> i64 {
        self.commits
            .values()
            .filter(|commit| !commit.in_base)
            .map(|commit| commit.time)
            .min()
            .unwrap_or(i64::MAX)
    }
}

/// Sorts the commits outside of the base so that every child precedes its parents, else newest first.
fn children_first(commits: HashMap<Oid, Commit>) -> Vec<(Oid, Vec<Oid>)> {
    let mut range: HashMap<Oid, Commit> = commits.into_iter().filter(|(_, commit)| !commit.in_base).collect();
    let mut children: HashMap<Oid, usize> = HashMap::new();
    for parent in range.values().flat_map(|commit| &commit.parents) {
        *children.entry(*parent).or_default() += 1;
    }
    let mut ready: BinaryHeap<(i64, Reverse<Oid>)> = range
        .iter()
        .filter(|(id, _)| !children.contains_key(*id))
        .map(|(id, commit)| (commit.time, Reverse(*id)))
        .collect();
    let mut sorted = Vec::with_capacity(range.len());
    while let Some((_, Reverse(id))) = ready.pop() {
        let Some(commit) = range.remove(&id) else { continue };
        for parent in &commit.parents {
            let Some(left) = children.get_mut(parent) else { continue };
            *left -= 1;
            if let Some(parent_commit) = range.get(parent).filter(|_| *left == 0) {
                ready.push((parent_commit.time, Reverse(*parent)));
            }
        }
        sorted.push((id, commit.parents));
    }
    sorted
}

/// See [`Mirror::undeclared_since`](super::Mirror::undeclared_since).
pub(super) fn undeclared(
    repository: &Repository,
    base: &Revision,
    target: &Revision,
    target_tree: &dyn Tree,
    scope: &LogicalPath,
) -> Result<Vec<Undeclared>, RepositoryError> {
    let (base_id, target_id) = (base.oid()?, target.oid()?);
    let (base_tree, new_tree) = (root_of(repository, base)?, root_of(repository, target)?);
    let mut found = Found { scope, declared: BTreeMap::new() };
    let range = between(repository, base_id, target_id)?;
    let mut seen: HashSet<Oid> = range.iter().map(|(id, _)| *id).collect();
    seen.insert(base_id);
    for (id, parents) in &range {
        let tree = root_of(repository, &Revision::of(*id))?;
        // What only commits outside of the range declared was never seen.
        for parent in parents.iter().filter(|parent| seen.contains(*parent)) {
            let revision = Revision::of(*parent);
            let old = root_of(repository, &revision)?;
            let changes = diff::between(repository, &old, &tree, Some(scope.relative()))?;
            found.add(&changes, &revision);
        }
    }
    // After a force-push no path of commits leads from the base to the target.
    let changes = diff::between(repository, &base_tree, &new_tree, Some(scope.relative()))?;
    found.add(&changes, base);
    found.absent_from(target_tree)
}

/// Paths that lost their payload, each with the newest commit that had it.
struct Found<'a> {
    scope: &'a LogicalPath,
    declared: BTreeMap<LogicalPath, (Revision, String)>,
}

impl Found<'_> {
    fn add(&mut self, changes: &[FileChange], revision: &Revision) {
        for change in changes {
            let lost = matches!(change.status, ChangeStatus::Deleted | ChangeStatus::TypeChanged)
                && change.old == Some(EntryKind::File);
            let path = payload_path(&change.path).filter(|path| lost && path.is_within(self.scope));
            if let Some(path) = path {
                let declared = (revision.clone(), change.path.clone());
                self.declared.entry(path).or_insert(declared);
            }
        }
    }

    /// Leaves out what is declared still or again. A link called `resource.*` declares nothing, but that is
    /// not clear enough to delete anything.
    fn absent_from(self, target: &dyn Tree) -> Result<Vec<Undeclared>, RepositoryError> {
        let mut absent = Vec::new();
        for (path, (revision, file)) in self.declared {
            let entries = target.entries(path.relative())?.unwrap_or_default();
            if !entries.iter().any(|entry| is_payload(&entry.name) && entry.kind != EntryKind::Directory) {
                absent.push(Undeclared { path, revision, file });
            }
        }
        Ok(absent)
    }
}

/// The resource whose payload `file` is.
fn payload_path(file: &str) -> Option<LogicalPath> {
    let (directory, name) = file.rsplit_once('/')?;
    let path = directory.split('/').try_fold(LogicalPath::root(), |path, segment| path.child(segment));
    path.ok().filter(|_| is_payload(name) && !file.contains(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
