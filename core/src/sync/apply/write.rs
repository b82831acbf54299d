//! Sends one action of a plan, and handles answers that a plan cannot foresee.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use http::StatusCode;
use http::header::HeaderValue;
use parking_lot::Mutex;

use super::affected::forget_written;
use super::given::GivenIds;
use super::turns::Turns;
use crate::error::{Categorized as _, Category};
use crate::path::LogicalPath;
use crate::repository::{RepositoryError, Tree};
use crate::server::{Request, Response, ServerError};
use crate::sync::model::{
    Action, Call, Done, Doubt, Failure, Observed, Options, Reason, Recurrences, Resource, Sending, Session,
    Step, Stop, SyncError, Witness, WrittenValues, without,
};
use crate::sync::observe::{Lacking, References, Remote, reserved_at};
use crate::sync::plan::undeclared::check_alias;
use crate::sync::plan::{Plan, decide};
use crate::sync::tasks::{blocking, evaluated};
use crate::transport::retry::backoff;

/// Sends the actions of the plans of one run.
pub struct Writer {
    pub session: Session,
    /// Desired resources that the tree does not hold.
    pub given: HashMap<LogicalPath, Resource>,
    pub ids: GivenIds,
    /// The contents of resources that others refer to, from the plan and after the writes of the run.
    pub referred: Arc<Remote>,
    /// The resources that the run has created, and whether their ids are known.
    pub created: Mutex<HashMap<LogicalPath, bool>>,
    /// The lists of collections of created resources.
    pub new_lists: Arc<Remote>,
    /// The revisions that declared the resources last that the target revision does not declare.
    pub declared_in: Mutex<HashMap<LogicalPath, Arc<dyn Tree>>>,
    pub recurrences: Option<Arc<Recurrences>>,
    /// The last resource that the run has created in each collection on the server whose list proved that it was absent.
    /// If ids are secret, all of them, because a record cannot identify others.
    pub witnesses: Mutex<HashMap<LogicalPath, Vec<Witness>>>,
    /// The resources that failed in a plan of the run, with the categories of their failures.
    pub failed: Mutex<HashMap<LogicalPath, Option<Category>>>,
    /// The resources that differ after a successful update, unless recurrences are watched.
    pub unconfirmed: Mutex<Vec<Failure>>,
    pub turns: Turns,
    pub stop: Stop,
}

impl Writer {
    pub fn new(session: &Session, plan: &Plan, stop: &Stop) -> Self {
        // Answers from before the plan are stale here.
        let session = Session { answers: Arc::default(), ..session.clone() };
        let (given, recurrences) = (plan.given.clone(), plan.options.recurrences.clone());
        let referred = Remote::referring(&session, Arc::clone(&plan.references), Arc::clone(&plan.former));
        let new_lists = referred.fresh();
        let concurrency = session.client.max_concurrency();
        let (ids, created, declared_in, witnesses, failed, unconfirmed) = Default::default();
        Self {
            session,
            given,
            ids,
            referred,
            created,
            new_lists,
            declared_in,
            recurrences,
            witnesses,
            failed,
            unconfirmed,
            turns: Turns::new(concurrency),
            stop: stop.clone(),
        }
    }

    /// Returns the server for a read of the resource at `path` after its deletion. The metadata of the revision that
    /// declared it last describes its address and the list of its collection.
    pub fn after_deletion(&self, path: &LogicalPath) -> Arc<Remote> {
        let fresh = self.referred.fresh();
        match self.declared_in.lock().get(path) {
            Some(tree) => fresh.at_revision(tree),
            None => fresh,
        }
    }

    /// Treats the ids of all created resources as known, because a further pass looks them up.
    pub fn look_up_parents(&self) {
        self.created.lock().values_mut().for_each(|known| *known = true);
    }

    /// Whether the run has created the resource at `path`.
    pub fn has_created(&self, path: &LogicalPath) -> bool {
        self.created.lock().contains_key(path)
    }

