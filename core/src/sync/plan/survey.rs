//! Reads the selection, and decides on each resource immediately after its read, so that a run holds only the payloads
//! of changes, not of all resources.

use std::collections::HashSet;
use std::future::ready;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tracing::{Instrument as _, Span};

use super::Plan;
use super::decide::decide_for;
use super::names::Names;
use super::saved;
use super::undeclared::{Candidates, Fate, Pruning, check_alias};
use crate::error::{Categorized, Category};
use crate::metadata::MetadataError;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::spans;
use crate::sync::model::{
    Action, Candidate, Doubt, Failure, FailureReason, Intent, Lost, NewParent, Observed, Options, PRUNE,
    Reason, Resource, Scope, Selection, Sending, Session, Step, Stop, SyncError, Transcript, Wanted, hide,
};
use crate::sync::observe::{Bulk, Expected, Former, Remote, loaded, refers};
use crate::sync::tasks::{self, evaluated};

/// A part of a survey ends after this time. Its actions are applied before the next part is read. So a run that is
/// stopped has done a part of its work, even in a large scope.
pub const PART_TIME: Duration = Duration::from_millis(500);
/// A part also ends with this number of actions, which limits their memory.
const PART_ACTIONS: usize = 2_000;
/// Without an earlier revision, each of more resources than this is not compared with all declared ones.
const FEW: usize = 100;
/// The number of tasks until the server has accepted the credentials: a run ends after as many rejections.
const FIRST_TASKS: usize = 3;

/// A desired resource, or a candidate for deletion.
pub enum Item {
    Desired(LogicalPath, Result<Resource, SyncError>),
    Undeclared(Candidate),
}

impl Item {
    /// Returns its path, and the operation that a failure reports.
    fn subject(&self) -> (&LogicalPath, &'static str) {
        match self {
            Self::Desired(path, _) => (path, "read"),
            Self::Undeclared(candidate) => (&candidate.path, PRUNE),
        }
    }
}

/// The items of a survey, in order.
pub type Items = dyn Stream<Item = Item> + Send;

/// The decision for one item, or its failure.
type Looked = Result<Fate, Failure>;

/// Reads and decides the resources of one run.
#[derive(Clone)]
pub struct Surveyor {
    session: Session,
    bulk: Arc<Bulk>,
    candidates: Arc<Candidates>,
    options: Options,
    names: Arc<Mutex<Names>>,
    /// The failure of the health check, if it rejects the credentials.
    rejected: Arc<OnceCell<Option<Arc<SyncError>>>>,
    /// Whether equal resources are only counted, because most of a large scope is equal.
    counts_equal: bool,
    /// Whether the create request of a resource that is proven absent is made when it is sent. Until then its payload
    /// and secrets are not needed, which saves most of the time and memory of a first sync.
    defers: bool,
    /// Whether it does not compare its resources with all declared ones: there are too many, or an earlier pass did so.
    skips_copies: bool,
    /// The scope, if it reads all of it.
    scope: Option<Scope>,
    stop: Stop,
}

impl Surveyor {
    /// Returns a surveyor for a run over `selection`. Records all reads in `transcript`.
    pub fn new(
        session: &Session,
        selection: &Selection,
        options: &Options,
        stop: &Stop,
        transcript: Arc<Transcript>,
    ) -> Self {
        let payloads = selection.prune.iter().map(|candidate| candidate.payload.clone()).collect();
        let former = Arc::new(Former { tree: selection.former.clone(), payloads });
        let remote = Remote::following(session, transcript, former);
        Self::running(remote.running(selection, Arc::default()), selection, options, stop)
    }

    /// Returns a surveyor for a further pass of the run that `writes` with a server of its own. It reads resources that
    /// others refer to again, and shares their contents with the writes that follow.
    pub fn again(
        session: &Session,
        selection: &Selection,
        options: &Options,
        stop: &Stop,
        writes: &Remote,
    ) -> Self {
        let references = writes.references();
        references.clear();
        let remote = Remote::following(session, Transcript::new(false), writes.former());
        let surveyor = Self::running(remote.running(selection, references), selection, options, stop);
        Self { skips_copies: true, ..surveyor }
    }

