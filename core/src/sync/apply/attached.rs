//! Candidates to which declared resources still refer on the server: without their update, the server may delete both.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::FutureExt as _;

use super::{Effect, Execution};
use crate::language::reference::references;
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::repository::{self, Tree};
use crate::sync::model::{Action, Candidate, PRUNE, SyncError};
use crate::sync::tasks::{blocking, evaluated};

impl Execution {
    /// Returns those of `deletions` to which a declared resource referred in a revision that declared one of them, each with
    /// the resource, if that failed in this run, or was updated and still differs there.
    pub(super) async fn attached(&self, deletions: &[Arc<Action>]) -> HashMap<LogicalPath, LogicalPath> {
        let candidates = deletions.iter().filter_map(|action| self.pruning.candidates.get(&action.path));
        let candidates: HashMap<&LogicalPath, &Candidate> = candidates.map(|it| (&it.path, it)).collect();
        let trees = trees(candidates.values().copied());
        if trees.is_empty() {
            return HashMap::new();
        }
        let failures = self.report.failures.iter().filter(|failure| failure.operation != PRUNE);
        let failed: BTreeSet<LogicalPath> = failures.map(|failure| failure.path.clone()).collect();
        let is_changed = |effect: &Effect| matches!(effect, Effect::Updated | Effect::Unsettled);
        let changed = self.effects.iter().filter(|(_, effect)| is_changed(effect)).map(|(path, _)| path);
        let paths: BTreeSet<LogicalPath> = failed.iter().chain(changed).cloned().collect();
        // A resource that Git moves had another path.
        let moved =
            self.report.kept.iter().filter_map(|kept| Some((kept.declared_at.clone()?, kept.path.clone())));
        let moved: HashMap<LogicalPath, LogicalPath> = moved.collect();
        let former = move || {
            let of = |path: LogicalPath| {
                let places = [Some(&path), moved.get(&path)].into_iter().flatten();
                let places = places.flat_map(|place| trees.iter().map(move |tree| (place, tree)));
                let referred: Vec<_> =
                    places.flat_map(|(place, tree)| referred(tree.as_ref(), place)).collect();
                (path, referred)
            };
            Ok(paths.into_iter().map(of).collect::<Vec<_>>())
        };
        let mut attached = HashMap::new();
        for (path, referred) in blocking(LogicalPath::root(), former).await.unwrap_or_default() {
            for (candidate, at) in referred {
                let is_attached = candidates.contains_key(&candidate)
                    && !attached.contains_key(&candidate)
                    && (failed.contains(&path) || self.differs(&path, &at).await.unwrap_or(true));
                attached.extend(is_attached.then(|| (candidate, path.clone())));
            }
        }
        attached
    }

    /// Whether the server shows another value than Git `at` this place of the resource at `path`.
    async fn differs(&self, path: &LogicalPath, at: &Pointer) -> Result<bool, SyncError> {
        let writer = &self.writer;
        // As a trait object, because the type of this future is too deep for the compiler.
        let desired = writer.desired(path).boxed().await?;
        let observed = writer.read(&desired).await?;
        let Some(shown) = observed.payload else { return Ok(false) };
        let differences =
            evaluated(desired, move |desired| Ok(desired.evaluation()?.compare(&shown)?)).await?;
        let is_there = |place: &str| {
            let place = Pointer::parse(place).unwrap_or_default();
            place.tokens().starts_with(at.tokens()) || at.tokens().starts_with(place.tokens())
        };
        Ok(differences.iter().any(|difference| is_there(&difference.path)))
    }
}

/// Returns the paths to which the resource at `path` refers in `tree`, each with the place of the reference. A payload that
/// cannot be read was not applied in this revision.
fn referred(tree: &dyn Tree, path: &LogicalPath) -> Vec<(LogicalPath, Pointer)> {
    let file = repository::resource_file(tree, path).ok().flatten();
    let payload = file.and_then(|file| repository::read_payload(tree, &file).ok()).unwrap_or_default();
    let found = references(&payload).unwrap_or_default().into_iter();
    found.map(|(at, reference)| (reference.path, at)).collect()
}

/// Returns the revisions that declared these candidates last.
fn trees<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> Vec<Arc<dyn Tree>> {
    let trees = candidates.filter_map(|candidate| candidate.declared_in.clone());
    let by_revision: BTreeMap<_, _> =
        trees.map(|tree| (tree.revision().map(ToString::to_string), tree)).collect();
    by_revision.into_values().collect()
}
