//! Confirms writes whose answers do not prove their effect.

use http::Method;

use super::given;
use super::remarks::shown_instead;
use super::write::{Attempt, decided};
use crate::metadata::{Change, Difference, OperationName, Rendered};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, PayloadType, Value, decode};
use crate::server::{Request, Response, ServerError};
use crate::sync::model::{
    Call, Doubt, Failure, FailureReason, Observed, Reason, Resource, Step, SyncError, Wanted,
};
use crate::sync::tasks::evaluated;

impl Attempt<'_> {
    /// Some servers answer 200 and state a failure in the body, and some create a resource for each POST. If the answer
    /// to an update does not show all of the payload, or the update is the request that creates resources, reads the
    /// resource once. Records a resource that still differs. Fails if several resources have its names, or none.
    /// Where recurrences are watched, the next run does this, unless the answer shows another name.
    pub async fn confirm(&self, update: &Call, response: &Response) -> Result<(), SyncError> {
        self.check_statement(update, response).await?;
        if self.writer.recurrences.is_some() && !self.is_renamed(response).await {
            return Ok(());
        }
        let path = self.path();
        let differences = match self.unconfirmed(update, response).await {
            Ok(differences) if !differences.is_empty() => differences,
            Err(SyncError::Undecided(_, Doubt::Several(ids))) => return Err(SyncError::Doubled(path, ids)),
            Err(error @ SyncError::Vanished(..)) => return Err(error),
            // The server accepted the update. If the resource cannot be read now, the next run reads it.
            _ => return Ok(()),
        };
        let rules = self.writer.referred.rules(&path).await?;
        let transforms = !rules.resolved().operation(OperationName::Get).transforms.is_empty();
        let (status, shown) = (response.status.as_u16(), shown_instead(&differences, transforms));
        let message = format!("{path}: the server answered {status} to the update, but {shown}");
        let unconfirmed = Failure::local(path, "update", FailureReason::NeverConverges, message);
        self.writer.unconfirmed.lock().push(unconfirmed);
        Ok(())
    }

    /// Sends the update of a resource that was found instead of created. Fails if its answer states a failure.
    pub async fn update(&self, update: &Call) -> Result<Response, SyncError> {
        let response = self.exchange(&update.request).await?;
        self.check_statement(update, &response).await?;
        Ok(response)
    }

    /// Fails if the answer to an update states a failure, and the resource still differs in the same way, or has values that
    /// the server does not show.
    async fn check_statement(&self, update: &Call, response: &Response) -> Result<(), SyncError> {
        if !response.is_doubtful() {
            return Ok(());
        }
        let desired = self.desired().await?;
        if !states_failure(&update.request, response, Some(&desired)) {
            return Ok(());
        }
        let is_hidden = update.has_write_only || desired.rules.resolved().secret;
        let Ok(observed) = self.read(&desired).await else { return Err(self.not_done(response)) };
        let left = differences(desired, observed).await?;
        let places = |differences: &[Difference]| {
            differences.iter().map(|it| (it.path.clone(), it.change)).collect::<Vec<_>>()
        };
        // A requested update has compared nothing before.
        let before = places(&self.action.differences);
        let is_same = !left.is_empty() && (before.is_empty() || places(&left) == before);
        if is_hidden || is_same { Err(self.not_done(response)) } else { Ok(()) }
    }

    /// Whether the answer to an update has another alias than the resource, or a blank one.
    async fn is_renamed(&self, response: &Response) -> bool {
        let path = &self.action.path;
        let Ok(rules) = self.writer.referred.rules(path).await else { return false };
        let alias = rules.identity().alias().simple().filter(|_| rules.identity().explicit_alias());
        let answer = response.decode_briefly(rules.payload_type());
        let Some(shown) = alias.and_then(|alias| alias.get(&answer)) else { return false };
        let shown = shown.scalar_text().unwrap_or_default();
        // Most resources have the path of their alias, so the declaration is not read again.
        if rules.path_names().decode(path.name()) == shown.trim() {
            return false;
        }
        let desired = self.desired().await;
        desired.is_ok_and(|desired| !Wanted::of(&desired).answers_to(shown.trim()))
    }

    /// Returns the differences that remain after an update, if its answer has content. Many servers keep attributes that
    /// an update lacks, so an update that only removes some is checked in any case. So is the update of a resource without
    /// content, because some stubs and proxies answer everything with 200 and nothing.
    async fn unconfirmed(&self, update: &Call, response: &Response) -> Result<Vec<Difference>, SyncError> {
        let only_removes = self.action.differences.iter().all(|difference| difference.change == Change::Add);
        let only_removes = only_removes && !self.action.differences.is_empty();
        let is_whole = |difference: &Difference| difference.path.is_empty();
        let is_doubtful = only_removes || self.action.differences.iter().any(is_whole);
        let is_brief = response.body.trim_ascii().is_empty() || repeats(update, response);
        let may_create = update.request.method == Method::POST;
        if is_brief && !may_create && !is_doubtful {
            return Ok(Vec::new());
        }
        let desired = self.desired().await?;
        if desired.rules.resolved().secret {
            return Ok(Vec::new());
        }
        let creates = may_create && is_create(&desired, update);
        let is_shown = || async { is_brief || shown_whole(&desired, response).await.is_some() };
        if !creates && !is_doubtful && is_shown().await {
            return Ok(Vec::new());
        }
        let observed = self.read(&desired).await?;
        if observed.payload.is_none() && !desired.rules.resolved().singleton {
            // Each further run would create one more.
            let id = given::another(update, &desired, response);
            let alias = given::alias(update, &desired, response);
            self.lose(&desired, id, alias.as_deref(), given::Statement::by(update, response)).await;
            return Err(SyncError::Vanished(self.path(), response.status.as_u16()));
        }
        differences(desired, observed).await
    }

    /// Handles the answer to a deletion, which may have to be confirmed by a read.
    pub async fn deleted(&self, response: &Response) -> Result<Step, SyncError> {
        let declared = self.call.declared.as_deref();
        let is_failure = states_failure(&self.call.request, response, declared);
        let doubt = is_failure.then(|| self.not_done(response));
        if doubt.is_none() && (!self.call.by_name || self.action.resets()) {
            return Ok(Step::Delete);
        }
        self.confirm_deletion(doubt, None).await
    }

    /// Returns the error of a doubtful answer, if the server shows no effect of the request.
    pub fn not_done(&self, response: &Response) -> SyncError {
        let answer = self.writer.session.client.rejection(&self.call.request, &response.statement());
        SyncError::NotDone(self.path(), Box::new(answer))
    }

    /// Fails if the server still has the resource after its deletion, or does not have the state of its reset, with the
    /// error of a `doubtful` answer. `gone` is the answer that the deletion found nothing.
    pub async fn confirm_deletion(
        &self,
        doubtful: Option<SyncError>,
        gone: Option<ServerError>,
    ) -> Result<Step, SyncError> {
        let Some(declared) = &self.call.declared else { return doubtful.map_or(Ok(Step::Delete), Err) };
        let remote = self.writer.after_deletion(&self.action.path);
        // A replacement may have another name than what it replaces.
        let read = if self.action.replaces() {
            remote.read(declared).await
        } else {
            remote.read_doomed(declared).await
        };
        let observed = match read {
            Err(error) if error.is_lack_of_proof() => return doubtful.map_or(Ok(Step::Delete), Err),
            Err(error) => return Err(doubtful.unwrap_or(error)),
            Ok(observed) => observed,
        };
        let shows_nothing = observed.payload.as_ref().is_some_and(Value::is_null);
        let undeclared = (Step::Delete, Reason::Undeclared);
        match self.writer.decided(undeclared, declared.as_ref().clone(), observed).await? {
            // An answer such as 204 does not show that the resource exists.
            Some(_) if shows_nothing && doubtful.is_none() => gone.map_or(Ok(Step::Delete), |gone| {
                Err(SyncError::NothingShown(self.path(), Box::new(gone.into())))
            }),
            Some(_) => {
                let still_there = || SyncError::StillThere(self.path(), self.call.request.path.clone());
                Err(doubtful.unwrap_or_else(still_there))
            }
            None => Ok(Step::Delete),
        }
    }
}