    fn running(remote: Remote, selection: &Selection, options: &Options, stop: &Stop) -> Self {
        let session = remote.session.clone();
        let remote = Arc::new(remote);
        let Options { keep_compared, sealable, .. } = *options;
        let written = session.written.clone();
        Self {
            session,
            candidates: Arc::new(Candidates::new(&remote)),
            bulk: Arc::new(Bulk::new(remote, selection, options)),
            options: Options { written, ..options.clone() },
            names: Arc::default(),
            rejected: Arc::default(),
            counts_equal: selection.is_whole_scope() && !keep_compared && !sealable,
            defers: false,
            skips_copies: !selection.is_whole_scope()
                && selection.former.is_none()
                && selection.targeted() > FEW,
            scope: selection.scope.clone(),
            stop: stop.clone(),
        }
    }

    /// Returns a surveyor that defers create requests. This requires a plan that is not shown, and a tree that is a
    /// commit.
    pub fn deferring(self, defers: bool) -> Self {
        Self { defers: defers && !self.options.needs_payloads(), ..self }
    }

    /// Returns the plan for `selection`. Reads concurrently within the budget of the server.
    pub async fn survey(&self, mut selection: Selection) -> Plan {
        let mut plan = self.begin(&mut selection).await;
        self.look_at_all(self.declared(selection).as_mut(), None, &mut plan).await;
        plan.finished(&self.options)
    }

    /// Returns a plan that contains the candidates for deletion in `selection` that still exist. Most of the resources
    /// that were declared once were deleted long ago.
    pub async fn begin(&self, selection: &mut Selection) -> Plan {
        let given = selection.given.iter().map(|resource| (resource.path.clone(), resource.clone()));
        let mut plan = Plan {
            revision: self.session.tree.revision().cloned(),
            targeted: selection.targeted(),
            scope: selection.scope.clone(),
            declared: selection.declared.unwrap_or_else(|| selection.targeted()),
            sent: selection.sent,
            failures: std::mem::take(&mut selection.broken),
            given: given.collect(),
            references: self.bulk.remote.references(),
            former: self.bulk.remote.former(),
            options: self.options.clone(),
            ..Plan::default()
        };
        if self.counts_equal && self.options.intent == Intent::Converge {
            plan.unchanged = self.bulk.take_equal(selection, &self.options).await;
        }
        let candidates = std::mem::take(&mut selection.prune);
        let items = candidates.clone().into_iter().map(Item::Undeclared);
        self.look_at_all(pin!(futures::stream::iter(items)), None, &mut plan).await;
        let doomed: HashSet<&LogicalPath> = plan.actions.iter().map(|action| &action.path).collect();
        let candidates = candidates.into_iter().filter(|candidate| doomed.contains(&candidate.path));
        let candidates = candidates.map(|candidate| (candidate.path.clone(), candidate)).collect();
        plan.pruning = Pruning { candidates, ..self.candidates.take_found() };
        plan
    }

    /// Returns the resources that Git declares, read ahead of the requests.
    pub fn declared(&self, selection: Selection) -> Pin<Box<Items>> {
        let loaded = loaded(&self.session, selection.resources);
        let loaded = loaded.map(|(path, desired)| Item::Desired(path, desired));
        let given = selection.given.into_iter();
        let given = given.map(|resource| Item::Desired(resource.path.clone(), Ok(resource)));
        // Resources that refer to others come last, so that the others are read only once.
        let referring = Arc::new(Mutex::new(Vec::new()));
        let (later, last) = (Arc::clone(&referring), referring);
        let plain = loaded.chain(futures::stream::iter(given)).filter_map(move |item| {
            let waits = matches!(&item, Item::Desired(_, Ok(desired)) if refers(desired));
            if waits {
                later.lock().push(item);
                return ready(None);
            }
            ready(Some(item))
        });
        let last =
            futures::stream::once(async move { futures::stream::iter(std::mem::take(&mut *last.lock())) });
        Box::pin(plain.chain(last.flatten()).fuse())
    }

