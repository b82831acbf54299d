//! Selects the resources of a run from the mirror. All functions block on Git and run on the blocking pool.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

use declarest_core::error::Categorized as _;
use declarest_core::memory::LIGHT;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{
    self, ApplyTarget, Changes, EntryKind, GitTree, Mirror, RepositoryError, Revision,
};
use declarest_core::sync::{self, Candidate, Failure, FailureReason, Selection};

use super::decision::Trigger;
use super::inventory::{Inventory, Past, Pins, Settling};
use crate::crd::sync_policy::RunKind;

/// Maximum number of targets of an incremental run. With more, the whole scope is compared.
const MAX_TARGETS: usize = 200;
/// Number of deletions that never need approval. Up to this number of changes, the resources of the policy are not counted.
const FEW: usize = 10;
/// The most memory of all payloads of removed resources that are not small. They are held during the whole run.
const LARGE_CANDIDATES: usize = 32 << 20;

/// The input of a selection.
#[derive(Clone)]
pub struct Request {
    pub mirror: Mirror,
    pub scope: LogicalPath,
    pub recursive: bool,
    pub prune: bool,
    /// The commit to diff from; `None` selects the whole scope.
    pub base: Option<Revision>,
    pub target: Revision,
    /// Whether this process has looked at the whole scope.
    pub knows_scope: bool,
    /// The revisions of earlier runs in the status.
    pub past: Past,
    /// The current owner of the inventory.
    pub owner: String,
    /// Resources that the last run failed to apply.
    pub failed_applies: Vec<LogicalPath>,
    pub failed_prunes: Vec<LogicalPath>,
    /// Resources that did not converge.
    pub unsettled: Vec<LogicalPath>,
    pub trigger: Trigger,
}

/// A selection, and the kind of its run.
pub struct Selected {
    pub selection: Selection,
    pub kind: RunKind,
    pub trigger: Trigger,
    pub tree: Arc<GitTree>,
    /// The revision at which the inventory begins.
    pub inventory_base: Revision,
    /// Set if the run examines all resources to prune, except for pending ones.
    pub settling: Option<Settling>,
    /// Resources that did not converge, and that Git no longer declares.
    pub no_longer_declared: Vec<LogicalPath>,
}

/// Selects the changed resources if that is certain to be complete, otherwise the whole scope. Pins the commits that
/// later runs may need.
pub fn select(request: &Request, pins: &Pins) -> Result<Selected, RepositoryError> {
    // The inventory decides which resources may be pruned.
    let inventory = Inventory::open(&request.mirror, pins, &request.past, &request.owner, &request.target)?;
    let tree = Arc::new(request.mirror.tree(&request.target)?);
    let narrowed = narrowed(request, &inventory, &tree);
    let (kind, trigger) = match (&narrowed, &request.base) {
        (Some(_), _) => (RunKind::Incremental, request.trigger),
        (None, None) => (RunKind::Full, request.trigger),
        (None, Some(_)) => (RunKind::Full, Trigger::LowDiffConfidence),
    };
    // Whether files hide resources of the policy.
    let (mut selection, hides) = match narrowed {
        Some(narrowed) => (narrowed, false),
        None => full(request, &inventory, &tree)?,
    };
    if let Some(applied) = &inventory.applied {
        selection.former = Some(Arc::new(request.mirror.tree(applied)?));
    }
    let is_gone = |path: &&LogicalPath| matches!(repository::resource_file(tree.as_ref(), path), Ok(None));
    let no_longer_declared = request.unsettled.iter().filter(is_gone).cloned().collect();
    let unexamined = match (&request.base, kind) {
        _ if !request.prune || hides => None,
        (_, RunKind::Full) => Some(Vec::new()),
        (Some(base), RunKind::Incremental) if inventory.is_settled_at(base) => {
            Some(pending(&inventory, &selection, tree.as_ref()))
        }
        (_, RunKind::Incremental) => None,
    };
    let revision = |candidate: &Candidate| {
        Some((candidate.path.clone(), candidate.declared_in.as_ref()?.revision()?.clone()))
    };
    let declared_in = selection.prune.iter().filter_map(revision).collect();
    let inventory_base = inventory.base.clone();
    let settling = unexamined.map(|unexamined| Settling { unexamined, inventory, declared_in });
    Ok(Selected { selection, kind, trigger, tree, inventory_base, settling, no_longer_declared })
}

/// Returns the pending resources that are neither declared nor selected.
fn pending(inventory: &Inventory, selection: &Selection, tree: &GitTree) -> Vec<LogicalPath> {
    let is_pending = |path: &&LogicalPath| {
        !selection.prune.iter().any(|candidate| candidate.path == **path)
            && !matches!(repository::resource_file(tree, path), Ok(Some(_)))
    };
    inventory.pending.iter().filter(is_pending).cloned().collect()
}