/// Returns the differences that an update would correct, without those of write-only attributes.
async fn differences(desired: Resource, observed: Observed) -> Result<Vec<Difference>, SyncError> {
    let decided = decided((Step::Update, Reason::Different), desired, observed, None).await?;
    Ok(decided.map(|action| action.differences).unwrap_or_default())
}

/// Whether the answer is the body of the request, so that the payload does not have to be read again to compare it.
fn repeats(call: &Call, response: &Response) -> bool {
    let sent = sent(&call.request);
    sent.is_some() && sent == json(&response.body)
}

/// Whether the answer to a write of `resource` states a failure. An answer with all members that were sent, except those
/// that servers hide, is the resource, which may have an attribute for errors.
pub(super) fn states_failure(request: &Request, response: &Response, resource: Option<&Resource>) -> bool {
    let rules = resource.map(|resource| resource.rules.resolved());
    let is_hidden = |name: &str| {
        let hidden =
            rules.iter().flat_map(|rules| rules.write_only_attributes.iter().chain(&rules.secret_attributes));
        hidden.map(Pointer::tokens).any(|tokens| tokens.first().is_some_and(|first| first == name))
    };
    let is_resource = || match (sent(request), json(&response.body)) {
        (Some(Value::Object(sent)), Some(Value::Object(shown))) => {
            let mut visible = sent.keys().filter(|name| !is_hidden(name)).peekable();
            visible.peek().is_some() && visible.all(|name| shown.contains_key(name))
        }
        _ => false,
    };
    response.is_doubtful() && !is_resource()
}

/// Returns the body of `request`, if it is JSON.
fn sent(request: &Request) -> Option<Value> {
    json(&request.body.as_ref()?.bytes)
}

fn json(bytes: &[u8]) -> Option<Value> {
    decode(PayloadType::Json, bytes).ok()
}

/// Whether `update` has the method and the path of the request that creates `desired`, and the server assigns ids.
fn is_create(desired: &Resource, update: &Call) -> bool {
    let request = &update.request;
    let is_same = |create: Rendered| create.method == request.method && create.path == request.path;
    !Wanted::of(desired).one_name && desired.render(OperationName::Create).is_ok_and(is_same)
}

/// Returns the resource that the answer to a write of `desired` shows, if it shows all of it.
pub(super) async fn shown_whole(desired: &Resource, response: &Response) -> Option<Value> {
    let answer = response.decode_briefly(desired.rules.payload_type());
    let shown_whole = move |desired: &Resource| {
        let evaluation = desired.evaluation()?;
        let shown = evaluation.transform(OperationName::Get, answer)?;
        let shows =
            |payload: &Object| payload.is_empty() || payload.keys().any(|name| shown.get(name).is_some());
        // An answer about something else has no difference if the payload has only names and write-only attributes.
        let is_about_it = desired.payload.as_object().is_none_or(shows);
        Ok((is_about_it && evaluation.compare(&shown)?.is_empty()).then_some(shown))
    };
    evaluated(desired.clone(), shown_whole).await.ok().flatten()
}