    /// Processes each item in its own task, so that all cores decode and compare, and adds the decisions to `plan`.
    /// Runs at most as many tasks as the budget allows requests, so that a stop takes effect soon, and fewer while the
    /// server answers 401. With an `end`, starts no task after it, or after [`PART_ACTIONS`] actions. Returns the first
    /// path, or `None` if no item was left.
    pub async fn look_at_all(
        &self,
        mut items: Pin<&mut Items>,
        end: Option<Instant>,
        plan: &mut Plan,
    ) -> Option<LogicalPath> {
        let most = self.session.client.max_concurrency();
        let mut at_once = most.min(FIRST_TASKS);
        let shared = Arc::new(self.clone());
        let (mut running, mut first, mut at_end) = (JoinSet::new(), None, false);
        let mut span: Option<Span> = None;
        loop {
            let is_full =
                |end| plan.actions.len() >= PART_ACTIONS || first.is_some() && Instant::now() >= end;
            let is_over = self.stop.reason().is_none() && end.is_some_and(is_full);
            tokio::select! {
                item = items.next(), if !at_end && running.len() < at_once && !is_over => {
                    let Some(item) = item else {
                        at_end = true;
                        continue;
                    };
                    first = first.or_else(|| Some(item.subject().0.clone()));
                    let (surveyor, item) = (Arc::clone(&shared), self.named_once(item));
                    let expected = self.expected(&item);
                    let span = span.get_or_insert_with(spans::plan).clone();
                    let looked = async move { surveyor.look(item, expected).await };
                    // Boxed, because the runtime moves a future several times, and this one is large.
                    running.spawn(Box::pin(looked).instrument(span));
                }
                Some(looked) = tasks::next(&mut running) => {
                    let is_rejected = looked.as_ref().is_err_and(|failure| failure.http_status == Some(401));
                    at_once = if is_rejected { at_once.saturating_sub(1).max(1) } else { most };
                    self.add(looked, plan);
                }
                // The next item may wait for memory that the actions of this part hold.
                () = until(end), if !at_end && running.is_empty() && first.is_some() && !is_over => {}
                else => {
                    self.refuse_twins(plan);
                    refuse_hidden(plan);
                    hide(&mut plan.failures, &self.session.secrets);
                    return first;
                }
            }
        }
    }

    fn add(&self, looked: Looked, plan: &mut Plan) {
        match looked {
            Ok(Fate::Needs(action)) => {
                plan.failures.extend(action.impossible().map(|error| action.failed(error)));
                if self.counts_equal && action.reason == Reason::Equal {
                    plan.unchanged += 1;
                } else {
                    plan.actions.push(*action);
                }
            }
            Ok(Fate::Gone) => {}
            Ok(Fate::Kept(kept)) => plan.kept.push(kept),
            Err(failure) => plan.failures.push(failure),
        }
    }

    /// Fails resources whose name another resource also has, instead of their actions. Users have to decide which one is
    /// correct.
    fn refuse_twins(&self, plan: &mut Plan) {
        let mut twins = self.names.lock().end_part();
        if self.options.intent == Intent::Delete {
            return;
        }
        plan.failures.iter().for_each(|failure| _ = twins.remove(&failure.path));
        let total = plan.actions.len();
        plan.actions.retain(|action| !twins.contains_key(&action.path));
        // The others are equal to those of the server.
        let equal = twins.len().saturating_sub(total - plan.actions.len());
        plan.unchanged = plan.unchanged.saturating_sub(equal);
        let refused = twins.into_iter().map(|(path, error)| Failure::new(path, "read", &error));
        plan.failures.extend(refused);
    }

    /// Fails a resource if another declared resource is the same one: each run would overwrite one of them with the
    /// other.
    fn named_once(&self, item: Item) -> Item {
        let Item::Desired(path, Ok(desired)) = item else { return item };
        let added = self.names.lock().add(&desired);
        Item::Desired(path, added.map(|()| desired))
    }

    /// Announces a resource that others may refer to.
    fn expected(&self, item: &Item) -> Option<Expected> {
        let Item::Desired(path, Ok(desired)) = item else { return None };
        let is_plain = self.options.intent != Intent::Delete && !refers(desired);
        is_plain.then(|| self.bulk.remote.references().expect(path)).flatten()
    }