    /// Whether the ids of all parents of the resource at `path` that the run has created are known; `None` if it has
    /// created none of them.
    pub fn knows_new_parents(&self, path: &LogicalPath) -> Option<bool> {
        let created = self.created.lock();
        if created.is_empty() {
            return None;
        }
        path.ancestors().filter_map(|parent| created.get(&parent).copied()).reduce(|all, known| all && known)
    }

    /// Returns the nearest parent of the resource of `action` that failed in a plan of the run and was not created since, if
    /// the resource may not be below it: the server does not have the parent; the name of the parent is that of another one;
    /// or the server refuses to show the parent, and only a list, which may hide the resource, too, proves that the resource
    /// is absent.
    async fn failed_parent(&self, action: &Action) -> Option<LogicalPath> {
        let (failed, why) = {
            let failed = self.failed.lock();
            let mut parents = action.path.ancestors().take_while(|parent| !self.has_created(parent));
            parents.find_map(|parent| failed.get(&parent).map(|why| (parent, *why)))
        }?;
        let by_list = || action.call().is_none_or(|call| call.request.once && !call.states_id);
        let is_doubtful = match why {
            Some(Category::Conflict) => true,
            Some(Category::Auth) if action.step == Step::Create && by_list() => true,
            // This one remembers absent parents, which may have many children.
            _ => self.new_lists.parent_is_absent(&action.path, false).await,
        };
        is_doubtful.then_some(failed)
    }

    /// The contents of resources that others refer to. Those that were written since are not among them.
    pub fn references(&self) -> Arc<References> {
        self.referred.references()
    }

    /// Returns what is sent instead of the planned `action`, if anything: a create may have no request in the plan, and a
    /// parent that was just created may have another name on the server.
    pub async fn prepare(&self, action: &Action) -> Result<Option<Box<Action>>, SyncError> {
        // Where its parents are now.
        let (waited, planned) = match &action.sending {
            Sending::WhenSent(at) => (true, at.as_deref()),
            Sending::BelowNewParent(parent) => (true, parent.at.as_ref()),
            _ => (false, action.call().and_then(|call| call.at.as_ref())),
        };
        let at = self.ids.resolve(&action.path, planned);
        let waited = waited || self.is_outdated(action).await?;
        let mut has_new_name = false;
        if waited && let Some(declared) = self.declared(&action.path).await? {
            self.referred.look_at(&declared);
            has_new_name = declared.has_unknown_name();
        }
        // A parent that failed.
        if action.step != Step::Delete
            && let Some(parent) = self.failed_parent(action).await
            && (action.step == Step::Create || self.desired(&action.path).await?.rules.resolved().singleton)
        {
            return Err(SyncError::ParentFailed(action.path.clone(), parent));
        }
        if let Sending::BelowNewParent(parent) = &action.sending
            && !self.has_created(&parent.path)
        {
            return Err(SyncError::NoParent(action.path.clone(), parent.path.clone()));
        }
        // An update is decided with the current state.
        if action.step == Step::Update
            && let Some(again) = self.below_new_parents(action, at.as_ref(), planned).await?
        {
            return Ok(Some(again));
        }
        if waited && action.step == Step::Update {
            let desired = self.desired(&action.path).await?;
            let observed = self.read(&desired).await?;
            return self.again(action, desired, observed).await.map(Some);
        }
        // A create gets its request.
        let knows_parents = self.knows_new_parents(&action.path).unwrap_or(true);
        if action.step != Step::Create || at.as_ref() == planned && !waited && knows_parents {
            return Ok(None);
        }
        let requested = action.reason == Reason::Requested;
        let (desired, _) = self.desired_first(action).await?;
        if !knows_parents && desired.rules.names_ids() {
            return Err(SyncError::Undecided(action.path.clone(), Doubt::ParentId));
        }
        let at = desired.moved_to(at);
        // The plan has looked for nothing at a name that was unknown.
        if has_new_name && !requested {
            let observed = self.read(&at).await?;
            if observed.payload.is_some() {
                let desired = self.desired(&action.path).await?;
                return self.again(action, desired, observed).await.map(Some);
            }
        }
        let create = if requested { Call::create } else { Call::create_first };
        let call = evaluated(desired, move |desired| create(desired, &at)).await?;
        let made = Action::new(action.path.clone(), Step::Create, action.reason);
        Ok(Some(Box::new(made.sending(Ok(call)))))
    }

