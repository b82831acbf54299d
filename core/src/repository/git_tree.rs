//! A commit as a tree.

use std::sync::Arc;

use git2::{Oid, Repository};

use super::directories::{Directories, Directory, Found};
use super::handles::Handles;
use super::objects::{commit, size_of};
use super::tree::{MAX_PAYLOAD, check_size, segments};
use super::{Entry, EntryKind, RepositoryError, Revision, Tree};

/// One commit of a [`Mirror`](super::Mirror) as a [`Tree`]. Nothing is checked out, and each call reads only the
/// objects that it needs. The commit must stay reachable from a ref of the mirror, so pin it if it must outlive the
/// next fetch.
#[derive(Clone, Debug)]
pub struct GitTree {
    handles: Arc<Handles>,
    revision: Revision,
    root: Oid,
    directories: Arc<Directories>,
}

impl GitTree {
    pub(super) fn open(handles: Arc<Handles>, revision: &Revision) -> Result<Self, RepositoryError> {
        // From here on, the tree is in use.
        let directories = handles.directories();
        let root = handles.with(|repository| {
            let (id, failed) = (revision.oid()?, || unreadable(repository, revision));
            let commit = commit(repository, id, failed)?.ok_or_else(|| missing(revision))?;
            let root = commit.tree_id();
            // The root may be large and not be needed, so only its existence is checked.
            let objects = repository.odb().map_err(failed())?;
            if objects.exists(root) { Ok(root) } else { Err(missing(revision)) }
        })?;
        Ok(Self { handles, revision: revision.clone(), root, directories })
    }

    /// Returns the entry `file`; the root for the empty name.
    fn find(&self, repository: &Repository, file: &str) -> Result<Option<Found>, RepositoryError> {
        let mut found = Found { id: self.root, kind: EntryKind::Directory };
        for segment in segments(file)? {
            if found.kind != EntryKind::Directory {
                return Ok(None);
            }
            let directory = self.directory(repository, found.id, "find", file)?;
            match directory.get(segment.as_bytes()) {
                Some(child) => found = child,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }

    /// Reads a directory. If the commit names it but the mirror lacks it, that is damage and not absence.
    fn directory(
        &self,
        repository: &Repository,
        id: Oid,
        action: &str,
        file: &str,
    ) -> Result<Arc<Directory>, RepositoryError> {
        if let Some(directory) = self.directories.get(id) {
            return Ok(directory);
        }
        let failed = || self.failed(repository, action, file);
        check_size(file, size_of(repository, id).map_err(failed())?, MAX_PAYLOAD)?;
        let tree = repository.find_tree(id).map_err(failed())?;
        let directory = Arc::new(Directory::of(&tree));
        self.directories.keep(id, Arc::clone(&directory));
        Ok(directory)
    }

    fn failed<'a>(
        &'a self,
        repository: &'a Repository,
        action: &'a str,
        file: &'a str,
    ) -> impl FnOnce(git2::Error) -> RepositoryError + use<'a> {
        move |error| {
            let action = format!("{action} \"{file}\" of revision {}", self.revision);
            RepositoryError::damaged(repository, action)(error)
        }
    }
}

/// Returns the root tree of a commit. Only an absent commit is missing; a failure to read it is another error,
/// because callers forget missing commits.
pub(super) fn root_of<'r>(
    repository: &'r Repository,
    revision: &Revision,
) -> Result<git2::Tree<'r>, RepositoryError> {
    let unreadable = || unreadable(repository, revision);
    let commit = commit(repository, revision.oid()?, unreadable)?.ok_or_else(|| missing(revision))?;
    check_size("", size_of(repository, commit.tree_id()).map_err(unreadable())?, MAX_PAYLOAD)?;
    commit.tree().map_err(unreadable())
}

fn unreadable(
    repository: &Repository,
    revision: &Revision,
) -> impl FnOnce(git2::Error) -> RepositoryError + use<> {
    let (missing, damaged) =
        (missing(revision), RepositoryError::damaged(repository, format!("read revision {revision}")));
    move |error| if error.code() == git2::ErrorCode::NotFound { missing } else { damaged(error) }
}

fn missing(revision: &Revision) -> RepositoryError {
    RepositoryError::RevisionMissing(revision.to_string())
}

impl Tree for GitTree {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        self.handles.with(|repository| {
            let Some(Found { id, kind: EntryKind::Directory }) = self.find(repository, directory)? else {
                return Ok(None);
            };
            let listed = self.directory(repository, id, "list", directory)?;
            let entries = listed.iter().map(|(name, found)| Entry::new(name, found.kind)).collect();
            Ok(Some(entries))
        })
    }

    fn read_within(&self, file: &str, limit: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.handles.with(|repository| match self.find(repository, file)? {
            Some(Found { id, kind: EntryKind::File }) => {
                let failed = || self.failed(repository, "read", file);
                // Look at the header first: a small object may be inflated to any size.
                check_size(file, size_of(repository, id).map_err(failed())?, limit)?;
                let blob = repository.find_blob(id).map_err(failed())?;
                Ok(Some(blob.content().to_vec()))
            }
            _ => Ok(None),
        })
    }

    fn revision(&self) -> Option<&Revision> {
        Some(&self.revision)
    }
}