    async fn look(&self, item: Item, expected: Option<Expected>) -> Looked {
        let (path, operation) = (item.subject().0.clone(), item.subject().1);
        let looked = async {
            self.stop.check_read(&path)?;
            let fate = match item {
                Item::Desired(_, desired) => Fate::Needs(Box::new(self.look_at(desired?, expected).await?)),
                Item::Undeclared(candidate) => self.sealed(self.candidates.decide(candidate).await?),
            };
            if fate.is_absent() {
                // Boxed, because most resources exist.
                Box::pin(self.check_credentials(&path)).await?;
            }
            Ok(fate)
        };
        let outcome = self.stop.read(&path, looked.await);
        if operation != PRUNE {
            self.bulk.looked_at(&path);
        }
        if let Some(progress) = &self.options.progress {
            progress.compared(&path);
        }
        outcome.map_err(|error| Failure::new(path, operation, &error))
    }

    /// Fails if the server may hide the resource at `path`, because its health check rejects the credentials.
    async fn check_credentials(&self, path: &LogicalPath) -> Result<(), SyncError> {
        let check = || async {
            self.session.client.check_credentials().await.err().map(|error| Arc::new(error.into()))
        };
        match self.rejected.get_or_init(check).await {
            Some(error) => Err(SyncError::Undecided(path.clone(), Doubt::Hidden(Arc::clone(error)))),
            None => Ok(()),
        }
    }

    /// Adds the digest of a deletion, if the plan may be saved.
    fn sealed(&self, mut fate: Fate) -> Fate {
        if let Fate::Needs(action) = &mut fate
            && self.options.sealable
        {
            action.content = Some(Box::new(saved::content(action)));
        }
        fate
    }

    async fn look_at(&self, desired: Resource, expected: Option<Expected>) -> Result<Action, SyncError> {
        let under_way = self.session.knowledge.expected(&desired);
        let lost = self.session.knowledge.lost(&desired.path);
        let depends_on = desired.dependencies()?;
        self.session.hide_names(&desired.rules, &desired.payload);
        let written = self.session.written.as_deref();
        let may_be_lost = lost.is_some() || written.is_some_and(|written| written.has_lost(&desired.path));
        if self.defers && under_way.is_none() && !may_be_lost && self.bulk.is_known_absent(&desired) {
            self.candidates.check_not_created(&desired).await?;
            let create = Action::new(desired.path, Step::Create, Reason::Missing);
            return Ok(Action { depends_on, sending: Sending::WhenSent(None), ..create });
        }
        let converges = self.options.intent == Intent::Converge;
        let mut pending = None;
        let (desired, observed) = if self.options.intent == Intent::Delete {
            self.look_for_deletion(desired).await?
        } else {
            let desired = self.session.resolved(desired).await?;
            let refers = refers(&desired);
            self.bulk.remote.look_at(&desired);
            let desired = if refers { self.bulk.remote.filled(desired).await? } else { (desired, None) };
            let (desired, lacking) = desired;
            pending = lacking;
            // An entry of a list does not show whether the other resource changed.
            let looked = if refers {
                self.bulk.remote.read(&desired).await.map(Some)
            } else {
                self.bulk.look(&desired).await
            };
            let observed = match looked {
                Ok(None) => {
                    self.session.knowledge.shown(&desired);
                    return Ok(Action::new(desired.path, Step::Skip, Reason::Equal));
                }
                Ok(Some(observed)) => {
                    self.check_requested(&desired, &observed)?;
                    observed
                }
                // A resource that cannot be read can still be written, and this intent writes it in any case.
                Err(error) if !converges && is_about_reading(&error) => {
                    Observed::new(self.bulk.remote.addressed(&desired).await?, None)
                }
                Err(error) => return Err(error),
            };
            (desired, observed)
        };
        if observed.payload.is_some() {
            self.session.knowledge.shown(&desired);
        }
        if converges && observed.other_alias(&Wanted::of(&desired)).is_some() {
            self.candidates.check_sole(&desired, &observed).await?;
        }
        let is_copy = self.options.intent != Intent::Delete && self.may_be_a_copy(&desired, &observed).await;
        let copied = is_copy.then(|| (desired.clone(), observed.clone()));
        if let Some(left) = under_way.filter(|_| converges && observed.payload.is_none()) {
            return Err(SyncError::UnderWay(desired.path, left.as_secs() + 1));
        }
        if converges && may_be_lost {
            self.check_lost(&desired, &observed, lost).await?;
        }
        if converges && observed.payload.is_none() {
            self.candidates.check_not_created(&observed.at).await?;
        }
        if let Some(expected) = expected {
            expected.remember(&observed);
        }
        let at = (observed.at.path != desired.path).then(|| Box::new(observed.at.path.clone()));
        let (options, refers_to_parents) = (self.options.clone(), desired.rules.names_ids());
        let action = evaluated(desired, move |desired| decide_for(desired, &observed, &options)).await?;
        if let Some((desired, observed)) = copied.filter(|_| action.step != Step::Skip) {
            self.candidates.check_copy(&desired, &observed).await?;
        }
        // A reference without a value differs from any value, so it shows no need for a replacement.
        if let Some(pending) = pending.take_if(|_| action.replaces()) {
            return Err(pending.error);
        }
        let pending = pending.filter(|lacking| !(lacking.deferred && action.is_missing()));
        if action.step == Step::Create
            && refers_to_parents
            && let Some(parent) = self.missing_parent(&action, pending.is_some()).await
        {
            let sending = Sending::BelowNewParent(Box::new(NewParent { path: parent, at: at.map(|at| *at) }));
            return Ok(Action { depends_on, sending, ..action });
        }
        let writes = matches!(action.step, Step::Create | Step::Update);
        if writes && (pending.is_some() || self.lacks_declared(&action).await?) {
            return Ok(Action { depends_on, sending: Sending::WhenSent(at), ..action });
        }
        Ok(Action { depends_on, ..action })
    }