/// Selects the resources that changed since the base; `None` if that is not certain to be complete.
fn narrowed(request: &Request, inventory: &Inventory, tree: &GitTree) -> Option<Selection> {
    let base = request.base.as_ref().filter(|_| !inventory.is_new)?;
    incremental(request, inventory, base, tree).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot select changed resources only; comparing the whole scope");
        None
    })
}

/// Selects the whole scope. Also returns whether files hide resources of the policy.
fn full(
    request: &Request,
    inventory: &Inventory,
    tree: &GitTree,
) -> Result<(Selection, bool), RepositoryError> {
    let mut selection = Selection::full(tree, &request.scope, request.recursive)?;
    if !request.prune {
        return Ok((selection, false));
    }
    let Undeclared { gone, hidden } = undeclared(request, inventory, &inventory.revisions(), tree)?;
    let hides = !hidden.is_empty();
    selection.prune = gone;
    selection.broken.extend(hidden);
    selection.broken.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((selection, hides))
}

/// Resources that the policy owns and Git no longer declares.
#[derive(Default)]
struct Undeclared {
    gone: Vec<Candidate>,
    /// Files that hide resources of the policy, so that it is unknown whether they are declared.
    hidden: Vec<Failure>,
}

/// Returns the resources of the inventory that one of the revisions `seen` declares and `tree` does not.
fn undeclared(
    request: &Request,
    inventory: &Inventory,
    seen: &[Revision],
    tree: &GitTree,
) -> Result<Undeclared, RepositoryError> {
    let Request { mirror, scope, target, .. } = request;
    let only_itself = !request.recursive && is_resource(request, inventory, seen, tree)?;
    let selected = |path: &LogicalPath| {
        path == scope || request.recursive || (!only_itself && scope.child_of(path).is_some())
    };
    let (mut found, mut hiding) = (Undeclared::default(), BTreeSet::new());
    let mut room = LARGE_CANDIDATES;
    for undeclared in mirror.undeclared(seen, target, scope)? {
        if !selected(&undeclared.path) || !inventory.owns(&undeclared.path, &undeclared.revision) {
            continue;
        }
        match undeclared.hidden_by {
            Some((file, kind)) if hiding.insert(file.clone()) => {
                found.hidden.push(hidden(scope, undeclared.path, file, kind));
            }
            Some(_) => {}
            None => {
                let candidate = candidate(mirror, inventory, undeclared, room)?;
                let weight = candidate.as_ref().map_or(0, |candidate| candidate.payload.weight());
                room -= if weight > LIGHT { weight.min(room) } else { 0 };
                found.gone.extend(candidate);
            }
        }
    }
    Ok(found)
}

/// Returns the failure of a `file` that hides `path`, and possibly others.
fn hidden(scope: &LogicalPath, path: LogicalPath, file: String, kind: EntryKind) -> Failure {
    let at = file.split('/').try_fold(LogicalPath::root(), |path, segment| path.child(segment));
    // A payload file hides the resource itself. A file above the scope hides the whole scope.
    let at = at.ok().filter(|at| path.is_within(at)).unwrap_or_else(|| path.clone());
    let at = if at.is_within(scope) { at } else { scope.clone() };
    let kind = if kind == EntryKind::File { "a file" } else { "a symbolic link or a submodule" };
    let error = RepositoryError::Hidden { path, file, kind };
    let reason = FailureReason::Category(error.category());
    Failure::local(at, sync::LIST, reason, error.to_string())
}

