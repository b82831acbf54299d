//! Finds payloads: the regular file `resource.*` in the directory of a logical path.

use super::payload_name::{extension, is_payload, is_reserved_directory};
use super::tree::{MAX_PAYLOAD, join};
use super::walk::Walk;
use super::{Entry, EntryKind, RepositoryError, Tree};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, MAX_WEIGHT, Value};
use crate::secrets::decode_file_within;

/// The payload file of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceFile {
    /// The resource.
    pub path: LogicalPath,
    /// The file relative to the root of the tree.
    pub file: String,
    /// The format of the payload, by the extension.
    pub descriptor: Descriptor,
}

/// The resources that a scope declares.
#[derive(Debug, Default)]
pub struct Listing {
    /// The payload files, sorted by path; a parent precedes its descendants.
    pub resources: Vec<ResourceFile>,
    /// Directories that could not be read or are ambiguous, sorted by path. Their resources may be missing from
    /// `resources`, so absence from this listing does not prove that a resource is not declared.
    pub broken: Vec<(LogicalPath, RepositoryError)>,
}

impl Listing {
    /// Returns the payload files. Fails with the first broken directory.
    pub fn whole(self) -> Result<Vec<ResourceFile>, RepositoryError> {
        self.broken.into_iter().next().map_or(Ok(self.resources), |(_, error)| Err(error))
    }
}

/// Returns the payload file of `path`; `None` if no resource is declared there. The root is never a resource.
///
/// Several `resource.*` files are a conflict, regardless of their extensions.
pub fn resource_file(tree: &dyn Tree, path: &LogicalPath) -> Result<Option<ResourceFile>, RepositoryError> {
    match tree.entries(path.relative())? {
        Some(entries) => payload_in(&entries, path),
        None => Ok(None),
    }
}

/// Returns the resources in `scope`. If recursive: the resource at `scope` itself and all below. Otherwise the
/// resource itself or, if `scope` is not a resource, its direct children.
///
/// A failed directory does not stop the others. An absent `scope` declares no resources. Fails if there are too many
/// directories.
pub fn resources(tree: &dyn Tree, scope: &LogicalPath, recursive: bool) -> Result<Listing, RepositoryError> {
    let mut listing = Listing::default();
    let Some(entries) = tree.entries(scope.relative())? else { return Ok(listing) };
    let found = listing.add(scope, &entries);
    if recursive || !found {
        listing.descend(tree, scope, &entries, recursive)?;
    }
    listing.resources.sort_by(|a, b| a.path.cmp(&b.path));
    listing.broken.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(listing)
}

/// Returns the direct children of `collection`, even if it is also a resource. Otherwise like [`resources`].
pub fn members(tree: &dyn Tree, collection: &LogicalPath) -> Result<Listing, RepositoryError> {
    let mut listing = Listing::default();
    let Some(entries) = tree.entries(collection.relative())? else { return Ok(listing) };
    listing.descend(tree, collection, &entries, false)?;
    listing.resources.sort_by(|a, b| a.path.cmp(&b.path));
    listing.broken.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(listing)
}

/// Whether at least `count` resources are declared at or below `scope`. Stops at that number.
pub fn declares_at_least(
    tree: &dyn Tree,
    scope: &LogicalPath,
    count: usize,
) -> Result<bool, RepositoryError> {
    let (mut listing, mut walk) = (Listing::default(), Walk::below(scope.relative()));
    let mut pending = vec![scope.clone()];
    while let Some(path) = pending.pop() {
        if listing.resources.len() + listing.broken.len() >= count {
            return Ok(true);
        }
        if let Some(entries) = tree.entries(path.relative())? {
            listing.add(&path, &entries);
            pending.extend(listing.children(&path, &entries, &mut walk)?);
        }
    }
    Ok(listing.resources.len() + listing.broken.len() >= count)
}

/// Reads and decodes a payload.
pub fn read_payload(tree: &dyn Tree, file: &ResourceFile) -> Result<Value, RepositoryError> {
    read_payload_within(tree, file, MAX_WEIGHT)
}

