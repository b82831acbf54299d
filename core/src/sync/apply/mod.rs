//! Executes plans: first creates and updates, parents before children; then deletions, children before parents.
//!
//! ```text
//! affected resources that the server may have deleted or changed together with others
//! attached candidates to which declared resources still refer on the server
//! confirm  answers to writes that do not prove their effect
//! created  what happens after a create
//! given    ids that the server assigned to created resources
//! order    the order of actions
//! probe    deletions that may delete a declared resource
//! remarks  texts about resources that differ after a write
//! send     requests, each when its turn comes
//! turns    which requests may be sent at once
//! write    the request of one action
//! ```

mod affected;
mod attached;
mod confirm;
mod created;
mod given;
mod listed;
mod order;
mod probe;
mod remarks;
mod send;
mod turns;
mod write;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::observe::file_at;
use super::plan::graph::Order;
use super::plan::referred::{not_moved, precedes, referred, referrer, still_needed};
use super::plan::survey::Surveyor;
use super::plan::{Plan, Pruning};
use super::tasks::blocking;
use crate::error::Category;
use crate::path::LogicalPath;
use crate::sync::model::{
    Action, Done, Failure, FailureReason, Intent, Options, PRUNE, REPLACE, Reason, Report, Scope, Selection,
    Sending, Sent, Session, Step, Stop, SyncError, Tally, WrittenValues, hide, is_alike,
};
use order::execute;
use remarks::{CORRECTION, shown_instead};
use write::Writer;

/// The number of requests that are prepared while others are sent: reading the payload and its secrets takes time.
const AHEAD: usize = 32;
/// The maximum number of further passes of a run.
const PASSES: usize = 3;

/// The effect of a run on a declared resource. If passes have several, the one that is listed last here counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    Unchanged,
    Updated,
    Created,
    /// It still differs: the write had no effect, or was not sent again.
    Unsettled,
}

/// The execution of the plans of one run.
pub struct Execution {
    writer: Arc<Writer>,
    tally: Tally,
    report: Report,
    /// Creates that failed.
    missing: BTreeSet<LogicalPath>,
    /// Created resources without their deferred attributes, and those that the server failed to show.
    deferred: BTreeSet<LogicalPath>,
    /// Deleted resources that are created again.
    replaced: BTreeSet<LogicalPath>,
    /// All resources that the run has deleted to create them again.
    doomed: BTreeSet<LogicalPath>,
    /// The resources that the run has deleted.
    pruned: HashSet<LogicalPath>,
    /// Declared resources that may no longer be in their desired state: those at addresses below a pruned one, which
    /// the server may have deleted together with it, and found ones that lack deferred attributes.
    endangered: BTreeSet<LogicalPath>,
    /// The number of resources that the scope declares.
    declared: usize,
    /// The effects on resources that the run has written, or reads again because others were written. The statistics of
    /// the report count the other unchanged ones.
    effects: HashMap<LogicalPath, Effect>,
    /// The scope, if the run reads all of it.
    scope: Option<Scope>,
    options: Options,
    pruning: Pruning,
}

impl Execution {
    /// Returns an execution for plans of the scope of `plan`.
    pub fn new(session: &Session, plan: &Plan, stop: &Stop) -> Self {
        let options = plan.options.clone();
        let earlier = options.recurrences.as_deref().cloned();
        let tally = Tally::new(earlier.unwrap_or_default(), plan.scope.is_some());
        let writer = Arc::new(Writer::new(session, plan, stop));
        let (report, missing, deferred, replaced, doomed, pruned) = Default::default();
        let (endangered, effects, pruning) = Default::default();
        Self {
            writer,
            tally,
            report,
            missing,
            deferred,
            replaced,
            doomed,
            pruned,
            endangered,
            declared: plan.declared,
            effects,
            scope: plan.scope.clone(),
            options,
            pruning,
        }
    }

