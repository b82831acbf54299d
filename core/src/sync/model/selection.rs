//! The resources of a run.

use std::fmt;
use std::sync::Arc;

use super::{Failure, FailureReason, LIST, Resource, SyncError};
use crate::error::Categorized;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::{self, ApplyTarget, Listing, RepositoryError, ResourceFile, Tree};

/// The resources that one run processes.
#[derive(Default)]
pub struct Selection {
    /// Resources to bring to their desired state; distinct, sorted by path.
    pub resources: Vec<ResourceFile>,
    /// Resources that are not read from the tree, such as payloads that a user passes to the CLI.
    pub given: Vec<Resource>,
    /// Resources that exist in the tree but cannot be read from it.
    pub broken: Vec<Failure>,
    /// Resources to delete if they still exist.
    pub prune: Vec<Candidate>,
    /// The scope, if `resources` and `broken` are all that it declares.
    pub scope: Option<Scope>,
    /// The tree that was last applied without a failure. A resource that it declares under the same id is the same one,
    /// even if the server shows another alias.
    pub former: Option<Arc<dyn Tree>>,
    /// The number of resources that the scope declares, if it is known and differs from the selection.
    pub declared: Option<usize>,
    /// The deletions that earlier passes of the run have sent. The limit of deletions counts them.
    pub sent: Sent,
}

/// A part of the repository.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The path of a resource or of a collection.
    pub path: LogicalPath,
    /// Whether the scope includes everything below the path. Otherwise it is one resource, or the direct members of the
    /// collection.
    pub recursive: bool,
}

impl Scope {
    /// Whether the resource at `path` may be in the scope.
    pub(crate) fn contains(&self, path: &LogicalPath) -> bool {
        *path == self.path || self.contains_all_beside(path)
    }

    /// Whether the scope includes all resources of the collection that has the one at `path`.
    pub(crate) fn contains_all_beside(&self, path: &LogicalPath) -> bool {
        let Some(collection) = path.parent() else { return false };
        collection == self.path || self.recursive && collection.is_within(&self.path)
    }
}

/// The deletions that a run has sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Their number.
    pub deletions: usize,
    /// The number of those of declared resources, which are created again.
    pub replaced: usize,
    /// Whether the limit was checked for the undeclared resources. A further pass deletes no others.
    pub is_approved: bool,
}

/// A path that was declared once and is not declared now.
#[derive(Clone)]
pub struct Candidate {
    /// The path.
    pub path: LogicalPath,
    /// Its payload as last declared, which may state the resource's id on the server.
    pub payload: Value,
    /// The revision that declared it last. Its metadata addresses the resource; if `None`, the metadata of the session
    /// does.
    pub declared_in: Option<Arc<dyn Tree>>,
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The payload may hold secrets that were declared in plain text.
        f.debug_struct("Candidate").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Selection {
    /// Returns everything that `scope` declares.
    pub fn full(tree: &dyn Tree, scope: &LogicalPath, recursive: bool) -> Result<Self, RepositoryError> {
        let listing = repository::resources(tree, scope, recursive)?;
        let scope = Some(Scope { path: scope.clone(), recursive });
        let mut selection = Self { scope, ..Self::default() };
        selection.add(listing);
        Ok(selection)
    }

    /// Returns the resources that `targets` declare. Targets without resources are dropped.
    pub fn targets(tree: &dyn Tree, targets: &[ApplyTarget]) -> Result<Self, RepositoryError> {
        let mut selection = Self::default();
        for target in targets {
            if target.recursive {
                selection.add(repository::resources(tree, &target.path, true)?);
                continue;
            }
            match repository::resource_file(tree, &target.path) {
                Ok(file) => selection.resources.extend(file),
                Err(error) => selection.broken.push(unreadable(target.path.clone(), error)),
            }
        }
        selection.resources.sort_by(|a, b| a.path.cmp(&b.path));
        selection.resources.dedup_by(|a, b| a.path == b.path);
        selection.broken.sort_by(|a, b| a.path.cmp(&b.path));
        selection.broken.dedup_by(|a, b| a.path == b.path);
        Ok(selection)
    }

    /// Returns the number of distinct desired resources, readable or not.
    pub fn targeted(&self) -> usize {
        self.resources.len() + self.given.len() + self.broken.len()
    }

    /// Returns the number of resources that a run reports on, with the candidates for deletion.
    pub fn size(&self) -> usize {
        self.targeted() + self.prune.len()
    }

    /// Whether these are all resources of a scope.
    pub const fn is_whole_scope(&self) -> bool {
        self.scope.is_some()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    fn add(&mut self, listing: Listing) {
        self.resources.extend(listing.resources);
        self.broken.extend(listing.broken.into_iter().map(|(path, error)| unreadable(path, error)));
    }
}

fn unreadable(path: LogicalPath, error: RepositoryError) -> Failure {
    let reason = FailureReason::Category(error.category());
    // A directory that cannot be entered may hide any number of resources.
    let hidden = matches!(error, RepositoryError::DirectoryName { .. } | RepositoryError::NameNotUtf8 { .. });
    let operation = if hidden { LIST } else { "read" };
    Failure::local(path, operation, reason, SyncError::from(error).to_string())
}