/// Like [`read_payload`], but fails with an error that [is too heavy](RepositoryError::is_too_heavy) if the payload
/// needs more than `limit` bytes of memory.
pub fn read_payload_within(
    tree: &dyn Tree,
    file: &ResourceFile,
    limit: usize,
) -> Result<Value, RepositoryError> {
    let content = tree.read_within(&file.file, MAX_PAYLOAD.min(limit as u64))?.ok_or_else(|| {
        RepositoryError::PayloadMissing { path: file.path.clone(), file: file.file.clone() }
    })?;
    check_content(&file.file, &content)?;
    decode_file_within(file.descriptor.payload_type, &content, limit)
        .map_err(|source| RepositoryError::Payload { file: file.file.clone(), source })
}

/// Fails if `content` only points to the content of a file in a store of Git LFS (its `docs/spec.md`).
pub(super) fn check_content(file: &str, content: &[u8]) -> Result<(), RepositoryError> {
    let is_pointer = content.starts_with(b"version https://git-lfs.github.com/spec/") && content.len() < 1024;
    if is_pointer { Err(RepositoryError::LfsPointer(file.to_owned())) } else { Ok(()) }
}

impl Listing {
    /// Adds the resource at `path`. Returns whether there is one; an ambiguous resource counts.
    fn add(&mut self, path: &LogicalPath, entries: &[Entry]) -> bool {
        match payload_in(entries, path) {
            Ok(Some(file)) => self.resources.push(file),
            Ok(None) => return false,
            Err(error) => self.broken.push((path.clone(), error)),
        }
        true
    }

    /// Adds the resources below `parent`. It uses an explicit stack, because trees may be deep.
    fn descend(
        &mut self,
        tree: &dyn Tree,
        parent: &LogicalPath,
        entries: &[Entry],
        recursive: bool,
    ) -> Result<(), RepositoryError> {
        let mut walk = Walk::below(parent.relative());
        let mut pending = self.children(parent, entries, &mut walk)?;
        while let Some(path) = pending.pop() {
            match tree.entries(path.relative()) {
                Ok(Some(entries)) => {
                    self.add(&path, &entries);
                    if recursive {
                        pending.extend(self.children(&path, &entries, &mut walk)?);
                    }
                }
                Ok(None) => {}
                Err(error) => self.broken.push((path, error)),
            }
        }
        Ok(())
    }

    /// Returns the directories of `parent` that are logical paths.
    fn children(
        &mut self,
        parent: &LogicalPath,
        entries: &[Entry],
        walk: &mut Walk<'_>,
    ) -> Result<Vec<LogicalPath>, RepositoryError> {
        let mut children = Vec::new();
        for entry in entries {
            match entry.kind {
                EntryKind::Directory if is_reserved_directory(&entry.name) => {}
                EntryKind::Directory => match parent.child(&entry.name) {
                    Ok(path) => {
                        walk.enter(path.relative())?;
                        children.push(path);
                    }
                    Err(source) => {
                        let directory = join(parent.relative(), &entry.name);
                        self.broken
                            .push((parent.clone(), RepositoryError::DirectoryName { directory, source }));
                    }
                },
                // It may hold resources, or be a payload. Ignoring it could cause a deletion.
                EntryKind::NotUtf8 { directory } if directory || is_payload(&entry.name) => {
                    let directory = parent.relative().to_owned();
                    let name = entry.name.clone();
                    self.broken.push((parent.clone(), RepositoryError::NameNotUtf8 { directory, name }));
                }
                EntryKind::NotUtf8 { .. } | EntryKind::File | EntryKind::Other => {}
            }
        }
        Ok(children)
    }
}

/// Returns the payload among the entries of the directory of `path`.
fn payload_in(entries: &[Entry], path: &LogicalPath) -> Result<Option<ResourceFile>, RepositoryError> {
    if path.is_root() {
        return Ok(None);
    }
    let payloads: Vec<&Entry> =
        entries.iter().filter(|entry| entry.kind == EntryKind::File && is_payload(&entry.name)).collect();
    match payloads[..] {
        [] => Ok(None),
        [payload] => Ok(Some(ResourceFile {
            path: path.clone(),
            file: join(path.relative(), &payload.name),
            descriptor: Descriptor::from_extension(extension(&payload.name)),
        })),
        _ => Err(RepositoryError::SeveralPayloads {
            path: path.clone(),
            files: payloads.iter().map(|payload| join(path.relative(), &payload.name)).collect(),
        }),
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
