use std::path::Path;
use std::sync::Arc;

use git2::{ErrorCode, ObjectType, Oid, Repository, TreeEntry};

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
}

impl GitTree {
    pub(super) fn open(handles: Arc<Handles>, revision: &Revision) -> Result<Self, RepositoryError> {
        let root = handles.with(|repository| root_of(repository, revision).map(|tree| tree.id()))?;
        Ok(Self { handles, revision: revision.clone(), root })
    }

    /// The entry named `file`, which is not the root.
    fn find<'r>(
        &self,
        repository: &'r Repository,
        file: &str,
    ) -> Result<Option<TreeEntry<'r>>, RepositoryError> {
        let root = repository.find_tree(self.root).map_err(self.failed("read", ""))?;
        match root.get_path(Path::new(file)) {
            Ok(entry) => Ok(Some(entry)),
            // A tree that the commit names but the mirror lacks is damage, not absence; libgit2 reports
            // the former with the class of the object database.
            Err(error) if error.code() == ErrorCode::NotFound && error.class() == git2::ErrorClass::Tree => {
                Ok(None)
            }
            Err(error) => Err(self.failed("find", file)(error)),
        }
    }

    fn failed(&self, action: &str, file: &str) -> impl FnOnce(git2::Error) -> RepositoryError + use<> {
        RepositoryError::git(format!("{action} \"{file}\" of revision {}", self.revision))
    }
}

/// The root tree of a commit.
pub(super) fn root_of<'r>(
    repository: &'r Repository,
    revision: &Revision,
) -> Result<git2::Tree<'r>, RepositoryError> {
    repository
        .find_commit(revision.oid()?)
        .and_then(|commit| commit.tree())
        .map_err(|_| RepositoryError::RevisionMissing { revision: revision.to_string() })
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
        let is_root = segments(directory)?.is_empty();
        self.handles.with(|repository| {
            let id = if is_root {
                self.root
            } else {
                match self.find(repository, directory)? {
                    Some(entry) if entry.kind() == Some(ObjectType::Tree) => entry.id(),
                    _ => return Ok(None),
                }
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
        if segments(file)?.is_empty() {
            return Ok(None);
        }
        self.handles.with(|repository| match self.find(repository, file)? {
            Some(entry) if entry_kind(entry.filemode()) == EntryKind::File => {
                let blob = repository.find_blob(entry.id()).map_err(self.failed("read", file))?;
                Ok(Some(blob.content().to_vec()))
            }
            _ => Ok(None),
        })
    }

    fn revision(&self) -> Option<&Revision> {
        Some(&self.revision)
    }
}
