//! Sending one action of a plan, and what follows from answers that a plan cannot foresee.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::HeaderValue;

use super::call::Call;
use super::given::GivenIds;
use super::lists::ListOutcome;
use super::plan::{self, Action, Reason, Step};
use super::recurrence::{After, Done, Recurrences};
use super::remote::Remote;
use super::resource::{Observed, Resource};
use super::{Session, SyncError, blocking, desired};
use crate::metadata::transform::on_evaluation_stack;
use crate::path::LogicalPath;
use crate::repository;
use crate::server::ServerError;

/// Sends the actions of one plan.
pub(super) struct Writer {
    session: Session,
    /// Desired resources that the tree does not hold.
    resources: HashMap<LogicalPath, Resource>,
    ids: GivenIds,
    recurrences: Option<Arc<Recurrences>>,
}

impl Writer {
    pub fn new(
        session: &Session,
        resources: HashMap<LogicalPath, Resource>,
        recurrences: Option<Arc<Recurrences>>,
    ) -> Self {
        // What is read here is about what happened since the plan was made.
        let session = Session { answers: Arc::default(), ..session.clone() };
        Self { session, resources, ids: GivenIds::default(), recurrences }
    }

    /// The request of `action` where it is not the one that it holds: a creation may hold none, and a parent that was
    /// created before may have another name on the server.
    pub async fn prepare(&self, action: &Action) -> Result<Option<Box<Call>>, SyncError> {
        if action.step != Step::Create {
            return Ok(None);
        }
        let moved = self.ids.resolve(&action.path);
        if moved.is_none() && action.call.is_some() {
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
        if !desired.rules.runs_jq() {
            return Call::create(&desired, &desired);
        }
        blocking(path.clone(), move || on_stack(&desired, |desired| Call::create(desired, desired))).await
    }

    /// Sends what `action` holds, or what was `prepared` for it. Tells what was done in the end, and what came of it
    /// where the last run did the same.
    pub async fn write(&self, action: &Action, prepared: Option<&Call>) -> Result<Done, SyncError> {
        let Some(call) = prepared.or(action.call.as_deref()) else {
            return Ok(Done { step: Step::Skip, after: After::Unknown });
        };
        let step = self.send(action, call).await?;
        let after = match &self.recurrences {
            Some(recurrences) if action.again && step == Step::Update => {
                self.look_again(action, Arc::clone(recurrences)).await
            }
            _ => After::Unknown,
        };
        Ok(Done { step, after })
    }

    /// How the resource differs right after it was written.
    async fn look_again(&self, action: &Action, recurrences: Arc<Recurrences>) -> After {
        let looked = async {
            let desired = self.desired(&action.path).await?;
            let observed = Remote::new(&self.session).read(&desired).await?;
            blocking(desired.path.clone(), move || {
                on_stack(&desired, |desired| plan::difference(&recurrences, desired, &observed))
            })
            .await
        };
        // The write itself succeeded; the next run looks at the resource anyway.
        looked.await.map_or(After::Unknown, After::Known)
    }

    async fn send(&self, action: &Action, call: &Call) -> Result<Step, SyncError> {
        match self.session.client.send(&call.request).await {
            Ok(response) => {
                self.ids.learn(&action.path, call, &response);
                Ok(action.step)
            }
            Err(error) => self.recover(action, call, error).await,
        }
    }

    /// What to do about an answer that was not hoped for.
    async fn recover(&self, action: &Action, call: &Call, error: ServerError) -> Result<Step, SyncError> {
        match action.step {
            Step::Create if error.is_already_exists() && action.reason != Reason::Requested => {
                self.update_instead(action, call, error).await
            }
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
            _ => Err(error.into()),
        }
    }

    /// A create was answered with 409: the resource exists after all, and is updated once.
    async fn update_instead(
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
            let observed = self.surely(&desired).await.map_err(|why| SyncError::Unsure {
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
                    self.ids.learn(&action.path, call, &response);
                    return Ok(action.step);
                }
                // The first one may only just have arrived.
                Err(error) if error.may_be_done() || error.is_already_exists() => lost = error,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads a resource afresh. That nothing is there must be proven: where only the server knows the id, by
    /// the whole list of the collection.
    async fn surely(&self, desired: &Resource) -> Result<Observed, SyncError> {
        let remote = Remote::new(&self.session);
        let observed = remote.read(desired).await?;
        if observed.payload.is_some() || desired.rules.states_id(&desired.payload) {
            return Ok(observed);
        }
        let collection = observed.at.path.parent().unwrap_or_else(LogicalPath::root);
        let proven = remote.with_list(&collection, |outcome| matches!(outcome, ListOutcome::Listed(_)));
        if proven.await {
            return Ok(observed);
        }
        Err(SyncError::Unlisted { path: desired.path.clone(), collection })
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
            Some(Action { call: Some(update), .. }) if action.reason != Reason::Requested => {
                self.session.client.send(&update.request).await?;
                Ok(Step::Update)
            }
            // Who asked for a creation and nothing else may see what somebody else created.
            Some(Action { call: Some(_), .. }) => Err(lost.into()),
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
        let Some(mut call) = again.call else { return Ok(again.step) };
        if meaningless {
            call.unguard();
        }
        match self.session.client.send(&call.request).await {
            Ok(response) => self.ids.learn(&action.path, &call, &response),
            Err(error) if error.is_outdated() && call.guarded.is_some() => {
                return Err(SyncError::Contended { path: action.path.clone() });
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
        blocking(desired.path.clone(), move || {
            on_stack(&desired, |desired| plan::decide_again(action, desired, &observed))
        })
        .await
    }

    /// The desired resource at `path`. A plan does not keep it: it takes more memory than what is sent, and is hardly
    /// ever needed.
    async fn desired(&self, path: &LogicalPath) -> Result<Resource, SyncError> {
        let desired = if let Some(given) = self.resources.get(path) {
            given.clone()
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

/// Evaluates on a stack that is large enough for jq.
fn on_stack<T>(
    resource: &Resource,
    work: impl FnOnce(&Resource) -> Result<T, SyncError>,
) -> Result<T, SyncError> {
    if !resource.rules.runs_jq() {
        return work(resource);
    }
    let done = on_evaluation_stack(|| work(resource));
    done.map_err(|source| SyncError::Task { path: resource.path.clone(), reason: source.to_string() })?
}
