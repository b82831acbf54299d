//! Compares two trees of Git.

use std::cmp::Ordering;
use std::iter::Peekable;

use git2::{Oid, Repository, Tree, TreeEntry};

use super::directories::entry_kind;
use super::objects::size_of;
use super::tree::check_size;
use super::walk::{MOST_DIRECTORIES, Walk};
use super::{EntryKind, MAX_PAYLOAD, RepositoryError};

/// A name that differs between two trees. A renamed file is one removal and one addition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The name relative to the root; bytes that are not UTF-8 are replaced by U+FFFD.
    pub path: String,
    /// The kind of the change.
    pub status: ChangeStatus,
    /// The old kind of the entry.
    pub old: Option<EntryKind>,
    /// The new kind of the entry.
    pub new: Option<EntryKind>,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeStatus {
    /// The name was added.
    Added,
    /// The content changed.
    Modified,
    /// The name was removed.
    Deleted,
    /// The kind of the entry changed, for example from a regular file to a symbolic link.
    TypeChanged,
    /// Only the executable bit changed.
    ModeOnly,
}

/// Returns the differences from `old` to `new`, sorted by name. If `scope` is given, only that file, or the files
/// below that directory.
///
/// Only directories that differ are read, and no files, so the cost hardly depends on the size of the trees.
/// libgit2's own comparison reads every directory of both.
pub(super) fn between(
    repository: &Repository,
    old: &Tree<'_>,
    new: &Tree<'_>,
    scope: Option<&str>,
) -> Result<Vec<FileChange>, RepositoryError> {
    // The differences are files, too.
    let walk = Walk::within(scope.unwrap_or_default(), 2 * MOST_DIRECTORIES);
    let scope: Vec<&[u8]> = scope.iter().flat_map(|scope| scope.split('/')).map(str::as_bytes).collect();
    let scope: Vec<&[u8]> = scope.into_iter().filter(|name| !name.is_empty()).collect();
    let mut comparison = Comparison { scope, walk, changes: Vec::new(), pending: Vec::new() };
    let root = Directory { name: Vec::new(), depth: 0, old: Some(old.id()), new: Some(new.id()) };
    comparison.compare(&root, Some(old), Some(new))?;
    while let Some(directory) = comparison.pending.pop() {
        let failed = || RepositoryError::damaged(repository, "compare two revisions".to_owned());
        let tree = |id: Option<Oid>| {
            let Some(id) = id else { return Ok(None) };
            let name = String::from_utf8_lossy(&directory.name);
            check_size(&name, size_of(repository, id).map_err(failed())?, MAX_PAYLOAD)?;
            repository.find_tree(id).map(Some).map_err(failed())
        };
        let (old, new) = (tree(directory.old)?, tree(directory.new)?);
        comparison.compare(&directory, old.as_ref(), new.as_ref())?;
    }
    comparison.changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(comparison.changes)
}

struct Comparison<'s> {
    /// The segments of the scope.
    scope: Vec<&'s [u8]>,
    walk: Walk<'s>,
    changes: Vec<FileChange>,
    /// Directories that differ. It is an explicit stack, because trees may be deep.
    pending: Vec<Directory>,
}

impl Comparison<'_> {
    fn compare(
        &mut self,
        directory: &Directory,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
    ) -> Result<(), RepositoryError> {
        let name = self.scope.get(directory.depth).copied();
        let leads_on = self.scope.len() > directory.depth + 1;
        let wanted = |entry: &TreeEntry<'_>| {
            name.is_none_or(|name| entry.name_bytes() == name) && (!leads_on || is_directory(Some(entry)))
        };
        let mut old = old.into_iter().flat_map(Tree::iter).filter(wanted).peekable();
        let mut new = new.into_iter().flat_map(Tree::iter).filter(wanted).peekable();
        while let Some((old, new)) = next(&mut old, &mut new) {
            if is_directory(old.as_ref()) || is_directory(new.as_ref()) {
                if let Some(below) = directory.below(old.as_ref(), new.as_ref()) {
                    self.walk.enter(&String::from_utf8_lossy(&below.name))?;
                    self.pending.push(below);
                }
            } else if let Some(change) = change(directory, old.as_ref(), new.as_ref()) {
                self.walk.enter(&change.path)?;
                self.changes.push(change);
            }
        }
        Ok(())
    }
}

/// A directory to compare; `None` for a side that does not have it.
struct Directory {
    /// The name relative to the root, as bytes.
    name: Vec<u8>,
    depth: usize,
    old: Option<Oid>,
    new: Option<Oid>,
}

impl Directory {
    /// Returns a subdirectory to compare; `None` if both sides are the same.
    fn below(&self, old: Option<&TreeEntry<'_>>, new: Option<&TreeEntry<'_>>) -> Option<Self> {
        let (old_id, new_id) = (old.map(TreeEntry::id), new.map(TreeEntry::id));
        let name = self.join(old.or(new)?.name_bytes());
        (old_id != new_id).then(|| Self { name, depth: self.depth + 1, old: old_id, new: new_id })
    }

    fn join(&self, name: &[u8]) -> Vec<u8> {
        if self.name.is_empty() { name.to_vec() } else { [&self.name, name].join(&b'/') }
    }
}

/// Returns the next entries of two sorted lists: those with the same name and kind (directory or not), or the one
/// that only one list has.
fn next<'o, 'n>(
    old: &mut Peekable<impl Iterator<Item = TreeEntry<'o>>>,
    new: &mut Peekable<impl Iterator<Item = TreeEntry<'n>>>,
) -> Option<(Option<TreeEntry<'o>>, Option<TreeEntry<'n>>)> {
    let order = match (old.peek(), new.peek()) {
        (None, None) => return None,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(old), Some(new)) => order(old, new),
    };
    Some((if order.is_le() { old.next() } else { None }, if order.is_ge() { new.next() } else { None }))
}

/// Git sorts directories as if their names ended in a slash.
fn order(a: &TreeEntry<'_>, b: &TreeEntry<'_>) -> Ordering {
    let key = |entry: &TreeEntry<'_>| is_directory(Some(entry)).then_some(b'/');
    a.name_bytes().iter().copied().chain(key(a)).cmp(b.name_bytes().iter().copied().chain(key(b)))
}

fn is_directory(entry: Option<&TreeEntry<'_>>) -> bool {
    entry.is_some_and(|entry| entry_kind(entry.filemode()) == EntryKind::Directory)
}

/// Returns the change of a name that is not a directory on either side.
fn change(
    directory: &Directory,
    old: Option<&TreeEntry<'_>>,
    new: Option<&TreeEntry<'_>>,
) -> Option<FileChange> {
    // The mode without permissions distinguishes files, links and submodules.
    let kind = |mode: i32| mode & 0o170_000;
    let status = match (old, new) {
        (None, _) => ChangeStatus::Added,
        (_, None) => ChangeStatus::Deleted,
        (Some(old), Some(new)) if kind(old.filemode()) != kind(new.filemode()) => ChangeStatus::TypeChanged,
        (Some(old), Some(new)) if old.id() != new.id() => ChangeStatus::Modified,
        (Some(old), Some(new)) if old.filemode() != new.filemode() => ChangeStatus::ModeOnly,
        _ => return None,
    };
    Some(FileChange {
        path: String::from_utf8_lossy(&directory.join(old.or(new)?.name_bytes())).into_owned(),
        status,
        old: old.map(|entry| entry_kind(entry.filemode())),
        new: new.map(|entry| entry_kind(entry.filemode())),
    })
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
