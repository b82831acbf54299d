//! The repository of a context: opens it, and commits the changes of commands.

mod authoring;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use declarest_core::error::categories;
use declarest_core::metadata::document::Document;
use declarest_core::repository::{
    RepositoryError, Store, Tree, UnusedFile, Worktree, WorktreeSettings, unused_files,
};

pub use authoring::{Authoring, MessageArgument, Push, explained};

use crate::context::{RepositoryPlace, ResolvedContext};
use crate::error::Failure;
use crate::lock::{Lock, LockError};

/// The time limit for a remote. It must be sufficient for the first fetch of a large repository.
const PATIENCE: Duration = Duration::from_mins(5);

/// Returns the deadline of a request to the remote that starts now.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// A repository cannot be used for a command.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryUseError {
    #[error(
        "{action} needs a Git repository, but the repository of context \"{context}\" is a filesystem repository"
    )]
    NotGit { action: &'static str, context: String },
    #[error("--push needs a remote: context \"{context}\" has no remote; set repository.git.remote")]
    NoRemote { context: String },
    #[error("--message is blank; write a commit message")]
    BlankMessage,
    #[error(
        "a clean git worktree is needed, so that the commit contains no other changes: {changes}, with \
         \"declarest repository commit\" (changes of metadata are not committed automatically) or \
         \"declarest repository clean\""
    )]
    Uncommitted { changes: RepositoryError },
    #[error(
        "{directory} has no commit yet, and the branch \"{branch}\" of its remote has some; run \"declarest repository \
         refresh\" first"
    )]
    Unrelated { directory: String, branch: String },
}

categories!(RepositoryUseError {
    Validation: NotGit, NoRemote, BlankMessage, Uncommitted;
    Conflict: Unrelated;
});

/// Whether a command contacts the remote of a repository. Its credentials may need a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    /// The command works on this machine only.
    None,
    /// The command fetches or pushes.
    Remote,
}

/// The repository of a context.
#[derive(Debug)]
pub enum Repository {
    /// A plain directory, which need not exist yet.
    Filesystem(PathBuf),
    /// A Git checkout, which exists.
    Git(Box<Worktree>),
}

impl Repository {
    /// Opens the repository. Creates a missing checkout if the context allows it.
    pub fn open(context: &ResolvedContext, contact: Contact) -> Result<Self, Failure> {
        Ok(match context.repository()? {
            RepositoryPlace::Filesystem { base_dir } => Self::Filesystem(base_dir),
            RepositoryPlace::Git { base_dir, auto_init, .. } => {
                // Another command may be creating the checkout. Without a lock, as on some network disks, this fails.
                let _created = auto_init.then(|| created(&base_dir));
                let settings = settings(context, base_dir, auto_init, contact)?;
                Self::Git(Box::new(Worktree::open(settings)?))
            }
        })
    }

    /// Creates the repository, even if `autoInit` is false. An existing one is not changed.
    pub fn init(context: &ResolvedContext) -> Result<Self, Failure> {
        Ok(match context.repository()? {
            RepositoryPlace::Filesystem { base_dir } => {
                Store::init(&base_dir)?;
                Self::Filesystem(base_dir)
            }
            RepositoryPlace::Git { base_dir, auto_init, .. } => {
                let settings = settings(context, base_dir, auto_init, Contact::None)?;
                Self::Git(Box::new(Worktree::init(settings)?))
            }
        })
    }

    /// Locks a Git checkout for a change, so that the commits of commands that run at once contain only their own
    /// changes. Writes to a plain directory are independent of each other.
    pub fn lock(&self) -> Result<Option<Lock>, LockError> {
        let Self::Git(worktree) = self else { return Ok(None) };
        // A linked worktree has its own directory in that of the repository.
        worktree.git_directory().map(|git| Lock::of(&git)).transpose()
    }

    /// Returns the store of the resources. A missing directory is an error.
    pub fn store(&self) -> Result<Store, RepositoryError> {
        match self {
            Self::Filesystem(directory) => Store::open(directory),
            Self::Git(worktree) => Store::open(worktree.directory()),
        }
    }
}

/// Waits until no other command creates a checkout in the directory, and prevents it until the result is dropped.
#[cfg(unix)]
fn created(directory: &Path) -> Option<Lock> {
    if !directory.join(".git").is_dir() {
        // If the directory cannot be created, opening the checkout fails with the reason.
        std::fs::create_dir_all(directory).ok()?;
    }
    Lock::of(directory).ok()
}

/// Windows locks files only, and a file in the directory would be an uncommitted change.
#[cfg(not(unix))]
fn created(_directory: &Path) -> Option<Lock> {
    None
}

/// Returns the checkout of a context, for an action that needs Git.
pub fn worktree(
    context: &ResolvedContext,
    contact: Contact,
    action: &'static str,
) -> Result<Box<Worktree>, Failure> {
    match Repository::open(context, contact)? {
        Repository::Filesystem(_) => Err(not_git(context, action)),
        Repository::Git(worktree) => Ok(worktree),
    }
}

pub fn not_git(context: &ResolvedContext, action: &'static str) -> Failure {
    RepositoryUseError::NotGit { action, context: context.name.clone() }.into()
}

/// Returns the files of a repository that nothing uses.
pub fn unused(tree: &dyn Tree) -> Result<Vec<UnusedFile>, RepositoryError> {
    unused_files(tree, &|payload_type, content| {
        Document::decode(payload_type, content).ok().map(|document| document.defaults_files())
    })
}

fn settings(
    context: &ResolvedContext,
    directory: PathBuf,
    auto_init: bool,
    contact: Contact,
) -> Result<WorktreeSettings, Failure> {
    let remote = match contact {
        Contact::None => context.git_origin()?,
        Contact::Remote => context.git_remote()?,
    };
    Ok(WorktreeSettings { directory, auto_init, remote })
}
