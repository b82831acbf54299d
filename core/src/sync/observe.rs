//! Reading desired and live state, and deciding resource by resource, so that a run holds the payloads of
//! what changes and not of what exists.

use std::pin::pin;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use tokio::task::JoinSet;

use super::bulk::{Bulk, Seen};
use super::load::loaded;
use super::plan::{self, Action, Reason, Step, decide_for};
use super::reads::Proofs;
use super::remote::Remote;
use super::report::{Failure, PRUNE};
use super::resource::{Observed, Resource};
use super::undeclared::{self, Names, Occupants};
use super::{
    Candidate, Extent, Intent, Notes, Options, Selection, Session, Stop, SyncError, blocking, joined,
};
use crate::error::{Categorized, Category};
use crate::metadata::transform::on_evaluation_stack;
use crate::path::LogicalPath;
use crate::payload::Value;

/// What a selection needs, before the brakes of the plan.
pub(super) struct Observation {
    pub actions: Vec<Action>,
    /// Equal resources that `actions` does not name.
    pub unchanged: usize,
    pub targeted: usize,
    pub failures: Vec<Failure>,
    pub whole_scope: bool,
    pub declared: usize,
}

/// One thing to look at.
enum Item {
    Desired(LogicalPath, Result<Resource, SyncError>),
    Undeclared(Candidate),
}

/// What the tasks of one observation share.
#[derive(Clone)]
struct Observer {
    session: Session,
    remote: Arc<Remote>,
    options: Options,
    occupants: Arc<Occupants>,
    /// Who occupies what matters only where something is to be deleted.
    located: bool,
    /// Whether the request of what is surely missing is made when it is sent. Until then neither its payload is
    /// needed nor its secrets: most of the time and memory of a first sync.
    defers: bool,
    proofs: Option<Arc<Proofs>>,
    stop: Stop,
}

/// Observes everything selected, concurrently up to the server's gate. What is read from the server is noted.
pub(super) async fn observe(
    session: &Session,
    selection: Selection,
    options: &Options,
    stop: &Stop,
    Extent { notes: Notes { transcript, proofs }, defers }: Extent,
) -> Observation {
    let targeted = selection.targeted();
    let bulk = Bulk::of(&selection, options);
    let remote = Remote::observing(session, bulk, transcript, proofs.is_some());
    let occupants = Arc::new(Occupants::of(session, &selection));
    let Selection { mut resources, given, broken: mut failures, prune, whole_scope, declared, .. } =
        selection;
    let (session, options, stop) = (session.clone(), options.clone(), stop.clone());
    let (located, defers, readable) = (true, defers && !options.needs_payloads(), failures.is_empty());
    let mut observer = Observer { session, remote, options, occupants, located, defers, proofs, stop };
    let (mut actions, mut unchanged) = (Vec::new(), 0);

    // Of what was declared once, most is gone for long. Only what is still there concerns the others.
    let note = |outcome| match outcome {
        Ok(action) => actions.extend(action),
        Err(failure) => failures.push(failure),
    };
    let candidates = futures::stream::iter(prune.into_iter().map(Item::Undeclared));
    each_in_a_task(candidates, &Arc::new(observer.clone()), note).await;
    observer.located = !actions.is_empty();
    observer.defers &= !observer.located;

    // Equal resources are most of a large scope, and all that is left to tell of them is how many they are.
    let Options { keep_compared, sealable, .. } = observer.options;
    let counts_equal = whole_scope && !observer.located && !keep_compared && !sealable;
    if counts_equal && observer.proofs.is_some() {
        let selected = resources.len();
        resources.retain(|file| !observer.session.answers.confirm(&file.path));
        unchanged = selected - resources.len();
    }
    let given = given.into_iter().map(|resource| Item::Desired(resource.path.clone(), Ok(resource)));
    let (names, all) = (Names::default(), whole_scope && unchanged == 0 && readable);
    let loaded = loaded(&observer.session, resources).map(|(path, desired)| {
        names.note(&path, &desired);
        Item::Desired(path, desired)
    });
    let note = |outcome| match outcome {
        Ok(Some(action)) if counts_equal && is_equal(&action) => unchanged += 1,
        Ok(action) => actions.extend(action),
        Err(failure) => failures.push(failure),
    };
    let items = loaded.chain(futures::stream::iter(given));
    each_in_a_task(items, &Arc::new(observer.clone()), note).await;
    observer.occupants.learn(&observer.session, &names, all);
    let declared = declared.unwrap_or(targeted);
    Observation { actions, unchanged, targeted, failures, whole_scope, declared }
}

