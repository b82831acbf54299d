//! Sending one action of a plan, and what follows from answers that a plan cannot foresee.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderValue;

use super::given::GivenIds;
use crate::metadata::OperationName;
use crate::metadata::transform::Context;
use crate::path::LogicalPath;
use crate::repository::RepositoryError;
use crate::server::{Response, ServerError};
use crate::sync::model::{
    Action, Call, Done, Observed, Options, Reason, Recurrences, Resource, Sending, Session, Step, SyncError,
    Wanted,
};
use crate::sync::observe::{Remote, desired_at};
use crate::sync::plan::{Plan, decide};
use crate::sync::tasks::{blocking, evaluated};

/// Sends the actions of one plan.
pub struct Writer {
    pub session: Session,
    /// Desired resources that the tree does not hold.
    given: HashMap<LogicalPath, Resource>,
    ids: GivenIds,
    pub recurrences: Option<Arc<Recurrences>>,
}

impl Writer {
    pub fn new(session: &Session, plan: &Plan) -> Self {
        // What is read here is about what happened since the plan was made.
        let session = Session { answers: Arc::default(), ..session.clone() };
        let (given, recurrences) = (plan.given.clone(), plan.recurrences.clone());
        Self { session, given, ids: GivenIds::default(), recurrences }
    }

    /// The request of `action` where it is not the one that it holds: a creation may hold none, and a parent that was
    /// created before may have another name on the server.
    pub async fn prepare(&self, action: &Action) -> Result<Option<Box<Call>>, SyncError> {
        let moved = self.ids.resolve(&action.path);
        let waited = matches!(action.sending, Sending::WhenSent);
        if action.step != Step::Create || moved.is_none() && !waited {
            return Ok(None);
        }
        let desired = self.desired(&action.path).await?;
        let at = self.at(&desired, moved).await?;
        let call = evaluated(desired, move |desired| Call::create(desired, &at)).await?;
        Ok(Some(Box::new(call)))
    }

    /// `desired` at the path `moved`, if it is not at its own.
    async fn at(&self, desired: &Resource, moved: Option<LogicalPath>) -> Result<Resource, SyncError> {
        let Some(path) = moved else { return Ok(desired.clone()) };
        let rules = Remote::new(&self.session).rules(&path).await?;
        Ok(desired.moved(path, rules))
    }

    /// Sends `call` for `action`. Returns what was done in the end, and whether it was in vain where the last run did the
    /// same.
    pub async fn write(&self, action: &Action, call: &Call) -> Result<Done, SyncError> {
        let step = Attempt { writer: self, action, call }.send().await?;
        let without_effect = if step == Step::Update { self.is_without_effect(action).await } else { None };
        Ok(Done { step, without_effect })
    }

    /// Whether the resource differs right after it was written as it did before, where the last run corrected that.
    async fn is_without_effect(&self, action: &Action) -> Option<bool> {
        let (recurrences, mark) = (self.recurrences.clone()?, action.mark.as_ref()?);
        if !recurrences.has_corrected(&action.path, mark) {
            return None;
        }
        let looked = async {
            let desired = self.desired(&action.path).await?;
            let observed = Remote::new(&self.session).read(&desired).await?;
            let options = Options { recurrences: Some(recurrences), ..Options::default() };
            let mark = move |desired: &Resource| Ok(decide::decide_for(desired, &observed, &options)?.mark);
            evaluated(desired, mark).await
        };
        // The write itself succeeded; the next run looks at the resource anyway.
        looked.await.ok().map(|now| now.as_ref() == Some(mark))
    }

    /// The desired resource at `path`. A plan does not keep it: it takes more memory than what is sent, and is hardly
    /// ever needed.
    async fn desired(&self, path: &LogicalPath) -> Result<Resource, SyncError> {
        let desired = if let Some(given) = self.given.get(path) {
            given.clone()
        } else {
            let (session, at) = (self.session.clone(), path.clone());
            let missing = RepositoryError::ResourceMissing { path: path.clone() };
            blocking(path.clone(), move || Ok(desired_at(&session, &at)?.ok_or(missing)?)).await?
        };
        self.session.resolved(desired).await
    }
}

/// One action that is carried out by one request, and by what its answer asks for.
struct Attempt<'a> {
    writer: &'a Writer,
    action: &'a Action,
    call: &'a Call,
}