    /// Tries the resources again that the server rejected before the run wrote others, which they may need, completes
    /// created resources, and creates resources that were deleted to replace them. Ends after a pass that writes nothing.
    pub async fn repeat(&mut self) {
        let mut written = 0;
        for _ in 0..PASSES {
            if self.writer.stop.reason().is_some() {
                return self.leave("the run was stopped").await;
            }
            let progress = self.written() > written;
            let affected = self.take_affected().await;
            let mut again = self.take_again(progress);
            again.extend(affected.into_iter().map(|path| (path, None)));
            if again.is_empty() {
                return;
            }
            written = self.written();
            self.replaced.clear();
            tracing::info!(resources = again.len(), "trying resources again after other writes");
            self.report.stats.retried += again.len();
            let session = self.writer.session.clone();
            let mut selection = Selection {
                declared: Some(self.declared),
                sent: Sent {
                    deletions: self.report.stats.pruned,
                    replaced: self.doomed.len(),
                    is_approved: true,
                },
                ..Selection::default()
            };
            for path in again.keys() {
                if let Some(candidate) = self.pruning.candidates.get(path) {
                    selection.prune.push(candidate.clone());
                } else if let Some(given) = self.writer.given.get(path) {
                    selection.given.push(given.clone());
                } else {
                    // An earlier pass has read it.
                    selection.resources.extend(file_at(&session.tree, path).await.ok().flatten());
                }
            }
            let (options, stop) = (&self.options, &self.writer.stop);
            self.writer.look_up_parents();
            let writes = &self.writer.referred;
            let surveyor = Surveyor::again(&session, &selection, options, stop, writes);
            let plan = surveyor.survey(selection).await;
            self.note_done(&plan, &again);
            self.apply(Plan { targeted: 0, ..plan }).await;
        }
        self.leave("the last pass of the run has ended").await;
    }

    /// Counts the failed writes that had their effect nevertheless: `plan` finds their resources equal.
    fn note_done(&mut self, plan: &Plan, failed: &BTreeMap<LogicalPath, Option<Failure>>) {
        for action in plan.actions.iter().filter(|action| action.reason == Reason::Equal) {
            let failure = failed.get(&action.path).and_then(Option::as_ref);
            let is_error = |it: &&Failure| it.http_status.is_some_and(|status| status >= 500);
            let step = match failure.filter(is_error).map(|failure| failure.operation) {
                Some("create") => Step::Create,
                Some("update") => Step::Update,
                _ => continue,
            };
            let effect = if step == Step::Create { Effect::Created } else { Effect::Updated };
            note(&mut self.effects, &action.path, effect);
            if let Some(progress) = &self.options.progress {
                progress.executed(&action.path, Some(step));
            }
        }
    }

    /// Reports what no further pass of the run will complete.
    async fn leave(&mut self, why: &'static str) {
        for path in std::mem::take(&mut self.replaced) {
            let late = SyncError::NotRecreated(path.clone(), why);
            self.report.failures.push(Failure::new(path, REPLACE, &late));
        }
        for path in std::mem::take(&mut self.deferred) {
            let late = SyncError::NotCompleted(path.clone(), why);
            self.report.failures.push(Failure::new(path, "update", &late));
        }
        for path in self.take_affected().await {
            let unread = SyncError::NotAttempted(path.clone(), why.to_owned());
            self.report.failures.push(Failure::new(path, "read", &unread));
        }
    }

    /// Returns the resources that the server may have deleted together with others, that refer to the old ids of those
    /// that are replaced, or that refer to values of others that the run has written since it looked at them.
    async fn take_affected(&mut self) -> BTreeSet<LogicalPath> {
        let mut affected = std::mem::take(&mut self.endangered);
        if let Some(scope) = self.scope.clone().filter(|_| !self.replaced.is_empty()) {
            let (session, replaced) = (self.writer.session.clone(), self.replaced.clone());
            let path = scope.path.clone();
            let look = move || affected::affected(&session, &scope, replaced);
            // The tree was read before. What cannot be read now failed then.
            affected.extend(blocking(path, look).await.unwrap_or_default());
        }
        for (path, looked_at) in self.writer.references().take_outdated() {
            // An incremental run has not looked at all of them, and they may no longer be declared.
            if !looked_at && self.writer.referred.is_declared(&path).await.unwrap_or(false) {
                self.target(path.clone());
                affected.insert(path);
            } else if looked_at {
                affected.insert(path);
            }
        }
        for failure in &self.report.failures {
            affected.remove(&failure.path);
        }
        affected.retain(|path| !self.missing.contains(path));
        // Those that were deleted were not counted as unchanged.
        let found =
            affected.iter().filter(|path| !self.replaced.contains(*path) && !self.doomed.contains(*path));
        for path in found {
            if let Entry::Vacant(uncounted) = self.effects.entry(path.clone()) {
                uncounted.insert(Effect::Unchanged);
                self.report.stats.unchanged = self.report.stats.unchanged.saturating_sub(1);
            }
        }
        affected
    }