    /// Fails if the caller asked to create a resource that exists, or to update one that is proven not to exist: many servers
    /// would create another one.
    fn check_requested(&self, desired: &Resource, observed: &Observed) -> Result<(), SyncError> {
        let exists = observed.payload.is_some() || desired.rules.resolved().singleton;
        match self.options.intent {
            Intent::Create if exists => Err(SyncError::Exists(desired.path.clone())),
            Intent::Update if !exists => Err(SyncError::Absent(desired.path.clone())),
            _ => Ok(()),
        }
    }

    /// Fails if the server has the resource that an earlier run created from `desired`, and `observed` is not it: each
    /// run would create another one.
    async fn check_lost(
        &self,
        desired: &Resource,
        observed: &Observed,
        lost: Option<Lost>,
    ) -> Result<(), SyncError> {
        let Session { written, knowledge, .. } = &self.session;
        let recorded = written.as_ref().and_then(|written| written.lost(desired));
        let lost = lost.filter(|lost| lost.is_of(desired));
        if observed.payload.is_none() {
            let still_exists = match &recorded {
                Some(id) => self.bulk.remote.at_id(&observed.at, id).await != Some(None),
                None => lost.is_some(),
            };
            if still_exists {
                let id = recorded.or_else(|| lost?.id);
                return Err(SyncError::Unfindable(desired.path.clone(), id));
            }
        }
        knowledge.find(&desired.path);
        if let Some(written) = written {
            written.find(&desired.path);
        }
        Ok(())
    }

    /// Whether the run does not read all declared resources, and `desired` exists although the last revision did not
    /// declare it with these names. Then another declared resource may be the same one.
    async fn may_be_a_copy(&self, desired: &Resource, observed: &Observed) -> bool {
        // If it reads all resources beside it, `Names` finds those that are the same one.
        let reads_beside = self.scope.as_ref().is_some_and(|scope| scope.contains_all_beside(&desired.path));
        !self.skips_copies
            && !reads_beside
            && observed.payload.is_some()
            && !self.bulk.remote.was_declared(desired).await
    }

    /// Whether the request of `action` cannot be made because it needs what the run may create: the content of another
    /// resource.
    async fn lacks_declared(&self, action: &Action) -> Result<bool, SyncError> {
        match action.impossible().and_then(SyncError::lacks) {
            Some(path) => self.bulk.remote.is_declared(path).await,
            None => Ok(false),
        }
    }

