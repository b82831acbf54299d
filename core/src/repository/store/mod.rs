//! A directory that desired state is read from and written to.

mod delete;
mod disk;
mod metadata;
mod save;

use std::fs;
use std::path::Path;

pub use metadata::{DefaultsEdit, DefaultsFile, DocumentFile};
pub use save::Save;

use super::payload_name::is_reserved_directory;
use super::sidecar::beside;
use super::tree::join;
use super::{
    DirTree, Entry, EntryKind, Listing, RepositoryError, ResourceFile, Tree, read_payload, resource_file,
    resources,
};
use crate::path::LogicalPath;
use crate::payload::Value;

/// Desired state in a directory, for whoever authors it.
///
/// Payloads are read and written as they are stored: nothing is merged, expanded or compacted here. Each
/// file is written atomically, so an interrupted write leaves the old file. What takes several files is
/// ordered such that no file ever names one that is not there; an interruption can leave files that nothing
/// names any more, or a resource with its old and its new payload file.
///
/// Links are resolved in every name, and refused if they lead out of the directory. A link in the place of a
/// file that is written is replaced by that file. Two writers at the same time can undo each other's
/// changes. All calls block.
#[derive(Debug)]
pub struct Store {
    tree: DirTree,
}

impl Store {
    /// The store in the directory `root`, which must exist.
    pub fn open(root: &Path) -> Result<Self, RepositoryError> {
        DirTree::open(root).map(|tree| Self { tree })
    }

    /// The store in the directory `root`, which is made if it does not exist.
    pub fn init(root: &Path) -> Result<Self, RepositoryError> {
        match fs::metadata(root) {
            // Opening tells what is wrong with it.
            Ok(_) => {}
            Err(_) => disk::create_directory(root)?,
        }
        Self::open(root)
    }

    /// Whether the directory is still there: an error says what became of it.
    pub fn check(&self) -> Result<(), RepositoryError> {
        DirTree::open(self.tree.root()).map(|_| ())
    }

    /// The view for reading.
    pub fn tree(&self) -> &DirTree {
        &self.tree
    }

    /// The stored payload of a resource. Fails with [`RepositoryError::ResourceMissing`] if there is none.
    pub fn get(&self, path: &LogicalPath) -> Result<(ResourceFile, Value), RepositoryError> {
        let missing = || RepositoryError::ResourceMissing { path: path.clone() };
        let file = self.resource_file(path)?.ok_or_else(missing)?;
        match read_payload(&self.tree, &file) {
            Ok(value) => Ok((file, value)),
            Err(RepositoryError::PayloadMissing { .. }) => Err(missing()),
            Err(error) => Err(error),
        }
    }

    /// The payload file of a resource, if it has one.
    fn resource_file(&self, path: &LogicalPath) -> Result<Option<ResourceFile>, RepositoryError> {
        if path.is_root() {
            return Err(RepositoryError::RootResource);
        }
        resource_file(&self.tree, path)
    }

    /// Whether there is a resource or any directory at `path`. A guard against overwriting wants
    /// [`Store::get`] instead, as a directory alone declares nothing.
    pub fn exists(&self, path: &LogicalPath) -> Result<bool, RepositoryError> {
        Ok(self.tree.entries(path.relative())?.is_some())
    }

    /// What is declared in `scope`, as [`resources`] says.
    pub fn list(&self, scope: &LogicalPath, recursive: bool) -> Result<Listing, RepositoryError> {
        resources(&self.tree, scope, recursive)
    }

    /// All directories, relative to the root and sorted by bytes, for people to look at. Directories of
    /// metadata (`_`) and those whose name starts with a dot are left out with all they hold, and links are
    /// not followed.
    pub fn directories(&self) -> Result<Vec<String>, RepositoryError> {
        let (mut found, mut pending) = (Vec::new(), vec![String::new()]);
        while let Some(directory) = pending.pop() {
            for Entry { name, kind } in self.tree.entries(&directory)?.unwrap_or_default() {
                if name.starts_with('.') || is_reserved_directory(&name) {
                    continue;
                }
                let below = join(&directory, &name);
                match kind {
                    EntryKind::Directory => pending.push(below.clone()),
                    // Shown, but there is no name to look into it by.
                    EntryKind::NotUtf8 { directory: true } => {}
                    _ => continue,
                }
                found.push(below);
            }
        }
        found.sort();
        Ok(found)
    }

    /// What a sidecar of the resource at `path` holds. `file` is relative to the directory of the resource.
    pub fn read_sidecar(&self, path: &LogicalPath, file: &str) -> Result<Vec<u8>, RepositoryError> {
        let name = beside(path, file)?;
        let content = self.tree.read(&name)?;
        content.ok_or_else(|| RepositoryError::SidecarMissing { path: path.clone(), file: name })
    }
}

#[cfg(test)]
mod delete_tests;
#[cfg(test)]
mod metadata_tests;
#[cfg(test)]
mod save_tests;
#[cfg(test)]
mod tests;
