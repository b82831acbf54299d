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
use super::{
    Candidate, Extent, Intent, Notes, Options, Selection, Session, Stop, SyncError, blocking, joined,
};
use crate::error::{Categorized, Category};
use crate::metadata::transform::on_evaluation_stack;
use crate::metadata::{Identity, Rules};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository;

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
struct Observer {
    session: Session,
    remote: Arc<Remote>,
    options: Options,
    /// Who occupies what matters only where something may be deleted.
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
    let Selection { mut resources, given, broken: mut failures, prune, whole_scope, declared } = selection;
    let located = !prune.is_empty();
    // Equal resources are most of a large scope, and all that is left to tell of them is how many they are.
    let counts_equal = whole_scope && !located && !options.keep_compared && !options.sealable;
    let (mut actions, mut unchanged) = (Vec::new(), 0);
    if counts_equal && proofs.is_some() {
        resources.retain(|file| !session.answers.confirm(&file.path));
        unchanged = targeted - resources.len() - given.len() - failures.len();
    }
    let defers = defers && !located && !options.needs_payloads();
    let (session, options, stop) = (session.clone(), options.clone(), stop.clone());
    let observer = Arc::new(Observer { session, remote, options, located, defers, proofs, stop });
    let given = given.into_iter().map(|resource| Item::Desired(resource.path.clone(), Ok(resource)));
    let others = given.chain(prune.into_iter().map(Item::Undeclared));
    let loaded = loaded(&observer.session, resources).map(|(path, desired)| Item::Desired(path, desired));
    let items = loaded.chain(futures::stream::iter(others));
    let note = |outcome| match outcome {
        Ok(Some(action)) if counts_equal && is_equal(&action) => unchanged += 1,
        Ok(action) => actions.extend(action),
        Err(failure) => failures.push(failure),
    };
    each_in_a_task(items, &observer, note).await;
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
        if let Some(reason) = self.stop.reason() {
            let error = SyncError::NotAttempted { path: path.clone(), reason: reason.to_owned() };
            return Err(Failure::new(path, operation, &error));
        }
        let outcome = match item {
            Item::Desired(_, Ok(desired)) => self.observe_resource(desired).await.map(Some),
            Item::Desired(_, Err(error)) => Err(error),
            Item::Undeclared(candidate) => self.observe_undeclared(candidate).await,
        };
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

    async fn observe_undeclared(&self, candidate: Candidate) -> Result<Option<Action>, SyncError> {
        let path = candidate.path.clone();
        let Some(declared) = name_candidate(&self.session, candidate).await? else {
            tracing::info!(%path, "not pruned: Git still declares it under another path, or something below it");
            return Ok(None);
        };
        match self.remote.look_for(&declared).await {
            Ok(observed) => plan::decide_prune(&declared, &observed),
            // The resource itself is not there, and a list that can never tell more is no ground for deleting.
            // One that failed is asked again in the next run.
            Err(SyncError::PartialList { .. } | SyncError::List { refused: true, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The resource as it was declared; `None` if something declared needs it.
async fn name_candidate(session: &Session, candidate: Candidate) -> Result<Option<Resource>, SyncError> {
    let session = session.clone();
    blocking(candidate.path.clone(), move || {
        let Candidate { path, payload } = candidate;
        let rules = session.metadata.rules(&path)?;
        // What was declared before may not fit the defaults of today; it only has to name the resource.
        let payload = rules.resolved().with_defaults(payload.clone()).unwrap_or(payload);
        let identity = rules.identify(&path, &payload)?;
        if is_occupied(&session, &path, &rules, &identity)? || has_declared_children(&session, &path)? {
            return Ok(None);
        }
        let (payload, descriptor, secrets) = (Arc::new(payload), None, Arc::default());
        Ok(Some(Resource { path, rules, identity, payload, descriptor, secrets }))
    })
    .await
}

/// Whether a declared resource of the same collection has this id on the server. Only asked where the id
/// is not the path's own name, which is the one case where two paths can mean one resource.
fn is_occupied(
    session: &Session,
    path: &LogicalPath,
    rules: &Rules,
    identity: &Identity,
) -> Result<bool, SyncError> {
    let Some(collection) = path.parent() else { return Ok(false) };
    let named_so = collection.child(&identity.remote_id).is_ok_and(|named| named == *path);
    if named_so {
        return Ok(false);
    }
    let siblings = repository::resources(session.tree.as_ref(), &collection, false)?;
    for sibling in siblings.resources.iter().filter(|sibling| collection.child_of(&sibling.path).is_some()) {
        let payload = repository::read_payload(session.tree.as_ref(), sibling)?;
        if rules.identify(&sibling.path, &payload)?.remote_id == identity.remote_id {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deleting a parent may take its children along, on the server.
fn has_declared_children(session: &Session, path: &LogicalPath) -> Result<bool, SyncError> {
    Ok(repository::declares_at_least(session.tree.as_ref(), path, 1)?)
}
