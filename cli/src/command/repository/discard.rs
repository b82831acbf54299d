//! Commands that discard uncommitted changes: `reset` and `clean`.

use super::ResetArguments;
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::repository::{Contact, Repository};

const NOTHING: &str = "nothing to discard: a filesystem repository has no commits";

/// `repository reset`.
pub fn reset(arguments: &ResetArguments, invocation: &Invocation) -> Result<(), Failure> {
    let repository = Repository::open(invocation.context()?, Contact::None)?;
    let _lock = repository.lock()?;
    match &repository {
        Repository::Filesystem(_) => invocation.messages.verbose(1, NOTHING),
        Repository::Git(worktree) => worktree.reset(arguments.hard)?,
    }
    Ok(())
}

/// `repository clean`.
pub fn clean(invocation: &Invocation) -> Result<(), Failure> {
    let repository = Repository::open(invocation.context()?, Contact::None)?;
    let _lock = repository.lock()?;
    match &repository {
        Repository::Filesystem(_) => invocation.messages.verbose(1, NOTHING),
        Repository::Git(worktree) => worktree.clean()?,
    }
    Ok(())
}
