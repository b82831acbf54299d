//! Discarding what is not committed.

use super::ResetArguments;
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::repository::{Contact, Repository};

const NOTHING: &str = "a plain directory has no commit to go back to";

/// `repository reset`.
pub fn reset(arguments: &ResetArguments, invocation: &Invocation) -> Result<(), Failure> {
    match Repository::open(invocation.context()?, Contact::None)? {
        Repository::Filesystem(_) => invocation.messages.verbose(1, NOTHING),
        Repository::Git(worktree) => worktree.reset(arguments.hard)?,
    }
    Ok(())
}

/// `repository clean`.
pub fn clean(invocation: &Invocation) -> Result<(), Failure> {
    match Repository::open(invocation.context()?, Contact::None)? {
        Repository::Filesystem(_) => invocation.messages.verbose(1, NOTHING),
        Repository::Git(worktree) => worktree.clean()?,
    }
    Ok(())
}
