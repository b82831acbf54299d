//! The writes of a store to the disk. All places come from [`DirTree::place`], so they are inside the root.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::repository::{DirTree, Mode, RepositoryError, write_atomically};

/// A file to write. It is checked before any file is written.
#[derive(Debug)]
pub(super) struct Pending<'c> {
    place: PathBuf,
    content: &'c [u8],
}

impl<'c> Pending<'c> {
    pub(super) fn new(tree: &DirTree, file: &str, content: &'c [u8]) -> Result<Self, RepositoryError> {
        Ok(Self { place: tree.place(file)?, content })
    }

    /// Writes the file and its directories, unless it already has this content.
    pub(super) fn write(&self) -> Result<(), RepositoryError> {
        if self.is_written() {
            return Ok(());
        }
        if let Some(directory) = self.place.parent() {
            create_directory(directory)?;
        }
        write_atomically(&self.place, self.content, Mode::Shared)
            .map_err(RepositoryError::io("write", &self.place))
    }

    fn is_written(&self) -> bool {
        fs::symlink_metadata(&self.place).is_ok_and(|metadata| metadata.is_file())
            && fs::read(&self.place).is_ok_and(|content| content == self.content)
    }
}

/// Creates a directory and its parents, with 0755 less the umask.
pub(super) fn create_directory(directory: &Path) -> Result<(), RepositoryError> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.recursive(true).create(directory).map_err(RepositoryError::io("create", directory))
}

/// Removes files. Absent files are not an error. Then removes the directories below the root that became empty.
pub(super) fn remove(tree: &DirTree, places: &[PathBuf]) -> Result<(), RepositoryError> {
    for place in places {
        match fs::remove_file(place) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(RepositoryError::io("remove", place)(error));
            }
            _ => {}
        }
    }
    places.iter().try_for_each(|place| remove_empty_parents(tree.root(), place))
}

fn remove_empty_parents(root: &Path, place: &Path) -> Result<(), RepositoryError> {
    let below_root = |directory: &&Path| directory.starts_with(root) && *directory != root;
    for directory in place.ancestors().skip(1).take_while(below_root) {
        match fs::remove_dir(directory) {
            Ok(()) => {}
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => {}
                // POSIX allows both error codes.
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => break,
                _ => return Err(RepositoryError::io("remove", directory)(error)),
            },
        }
    }
    Ok(())
}