    fn written(&self) -> usize {
        let writes =
            self.effects.values().filter(|effect| matches!(effect, Effect::Updated | Effect::Created));
        writes.count() + self.report.stats.pruned
    }

    /// Targets a resource that no plan of the run has selected.
    fn target(&mut self, path: LogicalPath) {
        if let Entry::Vacant(unknown) = self.effects.entry(path) {
            unknown.insert(Effect::Unchanged);
            self.report.stats.targeted += 1;
        }
    }

    /// Returns the resources to try again, and removes their failures: after progress, those that may lack another one,
    /// and always created ones that are incomplete and those that are replaced. What was kept because another resource failed
    /// is decided again, too.
    fn take_again(&mut self, progress: bool) -> BTreeMap<LogicalPath, Option<Failure>> {
        let incomplete = self.deferred.iter().chain(&self.replaced);
        let mut again: BTreeMap<_, _> = incomplete.cloned().map(|path| (path, None)).collect();
        if self.options.intent != Intent::Converge || !progress {
            return again;
        }
        let failures = std::mem::take(&mut self.report.failures);
        let is_candidate = |failure: &Failure| {
            failure.operation == PRUNE && self.pruning.candidates.contains_key(&failure.path)
        };
        let may_end = |failure: &Failure| failure.operation != PRUNE || is_candidate(failure);
        let decides_again = failures.iter().any(|failure| failure.may_pass && may_end(failure));
        let was_kept = |failure: &Failure| is_candidate(failure) && is_refusal(failure);
        for failure in failures {
            let may_pass = failure.may_pass && may_end(&failure);
            // The server may have deleted it together with its parent.
            let is_below_pruned = || {
                is_candidate(&failure) && failure.path.ancestors().any(|parent| self.pruned.contains(&parent))
            };
            if may_pass || decides_again && was_kept(&failure) || is_below_pruned() {
                self.missing.remove(&failure.path);
                again.insert(failure.path.clone(), Some(failure));
            } else {
                self.report.failures.push(failure);
            }
        }
        again
    }

    /// Sends the requests of all actions of `plan`.
    pub async fn apply(&mut self, plan: Plan) {
        let Plan { actions, unchanged, targeted, failures, kept, prune_refused, .. } = plan;
        let candidates = plan.pruning.candidates.iter();
        let declared_in = candidates.filter_map(|(path, one)| Some((path.clone(), one.declared_in.clone()?)));
        self.writer.declared_in.lock().extend(declared_in);
        self.pruning.extend(plan.pruning);
        let declared = failures.iter().filter(|failure| failure.operation != PRUNE);
        let category = |failure: &Failure| match failure.reason {
            FailureReason::Category(category) => Some(category),
            _ => None,
        };
        let declared = declared.map(|failure| (failure.path.clone(), category(failure)));
        self.writer.failed.lock().extend(declared);
        for failure in &failures {
            self.tally.skipped(&failure.path);
            self.deferred.remove(&failure.path);
        }
        self.report.failures.extend(failures);
        // A resource that moved to another path has its record there.
        if let Some(written) = &self.writer.session.written {
            let moved = kept.iter().filter(|kept| kept.declared_at.is_some());
            moved.for_each(|kept| written.forget(&kept.path));
        }
        self.report.kept.extend(kept);
        self.report.prune_refused = self.report.prune_refused.take().or(prune_refused);
        self.report.stats.targeted += targeted;
        self.report.stats.unchanged += unchanged;
        let (mut writes, mut deletions) = (Vec::new(), Vec::new());
        for action in actions {
            match action.step {
                Step::Skip if self.tally.done(&action, Done::NOTHING) => {
                    note(&mut self.effects, &action.path, Effect::Unsettled);
                }
                Step::Skip => {
                    self.deferred.remove(&action.path);
                    self.report.stats.unchanged += usize::from(!self.effects.contains_key(&action.path));
                }
                Step::Create | Step::Update => writes.push(Arc::new(action)),
                Step::Delete => deletions.push(Arc::new(action)),
            }
        }
        self.doubt_written(writes.iter().chain(&deletions)).await;
        self.write(writes).await;
        // Boxed, because most runs delete nothing.
        Box::pin(self.delete(deletions)).await;
    }