fn is_equal(action: &Action) -> bool {
    action.reason == Reason::Equal
}

/// Observes each item in a task of its own, so that all cores decode and compare, and tells `note` what came of
/// it. No more are begun at once than the gate may ever let through, so that a stop reaches the others in time.
async fn each_in_a_task(
    items: impl Stream<Item = Item>,
    observer: &Arc<Observer>,
    mut note: impl FnMut(Result<Option<Action>, Failure>),
) {
    let at_once = observer.session.client.max_concurrency();
    let mut items = pin!(items.fuse());
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            Some(item) = items.next(), if running.len() < at_once => {
                if let Some(action) = observer.deferred(&item) {
                    note(Ok(Some(action)));
                    continue;
                }
                let observer = Arc::clone(observer);
                running.spawn(async move { observer.observe(item).await });
            }
            Some(observed) = running.join_next() => joined(observed).into_iter().for_each(&mut note),
            else => return,
        }
    }
}

impl Observer {
    /// The creation of what is known to be missing, where its request can wait.
    fn deferred(&self, item: &Item) -> Option<Action> {
        let Item::Desired(path, Ok(desired)) = item else { return None };
        let absent = self.defers && self.stop.reason().is_none() && self.remote.is_known_absent(desired);
        absent.then(|| Action::new(path.clone(), Step::Create, Reason::Missing))
    }

    async fn observe(&self, item: Item) -> Result<Option<Action>, Failure> {
        let (path, operation) = match &item {
            Item::Desired(path, _) => (path.clone(), "read"),
            Item::Undeclared(candidate) => (candidate.path.clone(), PRUNE),
        };
        if let Err(error) = self.stop.check(&path) {
            return Err(Failure::new(path, operation, &error));
        }
        let outcome = match item {
            Item::Desired(_, Ok(desired)) => self.observe_resource(desired).await.map(Some),
            Item::Desired(_, Err(error)) => Err(error),
            Item::Undeclared(candidate) => {
                undeclared::observe(&self.remote, &self.occupants, candidate).await
            }
        };
        let outcome = self.stop.told(&path, outcome);
        self.stop.note(outcome.as_ref().err());
        outcome.map_err(|error| Failure::new(path, operation, &error))
    }

    async fn observe_resource(&self, desired: Resource) -> Result<Action, SyncError> {
        let (options, located) = (&self.options, self.located);
        let desired = match options.intent {
            Intent::Delete => desired,
            Intent::Converge | Intent::Create | Intent::Update => self.session.resolved(desired).await?,
        };
        let observed = match self.remote.look(&desired).await {
            Ok(Seen::Equal(at)) => return Ok(plan::unchanged(&desired, &at, located)),
            Ok(Seen::Observed(observed)) => *observed,
            // What cannot be read can still be written; that it has to be is not for us to tell.
            Err(error) if options.intent != Intent::Converge && error.category() == Category::Validation => {
                let unknown = (options.intent == Intent::Delete).then_some(Value::Null);
                Observed::new(desired.clone(), unknown)
            }
            Err(error) => return Err(error),
        };
        if !desired.rules.runs_jq() {
            let action = decide_for(&desired, &observed, options, located)?;
            if let (Some(proofs), Some(proof), true) = (&self.proofs, observed.proof, is_equal(&action)) {
                proofs.add(&desired.path, *proof);
            }
            return Ok(action);
        }
        let options = options.clone();
        blocking(desired.path.clone(), move || {
            on_evaluation_stack(|| decide_for(&desired, &observed, &options, located)).map_err(|source| {
                SyncError::Task { path: desired.path.clone(), reason: source.to_string() }
            })?
        })
        .await
    }
}
