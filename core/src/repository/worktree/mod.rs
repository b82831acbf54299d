//! The operations of a user on a checkout: status, refresh, commit, push, reset and history.

mod commit;
mod history;
mod origin;
mod push;
mod refresh;
mod status;
mod withdrawn;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Repository, RepositoryInitOptions, Tree};

pub use history::{Author, HistoryFilter, LoggedCommit};
pub use push::Pushed;
pub use refresh::{Kept, Refreshed};
pub use status::{FileState, FileStatus, SyncState, WorktreeStatus};

use super::{Remote, RepositoryError, Revision};

/// The branch if no remote is configured.
const DEFAULT_BRANCH: &str = "main";

/// The settings of a checkout.
#[derive(Clone, Debug)]
pub struct WorktreeSettings {
    /// The directory with `.git`; parent directories are not searched.
    pub directory: PathBuf,
    /// Whether [`Worktree::open`] may create a repository.
    pub auto_init: bool,
    /// The remote to compare with, refresh from and push to, named `origin`. A new repository starts on its branch.
    pub remote: Option<Remote>,
}

/// A checkout and its repository.
///
/// It holds neither locks nor open files; every call reads the disk again. Calls that contact the remote have a
/// deadline.
#[derive(Clone, Debug)]
pub struct Worktree {
    directory: PathBuf,
    remote: Option<Remote>,
}

impl Worktree {
    /// Opens the repository, or creates an empty one if the settings allow that.
    pub fn open(settings: WorktreeSettings) -> Result<Self, RepositoryError> {
        let WorktreeSettings { directory, auto_init, remote } = settings;
        let worktree = Self { directory, remote };
        if !worktree.exists()? {
            if !auto_init {
                return Err(RepositoryError::NotInitialised(worktree.shown()));
            }
            worktree.create()?;
        }
        worktree.repository()?;
        Ok(worktree)
    }

    /// Opens the repository or creates an empty one, regardless of `auto_init`, and records the address of the
    /// remote. A second call changes nothing.
    pub fn init(settings: WorktreeSettings) -> Result<Self, RepositoryError> {
        let worktree = Self::open(WorktreeSettings { auto_init: true, ..settings })?;
        worktree.record_origin(&worktree.repository()?)?;
        Ok(worktree)
    }

    /// Returns the directory of the checkout.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory in which Git keeps the state of this checkout; `None` if it cannot be opened.
    pub fn git_directory(&self) -> Option<PathBuf> {
        self.repository().ok().map(|repository| repository.path().to_owned())
    }

    /// Returns the remote, if one is configured.
    pub fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    /// Returns the configured branch.
    fn branch(&self) -> &str {
        self.remote.as_ref().map_or(DEFAULT_BRANCH, |remote| &remote.branch)
    }

    fn shown(&self) -> String {
        self.directory.display().to_string()
    }

    fn exists(&self) -> Result<bool, RepositoryError> {
        match fs::metadata(&self.directory) {
            Ok(found) if !found.is_dir() => {
                return Err(RepositoryError::RootNotDirectory(self.shown()));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(RepositoryError::io("read", &self.directory)(error));
            }
            _ => {}
        }
        Ok(fs::symlink_metadata(self.directory.join(".git")).is_ok())
    }

    fn create(&self) -> Result<(), RepositoryError> {
        if !git2::Branch::name_is_valid(self.branch()).unwrap_or(false) {
            return Err(RepositoryError::InvalidBranch(self.branch().to_owned()));
        }
        let mut options = RepositoryInitOptions::new();
        // Templates of the user could add hooks and excludes that differ between machines.
        options.mkpath(true).external_template(false).initial_head(self.branch());
        Repository::init_opts(&self.directory, &options)
            .map_err(RepositoryError::git(format!("initialise {}", self.shown())))?;
        Ok(())
    }

    /// Opens the repository with the user's Git configuration, so that ignored files and line endings are the same as
    /// for `git`.
    fn repository(&self) -> Result<Repository, RepositoryError> {
        let repository = Repository::open(&self.directory).map_err(|error| {
            // If parts of it are missing, libgit2 reports that there is no repository.
            if error.code() == ErrorCode::NotFound && self.directory.join(".git").exists() {
                let reason = "its .git is incomplete; restore it, or move the directory away to start again";
                return RepositoryError::Git {
                    action: format!("open {}", self.shown()),
                    reason: reason.to_owned(),
                };
            }
            self.git("open")(error)
        })?;
        if repository.is_bare() {
            return Err(RepositoryError::Bare(self.shown()));
        }
        Ok(repository)
    }

    /// Returns a converter for a local failure of Git during `action`.
    fn git(&self, action: &str) -> impl FnOnce(git2::Error) -> RepositoryError + use<> {
        let (action, lock) = (format!("{action} {}", self.shown()), self.directory.join(".git/index.lock"));
        move |error| {
            if error.code() == ErrorCode::Locked && lock.exists() {
                let lock = lock.display();
                let reason =
                    format!("{lock} exists; remove it if the process that created it has ended early");
                return RepositoryError::Git { action, reason };
            }
            RepositoryError::git(action)(error)
        }
    }

    /// Returns the commit of HEAD; `None` before the first commit.
    pub fn head(&self) -> Result<Option<Revision>, RepositoryError> {
        Ok(self.head_commit(&self.repository()?)?.map(|commit| Revision::of(commit.id())))
    }

    fn head_commit<'r>(
        &self,
        repository: &'r Repository,
    ) -> Result<Option<git2::Commit<'r>>, RepositoryError> {
        match repository.head().and_then(|head| head.peel_to_commit()) {
            Ok(commit) => Ok(Some(commit)),
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(self.git("read HEAD of")(error)),
        }
    }

    /// Returns the files of HEAD; none before the first commit.
    fn head_tree<'r>(&self, repository: &'r Repository) -> Result<Tree<'r>, RepositoryError> {
        let tree = match self.head_commit(repository)? {
            Some(commit) => commit.tree(),
            None => repository
                .treebuilder(None)
                .and_then(|builder| builder.write())
                .and_then(|empty| repository.find_tree(empty)),
        };
        tree.map_err(self.git("read HEAD of"))
    }

    /// Whether HEAD is the configured branch of the remote, or the checkout has no branch with this name. Otherwise a push
    /// of HEAD would change another branch than its own. True without a remote.
    pub fn is_on_remote_branch(&self) -> Result<bool, RepositoryError> {
        let Some(remote) = &self.remote else { return Ok(true) };
        let (repository, branch) = (self.repository()?, format!("refs/heads/{}", remote.branch));
        let is_it = self.head_branch(&repository)?.is_some_and(|head| head == branch);
        Ok(is_it || self.tip(&repository, &branch)?.is_none())
    }

    /// Returns the branch of HEAD as `refs/heads/…`; `None` if HEAD is detached.
    fn head_branch(&self, repository: &Repository) -> Result<Option<String>, RepositoryError> {
        let head = repository.find_reference("HEAD").map_err(self.git("read HEAD of"))?;
        let target = head.symbolic_target_bytes().map(|name| String::from_utf8_lossy(name).into_owned());
        Ok(target.filter(|name| name.starts_with("refs/heads/")))
    }
}