    async fn write(&mut self, writes: Vec<Arc<Action>>) {
        let (writer, missing) = (&self.writer, self.missing.clone());
        let work = |action: Arc<Action>, failed_parent: Option<LogicalPath>| {
            let in_an_earlier_plan = || action.path.ancestors().find(|path| missing.contains(path));
            let failed_parent = failed_parent.or_else(in_an_earlier_plan);
            Arc::clone(writer).send(action, failed_parent)
        };
        let note = |action: &Action, outcome| match shown(&self.options, action, outcome) {
            Ok(done) if self.tally.done(action, done) => {
                self.deferred.remove(&action.path);
                note(&mut self.effects, &action.path, Effect::Unsettled);
            }
            Ok(Done { step: Step::Create, deferred, .. }) => {
                note(&mut self.effects, &action.path, Effect::Created);
                self.deferred.remove(&action.path);
                self.deferred.extend(deferred.then(|| action.path.clone()));
            }
            // It is completed.
            Ok(_) if self.deferred.remove(&action.path) => {}
            // A further pass sets the attributes that are still missing. Until then, it counts as unchanged.
            Ok(Done { deferred: true, .. }) => {
                note(&mut self.effects, &action.path, Effect::Unchanged);
                self.endangered.insert(action.path.clone());
            }
            Ok(Done { step: Step::Update, .. }) => note(&mut self.effects, &action.path, Effect::Updated),
            Ok(_) => note(&mut self.effects, &action.path, Effect::Unchanged),
            Err(error) => {
                self.tally.skipped(&action.path);
                self.deferred.remove(&action.path);
                if action.step == Step::Create {
                    self.missing.insert(action.path.clone());
                }
                // The plan states already why its request cannot be made.
                if !action.is_impossible() {
                    self.report.failures.push(action.failed(&error));
                }
            }
        };
        execute(writes, Order::ParentsFirst, writer.turns.at_once() + AHEAD, work, note).await;
    }

    /// Doubts the records of write-only attributes that may be written now, and saves that: if the outcome of a write is
    /// unknown, or the process is killed, they may be wrong.
    async fn doubt_written(&self, actions: impl Iterator<Item = &Arc<Action>>) {
        let Some(written) = self.writer.session.written.clone() else { return };
        let may_write = |action: &&Arc<Action>| match &action.sending {
            Sending::Impossible(_) => false,
            _ => action.call().is_none_or(|call| call.has_write_only),
        };
        for action in actions.filter(may_write) {
            written.doubt(&action.path);
        }
        save(written).await;
    }

    async fn delete(&mut self, mut deletions: Vec<Arc<Action>>) {
        // Those that the plan refuses because they may be declared.
        let is_refused = |failure: &&Failure| failure.operation == PRUNE && is_refusal(failure);
        let refused = self.report.failures.iter().filter(is_refused).map(|failure| failure.path.clone());
        for path in refused.collect::<Vec<_>>() {
            self.spare(&path, &[], &mut deletions);
        }
        // Those that something on the server may need.
        let attached = Box::pin(self.attached(&deletions)).await;
        for action in deletions.clone() {
            if let Some(obstacle) = self.obstacle(&action, &deletions, &attached).await {
                self.refuse(&action, &obstacle, &mut deletions);
            }
        }
        self.probe(&mut deletions).await;
        self.send_deletions(deletions).await;
    }

