use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use git2::{Oid, Repository, TreeEntry};

use super::handles::Handles;
use super::tree::segments;
use super::{Entry, EntryKind, RepositoryError, Revision, Tree};

/// One commit of a [`Mirror`](super::Mirror) as a [`Tree`]. Nothing is checked out; each call reads the
/// objects it needs and no more. It stays readable as long as the commit is reachable from a ref of the
/// mirror, so pin what outlives the next fetch.
#[derive(Clone, Debug)]
pub struct GitTree {
    handles: Arc<Handles>,
    revision: Revision,
    root: Oid,
    large: Arc<LargeDirectories>,
}

/// Directories with more entries than this are indexed: libgit2 parses trees above 4 KiB anew each time,
/// which makes reading all members of a large collection quadratic.
const LARGE: usize = 64;

/// Indexes kept at the same time; walks go collection by collection.
const KEPT: usize = 16;

type Index = HashMap<Vec<u8>, Found>;

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
struct Found {
    id: Oid,
    kind: EntryKind,
}

#[derive(Debug, Default)]
struct LargeDirectories(Mutex<HashMap<Oid, Arc<Index>>>);

impl Found {
    fn of(entry: &TreeEntry<'_>) -> Self {
        Self { id: entry.id(), kind: entry_kind(entry.filemode()) }
    }
}

impl LargeDirectories {
    fn get(&self, directory: Oid) -> Option<Arc<Index>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&directory).cloned()
    }

    fn keep(&self, directory: Oid, index: Index) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(directory, Arc::new(index));
    }
}

impl GitTree {
    pub(super) fn open(handles: Arc<Handles>, revision: &Revision) -> Result<Self, RepositoryError> {
        let root = handles.with(|repository| {
            let (id, failed) = (revision.oid()?, || unreadable(revision));
            let root = repository.find_commit(id).map_err(failed())?.tree_id();
            // Whoever needs no more than a few large directories should not read the root for nothing.
            let objects = repository.odb().map_err(failed())?;
            if objects.exists(root) { Ok(root) } else { Err(missing(revision)) }
        })?;
        Ok(Self { handles, revision: revision.clone(), root, large: Arc::default() })
    }

    /// What `file` names; the root for the empty name.
    fn find(&self, repository: &Repository, file: &str) -> Result<Option<Found>, RepositoryError> {
        let mut found = Found { id: self.root, kind: EntryKind::Directory };
        for segment in segments(file)? {
            if found.kind != EntryKind::Directory {
                return Ok(None);
            }
            match self.child(repository, found.id, segment).map_err(self.failed("find", file))? {
                Some(child) => found = child,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// What `name` stands for in a directory. A directory that the commit names but the mirror lacks is an
    /// error: damage is not absence.
    fn child(
        &self,
        repository: &Repository,
        directory: Oid,
        name: &str,
    ) -> Result<Option<Found>, git2::Error> {
        if let Some(index) = self.large.get(directory) {
            return Ok(index.get(name.as_bytes()).copied());
        }
        let tree = repository.find_tree(directory)?;
        if tree.len() <= LARGE {
            return Ok(tree.get_name_bytes(name.as_bytes()).map(|entry| Found::of(&entry)));
        }
        let index: Index =
            tree.iter().map(|entry| (entry.name_bytes().to_vec(), Found::of(&entry))).collect();
        let found = index.get(name.as_bytes()).copied();
        self.large.keep(directory, index);
        Ok(found)
    }

    fn failed(&self, action: &str, file: &str) -> impl FnOnce(git2::Error) -> RepositoryError + use<> {
        RepositoryError::git(format!("{action} \"{file}\" of revision {}", self.revision))
    }
}

/// The root tree of a commit. Only a commit that is not there is missing; trouble with reading is another
/// error, because callers forget what is missing.
pub(super) fn root_of<'r>(
    repository: &'r Repository,
    revision: &Revision,
) -> Result<git2::Tree<'r>, RepositoryError> {
    let found = repository.find_commit(revision.oid()?).and_then(|commit| commit.tree());
    found.map_err(unreadable(revision))
}

fn unreadable(revision: &Revision) -> impl FnOnce(git2::Error) -> RepositoryError + '_ {
    move |error| match error.code() {
        git2::ErrorCode::NotFound => missing(revision),
        _ => RepositoryError::git(format!("read revision {revision}"))(error),
    }
}

fn missing(revision: &Revision) -> RepositoryError {
    RepositoryError::RevisionMissing { revision: revision.to_string() }
}

/// Git knows only a few modes; what is neither a tree nor a regular blob is a link or a submodule.
pub(super) fn entry_kind(mode: i32) -> EntryKind {
    match mode & 0o170_000 {
        0o040_000 => EntryKind::Directory,
        0o100_000 => EntryKind::File,
        _ => EntryKind::Other,
    }
}

impl Tree for GitTree {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        self.handles.with(|repository| {
            let Some(Found { id, kind: EntryKind::Directory }) = self.find(repository, directory)? else {
                return Ok(None);
            };
            let tree = repository.find_tree(id).map_err(self.failed("list", directory))?;
            let mut entries: Vec<Entry> =
                tree.iter().map(|item| Entry::new(item.name_bytes(), entry_kind(item.filemode()))).collect();
            // Git sorts directories as if their names ended in a slash.
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(Some(entries))
        })
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.handles.with(|repository| match self.find(repository, file)? {
            Some(Found { id, kind: EntryKind::File }) => {
                let blob = repository.find_blob(id).map_err(self.failed("read", file))?;
                Ok(Some(blob.content().to_vec()))
            }
            _ => Ok(None),
        })
    }

    fn revision(&self) -> Option<&Revision> {
        Some(&self.revision)
    }
}
