//! A directory from which desired state is read, and to which it is written.

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

/// Desired state in a directory, for callers that change it.
///
/// Payloads are read and written as they are stored: nothing is merged, expanded or compacted. Each file is written
/// atomically, so an interrupted write leaves the old file. A change of several files is ordered such that no file
/// ever refers to an absent one. An interrupted change can leave files that no other file refers to, or a resource
/// with its old and its new payload file.
///
/// Links in names are resolved, and rejected if they lead out of the directory. Writing a file replaces a link of the
/// same name. Concurrent writers can undo each other's changes. All calls block.
#[derive(Debug)]
pub struct Store {
    tree: DirTree,
}

impl Store {
    /// Opens the store in the directory `root`, which must exist.
    pub fn open(root: &Path) -> Result<Self, RepositoryError> {
        DirTree::open(root).map(|tree| Self { tree })
    }

    /// Opens the store in the directory `root`, and creates the directory if it is absent.
    pub fn init(root: &Path) -> Result<Self, RepositoryError> {
        match fs::metadata(root) {
            // If the root is not a directory, opening it fails with the cause.
            Ok(_) => {}
            Err(_) => disk::create_directory(root)?,
        }
        Self::open(root)
    }

    /// Fails if the directory no longer exists or is not usable.
    pub fn check(&self) -> Result<(), RepositoryError> {
        DirTree::open(self.tree.root()).map(|_| ())
    }

    /// Returns the view for reading.
    pub fn tree(&self) -> &DirTree {
        &self.tree
    }

    /// Returns the stored payload of a resource. Fails with [`RepositoryError::ResourceMissing`] if there is none.
    pub fn get(&self, path: &LogicalPath) -> Result<(ResourceFile, Value), RepositoryError> {
        let missing = || RepositoryError::ResourceMissing(path.clone());
        let file = self.resource_file(path)?.ok_or_else(missing)?;
        match read_payload(&self.tree, &file) {
            Ok(value) => Ok((file, value)),
            Err(RepositoryError::PayloadMissing { .. }) => Err(missing()),
            Err(error) => Err(error),
        }
    }

    /// Returns the payload file of a resource, if any.
    fn resource_file(&self, path: &LogicalPath) -> Result<Option<ResourceFile>, RepositoryError> {
        if path.is_root() {
            return Err(RepositoryError::RootResource);
        }
        resource_file(&self.tree, path)
    }

    /// Like [`Store::resource_file`], for a write. Fails if a directory of the path is a link, because the file would be
    /// that of another resource.
    fn written_file(&self, path: &LogicalPath) -> Result<Option<ResourceFile>, RepositoryError> {
        let file = self.resource_file(path)?;
        match self.tree.link_in(path.relative())? {
            Some(file) => Err(RepositoryError::InTheWay {
                file,
                reason: "it is a symbolic link, and links to directories are not followed; replace it with a directory",
            }),
            None => Ok(file),
        }
    }

    /// Whether there is a resource or a directory at `path`. To protect a resource from being overwritten use
    /// [`Store::get`], because a directory alone is not a declaration.
    pub fn exists(&self, path: &LogicalPath) -> Result<bool, RepositoryError> {
        Ok(self.tree.entries(path.relative())?.is_some())
    }

    /// Returns the resources in `scope`, like [`resources`].
    pub fn list(&self, scope: &LogicalPath, recursive: bool) -> Result<Listing, RepositoryError> {
        resources(&self.tree, scope, recursive)
    }

    /// Returns all directories for display, relative to the root and sorted by bytes. Directories of metadata (`_`)
    /// and those whose name starts with a dot are left out with their content, and links are not followed.
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
                    // The directory is shown, but its content cannot be addressed.
                    EntryKind::NotUtf8 { directory: true } => {}
                    _ => continue,
                }
                found.push(below);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Returns the content of a sidecar of the resource at `path`. `file` is relative to the directory of the
    /// resource.
    pub fn read_sidecar(&self, path: &LogicalPath, file: &str) -> Result<Vec<u8>, RepositoryError> {
        let name = beside(path, file)?;
        let content = self.tree.read(&name)?;
        content.ok_or_else(|| RepositoryError::SidecarMissing { path: path.clone(), file: name })
    }
}

#[cfg(test)]
mod tests;
