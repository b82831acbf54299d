//! The engine: observe → plan → apply → report.
//!
//! [`run`] reads desired payloads from a [`Tree`] and their live counterparts from the server; [`decide`]
//! turns each pair into an action without any I/O, and a [`Plan`] holds them; applying it decides nothing. One bad
//! resource is one bad resource: its failure is recorded with its reason and the others go on.

mod apply;
mod bulk;
mod call;
mod desired;
mod error;
mod given;
mod knowledge;
mod lists;
mod load;
mod lookup;
mod observe;
mod pages;
mod plan;
mod prune;
mod reads;
mod recheck;
mod recurrence;
mod remote;
mod report;
mod resolve;
mod resource;
mod saved;
mod selection;
mod stop;
mod undeclared;
mod version;
mod write;

use std::sync::Arc;

use tokio::task::JoinError;

use crate::metadata::Metadata;
use crate::path::LogicalPath;
use crate::repository::Tree;
use crate::secrets::SecretReader;
use crate::server::Client;
use knowledge::Transcript;
use reads::Proofs;

pub use desired::desired;
pub use error::SyncError;
pub use knowledge::Knowledge;
pub use lists::Members;
pub use lookup::lookup;
pub use plan::{Action, Plan, Reason, Step, decide};
pub use prune::{PruneLimit, PruneRefused};
pub use recheck::{Answers, recheck};
pub use recurrence::{Recurrences, Unsettled};
pub use remote::{Found, Remote};
pub use report::{Failure, FailureReason, LIST, Outcome, PRUNE, Report, Stats};
pub use resource::{Observed, Resource};
pub use saved::{SavedPlan, SavedPlanError, Subject, Summary};
pub use selection::{Candidate, Selection};
pub use stop::Stop;
pub use version::Version;

/// Everything one run works with: one revision, one server, one set of compiled rules.
#[derive(Clone)]
pub struct Session {
    /// The desired state.
    pub tree: Arc<dyn Tree>,
    /// The rules of that revision.
    pub metadata: Arc<Metadata>,
    /// The managed server.
    pub client: Client,
    /// What earlier runs learned about it, and where this one adds what it learns.
    pub knowledge: Arc<Knowledge>,
    /// What the server answered a moment ago.
    pub answers: Arc<Answers>,
    /// Where the values of placeholders come from; without a store a placeholder fails its resource.
    pub secrets: SecretReader,
}

impl Session {
    /// A session that knows nothing of earlier ones, and has no secret store.
    pub fn new(tree: Arc<dyn Tree>, metadata: Arc<Metadata>, client: Client) -> Self {
        let (knowledge, answers) = Default::default();
        Self { tree, metadata, client, knowledge, answers, secrets: SecretReader::new(None) }
    }
}

/// Whether a run writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Differences are corrected.
    Apply,
    /// Differences are reported as drift.
    Observe,
}

/// How much of what exists is read by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Each resource; a list may only tell that it does not exist.
    #[default]
    Each,
    /// What the list of its collection does not show as equal, or shows in part only.
    Bulk,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// Brings each resource to its desired state, and touches what is equal only by force.
    #[default]
    Converge,
    /// Creates each resource; that it exists already is an error of the server's.
    Create,
    /// Updates each resource, whether it differs or not.
    Update,
    /// Deletes each resource; that it does not exist is an error.
    Delete,
}

/// What a run may do.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, off by default")]
pub struct Options {
    /// Whether anything is written.
    pub mode: Mode,
    /// How the server is looked at, where the selection is the whole scope.
    pub reading: Reading,
    /// Whether the scope was never looked at before, so that much of it may be missing.
    pub first: bool,
    /// What is done with each selected resource.
    pub intent: Intent,
    /// Update resources that are equal, too.
    pub force: bool,
    /// Whether actions keep what was compared, which takes the memory of all payloads.
    pub keep_compared: bool,
    /// Whether the plan can become a [`SavedPlan`], which takes a digest of each action.
    pub sealable: bool,
    /// How many deletions are too many.
    pub prune_limit: PruneLimit,
    /// Whether a scope that declares nothing any more may be pruned to nothing.
    pub allow_empty: bool,
    /// What the last run saw of what does not converge; `None` watches nothing.
    pub recurrences: Option<Arc<Recurrences>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Apply,
            reading: Reading::Each,
            first: false,
            intent: Intent::Converge,
            force: false,
            keep_compared: false,
            sealable: false,
            prune_limit: PruneLimit::Percent(50),
            allow_empty: false,
            recurrences: None,
        }
    }
}

