//! The engine: reads the managed server, compares it with Git, writes the differences and reports the results.
//!
//! ```text
//!             model     resources, actions and reports; decides what an answer proves (no I/O)
//!               |
//!            observe    reads the server: resource -> Observed, or the reason why the state is unknown
//!               |
//!             plan      decides: (desired, observed) -> Action; candidate -> Fate
//!               |
//!             apply     sends the actions in order, and decides again after 404, 409, 412 and lost answers
//! ```
//!
//! Each layer uses only the layers above it. If a resource fails, the report states the reason, and the run continues
//! with the others.

mod apply;
mod model;
mod observe;
mod plan;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::metadata::Entry;
use crate::path::LogicalPath;

use apply::Execution;
use model::{Start, Transcript};
use plan::survey::{PART_TIME, Surveyor};
use plan::undeclared::Candidates;

pub use model::{
    Action, Address, Answers, Candidate, Doubt, Drift, Failure, FailureReason, Intent, Kept, Knowledge, LIST,
    ListAnswer, Match, Mode, Observed, Options, Outcome, PRUNE, Progress, Proof, PruneLimit, PruneRefused,
    Question, REPLACE, Reading, Reason, Recurrences, Report, Resource, Scope, Selection, Session, Stats,
    Step, Stop, SyncError, Unsettled, Verdict, Version, Wanted, WrittenValues, confidential, judge, request,
    request_without_payload,
};
pub use observe::{Found, Members, Remote, desired, lookup, recheck};
pub use plan::Plan;
pub use plan::decide::decide;
pub use plan::names::Names;
pub use plan::saved::{SavedPlan, SavedPlanError, Subject, Summary};

/// Brings the resources of `selection` on the server to their desired state. Mode `observe` only reports differences.
///
/// Requests run concurrently within the budget of the server. `stop` is checked before each resource; a request that
/// has been sent is completed. The report covers every selected resource.
pub async fn run(session: &Session, selection: Selection, options: &Options, stop: &Stop) -> Report {
    let (whole_scope, reading) = (selection.is_whole_scope(), options.effective_reading());
    // `recheck` can repeat only a run of this kind.
    let repeatable = whole_scope && reading == Reading::Bulk && selection.prune.is_empty();
    let transcript = Transcript::new(repeatable);
    let session = &session.until(stop);
    let surveyor = Surveyor::new(session, &selection, options, stop, Arc::clone(&transcript));
    let (report, had_work) = match options.mode {
        Mode::Observe => {
            let mut plan = surveyor.survey(selection).await;
            Box::pin(plan.refuse_unsendable(session)).await;
            let had_work = plan.has_work();
            (plan.observed(stop), had_work)
        }
        Mode::Apply => {
            let surveyor = surveyor.deferring(session.tree.revision().is_some());
            // Boxed, because this future is large and part of those of all callers.
            Box::pin(run_parts(&surveyor, session, selection, options, stop)).await
        }
    };
    let is_clean = report.outcome == Outcome::Succeeded && report.prune_refused.is_none();
    // A run with secrets is not repeatable: a secret may change while the answers of the server stay the same.
    let settled = is_clean && !had_work && !session.secrets.has_read();
    if repeatable || !settled {
        let revision = session.tree.revision().filter(|_| settled);
        session.knowledge.settle(revision, report.stats, &transcript);
    }
    if whole_scope && reading == Reading::Each {
        session.knowledge.doubt();
    }
    if whole_scope && stop.reason().is_none() && stop.left_out().is_none() {
        session.knowledge.note_whole_scope();
    }
    report
}

/// Plans and applies in parts, or in one part if the plan has deletions. A run over the whole scope starts where the last
/// run was stopped: at the first resource of that part, or behind the resources that were unreachable, because they would
/// end this run, too. Also returns whether the plan had anything to write.
async fn run_parts(
    surveyor: &Surveyor,
    session: &Session,
    mut selection: Selection,
    options: &Options,
    stop: &Stop,
) -> (Report, bool) {
    let whole_scope = selection.is_whole_scope();
    if whole_scope && let Some(start) = session.knowledge.begin_next_at(None) {
        let files = &selection.resources;
        let next = match start {
            Start::At(path) => files.partition_point(|file| file.path < path),
            Start::Behind(scope) => {
                files.iter().rposition(|file| file.path.is_within(&scope)).map_or(0, |last| last + 1)
            }
        };
        selection.resources.rotate_left(next);
    }
    let mut plan = surveyor.begin(&mut selection).await;
    let mut execution = Execution::new(session, &plan, stop);
    // The prune limit counts the deletions of the whole plan, so the whole plan is made before it is applied.
    let deletes = plan.actions.iter().any(|action| action.step == Step::Delete);
    let mut items = surveyor.items(selection);
    // Actions with dependencies wait for the last part, because their dependencies may be in any part. Replacements wait,
    // too, because the prune limit counts them.
    let (mut had_work, mut next, mut held) = (false, None, Vec::new());
    loop {
        let end = (!deletes).then(|| Instant::now() + PART_TIME);
        let first = surveyor.look_at_all(items.as_mut(), end, &mut plan).await;
        let empty = Plan { scope: plan.scope.clone(), declared: plan.declared, ..Plan::default() };
        let mut part = std::mem::replace(&mut plan, empty);
        let is_last = first.is_none() || deletes;
        if is_last {
            part.actions.append(&mut held);
        } else {
            part.take_late(&mut held);
        }
        let part = part.finished(options);
        had_work |= part.has_work();
        execution.apply(part).await;
        if stop.reason().is_some() {
            next = next.or_else(|| first.clone().map(Start::At));
        }
        if is_last {
            break;
        }
    }
    execution.repeat().await;
    if whole_scope {
        let unreachable = stop.aborted_at().cloned().or_else(|| stop.left_out());
        session.knowledge.begin_next_at(unreachable.map(Start::Behind).or(next));
    }
    (execution.finish().await, had_work)
}

/// Reads the server and returns the plan for `selection`. Writes nothing.
pub async fn plan(session: &Session, selection: Selection, options: &Options, stop: &Stop) -> Plan {
    let session = &session.until(stop);
    Surveyor::new(session, &selection, options, stop, Transcript::new(false)).survey(selection).await
}

/// Returns the `entries` that the tree of `remote` does not declare. `entries` are members of collections on the server,
/// by their paths. A member that is declared at another path, for example after a rename, counts as declared.
pub async fn undeclared(
    remote: &Arc<Remote>,
    entries: BTreeMap<LogicalPath, Entry>,
) -> Result<BTreeMap<LogicalPath, Entry>, SyncError> {
    let candidates = Candidates::new(remote);
    let mut undeclared = BTreeMap::new();
    for (path, entry) in entries {
        if candidates.declared_at(&path, &entry).await?.is_none() {
            undeclared.insert(path, entry);
        }
    }
    Ok(undeclared)
}

/// Returns the path at which the tree of `remote` declares the resource of the server with the path `path`, if any.
pub async fn declared_at(
    remote: &Arc<Remote>,
    path: &LogicalPath,
    entry: &Entry,
) -> Result<Option<LogicalPath>, SyncError> {
    Candidates::new(remote).declared_at(path, entry).await
}

/// Applies `plan` and reports the results. `stop` is checked before each request.
pub async fn apply(session: &Session, plan: Plan, stop: &Stop) -> Report {
    let session = &session.until(stop);
    let mut execution = Execution::new(session, &plan, stop);
    execution.apply(plan).await;
    execution.repeat().await;
    execution.finish().await
}
