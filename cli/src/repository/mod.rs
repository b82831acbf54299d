//! The repository of a context: opening it, and writing to it such that what is written is committed.

mod authoring;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use declarest_core::error::{Categorized, Category};
use declarest_core::repository::{RepositoryError, Store, Worktree, WorktreeSettings};

pub use authoring::{Authoring, MessageArgument, Push};

use crate::context::{RepositoryPlace, ResolvedContext};
use crate::error::Failure;

/// How long a person waits for a remote until it counts as unreachable. The first fetch of a large
/// repository must fit.
const PATIENCE: Duration = Duration::from_mins(5);

/// The time at which a command that contacts the remote now gives up.
pub fn deadline() -> Instant {
    Instant::now() + PATIENCE
}

/// Why a repository cannot serve a command.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryUseError {
    #[error(
        "{action} needs a Git repository, and context \"{context}\" keeps its resources in a plain directory"
    )]
    NotGit { action: &'static str, context: String },
    #[error("--push has nowhere to push to: context \"{context}\" has no remote; set repository.git.remote")]
    NoRemote { context: String },
    #[error("--message is blank; say what the commit is about")]
    BlankMessage,
    #[error(
        "a clean git worktree is needed, so that the commit holds nothing else: {changes}; keep them with \
         \"declarest repository commit\" (changes of metadata are not committed by themselves), or discard \
         them with \"declarest repository clean\""
    )]
    Uncommitted { changes: RepositoryError },
}

impl Categorized for RepositoryUseError {
    fn category(&self) -> Category {
        match self {
            Self::NotGit { .. } | Self::NoRemote { .. } | Self::BlankMessage | Self::Uncommitted { .. } => {
                Category::Validation
            }
        }
    }
}

/// Whether a command contacts the remote of a repository, which may take credentials that have to be asked
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    /// It works on this machine only.
    None,
    /// It fetches or pushes.
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
    /// Opens the repository. A missing checkout is made if the context allows that.
    pub fn open(context: &ResolvedContext, contact: Contact) -> Result<Self, Failure> {
        Ok(match context.repository()? {
            RepositoryPlace::Filesystem { base_dir } => Self::Filesystem(base_dir),
            RepositoryPlace::Git { base_dir, auto_init, .. } => {
                let settings = settings(context, base_dir, auto_init, contact)?;
                Self::Git(Box::new(Worktree::open(settings)?))
            }
        })
    }

    /// Makes the repository, whether or not the context allows that to happen by itself. One that exists
    /// stays as it is.
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

    /// The resources in it. A missing directory is an error.
    pub fn store(&self) -> Result<Store, RepositoryError> {
        match self {
            Self::Filesystem(directory) => Store::open(directory),
            Self::Git(worktree) => Store::open(worktree.directory()),
        }
    }
}

/// The checkout of a context, for an action that only Git knows.
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

fn not_git(context: &ResolvedContext, action: &'static str) -> Failure {
    RepositoryUseError::NotGit { action, context: context.name.clone() }.into()
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