impl Options {
    /// A list cannot stand for a read whose payload is needed.
    fn effective_reading(&self) -> Reading {
        if self.needs_payloads() { Reading::Each } else { self.reading }
    }

    /// Whether a read that showed its resource as desired may be repeated without a look at the payload.
    fn reads_may_be_repeated(&self) -> bool {
        self.reading == Reading::Each && !self.needs_payloads()
    }

    fn needs_payloads(&self) -> bool {
        self.force || self.keep_compared || self.sealable || self.intent != Intent::Converge
    }
}

/// Where a run notes what it asked, as far as that can be repeated.
#[derive(Clone, Default)]
struct Notes {
    /// All that was asked.
    transcript: Option<Arc<Transcript>>,
    /// Single reads that showed what is desired.
    proofs: Option<Arc<Proofs>>,
}

/// What a plan holds and leaves behind beside its actions.
#[derive(Clone, Default)]
struct Extent {
    notes: Notes,
    /// Whether creations may leave the making of their requests to the moment when they are sent.
    defers: bool,
}

/// Brings the server to the desired state of `selection`, or in observe-only mode tells how it departs.
///
/// Work runs concurrently up to the server's gate. `stop` is looked at before each resource; a request in
/// flight is finished. The report covers every selected resource.
pub async fn run(session: &Session, selection: Selection, options: &Options, stop: &Stop) -> Report {
    let (whole_scope, reading) = (selection.whole_scope, options.effective_reading());
    let prunes = !selection.prune.is_empty();
    // Only such a run can be repeated by its answers alone.
    let notes = Notes {
        transcript: (whole_scope && reading == Reading::Bulk).then(Arc::default),
        proofs: (whole_scope && options.reads_may_be_repeated()).then(Arc::default),
    };
    // Nobody sees the plan, and a commit still holds what its creations were to send when their turn comes.
    let defers = options.mode == Mode::Apply && session.tree.revision().is_some();
    let plan = plan_noting(session, selection, options, stop, Extent { notes: notes.clone(), defers }).await;
    let had_work = plan.actions.iter().any(|action| action.reason != Reason::Equal);
    let report = match options.mode {
        Mode::Observe => report::of_observation(&plan, stop),
        Mode::Apply => apply(session, plan, stop).await,
    };
    // A secret may be another one tomorrow, though the server answers as today.
    let lasts = session.secrets.values().is_empty();
    let settled =
        report.outcome == Outcome::Succeeded && report.prune_refused.is_none() && !had_work && lasts;
    if let (Some(proofs), Some(revision)) = (&notes.proofs, session.tree.revision()) {
        // Single reads do not tell whether somebody made again what is not declared any more.
        let all = (settled && !prunes).then_some(report.stats.targeted);
        session.knowledge.remember(revision, proofs, all);
    }
    match notes.transcript.filter(|_| settled) {
        Some(transcript) => {
            session.knowledge.settle(session.tree.revision(), report.stats, &transcript);
        }
        None if !settled => session.knowledge.unsettle(),
        None => {}
    }
    if whole_scope && reading == Reading::Each {
        session.knowledge.doubt();
    }
    report
}

/// Observes `selection` and decides what to do, without doing it.
pub async fn plan(session: &Session, selection: Selection, options: &Options, stop: &Stop) -> Plan {
    plan_noting(session, selection, options, stop, Extent::default()).await
}

async fn plan_noting(
    session: &Session,
    selection: Selection,
    options: &Options,
    stop: &Stop,
    extent: Extent,
) -> Plan {
    let session = &stop.bounding(session);
    let given = selection.given.iter().map(|resource| (resource.path.clone(), resource.clone())).collect();
    let mut observation = observe::observe(session, selection, options, stop, extent).await;
    report::hide(&mut observation.failures, &session.secrets);
    Plan { given, ..Plan::new(session.tree.revision().cloned(), observation, options) }
}

/// Sends everything that `plan` holds and reports on all of it. `stop` is looked at before each request.
pub async fn apply(session: &Session, plan: Plan, stop: &Stop) -> Report {
    let mut report = apply::apply(session, plan, stop).await;
    report::hide(report.failures.iter_mut().chain(&mut report.unsettled), &session.secrets);
    report
}

/// What a task of a run made; its panic goes on in the run. `None` if it was aborted, which only the end of the run
/// does.
fn joined<T>(ended: Result<T, JoinError>) -> Option<T> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(made) => Some(made),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

/// Does work that blocks or computes for long, for the resource at `path`.
async fn blocking<T: Send + 'static>(
    path: LogicalPath,
    work: impl FnOnce() -> Result<T, SyncError> + Send + 'static,
) -> Result<T, SyncError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(SyncError::Task { path, reason: error.to_string() }))
}
