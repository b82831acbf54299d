use super::{RepositoryError, Revision};

/// An immutable view of desired state.
///
/// Names are relative to the root of the view, separated by `/`; the root itself is the empty string.
/// Names that are absolute or contain `..` are refused. Calls block.
pub trait Tree: Send + Sync {
    /// What `directory` holds, sorted by name bytes. `None`: there is no such directory (nothing, or
    /// something else than a directory).
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError>;

    /// The content of a regular file. `None`: there is no such file (nothing, or something else).
    fn read(&self, file: &str) -> Result<Option<Vec<u8>>, RepositoryError>;

    /// The commit seen here; `None` where the view is not of a commit.
    fn revision(&self) -> Option<&Revision>;
}

/// A view of nothing, for those who have no repository.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyTree;

impl Tree for EmptyTree {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        Ok(segments(directory)?.is_empty().then(Vec::new))
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
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
    /// What it names.
    pub kind: EntryKind,
}

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link, a submodule, or a special file. Never followed.
    Other,
    /// A directory or regular file that cannot be addressed, as its name is not UTF-8.
    NotUtf8 {
        /// Whether it is a directory.
        directory: bool,
    },
}

impl Entry {
    /// The entry for a name as Git or the system knows it.
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

/// Checks a name given to a tree and returns its segments.
pub(super) fn segments(file: &str) -> Result<Vec<&str>, RepositoryError> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let segments: Vec<&str> = file.split('/').collect();
    if segments.iter().any(|segment| matches!(*segment, "" | "." | "..") || segment.contains('\0')) {
        return Err(RepositoryError::OutsidePath { file: file.to_owned() });
    }
    Ok(segments)
}

/// `directory/name`, where the root adds nothing.
pub(super) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { [directory, "/", name].concat() }
}