    /// Whether the run has written a resource whose values the request of `action` has. A further pass decides about updates
    /// of resources that may have to be replaced.
    async fn is_outdated(&self, action: &Action) -> Result<bool, SyncError> {
        if !matches!(action.sending, Sending::Ready(_)) || !self.references().is_outdated(&action.path) {
            return Ok(false);
        }
        Ok(match action.step {
            Step::Create => true,
            Step::Update => self.referred.rules(&action.path).await?.resolved().replace_on.is_empty(),
            Step::Delete | Step::Skip => false,
        })
    }

    /// Decides the create or update `action` again with the state that was `observed` now.
    async fn again(
        &self,
        action: &Action,
        desired: Resource,
        observed: Observed,
    ) -> Result<Box<Action>, SyncError> {
        let again = self.decided((action.step, action.reason), desired, observed).await?;
        let nothing = || Action::new(action.path.clone(), Step::Skip, action.reason);
        Ok(Box::new(Action { mark: action.mark.clone(), ..again.unwrap_or_else(nothing) }))
    }

    /// Returns the update of a singleton below a parent that the run has created, `at` the id of the parent: at its name may
    /// be another parent. `None` if the `planned` path is right.
    async fn below_new_parents(
        &self,
        action: &Action,
        at: Option<&LogicalPath>,
        planned: Option<&LogicalPath>,
    ) -> Result<Option<Box<Action>>, SyncError> {
        let lacks_ids = self.knows_new_parents(&action.path) == Some(false);
        if at == planned && !lacks_ids {
            return Ok(None);
        }
        let desired = self.desired(&action.path).await?;
        // The plan has found any other resource that exists.
        if !desired.rules.resolved().singleton {
            return Ok(None);
        }
        if lacks_ids {
            return Err(SyncError::Undecided(action.path.clone(), Doubt::ParentId));
        }
        let located = desired.moved_to(at.cloned());
        let observed = match self.referred.fresh().read_at(&located).await {
            Err(error) if error.category() == Category::NotFound => Observed::new(located, None),
            read => read?,
        };
        self.again(action, desired, observed).await.map(Some)
    }

    /// Sends `call` for `action`. Returns the executed step, and whether it had no effect if the last run did the same.
    /// Also returns the update that completes a created resource. Its address may be another one.
    pub async fn write(
        &self,
        action: &Action,
        call: &Call,
    ) -> Result<(Done, Option<Box<Action>>), SyncError> {
        self.references().forget(&action.path);
        let attempt = Attempt::new(self, action, call);
        let sent = attempt.send().await;
        // Another resource may have read it before the write was done. A create leaves the content that it has read.
        if action.step != Step::Create {
            self.references().forget(&action.path);
        }
        let step = sent?;
        self.outdate_referrers(&action.path, step).await?;
        if let Some(written) = self.session.written.clone().filter(|_| step == Step::Delete) {
            let (session, path) = (self.session.clone(), action.path.clone());
            let forget = move || {
                forget_written(&session, &written, &path);
                Ok(())
            };
            blocking(action.path.clone(), forget).await?;
        }
        let without_effect = if step == Step::Update { self.is_without_effect(action).await } else { None };
        // A resource that was found instead of created may lack deferred attributes, too.
        let is_incomplete =
            step == Step::Create && !call.deferred.is_empty() || attempt.leaves_out.into_inner();
        let (deferred, update) = match attempt.rest.into_inner() {
            None => (is_incomplete, None),
            Some(Rest::Unread) => (step == Step::Create, None),
            Some(Rest::Deferred) => return Ok((Done { step, without_effect, deferred: true }, None)),
            Some(Rest::Update(update)) => (is_incomplete, Some(update)),
        };
        if update.is_none() {
            self.note_written(action, call).await?;
        }
        Ok((Done { step, without_effect, deferred }, update))
    }

