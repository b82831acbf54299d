//! Commands that discard uncommitted changes: `reset` and `clean`.

use declarest_core::repository::{RepositoryError, Worktree};

use super::ResetArguments;
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::repository::{Contact, Repository};

/// `repository reset`.
pub fn reset(arguments: &ResetArguments, invocation: &Invocation) -> Result<(), Failure> {
    discard(invocation, |worktree| worktree.reset(arguments.hard))
}

/// `repository clean`.
pub fn clean(invocation: &Invocation) -> Result<(), Failure> {
    discard(invocation, Worktree::clean)
}

fn discard(
    invocation: &Invocation,
    change: impl FnOnce(&Worktree) -> Result<(), RepositoryError>,
) -> Result<(), Failure> {
    let repository = Repository::open(invocation.context()?, Contact::None)?;
    let _lock = repository.lock()?;
    match &repository {
        Repository::Filesystem(_) => {
            let nothing = "nothing to discard: a filesystem repository has no commits";
            invocation.messages.verbose(1, nothing);
        }
        Repository::Git(worktree) => change(worktree)?,
    }
    Ok(())
}
