//! Sending one action of a plan, and what follows from answers that a plan cannot foresee.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::HeaderValue;

use super::given::GivenIds;
use crate::metadata::OperationName;
use crate::metadata::transform::Context;
use crate::path::LogicalPath;
use crate::repository;
use crate::server::{Response, ServerError};
use crate::sync::model::{
    Action, Call, Done, Observed, Reason, Recurrences, Resource, Sending, Session, Step, SyncError, Wanted,
};
use crate::sync::observe::{Remote, desired};
use crate::sync::plan::decide;
use crate::sync::tasks::{blocking, evaluated, on_stack};

/// Sends the actions of one plan.
pub struct Writer {
    session: Session,
    /// Desired resources that the tree does not hold.
    resources: Mutex<HashMap<LogicalPath, Resource>>,
    ids: GivenIds,
    recurrences: Option<Arc<Recurrences>>,
}

impl Writer {
    pub fn new(session: &Session, recurrences: Option<Arc<Recurrences>>) -> Self {
        // What is read here is about what happened since the plan was made.
        let session = Session { answers: Arc::default(), ..session.clone() };
        Self { session, resources: Mutex::default(), ids: GivenIds::default(), recurrences }
    }

    /// Adds desired resources that the tree does not hold.
    pub fn give(&self, resources: HashMap<LogicalPath, Resource>) {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner).extend(resources);
    }

    /// The request of `action` where it is not the one that it holds: a creation may hold none, and a parent that was
    /// created before may have another name on the server.
    pub async fn prepare(&self, action: &Action) -> Result<Option<Box<Call>>, SyncError> {
        if action.step != Step::Create {
            return Ok(None);
        }
        let moved = self.ids.resolve(&action.path);
        if moved.is_none() && !matches!(action.sending, Sending::WhenSent) {
            return Ok(None);
        }
        let call = match moved {
            None => self.creation(&action.path).await?,
            Some(path) => {
                let rebound = self.again(&action.path, move |desired, session| {
                    let rules = session.metadata.rules(&path)?;
                    Call::create(desired, &desired.moved(path, rules))
                });
                rebound.await?
            }
        };
        Ok(Some(Box::new(call)))
    }

    /// What creates the resource at `path` where it is declared.
    async fn creation(&self, path: &LogicalPath) -> Result<Call, SyncError> {
        let desired = self.desired(path).await?;
        evaluated(desired, |desired| Call::create(desired, desired)).await
    }

    /// Sends what `action` holds, or what was `prepared` for it. Returns what was done in the end, and what came of it
    /// where the last run did the same.
    pub async fn write(&self, action: &Action, prepared: Option<&Call>) -> Result<Done, SyncError> {
        let Some(call) = prepared.or(action.call()) else {
            return Ok(Done { step: Step::Skip, in_vain: None });
        };
        let step = self.send(action, call).await?;
        let in_vain = if step == Step::Update { self.is_in_vain(action).await } else { None };
        Ok(Done { step, in_vain })
    }

    /// Whether the resource differs right after it was written as it did before, where the last run corrected that.
    async fn is_in_vain(&self, action: &Action) -> Option<bool> {
        let (recurrences, mark) = (self.recurrences.clone()?, action.mark.as_ref()?);
        if !recurrences.has_corrected(&action.path, mark) {
            return None;
        }
        let looked = async {
            let desired = self.desired(&action.path).await?;
            let observed = Remote::new(&self.session).read(&desired).await?;
            evaluated(desired, move |desired| decide::difference(&recurrences, desired, &observed)).await
        };
        // The write itself succeeded; the next run looks at the resource anyway.
        looked.await.ok().map(|now| now.as_ref() == Some(mark))
    }

    async fn send(&self, action: &Action, call: &Call) -> Result<Step, SyncError> {
        match self.session.client.send(&call.request).await {
            Ok(response) if action.step == Step::Create => {
                let id = self.ids.learn(&action.path, call, &response);
                if action.reason == Reason::Missing {
                    self.complete(action, call, &response, id).await?;
                }
                Ok(action.step)
            }
            Ok(_) => Ok(action.step),
            Err(error) => self.recover(action, call, error).await,
        }
    }

    /// What to do about an answer that was not hoped for.
    async fn recover(&self, action: &Action, call: &Call, error: ServerError) -> Result<Step, SyncError> {
        match action.step {
            Step::Create if error.is_already_exists() && action.reason != Reason::Requested => {
                self.update_instead(action, call, error).await
            }
            Step::Create if error.may_still_be_done() => Err(self.uncertain(&action.path, error)),
            Step::Create if error.may_be_done() => self.look_for(action, call, error).await,
            Step::Update | Step::Delete if error.is_outdated() => match &call.guarded {
                Some(tag) => self.decide_again(action, call, tag).await,
                None => Err(error.into()),
            },
            Step::Update if error.is_gone() => match &call.on_missing {
                Some(elsewhere) => {
                    self.session.client.send(elsewhere).await?;
                    Ok(action.step)
                }
                None => Err(error.into()),
            },
            Step::Delete if error.is_gone() => self.delete_elsewhere(action, call).await,
            _ => Err(error.into()),
        }
    }

    /// A create whose answer is late may still be carried out: only a run after that time may look what became of it.
    fn uncertain(&self, path: &LogicalPath, lost: ServerError) -> SyncError {
        let wait = self.session.client.attempt_timeout();
        self.session.knowledge.expect(path, wait);
        let why = format!("a run after {} s looks for it", wait.as_secs_f64());
        SyncError::Unsure { path: path.clone(), lost: Box::new(lost), why }
    }

    /// A server may keep less of a create than it was sent. Where its answer does not show all of it, the resource is
    /// read, and updated once if it differs.
    async fn complete(
        &self,
        action: &Action,
        call: &Call,
        response: &Response,
        id: Option<String>,
    ) -> Result<(), SyncError> {
        let desired = self.desired(&action.path).await?;
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
        let at = match &call.at {
            Some(path) => desired.moved(path.clone(), desired.rules.clone()),
            None => desired.clone(),
        };
        let at = match id {
            Some(id) => at.with_remote_id(&id),
            None => at,
        };
        // The create itself succeeded: where the server cannot be read, the next run looks at it.
        let remote = Remote::new(&self.session);
        let observed = match remote.server.read_at(&at).await {
            Ok(observed) => observed,
            Err(_) => match remote.read(&at).await {
                Ok(observed) => observed,
                Err(_) => return Ok(()),
            },
        };
        if observed.payload.is_none() {
            let wait = self.session.client.attempt_timeout();
            self.session.knowledge.expect(&action.path, wait);
            return Err(SyncError::UnderWay(action.path.clone(), wait.as_secs()));
        }
        let decided = self.decided((Step::Create, Reason::Missing), desired, observed).await?;
        if let Some(Action { sending: Sending::Ready(update), .. }) = decided {
            self.session.client.send(&update.request).await?;
        }
        Ok(())
    }

    /// A deletion found nothing where the resource was just read: its address needs what only the server knows, or
    /// another client was faster.
    async fn delete_elsewhere(&self, action: &Action, call: &Call) -> Result<Step, SyncError> {
        if let Some(elsewhere) = &call.on_missing {
            match self.session.client.send(elsewhere).await {
                Ok(_) => return Ok(action.step),
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let Some(declared) = &call.declared else { return Ok(action.step) };
        match Remote::new(&self.session).read_doomed(declared).await {
            Ok(observed) if observed.payload.is_some() => {
                Err(SyncError::StillThere(action.path.clone(), call.request.path.clone()))
            }
            Ok(_) => Ok(action.step),
            Err(error) if error.is_lack_of_proof() => Ok(action.step),
            Err(error) => Err(error),
        }
    }

    /// A create was answered with 409: if the resource exists after all, it is updated once. A resource with other names
    /// may be the cause as well, and is not touched.
    async fn update_instead(
        &self,
        action: &Action,
        call: &Call,
        error: ServerError,
    ) -> Result<Step, SyncError> {
        let desired = self.desired(&action.path).await?;
        // Such a resource can only be at its own address.
        if Wanted::of(&desired).one_name {
            return self.update_unseen(action, call, error).await;
        }
        let observed = match Remote::new(&self.session).read(&desired).await {
            Ok(observed) if observed.payload.is_some() => observed,
            _ => return Err(error.into()),
        };
        let shown = observed.payload.as_ref();
        let alias = shown.and_then(|shown| desired.rules.identity().alias().evaluate(shown).ok());
        if alias.is_some_and(|alias| !Wanted::of(&desired).answers_to(&alias)) {
            return Err(error.into());
        }
        if let Some(Action { sending: Sending::Ready(update), .. }) =
            self.decided((Step::Create, Reason::Missing), desired, observed).await?
        {
            let response = self.session.client.send(&update.request).await?;
            self.ids.learn(&action.path, call, &response);
        }
        Ok(action.step)
    }

    /// Updates what a create collided with, unread.
    async fn update_unseen(
        &self,
        action: &Action,
        call: &Call,
        error: ServerError,
    ) -> Result<Step, SyncError> {
        let at = call.at.clone();
        let update = self.again(&action.path, move |desired, session| {
            let at = match at {
                Some(path) => desired.moved(path.clone(), session.metadata.rules(&path)?),
                None => desired.clone(),
            };
            // Metadata may need an id for updates that only the server knows.
            Ok(Call::update_at(desired, &at).ok())
        });
        let Some(update) = update.await? else { return Err(error.into()) };
        let response = self.session.client.send(&update.request).await?;
        self.ids.learn(&action.path, call, &response);
        Ok(action.step)
    }

    /// The answer to a create was lost, so it may have been carried out. What is on the server now decides;
    /// the create is sent once more, and only if surely nothing is there.
    async fn look_for(&self, action: &Action, call: &Call, lost: ServerError) -> Result<Step, SyncError> {
        let desired = self.desired(&action.path).await?;
        let (mut lost, mut sent_again) = (lost, false);
        loop {
            let read = Remote::new(&self.session).read(&desired).await;
            let observed = read.map_err(|why| SyncError::Unsure {
                path: action.path.clone(),
                lost: Box::new(lost.clone()),
                why: why.to_string(),
            })?;
            if observed.payload.is_some() {
                return self.adopt(action, call, desired, observed, lost).await;
            }
            if sent_again {
                return Err(lost.into());
            }
            tracing::info!(path = %action.path, error = %lost, "the answer to a create was lost, nothing is there");
            sent_again = true;
            match self.session.client.send(&call.request).await {
                Ok(response) => {
                    let id = self.ids.learn(&action.path, call, &response);
                    if action.reason == Reason::Missing {
                        self.complete(action, call, &response, id).await?;
                    }
                    return Ok(action.step);
                }
                Err(error) if error.may_still_be_done() => return Err(self.uncertain(&action.path, error)),
                // The first one may only just have arrived.
                Err(error) if error.may_be_done() || error.is_already_exists() => lost = error,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What a create whose answer was lost left behind is ours, and complete or updated.
    async fn adopt(
        &self,
        action: &Action,
        call: &Call,
        desired: Resource,
        observed: Observed,
        lost: ServerError,
    ) -> Result<Step, SyncError> {
        if call.names.is_some() {
            let stated = observed.payload.as_ref().and_then(|payload| observed.at.rules.observed_id(payload));
            let id = stated.unwrap_or_else(|| observed.at.identity.remote_id.clone());
            self.ids.note(&action.path, call, Some(id));
        }
        match self.decided((Step::Create, Reason::Missing), desired, observed).await? {
            Some(Action { sending: Sending::Ready(update), .. }) if action.reason != Reason::Requested => {
                self.session.client.send(&update.request).await?;
                Ok(Step::Update)
            }
            // What was found may be another client's, and a requested create overwrites nothing.
            Some(Action { sending: Sending::Ready(_), .. }) => Err(lost.into()),
            _ => Ok(action.step),
        }
    }

    /// The server has not got the version any more that was decided on: what it has now is decided on once.
    async fn decide_again(&self, action: &Action, call: &Call, tag: &HeaderValue) -> Result<Step, SyncError> {
        let desired = match &call.declared {
            Some(declared) => declared.as_ref().clone(),
            None => self.desired(&action.path).await?,
        };
        let observed = Remote::new(&self.session).read(&desired).await?;
        // A server that refuses the very tag that it gives does not compare versions.
        let meaningless = observed.version.as_ref().is_some_and(|version| version.is(tag));
        let Some(again) = self.decided((action.step, action.reason), desired, observed).await? else {
            return Ok(action.step);
        };
        let Sending::Ready(mut call) = again.sending else { return Ok(again.step) };
        if meaningless {
            call.unguard();
        }
        match self.session.client.send(&call.request).await {
            Ok(response) => {
                self.ids.learn(&action.path, &call, &response);
            }
            Err(error) if error.is_outdated() && call.guarded.is_some() => {
                return Err(SyncError::Contended(action.path.clone()));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(again.step)
    }

    /// What follows from `observed` for what was to be done.
    async fn decided(
        &self,
        action: (Step, Reason),
        desired: Resource,
        observed: Observed,
    ) -> Result<Option<Action>, SyncError> {
        evaluated(desired, move |desired| decide::decide_again(action, desired, &observed)).await
    }

    /// The desired resource at `path`. A plan does not keep it: it takes more memory than what is sent, and is hardly
    /// ever needed.
    async fn desired(&self, path: &LogicalPath) -> Result<Resource, SyncError> {
        let given = self.resources.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        let desired = if let Some(given) = given {
            given
        } else {
            let (session, path) = (self.session.clone(), path.clone());
            blocking(path.clone(), move || declared(&session, &path)).await?
        };
        self.session.resolved(desired).await
    }

    /// Works on the desired resource at `path`, which may read metadata and run jq.
    async fn again<T: Send + 'static>(
        &self,
        path: &LogicalPath,
        work: impl FnOnce(&Resource, &Session) -> Result<T, SyncError> + Send + 'static,
    ) -> Result<T, SyncError> {
        let (desired, session) = (self.desired(path).await?, self.session.clone());
        blocking(path.clone(), move || on_stack(&desired, |desired| work(desired, &session))).await
    }
}

fn declared(session: &Session, path: &LogicalPath) -> Result<Resource, SyncError> {
    let file = repository::resource_file(session.tree.as_ref(), path)?;
    let missing = || repository::RepositoryError::ResourceMissing { path: path.clone() };
    desired(session, file.ok_or_else(missing)?)
}
