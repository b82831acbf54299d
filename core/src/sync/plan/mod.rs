//! The plan of a run.
//!
//! ```text
//! graph          dependencies of actions
//! prune, saved   the limits of pruning; plans in files
//! referred       deletions that are not sent because of declared resources
//! address        the addresses of a declared resource
//! decide         one resource
//! claims         the names and addresses of all declared resources
//! claimants      the declared resource that a resource of the server is
//! undeclared     one candidate for deletion
//! declared       one declared resource, with its checks
//! assigned       resources that were created under another id
//! names          declared resources that are one
//! survey         the whole selection, resource by resource
//! ```

mod address;
mod assigned;
mod claimants;
mod claims;
pub(super) mod decide;
mod declared;
pub(super) mod graph;
pub(super) mod names;
mod prune;
pub(super) mod referred;
pub(super) mod saved;
pub(super) mod survey;
pub(super) mod undeclared;
mod unsent;

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use crate::path::LogicalPath;
use crate::repository::Revision;
use crate::sync::model::{
    Action, Drift, Failure, Kept, Options, PRUNE, PruneRefused, Reason, Report, Resource, Scope, Sending,
    Sent, Stats, Step, Stop, SyncError,
};
use crate::sync::observe::{Former, References};
use graph::{Order, deadlock};
use prune::Doomed;
pub(super) use undeclared::Pruning;

/// All actions of a run, as a value. It serialises to JSON.
///
/// Its execution decides again only after answers that no plan can foresee: 409, 412, 404 and lost answers. The request
/// of a create may be made when it is sent; the revision determines its content.
#[derive(Debug, Default, Serialize)]
pub struct Plan {
    /// The commit of the plan, if the tree is a commit.
    pub revision: Option<Revision>,
    /// One action per observed resource, sorted by path, except resources that are only counted.
    pub actions: Vec<Action>,
    /// The number of equal resources that are not among `actions`. A plan for a whole scope only counts them, unless it
    /// is [sealable](Options::sealable) or keeps the [compared payloads](Options::keep_compared).
    pub unchanged: usize,
    /// The number of distinct desired resources selected.
    pub targeted: usize,
    /// Resources that could not be read, rendered or observed.
    pub failures: Vec<Failure>,
    /// Resources that are not pruned because Git declares them under another path, Git declares resources below them,
    /// or metadata states so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// Set if pruning was refused as a whole. Then no action deletes.
    pub prune_refused: Option<PruneRefused>,
    /// Selected resources that the tree does not contain, in case their desired state is needed again.
    #[serde(skip)]
    pub(super) given: HashMap<LogicalPath, Resource>,
    /// The contents of resources that others refer to, as they were read for the plan.
    #[serde(skip)]
    pub(super) references: Arc<References>,
    /// What earlier runs applied.
    #[serde(skip)]
    pub(super) former: Arc<Former>,
    /// The options of the run.
    #[serde(skip)]
    pub(super) options: Options,
    /// What the deletions need besides their actions.
    #[serde(skip)]
    pub(super) pruning: Pruning,
    /// The number of resources that the scope declares.
    #[serde(skip)]
    pub(super) declared: usize,
    /// The deletions that earlier passes of the run have sent.
    #[serde(skip)]
    pub(super) sent: Sent,
    /// The scope, if all of its resources were selected.
    #[serde(skip)]
    pub(super) scope: Option<Scope>,
}

impl Plan {
    /// Returns the plan with everything sorted by path, and without deletions if they exceed the limit.
    pub(super) fn finished(mut self, options: &Options) -> Self {
        self.actions.sort_by(|a, b| a.path.cmp(&b.path));
        self.spare_below_occupied();
        self.spare_above_kept();
        self.kept.sort_by(|a, b| a.path.cmp(&b.path));
        let Sent { deletions: sent, replaced, is_approved } = self.sent;
        let mut doomed = Doomed { replaced, sent, ..Doomed::default() };
        for action in self.actions.iter().filter(|action| action.step == Step::Delete) {
            if action.replaces() || action.reason == Reason::Undeclared && !is_approved {
                doomed.paths.push(action.path.clone());
                doomed.replaced += usize::from(action.replaces());
            }
        }
        self.prune_refused = prune::check(&doomed, self.declared, self.scope.is_some(), options);
        if self.prune_refused.is_some() {
            self.actions.retain(|action| action.step != Step::Delete);
        }
        self.omit_below_deleted();
        self.fail_cycles();
        self.failures.sort_by(|a, b| a.path.cmp(&b.path));
        self
    }