    /// Fails the deletion `refused` if it is one of `deletions`, and those that wait for it.
    fn refuse(&mut self, refused: &Action, error: &SyncError, deletions: &mut Vec<Arc<Action>>) {
        let Some(place) = deletions.iter().position(|action| action.path == refused.path) else { return };
        deletions.remove(place);
        self.report.failures.push(refused.failed(error));
        self.spare(&refused.path, refused.depends_on(), deletions);
    }

    /// Fails the deletions that wait for the one at `path`, which is not sent: those above it, because the server may delete
    /// both together, and those that it `needs`.
    fn spare(&mut self, path: &LogicalPath, needs: &[LogicalPath], deletions: &mut Vec<Arc<Action>>) {
        let waiting = deletions.iter().filter(|action| precedes(path, needs, &action.path));
        for action in waiting.cloned().collect::<Vec<_>>() {
            self.refuse(&action, &still_needed(&action.path, path), deletions);
        }
    }

    async fn send_deletions(&mut self, deletions: Vec<Arc<Action>>) {
        let writer = &self.writer;
        let work = |action, dependent| Arc::clone(writer).send(action, dependent);
        let note = |action: &Action, outcome| match shown(&self.options, action, outcome) {
            Ok(done) => {
                if self.tally.done(action, done) && action.replaces() {
                    note(&mut self.effects, &action.path, Effect::Unsettled);
                }
                self.replaced.extend(action.replaces().then(|| action.path.clone()));
                // Another client may have replaced it in the meantime.
                if done.step == Step::Delete {
                    self.doomed.extend(action.replaces().then(|| action.path.clone()));
                    let below = self.report.kept.iter().filter(|kept| kept.path.is_within(&action.path));
                    self.endangered.extend(below.filter_map(|kept| kept.declared_at.clone()));
                    self.report.stats.pruned += 1;
                    self.pruned.insert(action.path.clone());
                }
            }
            // The plan states already why its request cannot be made.
            Err(error) if !action.is_impossible() => self.report.failures.push(action.failed(&error)),
            Err(_) => {}
        };
        execute(deletions, Order::ChildrenFirst, writer.turns.at_once(), work, note).await;
    }

    /// Returns the reason why a deletion must not be sent.
    async fn obstacle(
        &self,
        action: &Action,
        deletions: &[Arc<Action>],
        attached: &HashMap<LogicalPath, LogicalPath>,
    ) -> Option<SyncError> {
        let path = action.path.clone();
        let not_deleted = |why: String| Some(SyncError::NotDeleted(format!("{path}: {why}")));
        // A declared resource may refer to one that is deleted for good, as far as the run has seen it.
        let stays = |path: &LogicalPath| {
            !action.replaces() && deletions.iter().all(|deletion| deletion.path != *path)
        };
        let writer = &self.writer;
        if let Some(referrer) = referrer(&writer.session, &writer.given, &path, stays).await {
            return Some(referred(&path, &referrer));
        }
        if let Some(referrer) = attached.get(&path) {
            return not_deleted(format!("{referrer}, which referred to it, was not updated"));
        }
        if self.writer.stop.left_out().is_some() && !action.replaces() {
            return not_deleted("resources that may need it were not read".to_owned());
        }
        let is_needed = |(dependency, by): &&(LogicalPath, LogicalPath)| {
            path.is_within(dependency) && !by.is_within(&path)
        };
        if let Some((_, by)) = self.pruning.needed.iter().find(is_needed) {
            return Some(still_needed(&path, by));
        }
        if let Some(created) = moved_to(&path, &self.missing) {
            return not_deleted(format!(
                "{created}, which may be the same resource, could not be created; if it is another one, delete {path} on \
                 the server, or remove both in one commit and add the new one in the next"
            ));
        }
        if let Some(new) = self.pruning.moved.get(&path).filter(|new| !self.writer.has_created(new)) {
            return Some(not_moved(&path, new));
        }
        if !action.replaces() || !self.doomed.contains(&path) {
            return None;
        }
        if self.writer.has_created(&path) {
            return not_deleted(format!(
                "this run has written it, and the server {}",
                shown_instead(&action.differences, false).with_advice(CORRECTION)
            ));
        }
        // Some servers confirm a deletion and complete it later. A second deletion would not help.
        Some(SyncError::NotRecreated(path, "the server still shows it"))
    }

