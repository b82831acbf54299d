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
    /// tree of the last commit that declared it. The history follows the first parent of each commit. With a `base`, a
    /// revision in the syntax of Git, only those that a commit after it removed.
    /// Fails if commits or files of this history are absent, or if HEAD does not descend from `base`.
    pub fn withdrawn(
        &self,
        scope: &LogicalPath,
        base: Option<&str>,
    ) -> Result<Vec<(Undeclared, GitTree)>, RepositoryError> {
        let repository = self.repository()?;
        self.require_history(&repository, base.is_some())?;
        let Some(head) = self.head_commit(&repository)? else { return Ok(Vec::new()) };
        let head = Revision::of(head.id());
        let base = base.map(|base| self.base(&repository, &head, base)).transpose()?;
        let handles = Arc::new(Handles::new(repository.commondir().to_owned()));
        let declared = GitTree::open(Arc::clone(&handles), &head)?;
        let found = history::withdrawn(&repository, &head, base.as_ref(), &declared, scope)?;
        let with_tree = |undeclared: Undeclared| {
            let tree = GitTree::open(Arc::clone(&handles), &undeclared.revision)?;
            Ok((undeclared, tree))
        };
        found.into_iter().map(with_tree).collect()
    }

    /// Returns the commit that `base` names. Fails if `head` does not descend from it, as far as the clone shows.
    fn base(
        &self,
        repository: &Repository,
        head: &Revision,
        base: &str,
    ) -> Result<Revision, RepositoryError> {
        let commit = repository.revparse_single(base).and_then(|object| object.peel_to_commit());
        let unknown = || RepositoryError::NotAnAncestor(self.shown(), base.to_owned());
        let revision = Revision::of(commit.map_err(|_| unknown())?.id());
        if history::descends(repository, head, &revision)? { Ok(revision) } else { Err(unknown()) }
    }

    /// Fails if commits or files of the history are absent. A clone that `has_base` may be shallow.
    fn require_history(&self, repository: &Repository, has_base: bool) -> Result<(), RepositoryError> {
        let incomplete = |kind, correction| Err(RepositoryError::Incomplete(self.shown(), kind, correction));
        // Also in a linked worktree, unlike `Repository::is_shallow`.
        let shallow = repository.commondir().join("shallow");
        if !has_base && fs::metadata(shallow).is_ok_and(|file| file.len() > 0) {
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
