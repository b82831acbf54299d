//! Creates: members that already exist, answers that do not show all, lost answers, and conflicts.

use std::time::Duration;

use http::StatusCode;

use super::confirm::{shown_whole, states_failure};
use super::given;
use super::listed::LIST_PAUSES;
use super::remarks::{CORRECTION, shown_instead};
use super::write::{Attempt, Rest, id_of};
use crate::error::{Categorized as _, Category};
use crate::metadata::{Entry, Listing, Stated, is_assigned, is_named};
use crate::payload::Value;
use crate::repository;
use crate::server::{Response, ServerError};
use crate::sync::model::{
    Action, Call, Failure, FailureReason, ListAnswer, Match, Observed, Reason, Resource, Step, SyncError,
    Wanted, Witness, is_alike,
};
use crate::sync::observe::Remote;
use crate::sync::plan::decide::{self, Correction};
use crate::sync::tasks::{blocking, evaluated};

impl Attempt<'_> {
    /// Some servers create members together with a new resource, such as the lists of a board. If one of them is the
    /// resource to create, updates it if it differs, and returns the step.
    pub async fn adopt_default(&self) -> Result<Option<Step>, SyncError> {
        let is_missing = self.action.is_missing();
        if !is_missing || self.writer.knows_new_parents(&self.action.path).is_none() {
            return Ok(None);
        }
        let desired = self.desired().await?;
        let at = desired.moved_to(self.call.at.clone());
        // Such a create cannot make a duplicate: the server changes, or rejects, a resource whose id exists.
        if at.is_created_by_put() || self.call.states_id && Wanted::of(&at).one_name {
            return Ok(None);
        }
        let Some(found) = self.writer.new_lists.read_member(&at).await? else { return Ok(None) };
        let Some(update) = self.take_over(desired, found).await? else { return Ok(Some(Step::Skip)) };
        self.update(&update).await?;
        Ok(Some(Step::Update))
    }

    /// Stores the id of the created resource, and completes the resource.
    pub async fn created(&self, response: &Response) -> Result<Step, SyncError> {
        let mut id = given::shown(self.call, response);
        if matches!(self.action.reason, Reason::Missing | Reason::Requested) {
            let desired = self.desired().await?;
            if !self.call.deferred.is_empty() {
                id = self.done_or_not(&desired, response, id)?;
                // The update that completes it may find no resource yet, and must not create a second one.
                self.expect(&desired);
            } else if desired.rules.resolved().secret {
                // If the whole resource is a secret, no answer shows it.
                id = self.done_or_not(&desired, response, id)?;
            } else if self.action.reason == Reason::Requested {
                id = self.existing(&desired, response, id).await?;
            } else {
                id = self.complete(&desired, response, id).await?;
            }
            if self.action.is_missing() {
                self.check_found(&desired, id.as_deref()).await?;
                self.expect_in_list(&desired, id.as_deref());
            }
            self.note_created(&desired, id.as_deref());
        }
        self.writer.ids.note(&self.action.path, self.call, id);
        Ok(Step::Create)
    }

    /// Records that the run has created `desired`, and whether its id is known.
    fn note_created(&self, desired: &Resource, id: Option<&str>) {
        let is_known = id.is_some() || self.is_known(desired);
        self.writer.created.lock().insert(self.path(), is_known);
    }

    /// Whether the id of `desired` is known without an answer.
    fn is_known(&self, desired: &Resource) -> bool {
        let wanted = Wanted::of(desired);
        self.call.states_id || wanted.one_name && !wanted.by_members
    }

    /// If only the list of its collection proved that the resource was absent, records that the list must show it, and that
    /// no run creates it again for a while.
    fn expect_in_list(&self, desired: &Resource, id: Option<&str>) {
        if !self.is_proven_by_list(desired) {
            return;
        }
        // Some servers show new resources in lists only after a while.
        let session = &self.writer.session;
        session.knowledge.expect(desired, session.list_delay);
        let at = self.call.at.as_ref().unwrap_or(&self.action.path);
        let (Some(id), Some(collection)) = (id, at.parent()) else { return };
        if self.writer.knows_new_parents(&self.action.path).is_none() {
            let (path, id, alias) = (self.path(), id.to_owned(), desired.identity.alias.clone());
            let witness = Witness { path, id, alias, hides_id: desired.rules.has_secret_id() };
            let mut witnesses = self.writer.witnesses.lock();
            let created = witnesses.entry(collection).or_default();
            if !witness.hides_id {
                created.clear();
            }
            created.push(witness);
        }
    }

    /// Whether only the list of its collection proved that the resource was absent. Then a second create makes another
    /// resource.
    fn is_proven_by_list(&self, desired: &Resource) -> bool {
        self.call.request.once && Wanted::of(desired).id.is_none()
    }

    /// Fails if later runs do not find the resource that was created with this id: each of them would create another one.
    async fn check_found(&self, desired: &Resource, id: Option<&str>) -> Result<(), SyncError> {
        let Some(id) = id.filter(|_| self.call.names.is_some()) else { return Ok(()) };
        let alias = desired.rules.identity().alias().evaluate(&desired.payload).ok();
        let entry = Entry {
            states: Stated { id: true, alias: alias.is_some(), number: false },
            alias: alias.unwrap_or_else(|| id.to_owned()),
            remote_id: id.to_owned(),
            payload: desired.payload.as_ref().clone(),
            format: None,
        };
        let listing = Listing::new(vec![entry]);
        if !matches!(Wanted::of(desired).find(&listing), Match::Nothing) {
            return Ok(());
        }
        // Some servers also accept names in the place of ids.
        if self.read(desired).await.is_ok_and(|observed| observed.payload.is_some()) {
            return Ok(());
        }
        let (id, _) = self.lose(desired, Some(id.to_owned()), None, given::Statement::default()).await;
        Err(SyncError::Unfindable(self.path(), id))
    }

    /// Records that runs do not find `desired`, which the server has with this id, if it is known, and maybe with another
    /// alias. Returns the id, unless it is a secret, and whether the server shows the resource at it.
    pub(super) async fn lose(
        &self,
        desired: &Resource,
        id: Option<String>,
        alias: Option<&str>,
        stated: given::Statement<'_>,
    ) -> (Option<String>, bool) {
        let shown_id = id.clone().filter(|_| !desired.rules.has_secret_id());
        self.writer.session.knowledge.lose(desired, shown_id.clone());
        let is_shown = match id {
            Some(id) => self.writer.record(desired, &self.at(desired), &id, alias, stated).await,
            None => false,
        };
        (shown_id, is_shown)
    }

    /// Whether the repository declares resources below it.
    async fn has_children(&self) -> bool {
        let (session, path) = (self.writer.session.clone(), self.path());
        // One is the resource itself.
        let declares = move || Ok(repository::declares_at_least(session.tree.as_ref(), &path, 2)?);
        blocking(self.path(), declares).await.unwrap_or(true)
    }

    /// Prevents further creates of `desired` while the server may still execute this one.
    fn expect(&self, desired: &Resource) {
        self.writer.session.knowledge.expect(desired, self.writer.session.client.attempt_timeout());
    }

    /// Returns the error of a create that timed out. The server may still execute it, so only a later run may search
    /// for the resource.
    pub async fn late(&self, lost: ServerError) -> SyncError {
        self.uncertain(lost, self.writer.session.client.attempt_timeout()).await
    }

    /// Returns the error of a create with an unknown outcome, and prevents further ones for this time.
    async fn uncertain(&self, lost: ServerError, wait: Duration) -> SyncError {
        let knowledge = &self.writer.session.knowledge;
        knowledge.expect_at(&self.action.path, wait);
        // Its names in the repository, because the server may not answer.
        if let Ok(Some(declared)) = self.writer.declared(&self.action.path).await {
            knowledge.expect(&declared, wait);
        }
        let why = format!("a run that starts after {} s reads it again", wait.as_secs_f64());
        SyncError::Unsure(self.path(), Box::new(lost), why)
    }

    /// Looks whether a created resource is complete: a server may ignore parts of a create. If its answer does not show
    /// all of the payload, the resource is read, and updated once if it differs. Returns its id, if it is known.
    async fn complete(
        &self,
        desired: &Resource,
        response: &Response,
        shown: Option<String>,
    ) -> Result<Option<String>, SyncError> {
        // An accepted create may fail later, and its answer may describe a task with an id of its own.
        let is_done = response.status != StatusCode::ACCEPTED;
        let mut is_shown = false;
        if is_done
            && !self.is_refused(desired, response, shown.as_deref())
            && let Some(created) = shown_whole(desired, response).await
        {
            let id = shown.clone().or_else(|| given::shown_in(self.call, &created));
            // Requests below it may need its id.
            if id.is_some() || self.is_known(desired) || !self.has_children().await {
                return Ok(id);
            }
            is_shown = true;
        }
        let (read, id) = self.read_completed(desired, shown, is_done).await;
        let observed = match read {
            Ok(observed) => observed,
            // Later runs would not find it either.
            Err(error @ SyncError::Undecided(..)) if error.category() != Category::Transport => {
                return Err(error);
            }
            Err(error) => {
                // The create itself succeeded, and some servers do not show all resources.
                let id = self.done_or_not(desired, response, id)?;
                if error.category() == Category::Transport {
                    // The further pass must not create it even if the server does not show it yet.
                    self.expect(desired);
                    let _ = self.rest.set(Rest::Unread);
                }
                return Ok(id);
            }
        };
        if observed.payload.is_none() {
            // The answer has shown it, so the list shows it late.
            return if is_shown { Ok(id) } else { Err(self.not_shown(desired, response, id).await) };
        }
        // If the answer shows no name of the resource, something else may have this id, such as a task.
        if is_unnamed(&Wanted::of(desired), &observed, id.as_deref()) {
            return Ok(id);
        }
        let found = observed.clone();
        match correction(desired.clone(), observed).await {
            Ok(Correction::Update(update)) => {
                let _ = self.rest.set(Rest::Update(update));
            }
            Ok(Correction::Replacement(differences)) => self.remark(&format!(
                "the server {}; otherwise the next run deletes the resource and creates it again, because of \
                 resource.replaceOn",
                shown_instead(&differences, false).with_advice(CORRECTION)
            )),
            Ok(Correction::Nothing) => self.writer.references().remember(&self.action.path, &found),
            Err(error) => self.remark(&format!("differs and cannot be updated: {error}")),
        }
        Ok(id)
    }

    /// Records why the created resource stays different. Where recurrences are watched, the next run does this.
    fn remark(&self, why: &str) {
        if self.writer.recurrences.is_some() {
            return;
        }
        let path = self.path();
        let message = format!("{path}: created, but {why}");
        let remark = Failure::local(path, "update", FailureReason::NeverConverges, message);
        self.writer.unconfirmed.lock().push(remark);
    }

    /// Looks whether a resource exists whose create was requested, unless the answer shows it or has the status 201 or 202.
    /// Returns its id, if it is known.
    async fn existing(
        &self,
        desired: &Resource,
        response: &Response,
        shown: Option<String>,
    ) -> Result<Option<String>, SyncError> {
        let is_refused = self.is_refused(desired, response, shown.as_deref());
        let is_task = response.status == StatusCode::ACCEPTED;
        let answer = if is_refused || is_task { None } else { shown_whole(desired, response).await };
        let is_created =
            !is_refused && [StatusCode::CREATED, StatusCode::ACCEPTED].contains(&response.status);
        let shown = shown.or_else(|| given::shown_in(self.call, answer.as_ref()?));
        // Requests below it may need its id.
        if (is_created || answer.is_some()) && (shown.is_some() || self.is_known(desired)) {
            return Ok(shown);
        }
        for pause in LIST_PAUSES {
            tokio::time::sleep(pause.min(self.writer.session.list_delay)).await;
            match self.read_created(desired, shown.clone()).await {
                (Ok(Observed { payload: None, .. }), _) if !is_created => {}
                (Ok(_), id) => return Ok(id),
                // Some servers do not show all resources.
                (Err(_), id) => return self.done_or_not(desired, response, id),
            }
        }
        Err(self.not_shown(desired, response, shown).await)
    }

    /// Whether the answer to the create states a failure, and shows no `id` of a resource. It has the meaning of a status
    /// of failure then: the server has created nothing.
    fn is_refused(&self, desired: &Resource, response: &Response, id: Option<&str>) -> bool {
        id.is_none() && states_failure(&self.call.request, response, Some(desired))
    }

    /// Returns the `id` of the created resource, unless the server has refused the create.
    fn done_or_not(
        &self,
        desired: &Resource,
        response: &Response,
        id: Option<String>,
    ) -> Result<Option<String>, SyncError> {
        if self.is_refused(desired, response, id.as_deref()) { Err(self.not_done(response)) } else { Ok(id) }
    }

    /// Returns the error of a create after which the server does not show the resource.
    async fn not_shown(&self, desired: &Resource, response: &Response, id: Option<String>) -> SyncError {
        let another = given::another(self.call, desired, response);
        let id = id.or_else(|| another.clone());
        if self.is_refused(desired, response, id.as_deref()) {
            return self.not_done(response);
        }
        self.expect(desired);
        let (path, status) = (self.path(), response.status.as_u16());
        // An accepted create may fail later.
        if response.status != StatusCode::ACCEPTED {
            let alias = given::alias(self.call, desired, response);
            let stated = given::Statement::by(self.call, response);
            let lost = self.lose(desired, id, alias.as_deref(), stated).await;
            if let ((_, true), Some(alias)) = (lost, alias) {
                return SyncError::Renamed(path, status, alias);
            }
        }
        let lists = self.writer.referred.fresh();
        if let Some(alias) = self.listed_alike(desired, &lists).await {
            return SyncError::Renamed(path, status, alias);
        }
        let assigned = another.filter(|id| Wanted::of(desired).id.is_some() && is_assigned(id));
        SyncError::NotShown(path, status, assigned)
    }

    /// Reads the created resource. If the server has only accepted the create, waits a little for it.
    async fn read_completed(
        &self,
        desired: &Resource,
        shown: Option<String>,
        is_done: bool,
    ) -> (Result<Observed, SyncError>, Option<String>) {
        let mut found = self.read_created(desired, shown.clone()).await;
        for pause in LIST_PAUSES.into_iter().skip(1) {
            if is_done || !matches!(&found.0, Ok(Observed { payload: None, .. })) {
                break;
            }
            tokio::time::sleep(pause.min(self.writer.session.list_delay)).await;
            found = self.read_created(desired, shown.clone()).await;
        }
        found
    }

    /// Reads the created resource, first at the id that the answer shows. The id may be that of something else, such as a
    /// task or an event, and may address another resource. Also returns the id, if it is known.
    async fn read_created(
        &self,
        desired: &Resource,
        shown: Option<String>,
    ) -> (Result<Observed, SyncError>, Option<String>) {
        let at = self.at(desired);
        let addressed = shown.as_deref().map_or_else(|| at.clone(), |id| at.with_remote_id(id));
        let remote = self.writer.referred.fresh();
        let (searched, shown) = match remote.read_at(&addressed).await {
            Ok(observed)
                if observed.other_alias(&Wanted::of(&at)).is_none() && !is_another(&at, &observed) =>
            {
                let id = shown.or_else(|| given::shown_in(self.call, observed.payload.as_ref()?));
                return (Ok(observed), id);
            }
            Ok(_) => (at, None),
            Err(_) => (addressed, shown),
        };
        let read = remote.read(&searched).await;
        let found = read.as_ref().ok().filter(|observed| observed.payload.is_some()).map(id_of);
        (read, found.or(shown))
    }

    /// Returns `desired` below the ids of its parents.
    fn at(&self, desired: &Resource) -> Resource {
        let path = self.call.at.clone().unwrap_or_else(|| self.path());
        desired.moved(path)
    }

    /// Handles the answer 409 to a create. If the resource exists, it is updated once. If the cause is a resource with
    /// other names, nothing is written. If the resource does not exist, for example because of a quota, returns `error`.
    pub async fn update_instead(&self, error: ServerError) -> Result<Step, SyncError> {
        let desired = self.desired().await?;
        let unread =
            (Wanted::of(&desired).one_name && !desired.rules.updates_observed()).then(|| desired.clone());
        let update = if unread.is_some() {
            // The resource can only be at its own address. An update may need an id that only the server knows.
            let at = desired.moved_to(self.call.at.clone());
            let update =
                evaluated(desired, move |desired| Ok(Call::update_at(desired, &at, None).ok())).await?;
            Some(Box::new(update.ok_or_else(|| error.clone())?))
        } else {
            let is_it = |observed: &Observed| {
                observed.payload.is_some() && observed.other_alias(&Wanted::of(&desired)).is_none()
            };
            let Some(observed) = self.read(&desired).await.ok().filter(is_it) else {
                return Err(self.taken(&desired, error).await);
            };
            self.take_over(desired, observed).await?
        };
        let Some(update) = update else { return Ok(Step::Create) };
        let response = match self.update(&update).await {
            Err(later) => {
                let exists = match (unread, later.category()) {
                    (Some(_), Category::NotFound) => false,
                    (Some(desired), Category::Conflict) => {
                        self.read(&desired).await.is_ok_and(|observed| observed.payload.is_some())
                    }
                    _ => true,
                };
                return Err(if exists { later } else { error.into() });
            }
            Ok(response) => response,
        };
        self.writer.ids.learn(&self.action.path, self.call, &response);
        Ok(Step::Create)
    }

    /// Returns the error of a create whose names the server has in use. Some servers ignore case in names.
    async fn taken(&self, desired: &Resource, error: ServerError) -> SyncError {
        match self.listed_alike(desired, &self.writer.new_lists).await {
            Some(alias) => SyncError::Taken(error, alias),
            None => error.into(),
        }
    }

    /// Returns the alias of an entry of the list that differs from that of `desired` only in what some servers ignore.
    async fn listed_alike(&self, desired: &Resource, remote: &Remote) -> Option<String> {
        let at = self.at(desired);
        let list = remote.list_for(&at, &at.path.parent()?).await;
        let ListAnswer::Listed { listing, .. } = &*list else { return None };
        let wanted = &desired.identity.alias;
        let alike =
            |entry: &&Entry| entry.states.alias && entry.alias != *wanted && is_alike(&entry.alias, wanted);
        let is_secret = desired.rules.has_secret_id() || desired.rules.has_secret_alias();
        listing.entries().iter().find(alike).filter(|_| !is_secret).map(|entry| entry.alias.clone())
    }

    /// Handles the loss of the answer to a create, which the server may have executed. Reads the resource, and sends
    /// the create once more only if it is proven absent, and not by a list, which may show it later.
    pub async fn look_for(&self, mut lost: ServerError) -> Result<Step, SyncError> {
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
            // Most servers with 503 are overloaded and have not begun. A run must cope with them.
            let is_refused = lost.status() == Some(StatusCode::SERVICE_UNAVAILABLE);
            if self.is_proven_by_list(&desired) && !is_refused {
                return Err(self.uncertain(lost, self.writer.session.list_delay).await);
            }
            tracing::info!(path = %self.action.path, error = %lost, "the answer to a create was lost, and the resource does not exist");
            sent_again = true;
            match self.exchange(&self.call.request).await {
                Ok(response) => return self.created(&response).await,
                Err(error) if error.may_still_be_done() => return Err(self.late(error).await),
                // The server may have executed the first create late.
                Err(error) if error.may_be_done() || error.is_already_exists() => lost = error,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Adopts the resource that a create with a lost answer has left, and updates it if it is incomplete.
    async fn adopt(&self, desired: Resource, found: Observed, lost: ServerError) -> Result<Step, SyncError> {
        // The resource may belong to another client, and a requested create overwrites nothing.
        if self.action.reason == Reason::Requested {
            let id = id_of(&found);
            if !matches!(correction(desired.clone(), found).await?, Correction::Nothing) {
                return Err(lost.into());
            }
            self.note_created(&desired, Some(&id));
            self.writer.ids.note(&self.action.path, self.call, Some(id));
            return Ok(Step::Create);
        }
        match self.take_over(desired, found).await? {
            None => Ok(Step::Create),
            Some(update) => {
                self.update(&update).await?;
                Ok(Step::Update)
            }
        }
    }

    /// Stores the id of a resource that was `found` instead of created. Returns the update that it needs: the server may
    /// not have the desired values of write-only attributes.
    async fn take_over(&self, desired: Resource, found: Observed) -> Result<Option<Box<Call>>, SyncError> {
        self.writer.ids.note(&self.action.path, self.call, Some(id_of(&found)));
        // The server may have created members together with it, like those of a new resource.
        self.writer.created.lock().insert(self.path(), true);
        let decided = self.writer.decided((Step::Create, Reason::Missing), desired, found).await?;
        Ok(decided.and_then(Action::into_call))
    }
}

/// Returns what the `observed` resource needs if it differs from the create, which was executed.
async fn correction(desired: Resource, observed: Observed) -> Result<Correction, SyncError> {
    evaluated(desired, move |desired| decide::correct(desired, &observed)).await
}

/// Whether metadata states no names, the desired payload states its name in one of the usual members, and `observed`
/// states another one.
fn is_another(desired: &Resource, observed: &Observed) -> bool {
    let name = desired.name();
    let is_named = |payload: &Value| is_named(payload, name);
    Wanted::of(desired).by_members
        && is_named(&desired.payload)
        && observed.payload.as_ref().is_some_and(|shown| !is_named(shown))
}

/// Whether only the `id` in the answer to the create connects `observed` with the wanted resource.
fn is_unnamed(wanted: &Wanted<'_>, observed: &Observed, id: Option<&str>) -> bool {
    let is_named = |shown: &Value| is_named(shown, wanted.name);
    wanted.by_members
        && id.is_some_and(|id| id != wanted.name)
        && !observed.payload.as_ref().is_some_and(is_named)
}
