//! Which resources a run concerns, read from the mirror. Everything here blocks on Git and runs on the
//! blocking pool.

use std::collections::BTreeSet;
use std::sync::Arc;

use declarest_core::error::Categorized as _;
use declarest_core::path::LogicalPath;
use declarest_core::payload::Descriptor;
use declarest_core::repository::{
    self, ApplyTarget, Changes, EntryKind, GitTree, Mirror, RepositoryError, ResourceFile, Revision,
};
use declarest_core::sync::{self, Candidate, Failure, FailureReason, Selection};

use super::decision::Trigger;
use super::inventory::{Inventory, Past, Pins};
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
    /// What status has on record of earlier runs.
    pub past: Past,
    /// What the inventory belongs to now.
    pub owner: String,
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
    /// Where the inventory begins.
    pub inventory_base: Revision,
    /// Whether nothing of the past is left to prune once this run succeeded.
    pub settles_past: bool,
}

/// Selects incrementally where that is sure to miss nothing, else the whole scope, and pins the commits
/// that later runs may need.
pub fn select(request: &Request, pins: &Pins) -> Result<Selected, RepositoryError> {
    let inventory = Inventory::open(&request.mirror, pins, &request.past, &request.owner, &request.target)?;
    let (mut selection, kind, trigger, tree) = choose(request, &inventory)?;
    if let Some(applied) = &inventory.applied {
        selection.former = Some(Arc::new(request.mirror.tree(applied)?));
    }
    let settles_past = request.prune && kind == RunKind::Full && !is_any_needed(&selection.prune, &tree)?;
    Ok(Selected { selection, kind, trigger, tree, inventory_base: inventory.base, settles_past })
}

/// Whether a candidate is kept for now because something below it is declared.
fn is_any_needed(candidates: &[Candidate], tree: &GitTree) -> Result<bool, RepositoryError> {
    for candidate in candidates {
        if repository::declares_at_least(tree, &candidate.path, 1)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn choose(
    request: &Request,
    inventory: &Inventory,
) -> Result<(Selection, RunKind, Trigger, Arc<GitTree>), RepositoryError> {
    let tree = Arc::new(request.mirror.tree(&request.target)?);
    let Some(base) = &request.base else {
        let selection = full(request, inventory, tree.as_ref())?;
        return Ok((selection, RunKind::Full, request.trigger, tree));
    };
    let narrowed =
        if inventory.is_new { Ok(None) } else { incremental(request, inventory, base, tree.as_ref()) };
    match narrowed {
        Ok(Some(selection)) => {
            return Ok((selection, RunKind::Incremental, request.trigger, tree));
        }
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "cannot plan incrementally, comparing the whole scope"),
    }
    let selection = full(request, inventory, tree.as_ref())?;
    Ok((selection, RunKind::Full, Trigger::LowDiffConfidence, tree))
}

fn full(request: &Request, inventory: &Inventory, tree: &GitTree) -> Result<Selection, RepositoryError> {
    let mut selection = Selection::full(tree, &request.scope, request.recursive)?;
    if request.prune {
        let Undeclared { gone, hidden } = undeclared(request, &inventory.seen, tree)?;
        selection.prune = gone;
        selection.broken.extend(hidden);
        selection.broken.sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(selection)
}

/// What the policy owns and Git does not declare now.
#[derive(Default)]
struct Undeclared {
    gone: Vec<Candidate>,
    /// What hides resources of the policy, so that it is not known whether they are declared.
    hidden: Vec<Failure>,
}

/// Everything that the policy owns by one of the revisions `seen` and that Git does not declare now.
fn undeclared(request: &Request, seen: &[Revision], tree: &GitTree) -> Result<Undeclared, RepositoryError> {
    let Request { mirror, scope, target, .. } = request;
    let only_itself = !request.recursive && is_resource(request, seen, tree)?;
    let selected = |path: &LogicalPath| {
        path == scope || request.recursive || (!only_itself && scope.child_of(path).is_some())
    };
    let (mut found, mut hiding) = (Undeclared::default(), BTreeSet::new());
    for undeclared in mirror.undeclared(seen, target, scope)? {
        if !selected(&undeclared.path) {
            continue;
        }
        match undeclared.hidden_by {
            Some((file, kind)) if hiding.insert(file.clone()) => {
                found.hidden.push(hidden(scope, undeclared.path, file, kind));
            }
            Some(_) => {}
            None => found.gone.extend(candidate(mirror, undeclared)?),
        }
    }
    Ok(found)
}

/// The failure that says that `file` hides `path`, and maybe others.
fn hidden(scope: &LogicalPath, path: LogicalPath, file: String, kind: EntryKind) -> Failure {
    let at = file.split('/').try_fold(LogicalPath::root(), |path, segment| path.child(segment));
    // A payload file hides the resource itself, and what is above the scope all of the scope.
    let at = at.ok().filter(|at| path.is_within(at)).unwrap_or_else(|| path.clone());
    let at = if at.is_within(scope) { at } else { scope.clone() };
    let kind = if kind == EntryKind::File { "a file" } else { "a symbolic link or a submodule" };
    let error = RepositoryError::Hidden { path, file, kind };
    let reason = FailureReason::Category(error.category());
    Failure { path: at, operation: sync::LIST, reason, message: error.to_string() }
}

/// Whether the scope is a resource, now or in a revision that was seen; then a policy that is not recursive
/// owns that resource alone, else its direct children.
fn is_resource(request: &Request, seen: &[Revision], tree: &GitTree) -> Result<bool, RepositoryError> {
    if repository::resource_file(tree, &request.scope)?.is_some() {
        return Ok(true);
    }
    for revision in seen {
        if repository::resource_file(&request.mirror.tree(revision)?, &request.scope)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A declaration that does not decode never was applied, and without its payload the resource's id on the
/// server is a guess. Nothing is deleted on a guess.
fn candidate(
    mirror: &Mirror,
    undeclared: repository::Undeclared,
) -> Result<Option<Candidate>, RepositoryError> {
    let repository::Undeclared { path, revision, file, .. } = undeclared;
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension).to_owned();
    let file = ResourceFile { path: path.clone(), file, descriptor: Descriptor::from_extension(&extension) };
    let tree = mirror.tree(&revision)?;
    match repository::read_payload(&tree, &file) {
        Ok(payload) => Ok(Some(Candidate { path, payload, declared_in: Some(Arc::new(tree)) })),
        Err(error @ RepositoryError::Payload { .. }) => {
            tracing::warn!(%path, %error, "not pruned: its last declaration cannot be read");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The changes since `base` and what failed last; `None` where the diff does not say enough.
fn incremental(
    request: &Request,
    inventory: &Inventory,
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
        let Undeclared { gone, hidden } = removed(request, inventory, tree, &prune)?;
        if !hidden.is_empty() {
            return Ok(None);
        }
        selection.prune = gone;
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
    inventory: &Inventory,
    tree: &GitTree,
    removed: &[LogicalPath],
) -> Result<Undeclared, RepositoryError> {
    if removed.is_empty() && request.failed_prunes.is_empty() {
        return Ok(Undeclared::default());
    }
    // What a diff removed was declared at its base, so no older revision is needed.
    let seen = match &request.base {
        Some(base) if request.failed_prunes.is_empty() => std::slice::from_ref(base),
        _ => &inventory.seen,
    };
    let wanted: BTreeSet<&LogicalPath> = removed.iter().chain(&request.failed_prunes).collect();
    let mut found = undeclared(request, seen, tree)?;
    found.gone.retain(|candidate| wanted.contains(&candidate.path));
    Ok(found)
}
