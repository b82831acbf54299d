//! Which resources a run concerns, read from the mirror. Everything here blocks on Git and runs on the
//! blocking pool.

use std::collections::BTreeSet;
use std::sync::Arc;

use declarest_core::path::LogicalPath;
use declarest_core::payload::{Descriptor, Value};
use declarest_core::repository::{
    self, ApplyTarget, Changes, GitTree, Mirror, RepositoryError, ResourceFile, Revision, Undeclared,
};
use declarest_core::sync::{Candidate, Selection};
use kube::api::ObjectMeta;

use super::decision::Trigger;
use crate::controller::context::Context;
use crate::controller::error::Failure;
use crate::controller::outcome::Reason;
use crate::crd::sync_policy::RunKind;

/// More targets than this make an incremental run pointless.
const MAX_TARGETS: usize = 200;
/// Deletions that never need approval, so that what the policy owns need not be counted.
const FEW: usize = 10;

/// What a selection is made from.
#[derive(Clone)]
pub struct Request {
    pub mirror: Mirror,
    pub scope: LogicalPath,
    pub recursive: bool,
    pub prune: bool,
    /// The commit to diff from; `None` selects the whole scope.
    pub base: Option<Revision>,
    pub target: Revision,
    /// The policy's first commit; what was declared since then may be pruned.
    pub inventory_base: Option<Revision>,
    /// The commit last applied without a failure.
    pub applied: Option<Revision>,
    /// What failed in the last run: to apply, and to delete.
    pub failed_applies: Vec<LogicalPath>,
    pub failed_prunes: Vec<LogicalPath>,
    pub trigger: Trigger,
}

/// A selection, and how it came about.
pub struct Selected {
    pub selection: Selection,
    pub kind: RunKind,
    pub trigger: Trigger,
    pub tree: Arc<GitTree>,
    /// The policy's first commit: the one asked for, or the target where that one is not known here.
    pub inventory_base: Revision,
}

/// Selects incrementally where that is sure to miss nothing, else the whole scope, and pins the commits
/// that later runs may need.
///
/// Commits of the policy's past that the mirror does not know are left out: after the repository's URL
/// changed its history begins anew, and nothing of the old one can be pruned.
pub fn select(mut request: Request, pins: &Pins) -> Result<Selected, RepositoryError> {
    request.applied = known(&request.mirror, request.applied)?;
    let inventory_base = known(&request.mirror, request.inventory_base)?;
    let inventory_base = inventory_base.unwrap_or_else(|| request.target.clone());
    request.inventory_base = Some(inventory_base.clone());
    pins.keep(&request.mirror, Some(&inventory_base), request.applied.as_ref(), &request.target)?;
    let (selection, kind, trigger, tree) = choose(&request)?;
    Ok(Selected { selection, kind, trigger, tree, inventory_base })
}