    /// Returns the parent that the server does not have, in whose place the request of `action` has its name. A transform
    /// may fail because of the name, unless it lacks the value of another resource, as with a `pending` reference.
    async fn missing_parent(&self, action: &Action, pending: bool) -> Option<LogicalPath> {
        let fails = match action.impossible() {
            None => false,
            Some(error) if pending || error.lacks().is_some() => false,
            Some(SyncError::Metadata(MetadataError::Transform { .. })) => true,
            Some(_) => return None,
        };
        self.bulk.remote.absent_parent(&action.path, fails).await
    }

    /// Reads a resource that the caller asked to delete, by its path, else by its payload. Fails if another declared
    /// resource is the same one. Also returns the resource with the names by which it was found.
    async fn look_for_deletion(&self, desired: Resource) -> Result<(Resource, Observed), SyncError> {
        let remote = &self.bulk.remote;
        let by_path = Resource::by_path(desired.path.clone(), Arc::clone(&desired.rules)).ok();
        let first = by_path.unwrap_or_else(|| desired.clone());
        let unreadable = Observed::new(desired.clone(), Some(Value::Null));
        let by_path = remote.read_doomed(&first).await;
        // The name of a resource may be the id of another one.
        let is_another = !desired.seeded
            && match &by_path {
                Ok(observed) => observed.other_alias(&Wanted::of(&desired)).is_some(),
                Err(error) => matches!(error, SyncError::Undecided(_, Doubt::Several(_))),
            };
        let observed = match by_path {
            // A deletion needs no proof of absence.
            Err(error) if error.is_lack_of_proof() => Observed::new(first.clone(), None),
            _ if is_another => Observed::new(first.clone(), None),
            Err(error) if is_about_reading(&error) => return Ok((desired, unreadable)),
            observed => observed?,
        };
        if desired.seeded {
            // A path by the only name of a resource shows no other one.
            if Wanted::of(&desired).one_name {
                check_alias(&desired, &observed)?;
            }
            return Ok((first, observed));
        }
        let has_its_names = !is_another && first.identity == desired.identity;
        if has_its_names || observed.payload.is_some() {
            let (wanted, found) = (Wanted::of(&desired), observed.addressed().identity.remote_id);
            let id = wanted.id.filter(|id| !has_its_names && !wanted.one_name && *id != found);
            if let Some(id) = id.map(str::to_owned) {
                return Err(SyncError::Undecided(desired.path, Doubt::AnotherId(id, found)));
            }
            // The request may need attributes that only the payload states.
            let at = Resource { payload: Arc::clone(&desired.payload), ..observed.at };
            return Ok((desired, Observed { at, ..observed }));
        }
        let observed = match remote.read_doomed(&desired).await {
            // The answer to a deletion by its name would not show whether the resource exists.
            Err(error) if is_about_reading(&error) && !error.is_lack_of_proof() => {
                return Ok((desired, unreadable));
            }
            observed => observed?,
        };
        if observed.payload.is_some() {
            self.candidates.check_sole(&desired, &observed).await?;
            check_alias(&desired, &observed)?;
        }
        Ok((desired, observed))
    }
}

/// Removes the creates if the server rejected the credentials (401) for another resource. It may treat this client like
/// one without credentials, and hide the resources that seem to be absent.
fn refuse_hidden(plan: &mut Plan) {
    let rejected = plan.failures.iter().find(|failure| failure.http_status == Some(401));
    let Some(rejected) = rejected.map(|failure| failure.path.clone()) else { return };
    for action in plan.actions.extract_if(.., |action| action.is_missing()) {
        let message = format!(
            "cannot determine whether {} exists: the server rejects the credentials for {rejected}, so it may hide resources",
            action.path
        );
        let reason = FailureReason::Category(Category::Auth);
        plan.failures.push(Failure::local(action.path, "read", reason, message));
    }
}

/// Waits until `end`, or forever.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}

/// Whether the error concerns only the read of a resource, so that a write may succeed.
fn is_about_reading(error: &SyncError) -> bool {
    error.is_unreadable() || error.category() == Category::Validation
}
