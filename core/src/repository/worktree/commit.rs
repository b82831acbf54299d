//! Commits or discards changes.

use std::path::{Path, PathBuf};
use std::{fs, io};

use git2::build::CheckoutBuilder;
use git2::{IndexAddOption, Repository, ResetType, Signature, Status};

use super::super::{RepositoryError, Revision};
use super::Worktree;

/// The author of commits. It is the tool, because the identity of the user is not known.
const AUTHOR: (&str, &str) = ("declarest", "declarest@local");

const DEFAULT_MESSAGE: &str = "declarest: update repository resources";

impl Worktree {
    /// Commits all differences from HEAD: changed, removed and untracked files, but neither ignored nor temporary ones.
    /// Returns `None` if there are no differences. A blank message is replaced by a default one.
    ///
    /// Fails during a merge or a rebase: the commit would lose the second parent, and files may have conflict markers.
    pub fn commit(&self, message: &str) -> Result<Option<Revision>, RepositoryError> {
        let repository = self.repository()?;
        self.require_finished(&repository)?;
        if self.uncommitted(&repository)?.is_empty() {
            return Ok(None);
        }
        let failed = || self.git("commit in");
        let mut index = repository.index().map_err(failed())?;
        let temporary = self.temporary(&repository)?;
        // A result that is not 0 leaves the file out.
        let mut select = |path: &Path, _: &[u8]| i32::from(temporary.contains(path));
        index.add_all(["*"], IndexAddOption::DEFAULT, Some(&mut select)).map_err(failed())?;
        index.write().map_err(failed())?;
        let tree = index.write_tree().and_then(|id| repository.find_tree(id)).map_err(failed())?;
        let parent = self.head_commit(&repository)?;
        let message = if message.trim().is_empty() { DEFAULT_MESSAGE } else { message };
        let author = Signature::now(AUTHOR.0, AUTHOR.1).map_err(failed())?;
        let parents: Vec<_> = parent.iter().collect();
        let id = repository.commit(Some("HEAD"), &author, &author, message, &tree, &parents);
        id.map(|id| Some(Revision::of(id))).map_err(failed())
    }

    /// Resets the index to HEAD; with `hard` also the tracked files. The remote is not contacted.
    pub fn reset(&self, hard: bool) -> Result<(), RepositoryError> {
        self.reset_in(&self.repository()?, hard)
    }

    fn reset_in(&self, repository: &Repository, hard: bool) -> Result<(), RepositoryError> {
        let failed = || self.git("reset");
        if let Some(head) = self.head_commit(repository)? {
            let kind = if hard { ResetType::Hard } else { ResetType::Mixed };
            return repository.reset(head.as_object(), kind, None).map_err(failed());
        }
        if hard {
            let empty = self.head_tree(repository)?;
            repository
                .checkout_tree(empty.as_object(), Some(CheckoutBuilder::new().force()))
                .map_err(failed())?;
        }
        let mut index = repository.index().map_err(failed())?;
        index.clear().and_then(|()| index.write()).map_err(failed())
    }

    /// Resets the checkout to HEAD, like a hard reset that also removes untracked files and directories that become
    /// empty. Ignored files and nested repositories stay. Fails before the first commit if there are files, because none
    /// of them could be restored.
    pub fn clean(&self) -> Result<(), RepositoryError> {
        let repository = self.repository()?;
        if self.head_commit(&repository)?.is_none() && !self.uncommitted(&repository)?.is_empty() {
            return Err(RepositoryError::NothingCommitted(self.shown()));
        }
        self.reset_in(&repository, true)?;
        for file in self.statuses(&repository)?.iter().filter(|file| file.status() == Status::WT_NEW) {
            // A directory here is a nested repository.
            if file.path_bytes().ends_with(b"/") {
                continue;
            }
            let file = self.directory.join(file_name(file.path_bytes()));
            match fs::remove_file(&file) {
                // Another process has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(RepositoryError::io("remove", &file))?,
            }
        }
        self.remove_empty_directories(&repository, Path::new("")).map(|_| ())
    }

    /// Removes the empty directories below the relative `directory`, and returns whether it is empty now.
    fn remove_empty_directories(
        &self,
        repository: &Repository,
        directory: &Path,
    ) -> Result<bool, RepositoryError> {
        let place = self.directory.join(directory);
        let mut empty = true;
        for entry in fs::read_dir(&place).map_err(RepositoryError::io("read", &place))? {
            let entry = entry.map_err(RepositoryError::io("read", &place))?;
            let (path, below) = (entry.path(), directory.join(entry.file_name()));
            let is_directory = entry.file_type().map_err(RepositoryError::io("read", &path))?.is_dir();
            let ours = is_directory
                && entry.file_name() != ".git"
                && !path.join(".git").exists()
                && !repository.is_path_ignored(&below).map_err(self.git("read the ignored files of"))?;
            if ours && self.remove_empty_directories(repository, &below)? {
                fs::remove_dir(&path).map_err(RepositoryError::io("remove", &path))?;
            } else {
                empty = false;
            }
        }
        Ok(empty)
    }
}

/// Returns the path of a file of a checkout, which need not be UTF-8 on Unix.
#[cfg(unix)]
fn file_name(path: &[u8]) -> PathBuf {
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(path);
    name.into()
}

/// Returns the path of a file of a checkout.
#[cfg(not(unix))]
fn file_name(path: &[u8]) -> PathBuf {
    String::from_utf8_lossy(path).into_owned().into()
}