/// The revision, if the mirror has it. Trouble with reading is an error: an inventory that is forgotten is
/// forgotten for good.
fn known(mirror: &Mirror, revision: Option<Revision>) -> Result<Option<Revision>, RepositoryError> {
    let Some(revision) = revision else { return Ok(None) };
    match mirror.tree(&revision) {
        Ok(_) => Ok(Some(revision)),
        Err(RepositoryError::RevisionMissing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn choose(request: &Request) -> Result<(Selection, RunKind, Trigger, Arc<GitTree>), RepositoryError> {
    let tree = Arc::new(request.mirror.tree(&request.target)?);
    let Some(base) = &request.base else {
        let selection = full(request, tree.as_ref())?;
        return Ok((selection, RunKind::Full, request.trigger, tree));
    };
    match incremental(request, base, tree.as_ref()) {
        Ok(Some(selection)) => {
            return Ok((selection, RunKind::Incremental, request.trigger, tree));
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "cannot plan incrementally, comparing the whole scope"),
    }
    let selection = full(request, tree.as_ref())?;
    Ok((selection, RunKind::Full, Trigger::LowDiffConfidence, tree))
}

fn full(request: &Request, tree: &GitTree) -> Result<Selection, RepositoryError> {
    let mut selection = Selection::full(tree, &request.scope, request.recursive)?;
    if request.prune {
        selection.prune = undeclared(request, tree)?;
    }
    Ok(selection)
}

/// Everything in scope that Git declared while the policy ran and does not declare now.
fn undeclared(request: &Request, tree: &GitTree) -> Result<Vec<Candidate>, RepositoryError> {
    let Request { mirror, scope, target, .. } = request;
    let mut found: Vec<Undeclared> = Vec::new();
    for base in [&request.inventory_base, &request.applied].into_iter().flatten() {
        found.extend(mirror.undeclared_since(base, target, scope)?);
    }
    let mut seen = BTreeSet::new();
    let only_itself = !request.recursive && is_resource(request, tree)?;
    let selected = |path: &LogicalPath| {
        path == scope || request.recursive || (!only_itself && scope.child_of(path).is_some())
    };
    let owned = found
        .into_iter()
        .filter(|undeclared| selected(&undeclared.path))
        .filter(|undeclared| seen.insert(undeclared.path.clone()));
    Ok(owned.filter_map(|undeclared| candidate(mirror, undeclared)).collect())
}

/// Whether the scope is a resource, now or when the policy began; then a policy that is not recursive owns
/// that resource alone, else its direct children.
fn is_resource(request: &Request, tree: &GitTree) -> Result<bool, RepositoryError> {
    if repository::resource_file(tree, &request.scope)?.is_some() {
        return Ok(true);
    }
    let Some(base) = &request.inventory_base else { return Ok(false) };
    Ok(repository::resource_file(&request.mirror.tree(base)?, &request.scope)?.is_some())
}

/// A declaration that cannot be read never was applied, and without its payload the resource's id on the
/// server is a guess. Nothing is deleted on a guess.
fn candidate(mirror: &Mirror, undeclared: Undeclared) -> Option<Candidate> {
    let Undeclared { path, revision, file } = undeclared;
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension).to_owned();
    let file = ResourceFile { path: path.clone(), file, descriptor: Descriptor::from_extension(&extension) };
    let read = || {
        let tree = mirror.tree(&revision)?;
        Ok::<_, RepositoryError>((repository::read_payload(&tree, &file)?, tree))
    };
    match read() {
        Ok((payload, tree)) => Some(Candidate { path, payload, declared_in: Some(Arc::new(tree)) }),
        Err(error) => {
            tracing::warn!(%path, %error, "not pruned: its last declaration cannot be read");
            None
        }
    }
}

/// The changes since `base` and what failed last; `None` where the diff does not say enough.
fn incremental(
    request: &Request,
    base: &Revision,
    tree: &GitTree,
) -> Result<Option<Selection>, RepositoryError> {
    let Request { mirror, scope, target, .. } = request;
    let (mut apply, mut prune) = (Vec::new(), Vec::new());
    let base_tree = mirror.tree(base)?;
    if base != target {
        if !mirror.descends(target, base)? {
            return Ok(None);
        }
        let files = mirror.diff(base, target)?;
        match repository::classify(&files, &base_tree, tree, scope)? {
            Changes::Full { file, .. } => {
                tracing::info!(file, "a change that cannot be narrowed down, comparing the whole scope");
                return Ok(None);
            }
            Changes::Targets { apply: affected, prune: removed } => {
                apply = affected;
                prune = removed;
            }
        }
    }
    let retried = request.failed_applies.iter().filter(|path| path.is_within(scope));
    apply.extend(retried.map(|path| ApplyTarget { path: path.clone(), recursive: false }));
    if apply.iter().any(|target| target.recursive && target.path == *scope) {
        return Ok(None);
    }
    let mut selection = Selection::targets(tree, &apply)?;
    let touched = selection.targeted() + prune.len();
    if base != target && touched > 0 {
        // More than half of what was declared before: what is left must be at least the other half.
        // Counting stops once that is clear, so the cost follows the change and not the scope.
        let other_half = (touched * 2).saturating_sub(prune.len());
        if touched > MAX_TARGETS || !repository::declares_at_least(tree, scope, other_half)? {
            return Ok(None);
        }
    }
    if request.prune {
        selection.prune = removed(request, tree, &prune)?;
        // Two paths can mean one resource where ids are not names, and only a look at all of them tells.
        if selection.prune.iter().any(is_renamed) {
            return Ok(None);
        }
        // The limit is a share of what the policy owns, so with many deletions that must be known.
        if selection.prune.len() > FEW {
            let declared = repository::resources(tree, scope, request.recursive)?;
            selection.declared = Some(declared.resources.len() + declared.broken.len());
        }
    }
    Ok(Some(selection))
}

/// Removed paths, and failed deletions that are still not declared.
fn removed(
    request: &Request,
    tree: &GitTree,
    removed: &[LogicalPath],
) -> Result<Vec<Candidate>, RepositoryError> {
    if removed.is_empty() && request.failed_prunes.is_empty() {
        return Ok(Vec::new());
    }
    let mut base = request.clone();
    if let Some(from) = &request.base
        && request.failed_prunes.is_empty()
    {
        // What a diff removed was declared at its base, so no older history is needed.
        base.inventory_base = Some(from.clone());
        base.applied = None;
    }
    let wanted: BTreeSet<&LogicalPath> = removed.iter().chain(&request.failed_prunes).collect();
    let mut candidates = undeclared(&base, tree)?;
    candidates.retain(|candidate| wanted.contains(&candidate.path));
    Ok(candidates)
}

/// Whether the payload states an id that is not the path's own name.
fn is_renamed(candidate: &Candidate) -> bool {
    let id = candidate.payload.get("id").and_then(Value::scalar_text);
    id.is_some_and(|id| id.trim() != candidate.path.name())
}

/// Names of the pins of one policy.
pub struct Pins {
    uid: String,
}

impl Pins {
    pub fn of(policy: &ObjectMeta) -> Self {
        Self { uid: policy.uid.clone().unwrap_or_default() }
    }

    fn names(&self) -> [String; 3] {
        ["base", "applied", "attempted"].map(|role| format!("{}/{role}", self.uid))
    }

    /// Keeps what the policy may still diff from, whatever happens to the branch.
    pub fn keep(
        &self,
        mirror: &Mirror,
        base: Option<&Revision>,
        applied: Option<&Revision>,
        attempted: &Revision,
    ) -> Result<(), RepositoryError> {
        let revisions = [base, applied, Some(attempted)];
        for (name, revision) in self.names().iter().zip(revisions) {
            if let Some(revision) = revision {
                mirror.pin(name, revision)?;
            }
        }
        Ok(())
    }
}

/// Removes the pins of a policy that is being deleted, from whichever mirror holds them.
pub async fn unpin_everywhere(context: &Context, policy: &ObjectMeta) -> Result<(), Failure> {
    let names = Pins::of(policy).names();
    let namespace = policy.namespace.clone().unwrap_or_default();
    let mirrors = context.mirrors.of_namespace(&namespace);
    let unpinned = tokio::task::spawn_blocking(move || {
        mirrors.iter().try_for_each(|mirror| names.iter().try_for_each(|name| mirror.unpin(name)))
    });
    match unpinned.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::new(Reason::ReconcileFailed, error.to_string())),
        Err(error) => Err(Failure::new(Reason::ReconcileFailed, error.to_string())),
    }
}
