//! The resources that earlier commits declared.

use std::sync::Arc;

use super::Worktree;
use crate::path::LogicalPath;
use crate::repository::handles::Handles;
use crate::repository::{GitTree, RepositoryError, Revision, Undeclared, history};

impl Worktree {
    /// Returns the resources within `scope` that a commit of HEAD's history declared and HEAD does not, each with the
    /// tree of the last commit that declared it. The history follows the first parent of each commit.
    pub fn withdrawn(&self, scope: &LogicalPath) -> Result<Vec<(Undeclared, GitTree)>, RepositoryError> {
        let repository = self.repository()?;
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
}