    /// Sends the request `sent` of the `update` that completes the resource that `create` has created.
    pub async fn complete(
        &self,
        (action, create): (&Action, &Call),
        (update, sent): (&Action, &Call),
    ) -> Result<(), SyncError> {
        let attempt = Attempt::new(self, update, create);
        let updated = attempt.exchange(&sent.request).await;
        self.references().forget(&action.path);
        attempt.confirm(sent, &updated?).await?;
        self.outdate_referrers(&action.path, Step::Update).await?;
        self.note_written(action, create).await
    }

    /// Records that the values of the resources that refer to the one at `path` may have changed.
    async fn outdate_referrers(&self, path: &LogicalPath, step: Step) -> Result<(), SyncError> {
        if !self.referred.has_referrers(path) {
            return Ok(());
        }
        let declared = if step == Step::Update { self.declared(path).await? } else { None };
        self.referred.outdate_referrers(path, declared.as_ref().map(|declared| &*declared.payload));
        Ok(())
    }

    /// Records the write-only attributes that `call` has set. A later update sets deferred ones, and a reset sets those
    /// of a resource that is no longer declared.
    async fn note_written(&self, action: &Action, call: &Call) -> Result<(), SyncError> {
        let sets = call.has_write_only && call.deferred.is_empty() && action.step != Step::Delete;
        if let Some(written) = self.session.written.as_ref().filter(|_| sets) {
            written.note(&self.desired(&action.path).await?, &call.unsent);
        }
        Ok(())
    }

    /// Decides `action`, which was not executed, again with the state that was `observed` now.
    pub async fn decided(
        &self,
        action: (Step, Reason),
        desired: Resource,
        observed: Observed,
    ) -> Result<Option<Action>, SyncError> {
        decided(action, desired, observed, self.session.written.clone()).await
    }

    /// Whether the resource differs after the write in the same way as before; `None` if the last run did not write it.
    async fn is_without_effect(&self, action: &Action) -> Option<bool> {
        let (recurrences, mark) = (self.recurrences.clone()?, action.mark.as_ref()?);
        if !recurrences.has_corrected(&action.path, mark) {
            return None;
        }
        let looked = async {
            let desired = self.desired(&action.path).await?;
            let observed = self.read(&desired).await?;
            let options = Options { recurrences: Some(recurrences), ..Options::default() };
            let mark =
                move |desired: &Resource| Ok(decide::decide_for(desired, &observed, &options, None)?.mark);
            evaluated(desired, mark).await
        };
        // The write itself succeeded, and the next run reads the resource anyway.
        looked.await.ok().map(|now| now.as_ref() == Some(mark))
    }

    /// Reads a resource as it is after the writes so far.
    pub async fn read(&self, wanted: &Resource) -> Result<Observed, SyncError> {
        self.referred.fresh().read(wanted).await
    }

    /// Returns the desired resource at `path`. A plan does not keep it, because it needs more memory than the request
    /// and is rarely needed.
    pub async fn desired(&self, path: &LogicalPath) -> Result<Resource, SyncError> {
        match self.filled(path).await? {
            (_, Some(lacking)) => Err(lacking.error),
            (desired, None) => Ok(desired),
        }
    }

    /// Like [`Self::desired`] for a create that leaves out deferred attributes. Also returns whether references in them
    /// have no values yet.
    pub async fn desired_first(&self, action: &Action) -> Result<(Resource, bool), SyncError> {
        let is_first = action.is_missing();
        match self.filled(&action.path).await? {
            (_, Some(lacking)) if !(is_first && lacking.deferred) => Err(lacking.error),
            (desired, lacking) => Ok((desired, lacking.is_some())),
        }
    }

    /// Returns the resource at `path` as Git declares it, with its placeholders and references.
    pub async fn declared(&self, path: &LogicalPath) -> Result<Option<Resource>, SyncError> {
        match self.given.get(path) {
            Some(given) => Ok(Some(given.clone())),
            None => reserved_at(&self.session, path).await,
        }
    }

    pub async fn filled(&self, path: &LogicalPath) -> Result<(Resource, Option<Lacking>), SyncError> {
        let missing = || RepositoryError::ResourceMissing(path.clone());
        let desired = self.declared(path).await?.ok_or_else(missing)?;
        self.referred.filled(self.session.resolved(desired).await?).await
    }
}

