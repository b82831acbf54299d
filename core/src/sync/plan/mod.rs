//! What a run will do, as a value.
//!
//! ```text
//! prune, saved   the brakes of pruning; plans in files
//! decide         one resource
//! undeclared     one candidate for deletion
//! survey         all that is selected, resource by resource
//! ```

pub(super) mod decide;
mod prune;
pub(super) mod saved;
pub(super) mod survey;
mod undeclared;

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use crate::path::LogicalPath;
use crate::repository::Revision;
use crate::sync::model::{
    Action, Failure, Kept, Options, PRUNE, PruneRefused, Reason, Recurrences, Report, Resource, Stats, Step,
    Stop, SyncError,
};
use saved::Summary;

/// Everything a run will do, as a value. It serialises to JSON.
///
/// Executing it decides again only on what no plan can foresee: 409, 412, 404 and lost answers. A create may leave the
/// making of its request to the moment when it is sent; what it sends is fixed by the revision.
#[derive(Debug, Default, Serialize)]
pub struct Plan {
    /// The commit it was made from, if the tree is one.
    pub revision: Option<Revision>,
    /// One action per observed resource, sorted by path, but for those that are only counted.
    pub actions: Vec<Action>,
    /// Resources that are equal and not among `actions`: in a plan for a whole scope, unless it is
    /// [sealable](Options::sealable) or keeps [what was compared](Options::keep_compared).
    pub unchanged: usize,
    /// Distinct desired resources selected.
    pub targeted: usize,
    /// What could not be read, rendered or observed.
    pub failures: Vec<Failure>,
    /// What is not pruned because Git declares it under another path, or something below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// Set when pruning was refused as a whole; then no action deletes.
    pub prune_refused: Option<PruneRefused>,
    /// Selected resources that the tree does not hold, should their desired state be needed once more.
    #[serde(skip)]
    pub(super) given: HashMap<LogicalPath, Resource>,
    /// What earlier runs saw of what does not converge.
    #[serde(skip)]
    pub(super) recurrences: Option<Arc<Recurrences>>,
    /// How many resources the scope declares.
    #[serde(skip)]
    pub(super) declared: usize,
    /// Whether all was selected that the scope declares.
    #[serde(skip)]
    pub(super) whole_scope: bool,
}

impl Plan {
    /// The plan with all that was decided in path order, and without deletions when there are too many.
    pub(super) fn finished(mut self, options: &Options) -> Self {
        self.actions.sort_by(|a, b| a.path.cmp(&b.path));
        self.kept.sort_by(|a, b| a.path.cmp(&b.path));
        self.spare_below_occupied();
        let is_doomed = |action: &&Action| action.step == Step::Delete && action.reason == Reason::Undeclared;
        let doomed: Vec<LogicalPath> =
            self.actions.iter().filter(is_doomed).map(|action| action.path.clone()).collect();
        self.prune_refused = prune::check(&doomed, self.declared, self.whole_scope, options);
        if self.prune_refused.is_some() {
            self.actions.retain(|action| action.step != Step::Delete);
        }
        self
    }

    /// Drops deletions below a path whose resource Git declares under another path: what is there belongs to that
    /// resource now, and what becomes of it has to be decided by people.
    fn spare_below_occupied(&mut self) {
        let occupied = || self.kept.iter().filter(|kept| kept.occupied).map(|kept| &kept.path);
        self.actions.retain(|action| {
            let parent = occupied().find(|path| action.path != **path && action.path.is_within(path));
            let Some(parent) = parent.filter(|_| action.step == Step::Delete) else { return true };
            let reason = format!(
                "{}: the resource of its parent {parent} is declared under another path; delete it there by hand if it is obsolete",
                action.path
            );
            self.failures.push(Failure::new(action.path.clone(), PRUNE, &SyncError::NotDeleted(reason)));
            false
        });
    }

    /// Whether something has to be written.
    pub(super) fn has_work(&self) -> bool {
        self.actions.iter().any(|action| action.reason != Reason::Equal)
    }

    /// The report of a run that only looked.
    pub(super) fn observed(self, stop: &Stop) -> Report {
        let Summary { create, update, delete, unchanged } = self.summary();
        let drifted = create + update + delete;
        let stats =
            Stats { targeted: self.targeted, applied: unchanged, unchanged, drifted, ..Stats::default() };
        let Self { failures, kept, prune_refused, .. } = self;
        Report { stats, failures, prune_refused, kept, ..Report::default() }.concluded(None, stop)
    }
}
