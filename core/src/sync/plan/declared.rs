//! Decides about declared resources: whether they are equal to those of the server, or which request they need.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::address::place_of;
use super::decide::decide_for;
use super::survey::Surveyor;
use super::undeclared::check_alias;
use crate::metadata::{MetadataError, is_named};
use crate::path::LogicalPath;
use crate::payload::{Object, Value};
use crate::sync::model::{
    Action, Created, Doubt, Intent, Lost, NewParent, Observed, Reason, Resource, Sending, Session, Step,
    SyncError, Wanted,
};
use crate::sync::observe::{Expected, Lacking, Looked, refers};
use crate::sync::tasks::evaluated;

/// A declared resource, and what the server shows of it.
struct Read {
    desired: Resource,
    observed: Observed,
    /// The reference that has no value yet, because the run may create what it refers to.
    pending: Option<Lacking>,
}

/// What earlier runs know about a declared resource.
struct Earlier {
    /// The time in which the server may still complete a create.
    under_way: Option<Duration>,
    /// The resource that a run has created and does not find.
    lost: Option<Lost>,
    may_be_lost: bool,
}

impl Surveyor {
    /// Decides on one resource. If others refer to it, `expected` passes them what the server shows of it.
    pub(super) async fn decide(
        &self,
        desired: Resource,
        expected: Option<Expected>,
    ) -> Result<Action, SyncError> {
        let earlier = self.earlier(&desired);
        let depends_on = desired.dependencies()?;
        self.session.hide_names(&desired.rules, &desired.payload);
        // Defer a create whose need is proven.
        let is_new = earlier.under_way.is_none() && !earlier.may_be_lost;
        if self.defers && is_new && self.bulk.is_known_absent(&desired) {
            self.candidates.check_not_created(&desired).await?;
            let create = Action::new(desired.path, Step::Create, Reason::Missing);
            return Ok(Action { depends_on, sending: Sending::WhenSent(None), ..create });
        }
        // Read.
        let path = desired.path.clone();
        let Some(Read { desired, observed, pending }) = self.read(desired).await? else {
            return Ok(Action::new(path, Step::Skip, Reason::Equal));
        };
        // Check that the server shows this resource, and no other one.
        if self.options.intent == Intent::Converge {
            self.check_identity(&desired, &observed, earlier).await?;
        }
        let may_be_copy =
            self.options.intent != Intent::Delete && self.may_be_a_copy(&desired, &observed).await;
        let copy = may_be_copy.then(|| (desired.clone(), observed.clone()));
        if let Some(expected) = expected {
            expected.remember(&observed);
        }
        // Compare.
        let at = (observed.at.path != path).then(|| Box::new(observed.at.path.clone()));
        let (options, written) = (self.options.clone(), self.session.written.clone());
        let names_ids = desired.rules.names_ids();
        let decide = move |desired: &Resource| decide_for(desired, &observed, &options, written.as_deref());
        let action = evaluated(desired, decide).await?;
        if let Some((desired, observed)) = copy.filter(|_| action.step != Step::Skip) {
            self.candidates.check_copy(&desired, &observed).await?;
        }
        // Determine what the request waits for.
        let sending = self.sending(&action, names_ids, at, pending).await?;
        let action = Action { depends_on, ..action };
        Ok(match sending {
            Some(sending) => Action { sending, ..action },
            None => action,
        })
    }

    fn earlier(&self, desired: &Resource) -> Earlier {
        let Session { knowledge, written, .. } = &self.session;
        let lost = knowledge.lost(&desired.path);
        let is_recorded = || written.as_ref().is_some_and(|written| written.has_lost(&desired.path));
        let may_be_lost = lost.is_some() || is_recorded();
        Earlier { under_way: knowledge.expected(desired), lost, may_be_lost }
    }

    /// Reads a resource. Returns `None` if a list shows that it is equal.
    async fn read(&self, desired: Resource) -> Result<Option<Read>, SyncError> {
        let intent = self.options.intent;
        if intent == Intent::Delete {
            let (desired, observed) = self.look_for_deletion(desired).await?;
            self.note_shown(&desired, &observed);
            return Ok(Some(Read { desired, observed, pending: None }));
        }
        let remote = &self.bulk.remote;
        let desired = self.session.resolved(desired).await?;
        let refers = refers(&desired);
        remote.look_at(&desired);
        let (desired, pending) = if refers { remote.filled(desired).await? } else { (desired, None) };
        // An entry of a list does not show whether the other resource changed.
        let looked = if refers {
            remote.read(&desired).await.map(Looked::Read)
        } else {
            self.bulk.look(&desired).await
        };
        let observed = match looked {
            Ok(Looked::Equal(id)) => {
                self.session.knowledge.shown(&desired);
                let evaluation = desired.unobserved()?;
                self.found(&desired, place_of(&desired, evaluation.remote_collection(), &id));
                return Ok(None);
            }
            Ok(Looked::Read(observed)) => observed,
            Err(error) if may_write_unread(intent, &error) => {
                let observed = Observed::new(remote.addressed(&desired).await?, None);
                return Ok(Some(Read { desired, observed, pending }));
            }
            Err(error) => return Err(error),
        };
        self.check_requested(&desired, &observed)?;
        self.found(&desired, observed.own_place());
        self.note_shown(&desired, &observed);
        Ok(Some(Read { desired, observed, pending }))
    }