/// The number of times that a write is decided again because the server has another version.
const DECISIONS: u32 = 4;

/// The execution of one action: one request, and further requests that its answer requires.
pub(super) struct Attempt<'a> {
    pub writer: &'a Writer,
    pub action: &'a Action,
    pub call: &'a Call,
    /// The rest of the work on a created resource.
    pub rest: OnceLock<Rest>,
    /// Whether [`Self::desired`] leaves out attributes that refer to a resource without a value.
    leaves_out: AtomicBool,
}

/// The rest of the work on a resource.
pub(super) enum Rest {
    /// The server failed to show the resource. A further pass reads it.
    Unread,
    /// The create left out attributes, which a further pass sets.
    Deferred,
    /// The server ignored parts of the create.
    Update(Box<Action>),
}

impl<'a> Attempt<'a> {
    fn new(writer: &'a Writer, action: &'a Action, call: &'a Call) -> Self {
        Self { writer, action, call, rest: OnceLock::new(), leaves_out: AtomicBool::new(false) }
    }

    async fn send(&self) -> Result<Step, SyncError> {
        let requested = self.action.reason == Reason::Requested;
        if let Some(step) = self.adopt_default().await? {
            return Ok(step);
        }
        match (self.exchange(&self.call.request).await, self.action.step) {
            (Ok(response), _) => self.answered(&response).await,
            (Err(error), Step::Create) if error.is_already_exists() && !requested => {
                self.update_instead(error).await
            }
            (Err(error), Step::Create) if error.may_still_be_done() => Err(self.late(error).await),
            (Err(error), Step::Create) if error.may_be_done() => self.look_for(error).await,
            (Err(error), Step::Update | Step::Delete) if error.is_outdated() => match &self.call.guarded {
                Some(tag) => self.decide_again(tag, 1).await,
                None => Err(error.into()),
            },
            (Err(error), Step::Update | Step::Delete) if error.is_gone() => self.send_elsewhere(error).await,
            (Err(error), Step::Update) if error.is_about_fixed_attributes() => Err(SyncError::Fixed(error)),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Handles the answer to the request.
    async fn answered(&self, response: &Response) -> Result<Step, SyncError> {
        match self.action.step {
            Step::Create => self.created(response).await,
            Step::Update => self.confirm(self.call, response).await.map(|()| Step::Update),
            // A deletion that was only accepted may still be in progress.
            Step::Delete if response.status != StatusCode::ACCEPTED => self.deleted(response).await,
            step => Ok(step),
        }
    }

    /// Sends a write of the resource.
    pub async fn exchange(&self, request: &Request) -> Result<Response, ServerError> {
        let path = self.call.at.as_ref().unwrap_or(&self.action.path);
        self.writer.session.client.writing(path, request).send(request).await
    }

    pub async fn read(&self, desired: &Resource) -> Result<Observed, SyncError> {
        self.writer.read(desired).await
    }

    /// Reads a resource to delete. Another one may have its id or a part of its names now.
    async fn read_doomed(&self, declared: &Resource) -> Result<Observed, SyncError> {
        let observed = self.writer.after_deletion(&self.action.path).read_doomed(declared).await?;
        if !declared.seeded {
            check_alias(declared, &observed)?;
        }
        Ok(observed)
    }

    /// Returns the desired resource, without the attributes that the create leaves out if a reference in them has no
    /// value yet.
    pub async fn desired(&self) -> Result<Resource, SyncError> {
        let (mut desired, lacks_deferred) = self.writer.desired_first(self.action).await?;
        if lacks_deferred {
            self.leaves_out.store(true, Ordering::Relaxed);
            let payload = desired.payload.as_ref().clone();
            desired.payload = Arc::new(without(payload, &self.call.deferred));
        }
        Ok(desired)
    }

    pub fn path(&self) -> LogicalPath {
        self.action.path.clone()
    }

    /// Handles an update or a deletion that found nothing although the resource was just read: its address contains
    /// fields that only the server knows, or another client deleted it.
    async fn send_elsewhere(&self, gone: ServerError) -> Result<Step, SyncError> {
        let gone = match &self.call.on_missing {
            None => gone,
            Some(elsewhere) => match self.exchange(elsewhere).await {
                Ok(response) => return self.answered(&response).await,
                Err(error) => error,
            },
        };
        if self.action.step != Step::Delete || !gone.is_gone() {
            return Err(self.at_a_name(gone).await);
        }
        self.confirm_deletion(None, Some(gone)).await
    }

    /// Returns the error of an update that found nothing at the name with which the resource was read.
    async fn at_a_name(&self, gone: ServerError) -> SyncError {
        let rules = self.writer.referred.rules(&self.action.path).await.ok();
        let id = rules.as_ref().and_then(|rules| rules.identity().id().simple());
        if gone.is_gone() && shows_nothing(self.action) {
            return SyncError::NothingShown(self.path(), Box::new(gone.into()));
        }
        match id.filter(|_| self.call.by_name && gone.is_gone()) {
            Some(id) => SyncError::NamedWrite(gone, format!("./{{{{{id}}}}}").into()),
            None => gone.into(),
        }
    }

    /// Creates a resource that was deleted since the plan.
    async fn create_again(&self, action: &Action, call: &Call) -> Result<Step, SyncError> {
        let create = Attempt::new(self.writer, action, call);
        let step = create.send().await?;
        let rest = create.rest.into_inner();
        if let Some(rest) = rest.or_else(|| (!call.deferred.is_empty()).then_some(Rest::Deferred)) {
            let _ = self.rest.set(rest);
        }
        Ok(step)
    }

    /// Decides again for the `attempt`-th time, because the server no longer has the version with this tag. Writes of the
    /// same run may cause that: in an ordered array, a deletion changes the versions of other members.
    async fn decide_again(&self, tag: &HeaderValue, attempt: u32) -> Result<Step, SyncError> {
        let desired = match &self.call.declared {
            Some(declared) => declared.as_ref().clone(),
            None => self.desired().await?,
        };
        let observed = if self.action.step == Step::Delete && !self.action.replaces() {
            self.read_doomed(&desired).await?
        } else {
            self.read(&desired).await?
        };
        // A server that refuses its current tag does not compare versions.
        let meaningless = observed.version.as_ref().is_some_and(|version| version.is(tag));
        let decided = self.writer.decided((self.action.step, self.action.reason), desired, observed).await?;
        let Some(mut again) = decided else { return Ok(self.action.step) };
        let step = again.step;
        if let (Step::Create, Some(call)) = (step, again.call()) {
            return Box::pin(self.create_again(&again, call)).await;
        }
        if meaningless && let Sending::Ready(call) = &mut again.sending {
            call.unguard();
        }
        let Some(call) = again.call() else { return Ok(step) };
        match self.exchange(&call.request).await {
            Ok(response) => {
                self.writer.ids.learn(&self.action.path, call, &response);
                Attempt::new(self.writer, &again, call).answered(&response).await
            }
            Err(error) if error.is_outdated() => match &call.guarded {
                Some(_) if attempt == DECISIONS => Err(SyncError::Contended(self.path(), attempt + 1)),
                Some(newer) => {
                    tokio::time::sleep(backoff(attempt)).await;
                    Box::pin(self.decide_again(newer, attempt + 1)).await
                }
                None => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the id of a resource that was found.
pub(super) fn id_of(found: &Observed) -> String {
    let stated = found.payload.as_ref().and_then(|payload| found.at.rules.observed_id(payload));
    stated.unwrap_or_else(|| found.at.identity.remote_id.clone())
}

/// Decides `action` again with the state that was `observed` now.
pub(super) async fn decided(
    action: (Step, Reason),
    desired: Resource,
    observed: Observed,
    written: Option<Arc<WrittenValues>>,
) -> Result<Option<Action>, SyncError> {
    let decide =
        move |desired: &Resource| decide::decide_again(action, desired, &observed, written.as_deref());
    evaluated(desired, decide).await
}

/// Whether the server showed the resource without content in the plan.
fn shows_nothing(action: &Action) -> bool {
    matches!(&action.differences[..], [whole] if whole.path.is_empty() && whole.observed.is_null())
}
