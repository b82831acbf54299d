//! The engine: what the server has, what has to be done, doing it, and what came of it.
//!
//! ```text
//!             model     resources, actions, reports, and what answers prove (no I/O)
//!               |
//!            observe    reads the server: resource -> Observed, or why that is unknown
//!               |
//!             plan      decides: (desired, observed) -> Action; candidate -> Fate
//!               |
//!             apply     sends actions in order, and decides again on 404, 409, 412 and lost answers
//! ```
//!
//! Each floor uses those above it. A failing resource does not stop the others: its failure is recorded with its reason.

mod apply;
mod model;
mod observe;
mod plan;
mod tasks;

use std::sync::Arc;

use crate::repository::ResourceFile;
use apply::Execution;
use model::knowledge::Transcript;
use plan::survey::Surveyor;

pub use model::absence::{Address, Doubt, Extent, ListAnswer, Proof, Question, Verdict, judge};
pub use model::action::{Action, Reason, Step};
pub use model::answers::Answers;
pub use model::error::{FailureReason, SyncError};
pub use model::identity::{Match, Wanted};
pub use model::knowledge::Knowledge;
pub use model::options::{Intent, Mode, Options, PruneLimit, Reading};
pub use model::recurrence::{Recurrences, Unsettled};
pub use model::report::{Failure, Kept, LIST, Outcome, PRUNE, PruneRefused, Report, Stats};
pub use model::resource::{Observed, Resource};
pub use model::selection::{Candidate, Selection};
pub use model::session::Session;
pub use model::stop::Stop;
pub use model::version::Version;
pub use observe::desired::desired;
pub use observe::lookup::lookup;
pub use observe::recheck::recheck;
pub use observe::remote::{Found, Members, Remote};
pub use plan::Plan;
pub use plan::decide::decide;
pub use plan::saved::{SavedPlan, SavedPlanError, Subject, Summary};

/// So many resources are decided on before what they need is written. A run that is stopped has then done a part of
/// its work, whatever the size of its scope.
const PART: usize = 2_000;

/// Brings the server to the desired state of `selection`, or in observe-only mode reports how it departs.
///
/// Work runs concurrently up to the server's gate. `stop` is looked at before each resource; a request in
/// flight is finished. The report covers every selected resource.
pub async fn run(session: &Session, selection: Selection, options: &Options, stop: &Stop) -> Report {
    let (whole_scope, reading) = (selection.whole_scope, options.effective_reading());
    // Only such a run can be repeated by its answers alone.
    let transcript = (whole_scope && reading == Reading::Bulk).then(Arc::<Transcript>::default);
    let bounded = &stop.bounding(session);
    let surveyor = Surveyor::new(bounded, &selection, options, stop, transcript.clone());
    let (report, had_work) = match options.mode {
        Mode::Observe => {
            let plan = planned(&surveyor, bounded, selection, options).await;
            (plan.observed(stop), plan.has_work())
        }
        Mode::Apply => {
            let defers = session.tree.revision().is_some();
            run_parts(&surveyor.deferring(defers), bounded, selection, options, stop).await
        }
    };
    // A secret may be another one the next time, though the server answers as before.
    let lasts = session.secrets.values().is_empty();
    let settled =
        report.outcome == Outcome::Succeeded && report.prune_refused.is_none() && !had_work && lasts;
    match transcript.filter(|_| settled) {
        Some(transcript) => session.knowledge.settle(session.tree.revision(), report.stats, &transcript),
        None if !settled => session.knowledge.unsettle(),
        None => {}
    }
    if whole_scope && reading == Reading::Each {
        session.knowledge.doubt();
    }
    report
}

/// Plans and applies part by part, or all at once where deletions need the whole plan.
async fn run_parts(
    surveyor: &Surveyor,
    session: &Session,
    mut selection: Selection,
    options: &Options,
    stop: &Stop,
) -> (Report, bool) {
    let mut execution = Execution::new(session, options.recurrences.clone(), selection.whole_scope, stop);
    let mut later: Vec<Vec<ResourceFile>> = Vec::new();
    if selection.prune.is_empty() && selection.resources.len() > PART {
        let mut parts = selection.resources.chunks(PART).map(<[_]>::to_vec);
        let first = parts.next().unwrap_or_default();
        later = parts.collect();
        selection.resources = first;
    }
    let whole_scope = selection.whole_scope;
    let plan = planned(surveyor, session, selection, options).await;
    let mut had_work = plan.has_work();
    execution.apply(plan).await;
    for resources in later {
        let part = Selection { resources, whole_scope, ..Selection::default() };
        let plan = planned(surveyor, session, part, options).await;
        had_work |= plan.has_work();
        execution.apply(plan).await;
    }
    (execution.finish(), had_work)
}

/// Observes `selection` and decides what to do, without doing it.
pub async fn plan(session: &Session, selection: Selection, options: &Options, stop: &Stop) -> Plan {
    let session = &stop.bounding(session);
    let surveyor = Surveyor::new(session, &selection, options, stop, None);
    planned(&surveyor, session, selection, options).await
}

async fn planned(surveyor: &Surveyor, session: &Session, selection: Selection, options: &Options) -> Plan {
    let given = selection.given.iter().map(|resource| (resource.path.clone(), resource.clone())).collect();
    let mut survey = surveyor.survey(selection).await;
    model::report::hide(&mut survey.failures, &session.secrets);
    Plan { given, ..Plan::new(session.tree.revision().cloned(), survey, options) }
}

/// Sends everything that `plan` holds and reports on all of it. `stop` is looked at before each request.
pub async fn apply(session: &Session, plan: Plan, stop: &Stop) -> Report {
    let session = &stop.bounding(session);
    let mut execution = Execution::new(session, plan.recurrences.clone(), plan.whole_scope, stop);
    execution.apply(plan).await;
    execution.finish()
}