    /// Records where the server has a declared resource.
    fn found(&self, desired: &Resource, place: Option<(String, String)>) {
        if let Some(place) = place {
            self.names.lock().found(&desired.path, &place);
        }
    }

    fn note_shown(&self, desired: &Resource, observed: &Observed) {
        if observed.payload.is_some() {
            self.session.knowledge.shown(desired);
        }
    }

    /// Fails if the `observed` resource may be another one than `desired`, or `desired` may exist although the server
    /// does not show it.
    async fn check_identity(
        &self,
        desired: &Resource,
        observed: &Observed,
        earlier: Earlier,
    ) -> Result<(), SyncError> {
        let Earlier { under_way, lost, may_be_lost } = earlier;
        if observed.has_unstated_alias(&Wanted::of(desired)) {
            self.candidates.check_sole(desired, observed).await?;
        }
        if let Some(left) = under_way.filter(|_| observed.payload.is_none()) {
            return Err(SyncError::UnderWay(desired.path.clone(), left.as_secs() + 1));
        }
        if may_be_lost {
            self.check_lost(desired, observed, lost).await?;
        }
        if observed.payload.is_none() {
            self.candidates.check_not_created(&observed.at).await?;
        }
        Ok(())
    }

    /// Returns what the request of `action` waits for; `None` if it can be sent as it is. `at` is the path of its address, if
    /// that is not the path of the resource. `names_ids` states whether the rules need the ids of parents, and `pending` is a
    /// reference without a value.
    async fn sending(
        &self,
        action: &Action,
        names_ids: bool,
        at: Option<Box<LogicalPath>>,
        mut pending: Option<Lacking>,
    ) -> Result<Option<Sending>, SyncError> {
        // A reference without a value differs from any value, so it shows no need for a replacement.
        if let Some(pending) = pending.take_if(|_| action.replaces()) {
            return Err(pending.error);
        }
        let pending = pending.filter(|lacking| !(lacking.deferred && action.is_missing()));
        if action.step == Step::Create
            && names_ids
            && let Some(path) = self.missing_parent(action, pending.is_some()).await
        {
            return Ok(Some(Sending::BelowNewParent(Box::new(NewParent { path, at: at.map(|at| *at) }))));
        }
        let writes = matches!(action.step, Step::Create | Step::Update);
        let waits = writes && (pending.is_some() || self.lacks_declared(action).await?);
        Ok(waits.then_some(Sending::WhenSent(at)))
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
                Some((Created { id: Some(id), .. }, is_same)) => {
                    let shown = self.bulk.remote.at_id(&observed.at, id).await;
                    // After an edit, the id may be that of another resource. If the answer has no content, the
                    // resource that the server showed there no longer exists.
                    let is_it =
                        |shown: &Value| !shows_nothing(shown) && (*is_same || has_name_of(desired, shown));
                    shown.is_none_or(|shown| shown.as_ref().is_some_and(is_it))
                }
                Some((_, is_same)) => *is_same,
                None => lost.is_some(),
            };
            if still_exists {
                let id = recorded.and_then(|(created, _)| created.id).or_else(|| lost?.id);
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

    /// Fails if the server shows at the path of an undeclared resource one with other names, one of another collection, or
    /// one that Git declares at another path.
    async fn check_undeclared(&self, desired: &Resource, observed: &Observed) -> Result<(), SyncError> {
        if observed.payload.is_none() || desired.rules.resolved().singleton {
            return Ok(());
        }
        let refused = |why: String| Err(SyncError::NotDeleted(format!("{}: {why}", desired.path)));
        if Wanted::of(desired).one_name {
            check_alias(desired, observed)?;
        }
        if let Some(names) = other_names(desired, observed) {
            return refused(format!(
                "the server shows {names} at its address; use one of its names in the path"
            ));
        }
        if is_pattern(desired) && !shows_name(desired, observed) {
            return refused(
                "the server does not show a resource with this name, and may take it for a pattern; state the path of one \
                 resource"
                    .to_owned(),
            );
        }
        if !self.bulk.remote.may_be_a_member(observed).await {
            return refused(
                "the list of its collection does not show it, so it may belong to another one; use its path there"
                    .to_owned(),
            );
        }
        match self.candidates.declared_as(desired, observed).await {
            Ok(Some(path)) => refused(format!("Git declares it at {path}; use this path")),
            // The user named this path, so a declared resource that cannot be compared does not prevent the deletion.
            Ok(None) | Err(SyncError::NotDeleted(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads a resource that the caller asked to delete, by its path, else by its payload. Fails if another declared
    /// resource is the same one. Also returns the resource with the names by which it was found.
    async fn look_for_deletion(&self, desired: Resource) -> Result<(Resource, Observed), SyncError> {
        let remote = &self.bulk.remote;
        let by_path = Resource::by_path(desired.path.clone(), Arc::clone(&desired.rules)).ok();
        let first = by_path.unwrap_or_else(|| desired.clone());
        let unreadable = Observed::new(desired.clone(), Some(Value::Null));
        let by_path = remote.read_doomed(&first).await;
        // The name of a resource may be the id of another one, and the last segment of its path the name of another one.
        let other = by_path.as_ref().ok().and_then(|observed| other_name(&desired, observed));
        let is_several = |error: &SyncError| matches!(error, SyncError::Undecided(_, Doubt::Several(_)));
        let is_another = !desired.seeded && (other.is_some() || by_path.as_ref().is_err_and(is_several));
        let observed = match by_path {
            // A deletion needs no proof of absence.
            Err(error) if error.is_lack_of_proof() => Observed::new(first.clone(), None),
            _ if is_another => Observed::new(first.clone(), None),
            // Only the payload has the values that the address needs.
            Err(error @ SyncError::Metadata(_)) if !desired.seeded && error.is_unreadable() => {
                Observed::new(first.clone(), None)
            }
            Err(error)
                if may_write_unread(Intent::Delete, &error) && !(desired.seeded && is_pattern(&desired)) =>
            {
                return Ok((desired, unreadable));
            }
            observed => observed?,
        };
        if desired.seeded {
            self.check_undeclared(&desired, &observed).await?;
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
            Err(error) if may_write_unread(Intent::Delete, &error) => return Ok((desired, unreadable)),
            observed => observed?,
        };
        if observed.payload.is_some() {
            self.candidates.check_sole(&desired, &observed).await?;
            check_alias(&desired, &observed)?;
        } else if let Some(other) = other {
            // The file may state a new name that was not applied yet.
            return Err(SyncError::Undecided(desired.path, Doubt::AnotherAlias(other)));
        }
        Ok((desired, observed))
    }
}

/// Returns a name of the `observed` resource if it may be another one than `desired`, which states other names.
fn other_name(desired: &Resource, observed: &Observed) -> Option<String> {
    let wanted = Wanted::of_doomed(desired);
    let other_id = || {
        let id = observed.at.rules.identity().id().evaluate(observed.payload.as_ref()?).ok()?;
        wanted.id.is_some_and(|wanted| wanted != id).then_some(id)
    };
    observed.other_alias(&wanted).or_else(|| other_id().filter(|_| wanted.one_name))
}

/// Returns the names of the observed resource, if all of them differ from that in the path of `desired`. Servers may read
/// `/users/9tom` as the user 9.
fn other_names(desired: &Resource, observed: &Observed) -> Option<String> {
    let (payload, identity) = (observed.payload.as_ref()?, desired.rules.identity());
    let (id, alias) = (identity.id().evaluate(payload).ok()?, identity.alias().evaluate(payload).ok()?);
    let is_named = Wanted::of(desired).is_like(&id, &alias) || is_named(payload, desired.name());
    (!is_named).then(|| format!("{alias} with the id {id}"))
}

/// Whether a write that the caller asked for is sent although its resource cannot be read: the server has no request that
/// reads it, or it is a create whose own address has nothing and whose list answers 404, 410 or 405. Any other answer may
/// be that of a gateway.
fn may_write_unread(intent: Intent, error: &SyncError) -> bool {
    match (intent, error) {
        (Intent::Converge, _) => false,
        (_, SyncError::Server(error)) => {
            matches!(error.status(), Some(StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED))
        }
        (Intent::Create, SyncError::Undecided(_, doubt)) => {
            matches!(doubt, Doubt::NoList | Doubt::Unlistable(StatusCode::METHOD_NOT_ALLOWED))
        }
        _ => false,
    }
}

/// Whether some servers take the name for a pattern, and delete all resources that match it.
fn is_pattern(resource: &Resource) -> bool {
    resource.name().contains(['*', '?'])
}

/// Whether the `observed` content has the last segment of the path as its id, its alias or another usual name.
fn shows_name(desired: &Resource, observed: &Observed) -> bool {
    let Some(payload) = &observed.payload else { return false };
    let (name, rules) = (desired.name(), observed.at.rules.identity());
    let is_it = |shown: Result<String, _>| shown.is_ok_and(|shown| shown == name);
    is_it(rules.id().evaluate(payload)) || is_it(rules.alias().evaluate(payload)) || is_named(payload, name)
}

fn shows_nothing(shown: &Value) -> bool {
    shown.is_null() || shown.as_object().is_some_and(Object::is_empty)
}

/// Whether the server shows the name of `desired` in the payload `shown`.
fn has_name_of(desired: &Resource, shown: &Value) -> bool {
    let wanted = Wanted::of(desired);
    let alias = desired.rules.identity().alias().evaluate(shown);
    alias.is_ok_and(|alias| alias == desired.identity.alias)
        || wanted.by_members && is_named(shown, wanted.name)
}
