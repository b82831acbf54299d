//! The resources that earlier commits declared.

use std::fs;
use std::sync::Arc;

use git2::Repository;

use super::Worktree;
use crate::path::LogicalPath;
use crate::repository::handles::Handles;
use crate::repository::{GitTree, RepositoryError, Revision, Undeclared, history};

/// How to complete the history of a shallow clone.
const SHALLOW: &str = "run \"git fetch --unshallow\" first, or state \"fetch-depth: 0\" for actions/checkout";
/// How to complete the objects of a partial clone.
const PARTIAL: &str = "clone it without --filter";

impl Worktree {
    /// Returns the resources within `scope` that a commit of HEAD's history declared and HEAD does not, each with the
    /// tree of the last commit that declared it. The history follows the first parent of each commit.
    /// Fails if commits or files of the history are absent.
    pub fn withdrawn(&self, scope: &LogicalPath) -> Result<Vec<(Undeclared, GitTree)>, RepositoryError> {
        let repository = self.repository()?;
        self.require_history(&repository)?;
        let Some(head) = self.head_commit(&repository)? else { return Ok(Vec::new()) };
        let handles = Arc::new(Handles::new(repository.commondir().to_owned()));
        let head = Revision::of(head.id());
        let declared = GitTree::open(Arc::clone(&handles), &head)?;
        let found = history::withdrawn(&repository, &head, &declared, scope)?;
        let with_tree = |undeclared: Undeclared| {
            let tree = GitTree::open(Arc::clone(&handles), &undeclared.revision)?;
            Ok((undeclared, tree))
        };
        found.into_iter().map(with_tree).collect()
    }

    /// Fails if commits or files of the history are absent.
    fn require_history(&self, repository: &Repository) -> Result<(), RepositoryError> {
        let incomplete = |kind, correction| Err(RepositoryError::Incomplete(self.shown(), kind, correction));
        // Also in a linked worktree, unlike `Repository::is_shallow`.
        if fs::metadata(repository.commondir().join("shallow")).is_ok_and(|file| file.len() > 0) {
            return incomplete("a shallow clone", SHALLOW);
        }
        let config = repository.config().map_err(self.git("read the configuration of"))?;
        let mut promisors =
            config.entries(Some(r"^remote\..*\.promisor$")).map_err(self.git("read the configuration of"))?;
        if promisors.next().is_some() {
            return incomplete("a partial clone", PARTIAL);
        }
        Ok(())
    }
}