    /// Saves the record of write-only attributes. Returns the report of all plans.
    pub async fn finish(self) -> Report {
        if let Some(written) = self.writer.session.written.clone() {
            save(written).await;
        }
        let Self { writer, tally, mut report, mut effects, .. } = self;
        // Where recurrences are watched, the next run requests the lists.
        let asks = writer.stop.reason().is_none() && writer.recurrences.is_none();
        for unlisted in writer.check_lists(asks).await {
            if report.failures.iter().all(|failure| failure.path != unlisted.path) {
                report.failures.push(unlisted);
            }
        }
        report.ids = writer.ids.take();
        report.unconfirmed = std::mem::take(&mut *writer.unconfirmed.lock());
        report.unconfirmed.sort_by(|a, b| a.path.cmp(&b.path));
        report.unconfirmed.dedup_by(|a, b| a.path == b.path);
        // A resource that failed has no other effect.
        report.failures.iter().for_each(|failure| _ = effects.remove(&failure.path));
        let stats = &mut report.stats;
        for effect in effects.into_values() {
            match effect {
                Effect::Unchanged => stats.unchanged += 1,
                Effect::Updated => stats.updated += 1,
                Effect::Created => stats.created += 1,
                Effect::Unsettled => stats.failed += 1,
            }
        }
        stats.applied = stats.created + stats.updated + stats.unchanged;
        let recurrences = writer.recurrences.is_some().then_some(tally.seen);
        let mut report = report.concluded(recurrences, &writer.stop);
        let Report { failures, unsettled, unconfirmed, .. } = &mut report;
        let shown = failures.iter_mut().chain(unsettled).chain(unconfirmed);
        hide(shown, &writer.session.secrets);
        report
    }
}

/// Records the `effect` of a pass on a resource. Another effect of an earlier pass may count instead.
fn note(effects: &mut HashMap<LogicalPath, Effect>, path: &LogicalPath, effect: Effect) {
    let known = effects.entry(path.clone()).or_insert(effect);
    *known = effect.max(*known);
}

/// Saves the record of write-only attributes, if it has changed.
async fn save(written: Arc<WrittenValues>) {
    if let Ok(Err(error)) = blocking(LogicalPath::root(), move || Ok(written.save())).await {
        tracing::warn!(%error, "cannot record write-only attributes; they are written again by the next run");
    }
}

/// Whether a deletion was not sent because its resource may have to stay.
fn is_refusal(failure: &Failure) -> bool {
    failure.reason == FailureReason::Category(Category::Conflict) && failure.http_status.is_none()
}

/// Reports the outcome of an action as progress, and returns it.
fn shown(options: &Options, action: &Action, outcome: Result<Done, SyncError>) -> Result<Done, SyncError> {
    if let Some(progress) = &options.progress {
        progress.executed(&action.path, outcome.as_ref().ok().map(|done| done.step));
    }
    outcome
}

/// Returns the failed create that may replace the resource at `path` below a renamed parent, or under the same name in
/// another case or Unicode form, which some servers ignore. The two paths differ only in the names after the first one.
fn moved_to<'m>(path: &LogicalPath, missing: &'m BTreeSet<LogicalPath>) -> Option<&'m LogicalPath> {
    let is_moved = |created: &&LogicalPath| {
        is_alike(created.name(), path.name())
            && *created != path
            && created.segments().count() == path.segments().count()
            && created.segments().next() == path.segments().next()
    };
    missing.iter().find(is_moved)
}