impl Attempt<'_> {
    async fn send(&self) -> Result<Step, SyncError> {
        let requested = self.action.reason == Reason::Requested;
        match (self.exchange(self.call).await, self.action.step) {
            (Ok(response), Step::Create) => self.created(&response).await,
            (Ok(_), step) => Ok(step),
            (Err(error), Step::Create) if error.is_already_exists() && !requested => {
                self.update_instead(error).await
            }
            (Err(error), Step::Create) if error.may_still_be_done() => Err(self.uncertain(error)),
            (Err(error), Step::Create) if error.may_be_done() => self.look_for(error).await,
            (Err(error), Step::Update | Step::Delete) if error.is_outdated() => match &self.call.guarded {
                Some(tag) => self.decide_again(tag).await,
                None => Err(error.into()),
            },
            (Err(error), Step::Update | Step::Delete) if error.is_gone() => self.send_elsewhere(error).await,
            (Err(error), _) => Err(error.into()),
        }
    }

    async fn exchange(&self, call: &Call) -> Result<Response, ServerError> {
        self.writer.session.client.send(&call.request).await
    }

    async fn read(&self, desired: &Resource) -> Result<Observed, SyncError> {
        Remote::new(&self.writer.session).read(desired).await
    }

    async fn desired(&self) -> Result<Resource, SyncError> {
        self.writer.desired(&self.action.path).await
    }

    fn path(&self) -> LogicalPath {
        self.action.path.clone()
    }

    /// Notes the id of what was created, and completes it.
    async fn created(&self, response: &Response) -> Result<Step, SyncError> {
        let id = self.writer.ids.learn(&self.action.path, self.call, response);
        if self.action.reason == Reason::Missing {
            self.complete(response, id).await?;
        }
        Ok(Step::Create)
    }

    /// Lets no run of the time in which the create may still be carried out send it again. Returns that time.
    fn expect(&self) -> Duration {
        let wait = self.writer.session.client.attempt_timeout();
        self.writer.session.knowledge.expect(&self.action.path, wait);
        wait
    }

    /// A create whose answer is late may still be carried out: only a run after that time may look what became of it.
    fn uncertain(&self, lost: ServerError) -> SyncError {
        let why = format!("a run after {} s looks for it", self.expect().as_secs_f64());
        SyncError::Unsure(self.path(), Box::new(lost), why)
    }

    /// A server may keep less of a create than it was sent. Where its answer does not show all of it, the resource is
    /// read, and updated once if it differs.
    async fn complete(&self, response: &Response, id: Option<String>) -> Result<(), SyncError> {
        let desired = self.desired().await?;
        // What is a secret as a whole is not shown by any server.
        if desired.rules.resolved().secret {
            return Ok(());
        }
        let answer = response.decode(desired.rules.payload_type()).unwrap_or_default();
        let shows_all = move |desired: &Resource| {
            let evaluation = desired.evaluation()?;
            let shown = evaluation.transform(OperationName::Get, answer, Context::default())?;
            Ok(evaluation.compare(&shown)?.is_empty())
        };
        if evaluated(desired.clone(), shows_all).await.unwrap_or(false) {
            return Ok(());
        }
        let path = self.call.at.clone().unwrap_or_else(|| self.path());
        let mut at = desired.moved(path, Arc::clone(&desired.rules));
        if let Some(id) = id {
            at = at.with_remote_id(&id);
        }
        let remote = Remote::new(&self.writer.session);
        let read = match remote.read_at(&at).await {
            Ok(observed) => Ok(observed),
            Err(_) => remote.read(&at).await,
        };
        // The create itself succeeded: where the server cannot be read, the next run looks at it.
        let Ok(observed) = read else { return Ok(()) };
        if observed.payload.is_none() {
            return Err(SyncError::UnderWay(self.path(), self.expect().as_secs()));
        }
        if let Some(update) = self.correction(desired, observed).await? {
            self.exchange(&update).await?;
        }
        Ok(())
    }

    /// The update of what was `observed` where a create was to make something else.
    async fn correction(
        &self,
        desired: Resource,
        observed: Observed,
    ) -> Result<Option<Box<Call>>, SyncError> {
        let decided = decided((Step::Create, Reason::Missing), desired, observed).await?;
        Ok(decided.and_then(Action::into_call))
    }

    /// An update or a deletion found nothing where the resource was just read: its address needs what only the server
    /// knows, or another client was faster.
    async fn send_elsewhere(&self, gone: ServerError) -> Result<Step, SyncError> {
        let gone = match &self.call.on_missing {
            None => gone,
            Some(elsewhere) => match self.writer.session.client.send(elsewhere).await {
                Ok(_) => return Ok(self.action.step),
                Err(error) => error,
            },
        };
        if self.action.step != Step::Delete || !gone.is_gone() {
            return Err(gone.into());
        }
        let Some(declared) = &self.call.declared else { return Ok(Step::Delete) };
        match Remote::new(&self.writer.session).read_doomed(declared).await {
            Ok(observed) if observed.payload.is_some() => {
                Err(SyncError::StillThere(self.path(), self.call.request.path.clone()))
            }
            Err(error) if !error.is_lack_of_proof() => Err(error),
            _ => Ok(Step::Delete),
        }
    }

    /// A create was answered with 409: if the resource exists after all, it is updated once. A resource with other names
    /// may be the cause as well, and is not touched.
    async fn update_instead(&self, error: ServerError) -> Result<Step, SyncError> {
        let desired = self.desired().await?;
        let update = if Wanted::of(&desired).one_name {
            // It can only be at its own address. An update may need an id that only the server knows.
            let at = self.writer.at(&desired, self.call.at.clone()).await?;
            let update = evaluated(desired, move |desired| Ok(Call::update_at(desired, &at).ok())).await?;
            Some(Box::new(update.ok_or(error)?))
        } else {
            let is_it = |observed: &Observed| {
                observed.payload.is_some() && observed.other_alias(&Wanted::of(&desired)).is_none()
            };
            let observed = self.read(&desired).await.ok().filter(is_it).ok_or(error)?;
            self.correction(desired, observed).await?
        };
        if let Some(update) = update {
            let response = self.exchange(&update).await?;
            self.writer.ids.learn(&self.action.path, self.call, &response);
        }
        Ok(Step::Create)
    }

    /// The answer to a create was lost, so it may have been carried out. What is on the server now decides;
    /// the create is sent once more, and only if surely nothing is there.
    async fn look_for(&self, mut lost: ServerError) -> Result<Step, SyncError> {
        let desired = self.desired().await?;
        let mut sent_again = false;
        loop {
            let unsure =
                |why: SyncError| SyncError::Unsure(self.path(), Box::new(lost.clone()), why.to_string());
            let observed = self.read(&desired).await.map_err(unsure)?;
            if observed.payload.is_some() {
                return self.adopt(desired, observed, lost).await;
            }
            if sent_again {
                return Err(lost.into());
            }
            tracing::info!(path = %self.action.path, error = %lost, "the answer to a create was lost, nothing is there");
            sent_again = true;
            match self.exchange(self.call).await {
                Ok(response) => return self.created(&response).await,
                Err(error) if error.may_still_be_done() => return Err(self.uncertain(error)),
                // The first one may only just have arrived.
                Err(error) if error.may_be_done() || error.is_already_exists() => lost = error,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What a create whose answer was lost left behind is ours, and complete or updated.
    async fn adopt(&self, desired: Resource, found: Observed, lost: ServerError) -> Result<Step, SyncError> {
        if self.call.names.is_some() {
            let stated = found.payload.as_ref().and_then(|payload| found.at.rules.observed_id(payload));
            let id = stated.unwrap_or_else(|| found.at.identity.remote_id.clone());
            self.writer.ids.note(&self.action.path, self.call, Some(id));
        }
        match self.correction(desired, found).await? {
            None => Ok(Step::Create),
            // What was found may be another client's, and a requested create overwrites nothing.
            Some(_) if self.action.reason == Reason::Requested => Err(lost.into()),
            Some(update) => {
                self.exchange(&update).await?;
                Ok(Step::Update)
            }
        }
    }

    /// The server has not got the version any more that was decided on: what it has now is decided on once.
    async fn decide_again(&self, tag: &HeaderValue) -> Result<Step, SyncError> {
        let desired = match &self.call.declared {
            Some(declared) => declared.as_ref().clone(),
            None => self.desired().await?,
        };
        let observed = self.read(&desired).await?;
        // A server that refuses the very tag that it gives does not compare versions.
        let meaningless = observed.version.as_ref().is_some_and(|version| version.is(tag));
        let decided = decided((self.action.step, self.action.reason), desired, observed).await?;
        let Some(again) = decided else { return Ok(self.action.step) };
        let step = again.step;
        let Some(mut call) = again.into_call() else { return Ok(step) };
        if meaningless {
            call.unguard();
        }
        match self.exchange(&call).await {
            Ok(response) => {
                self.writer.ids.learn(&self.action.path, &call, &response);
                Ok(step)
            }
            Err(error) if error.is_outdated() && call.guarded.is_some() => {
                Err(SyncError::Contended(self.path()))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What follows from `observed` for what was to be done.
async fn decided(
    action: (Step, Reason),
    desired: Resource,
    observed: Observed,
) -> Result<Option<Action>, SyncError> {
    evaluated(desired, move |desired| decide::decide_again(action, desired, &observed)).await
}
