//! `declarest repository status`.

use declarest_core::control::one_line;
use declarest_core::repository::{FileStatus, SyncState, WorktreeStatus};
use serde::Serialize;

use super::StatusArguments;
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::repository::{Contact, Repository, deadline};

/// The state of a repository.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    state: SyncState,
    ahead: usize,
    behind: usize,
    has_uncommitted: bool,
    /// Shown with `--verbose`.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<Vec<FileStatus>>,
}

/// `repository status`.
pub fn status(arguments: &StatusArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::TextDefault)?;
    let contact = if arguments.offline { Contact::None } else { Contact::Remote };
    let Repository::Git(worktree) = Repository::open(invocation.context()?, contact)? else {
        let text = "type=filesystem sync=not_applicable hasUncommitted=false";
        return Ok(output.show(&Standing::FILESYSTEM, Some(text))?);
    };
    let found = if arguments.offline { worktree.status_offline() } else { worktree.status(deadline()) };
    let standing = Standing::new(found?, invocation.settings.verbosity > 0);
    Ok(output.show(&standing, Some(&standing.text()))?)
}

impl Standing {
    /// The state of a filesystem repository, which has no remote.
    const FILESYSTEM: Self =
        Self { state: SyncState::NoRemote, ahead: 0, behind: 0, has_uncommitted: false, worktree: None };

    fn new(status: WorktreeStatus, with_files: bool) -> Self {
        Self {
            state: status.state,
            ahead: status.ahead,
            behind: status.behind,
            has_uncommitted: status.has_uncommitted(),
            worktree: with_files.then_some(status.files),
        }
    }

    fn text(&self) -> String {
        let relation = match self.state {
            SyncState::NoRemote => "remote=not_configured".to_owned(),
            _ => format!("ahead={} behind={}", self.ahead, self.behind),
        };
        let line = format!(
            "type=git state={} {relation} hasUncommitted={}",
            self.state.as_str(),
            self.has_uncommitted
        );
        let Some(files) = &self.worktree else { return line };
        if files.is_empty() {
            return format!("{line}\nworktree=clean");
        }
        let files = files.iter().map(|file| {
            format!("\n{}{} {}", file.staging.code(), file.worktree.code(), one_line(&file.path))
        });
        format!("{line}\nworktree:{}", files.collect::<String>())
    }
}
