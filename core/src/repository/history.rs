//! The relation between revisions, and the resources that earlier ones declared.
//!
//! The walk accepts missing parents, as in a clone of a shallow remote: the history ends there.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use git2::{Oid, Repository};

use super::diff::{self, ChangeStatus, FileChange};
use super::git_tree::root_of;
use super::objects::commit;
use super::payload_name::is_payload;
use super::tree::join;
use super::{EntryKind, RepositoryError, Revision, Tree};
use crate::path::LogicalPath;

/// A resource that an earlier revision declared and a later one does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// The resource.
    pub path: LogicalPath,
    /// The newest given revision that declared it.
    pub revision: Revision,
    /// Its payload file in that revision.
    pub file: String,
    /// The entry that replaced its directory, a directory above, or its payload, and is not followed: its name and
    /// kind. The resource is then hidden, not absent.
    pub hidden_by: Option<(String, EntryKind)>,
}

/// The tolerated error of a committer's clock in seconds. It keeps the walk from ending too early.
const CLOCK_SKEW: i64 = 24 * 60 * 60;

struct Commit {
    time: i64,
    parents: Vec<Oid>,
}

/// Reads a commit; `None` if the repository does not have it.
fn read(repository: &Repository, id: Oid) -> Result<Option<Commit>, RepositoryError> {
    let commit = commit(repository, id, || RepositoryError::git(format!("read commit {id}")))?;
    Ok(commit.map(|commit| Commit { time: commit.time().seconds(), parents: commit.parent_ids().collect() }))
}

/// Whether `target` is `base` or descends from it. False if `base` is not in the repository.
pub(super) fn descends(
    repository: &Repository,
    target: &Revision,
    base: &Revision,
) -> Result<bool, RepositoryError> {
    let (target, base) = (target.oid()?, base.oid()?);
    let Some(Commit { time: oldest, .. }) = read(repository, base)? else { return Ok(false) };
    let mut seen = HashSet::from([target]);
    let mut pending = vec![target];
    while let Some(id) = pending.pop() {
        if id == base {
            return Ok(true);
        }
        let Some(commit) = read(repository, id)? else { continue };
        // An ancestor of a commit that is older than the base cannot be the base.
        if commit.time >= oldest - CLOCK_SKEW {
            pending.extend(commit.parents.into_iter().filter(|parent| seen.insert(*parent)));
        }
    }
    Ok(false)
}

/// See [`Mirror::undeclared`](super::Mirror::undeclared).
pub(super) fn undeclared(
    repository: &Repository,
    seen: &[Revision],
    target: &Revision,
    target_tree: &dyn Tree,
    scope: &LogicalPath,
) -> Result<Vec<Undeclared>, RepositoryError> {
    let new = root_of(repository, target)?;
    // Stage 1: collect the payloads that a revision had and the target lacks.
    let mut found = Found { scope, declared: BTreeMap::new() };
    for revision in seen {
        let old = root_of(repository, revision)?;
        let changes = diff::between(repository, &old, &new, Some(scope.relative()))?;
        found.add(&changes, revision);
    }
    // Stage 2: keep those that the target does not declare in another file.
    found.absent_from(target_tree)
}

/// Returns the resources that a commit before `head` declared, along first parents, and `head` does not. With a `base`,
/// from which `head` must descend, only those that a commit after it removed.
pub(super) fn withdrawn(
    repository: &Repository,
    head: &Revision,
    base: Option<&Revision>,
    head_tree: &dyn Tree,
    scope: &LogicalPath,
) -> Result<Vec<Undeclared>, RepositoryError> {
    let mut found = Found { scope, declared: BTreeMap::new() };
    let (mut revision, mut new) = (head.clone(), root_of(repository, head)?);
    while base != Some(&revision) {
        let Some(commit) = read(repository, revision.oid()?)? else { break };
        let Some(parent) = followed(repository, &commit.parents, base)? else { break };
        // In a shallow clone the parent of the oldest commit is absent.
        if read(repository, parent.oid()?)?.is_none() {
            break;
        }
        let old = root_of(repository, &parent)?;
        let changes = diff::between(repository, &old, &new, Some(scope.relative()))?;
        found.add(&changes, &parent);
        (revision, new) = (parent, old);
    }
    found.absent_from(head_tree)
}

/// Returns the first of the `parents`; with a `base`, the first one that descends from it: others may still declare what the
/// history of the base removed.
fn followed(
    repository: &Repository,
    parents: &[Oid],
    base: Option<&Revision>,
) -> Result<Option<Revision>, RepositoryError> {
    let mut parents = parents.iter().copied().map(Revision::of);
    // A single parent is on the way to the base.
    let Some(base) = base.filter(|_| parents.len() > 1) else { return Ok(parents.next()) };
    for parent in parents {
        if descends(repository, &parent, base)? {
            return Ok(Some(parent));
        }
    }
    Ok(None)
}

/// Paths that lost their payload, each with the newest revision that had it.
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

    /// Returns the resources that the target does not declare.
    fn absent_from(self, target: &dyn Tree) -> Result<Vec<Undeclared>, RepositoryError> {
        let mut places = Places { tree: target, kinds: HashMap::new() };
        let mut absent = Vec::new();
        for (path, (revision, file)) in self.declared {
            let hidden_by = match places.of(&path)? {
                Place::Declared => continue,
                Place::Empty => None,
                Place::Taken(name, kind) => Some((name, kind)),
            };
            absent.push(Undeclared { path, revision, file, hidden_by });
        }
        Ok(absent)
    }
}

/// The content of a tree at the path of a resource.
enum Place {
    Declared,
    Empty,
    /// An entry of this name that is neither a directory nor a payload.
    Taken(String, EntryKind),
}

/// Looks up resources in a tree, and lists each directory once.
struct Places<'a> {
    tree: &'a dyn Tree,
    kinds: HashMap<String, HashMap<String, EntryKind>>,
}

impl Places<'_> {
    fn of(&mut self, path: &LogicalPath) -> Result<Place, RepositoryError> {
        let mut directory = String::new();
        for segment in path.segments() {
            let name = join(&directory, segment);
            match self.list(&directory)?.get(segment) {
                Some(EntryKind::Directory) => directory = name,
                Some(kind @ (EntryKind::File | EntryKind::Other)) => return Ok(Place::Taken(name, *kind)),
                None | Some(EntryKind::NotUtf8 { .. }) => return Ok(Place::Empty),
            }
        }
        let payloads: Vec<(&String, &EntryKind)> = self
            .list(&directory)?
            .iter()
            .filter(|(name, kind)| is_payload(name) && **kind != EntryKind::Directory)
            .collect();
        // A link called `resource.*` is not a declaration, but it is not clear enough to delete the resource.
        Ok(match payloads[..] {
            [] => Place::Empty,
            [(name, kind @ EntryKind::Other)] => Place::Taken(join(&directory, name), *kind),
            _ => Place::Declared,
        })
    }

    fn list(&mut self, directory: &str) -> Result<&HashMap<String, EntryKind>, RepositoryError> {
        Ok(match self.kinds.entry(directory.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let entries = self.tree.entries(directory)?.unwrap_or_default();
                vacant.insert(entries.into_iter().map(|entry| (entry.name, entry.kind)).collect())
            }
        })
    }
}

/// Returns the resource whose payload is `file`.
fn payload_path(file: &str) -> Option<LogicalPath> {
    let (directory, name) = file.rsplit_once('/')?;
    let path = directory.split('/').try_fold(LogicalPath::root(), |path, segment| path.child(segment));
    path.ok().filter(|_| is_payload(name) && !file.contains(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