    /// Fails the actions whose dependencies form a cycle or lead to one, so that a plan shows them before it is applied.
    fn fail_cycles(&mut self) {
        let (writes, deletions): (Vec<_>, Vec<_>) = self
            .actions
            .iter_mut()
            .filter(|action| action.step != Step::Skip)
            .partition(|action| action.step != Step::Delete);
        for (mut actions, order) in [(writes, Order::ParentsFirst), (deletions, Order::ChildrenFirst)] {
            let (waiting, cycle) = deadlock(&actions, order);
            for place in waiting {
                let action = &mut *actions[place];
                if action.is_impossible() {
                    continue;
                }
                let error = SyncError::DependencyCycle(action.path.clone(), cycle.clone());
                self.failures.push(action.failed(&error));
                action.sending = Sending::Impossible(Box::new(error));
            }
        }
    }

    /// Drops deletions below a path whose resource Git declares under another path: the resources there belong to that
    /// resource now, and users have to decide about them.
    fn spare_below_occupied(&mut self) {
        let occupied = || self.kept.iter().filter(|kept| kept.declared_at.is_some()).map(|kept| &kept.path);
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

    /// Drops deletions above a resource that metadata keeps, because the server may delete both.
    fn spare_above_kept(&mut self) {
        let stated = self.kept.iter().filter(|kept| kept.stated).map(|kept| &kept.path);
        let stated: Vec<LogicalPath> = stated.cloned().collect();
        self.actions.retain(|action| {
            let below = |kept: &&LogicalPath| **kept != action.path && kept.is_within(&action.path);
            let below =
                stated.iter().find(below).filter(|_| action.step == Step::Delete && !action.replaces());
            let Some(below) = below else { return true };
            let reason = format!("metadata states resource.onRemove: keep for {below}, which is below it");
            tracing::info!(path = %action.path, reason, "not pruned");
            let path = action.path.clone();
            self.kept.push(Kept::new(path, reason));
            false
        });
    }

    /// Omits the remarks on singletons below resources that are deleted, because the server deletes both.
    fn omit_below_deleted(&mut self) {
        let is_deletion =
            |action: &&Action| action.step == Step::Delete && !action.replaces() && !action.resets();
        let doomed: Vec<&LogicalPath> = self.actions.iter().filter(is_deletion).map(|it| &it.path).collect();
        self.kept.retain(|kept| {
            !kept.by_default || !doomed.iter().any(|path| kept.path != **path && kept.path.is_within(path))
        });
    }

    /// Moves the actions with dependencies, the replacements, and the actions below them to `held`, which has those of
    /// earlier parts.
    pub(super) fn take_late(&mut self, held: &mut Vec<Action>) {
        self.actions.sort_by(|a, b| a.path.cmp(&b.path));
        let is_below =
            |action: &Action, held: &[Action]| held.iter().any(|parent| action.path.is_within(&parent.path));
        for action in std::mem::take(&mut self.actions) {
            let replaces = action.reason == Reason::Replaced;
            let waits = replaces || !action.depends_on().is_empty() || is_below(&action, held);
            if waits && action.step != Step::Skip { held.push(action) } else { self.actions.push(action) }
        }
    }

    /// Whether the plan has anything to write.
    pub(super) fn has_work(&self) -> bool {
        self.actions.iter().any(|action| action.reason != Reason::Equal)
    }

    /// Returns the report of a run in mode `observe`.
    pub(super) fn observed(self, stop: &Stop) -> Report {
        let unchanged = self.summary().unchanged;
        let Self { actions, failures, kept, prune_refused, targeted, .. } = self;
        let differing = actions.iter().filter(|action| action.step != Step::Skip && !action.is_impossible());
        let drift = |action: &Action| Drift {
            path: action.path.clone(),
            operation: action.operation(),
            pointers: action.pointers(),
        };
        let drifted: Vec<Drift> = differing.map(drift).collect();
        let stats =
            Stats { targeted, applied: unchanged, unchanged, drifted: drifted.len(), ..Stats::default() };
        Report { stats, failures, drifted, prune_refused, kept, ..Report::default() }.concluded(None, stop)
    }
}