/// Returns whether the scope is a resource, now or in one of the revisions `seen`. A policy that is not recursive then
/// owns only that resource, otherwise the direct children.
fn is_resource(
    request: &Request,
    inventory: &Inventory,
    seen: &[Revision],
    tree: &GitTree,
) -> Result<bool, RepositoryError> {
    if repository::resource_file(tree, &request.scope)?.is_some() {
        return Ok(true);
    }
    // Earlier ones are only needed for pending resources.
    for revision in seen.iter().filter(|revision| inventory.seen.contains(revision)) {
        if repository::resource_file(&request.mirror.tree(revision)?, &request.scope)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns a resource to delete, as its last declaration that can be decoded states it: others were never applied. Returns
/// `None` if there is none since the resource was declared last, because its id is then unknown. A payload needs at most
/// `room` bytes of memory, or is small.
fn candidate(
    mirror: &Mirror,
    inventory: &Inventory,
    undeclared: repository::Undeclared,
    room: usize,
) -> Result<Option<Candidate>, RepositoryError> {
    let repository::Undeclared { path, revision: newest, .. } = undeclared;
    let seen = inventory.revisions();
    let older = seen.iter().skip_while(|seen| **seen != newest).skip(1);
    for revision in iter::once(&newest).chain(older) {
        if !inventory.owns(&path, revision) {
            break;
        }
        let tree = mirror.tree(revision)?;
        let payload = repository::resource_file(&tree, &path).and_then(|file| {
            file.map(|file| repository::read_payload_within(&tree, &file, room.max(LIGHT))).transpose()
        });
        match payload {
            Ok(Some(payload)) => {
                return Ok(Some(Candidate { path, payload, declared_in: Some(Arc::new(tree)) }));
            }
            // What a revision before this one declared was removed, and may have been pruned.
            Ok(None) => break,
            Err(RepositoryError::SeveralPayloads { .. } | RepositoryError::LfsPointer(..)) => {}
            Err(error @ RepositoryError::Payload { .. }) if !error.is_too_heavy() => {}
            Err(error) if error.is_too_heavy() && *revision != newest => break,
            Err(error) => return Err(error),
        }
    }
    tracing::warn!(%path, "not pruned: its last declaration cannot be read");
    Ok(None)
}

/// Selects the changes since `base` and the failures of the last run. Returns `None` if the diff is not sufficient.
fn incremental(
    request: &Request,
    inventory: &Inventory,
    base: &Revision,
    tree: &GitTree,
) -> Result<Option<Selection>, RepositoryError> {
    let Request { mirror, scope, target, .. } = request;
    let (mut apply, mut prune) = (Vec::new(), Vec::new());
    let base_tree = mirror.tree(base)?;
    // The changes since the base.
    if base != target {
        if !mirror.descends(target, base)? {
            return Ok(None);
        }
        let files = mirror.diff(base, target)?;
        match repository::classify(&files, &base_tree, tree, scope)? {
            Changes::Full { file, .. } => {
                tracing::info!(file, "the change may affect all resources; comparing the whole scope");
                return Ok(None);
            }
            Changes::Targets { apply: affected, prune: removed } => {
                apply = affected;
                prune = removed;
            }
        }
    }
    // The failures of the last run.
    let retried = request.failed_applies.iter().filter(|path| path.is_within(scope));
    apply.extend(retried.map(|path| ApplyTarget { path: path.clone(), recursive: false }));
    if apply.iter().any(|target| target.recursive && target.path == *scope) {
        return Ok(None);
    }
    let mut selection = Selection::targets(tree, &apply)?;
    let touched = selection.targeted() + prune.len();
    if base != target && touched > 0 {
        // Compare the whole scope if more than half of the declared resources changed. The count stops as soon as this
        // is decided, so the cost depends on the change and not on the scope.
        let other_half = (touched * 2).saturating_sub(prune.len());
        if touched > MAX_TARGETS || !repository::declares_at_least(tree, scope, other_half)? {
            return Ok(None);
        }
    }
    // The resources to prune.
    if request.prune {
        let Undeclared { gone, hidden } = removed(request, inventory, tree, &prune)?;
        if !hidden.is_empty() {
            return Ok(None);
        }
        // A resource may refer to one of them, and is looked at first.
        if !gone.is_empty() && !request.knows_scope {
            return Ok(None);
        }
        selection.prune = gone;
    }
    // The limit can be a percentage of the owned resources, so they are counted if there may be many deletions. Targets may
    // be replaced, which is known later.
    if selection.prune.len() + selection.targeted() > FEW {
        let declared = repository::resources(tree, scope, request.recursive)?;
        selection.declared = Some(declared.resources.len() + declared.broken.len());
    }
    Ok(Some(selection))
}

/// Returns the removed resources, and those of failed deletions that are still not declared.
fn removed(
    request: &Request,
    inventory: &Inventory,
    tree: &GitTree,
    removed: &[LogicalPath],
) -> Result<Undeclared, RepositoryError> {
    if removed.is_empty() && request.failed_prunes.is_empty() {
        return Ok(Undeclared::default());
    }
    // Resources that a diff removed are declared at its base, so older revisions are not needed.
    let seen = match &request.base {
        Some(base) if request.failed_prunes.is_empty() => vec![base.clone()],
        _ => inventory.revisions(),
    };
    let wanted: BTreeSet<&LogicalPath> = removed.iter().chain(&request.failed_prunes).collect();
    let mut found = undeclared(request, inventory, &seen, tree)?;
    found.gone.retain(|candidate| wanted.contains(&candidate.path));
    Ok(found)
}
