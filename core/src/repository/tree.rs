//! The view of desired state that all sources of files share.

use super::{RepositoryError, Revision};

/// The largest payload that is read, in bytes.
pub const MAX_PAYLOAD: u64 = 32 << 20;

/// The largest metadata document, defaults file or sidecar that is read, in bytes.
pub const MAX_DOCUMENT: u64 = 1 << 20;

/// An immutable view of desired state.
///
/// Names are relative to the root of the view, separated by `/`; the root itself is the empty string.
/// Names that are absolute or contain `..` are rejected. Calls block.
pub trait Tree: Send + Sync {
    /// Returns the entries of `directory`, sorted by name bytes; `None` if it is absent or not a directory.
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError>;

    /// Returns the content of a regular file; `None` if it is absent or not a regular file. A file of more than `limit`
    /// bytes is not read, and is [`RepositoryError::TooLarge`].
    fn read_within(&self, file: &str, limit: u64) -> Result<Option<Vec<u8>>, RepositoryError>;

    /// Like [`Tree::read_within`], for a document.
    fn read(&self, file: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.read_within(file, MAX_DOCUMENT)
    }

    /// Returns the commit of this view; `None` if the view is not of a commit.
    fn revision(&self) -> Option<&Revision>;
}

/// An empty view, for callers without a repository.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyTree;

impl Tree for EmptyTree {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        Ok(segments(directory)?.is_empty().then(Vec::new))
    }

    fn read_within(&self, file: &str, _: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        segments(file).map(|_| None)
    }

    fn revision(&self) -> Option<&Revision> {
        None
    }
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name; bytes that are not UTF-8 are replaced by U+FFFD.
    pub name: String,
    /// The kind of the entry.
    pub kind: EntryKind,
}

/// The kind of an entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, a submodule, or a special file. Never followed.
    Other,
    /// A directory or regular file that cannot be addressed, because its name is not UTF-8.
    NotUtf8 {
        /// Whether it is a directory.
        directory: bool,
    },
}

impl Entry {
    /// Returns the entry for a name from Git or the system.
    pub(super) fn new(name: &[u8], kind: EntryKind) -> Self {
        let kind = match kind {
            EntryKind::Directory if std::str::from_utf8(name).is_err() => {
                EntryKind::NotUtf8 { directory: true }
            }
            EntryKind::File if std::str::from_utf8(name).is_err() => EntryKind::NotUtf8 { directory: false },
            kind => kind,
        };
        Self { name: String::from_utf8_lossy(name).into_owned(), kind }
    }
}

/// Fails if a file of this size must not be read.
pub(super) fn check_size(file: &str, size: u64, limit: u64) -> Result<(), RepositoryError> {
    if size <= limit { Ok(()) } else { Err(RepositoryError::TooLarge { file: file.to_owned(), size, limit }) }
}

/// Checks a name for a tree and returns its segments.
pub(super) fn segments(file: &str) -> Result<Vec<&str>, RepositoryError> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let segments: Vec<&str> = file.split('/').collect();
    if segments.iter().any(|segment| matches!(*segment, "" | "." | "..") || segment.contains('\0')) {
        return Err(RepositoryError::OutsidePath(file.to_owned()));
    }
    Ok(segments)
}

/// Returns `directory/name`, or `name` for the root.
pub(super) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { [directory, "/", name].concat() }
}
