//! Reading desired and live state, and deciding resource by resource, so that a run holds the payloads of
//! what changes and not of what exists.

use std::sync::Arc;

use futures::StreamExt;

use super::plan::{self, Action, Desired, decide};
use super::remote::{Remote, Wanted};
use super::report::{Failure, PRUNE};
use super::{Candidate, Options, Selection, Session, Stop, SyncError};
use crate::metadata::{Identity, Rules};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::{self, ResourceFile};
use crate::secrets::find_placeholder;

/// What a selection needs, before the brakes of the plan.
pub(super) struct Observation {
    pub actions: Vec<Action>,
    pub targeted: usize,
    pub failures: Vec<Failure>,
    pub whole_scope: bool,
    pub declared: usize,
}

/// One thing to look at.
enum Item {
    Resource(ResourceFile),
    Undeclared(Candidate),
}

/// Observes everything selected, concurrently up to the server's gate.
pub(super) async fn observe(
    session: &Session,
    selection: Selection,
    options: &Options,
    stop: &Stop,
) -> Observation {
    let targeted = selection.targeted();
    let Selection { resources, broken: mut failures, prune, whole_scope, declared } = selection;
    let remote = Remote::new(session);
    let items = resources.into_iter().map(Item::Resource).chain(prune.into_iter().map(Item::Undeclared));
    let mut observed = futures::stream::iter(items)
        .map(|item| observe_one(session, &remote, item, options, stop))
        .buffer_unordered(session.client.concurrency());
    let mut actions = Vec::new();
    while let Some(outcome) = observed.next().await {
        match outcome {
            Ok(action) => actions.extend(action),
            Err(failure) => failures.push(failure),
        }
    }
    Observation { actions, targeted, failures, whole_scope, declared: declared.unwrap_or(targeted) }
}

async fn observe_one(
    session: &Session,
    remote: &Remote<'_>,
    item: Item,
    options: &Options,
    stop: &Stop,
) -> Result<Option<Action>, Failure> {
    let (path, operation) = match &item {
        Item::Resource(file) => (file.path.clone(), "read"),
        Item::Undeclared(candidate) => (candidate.path.clone(), PRUNE),
    };
    if let Some(reason) = stop.reason() {
        let error = SyncError::NotAttempted { path: path.clone(), reason: reason.to_owned() };
        return Err(Failure::new(path, operation, &error));
    }
    let outcome = match item {
        Item::Resource(file) => observe_resource(session, remote, file, options).await.map(Some),
        Item::Undeclared(candidate) => observe_undeclared(session, remote, &candidate).await,
    };
    stop.note(outcome.as_ref().err());
    outcome.map_err(|error| Failure::new(path, operation, &error))
}

async fn observe_resource(
    session: &Session,
    remote: &Remote<'_>,
    file: ResourceFile,
    options: &Options,
) -> Result<Action, SyncError> {
    let desired = load(session, file).await?;
    if !options.secret_store
        && let Some(pointer) = find_placeholder(&desired.payload)
    {
        return Err(SyncError::SecretStoreMissing { path: desired.path, pointer });
    }
    let wanted = Wanted {
        path: &desired.path,
        rules: &desired.rules,
        remote_id: &desired.identity.remote_id,
        states_id: desired.rules.states_id(&desired.payload),
        descriptor: Some(&desired.descriptor),
    };
    let observed = remote.read(&wanted).await?;
    decide(&desired, &observed, options.force)
}

async fn observe_undeclared(
    session: &Session,
    remote: &Remote<'_>,
    candidate: &Candidate,
) -> Result<Option<Action>, SyncError> {
    let path = &candidate.path;
    let Candidate { path: own, payload } = candidate.clone();
    let named = blocking(session, path.clone(), move |session| {
        let rules = session.metadata.rules(&own)?;
        let identity = rules.identify(&own, Some(&payload))?;
        let kept = is_occupied(session, &own, &rules, &identity)? || has_declared_children(session, &own)?;
        Ok((!kept).then_some((rules, identity)))
    });
    let Some((rules, identity)) = named.await? else {
        tracing::info!(%path, "not pruned: Git still declares it under another path, or something below it");
        return Ok(None);
    };
    let wanted = Wanted {
        path,
        rules: &rules,
        remote_id: &identity.remote_id,
        states_id: rules.states_id(&candidate.payload),
        descriptor: None,
    };
    match remote.read(&wanted).await {
        Ok(observed) => Ok(plan::decide_prune(path, &rules, &observed)),
        // The resource itself is not there, and a list that cannot tell more is no ground for deleting.
        Err(SyncError::PartialList { .. } | SyncError::List { .. }) => Ok(None),
        Err(error) => Err(error),
    }
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
        if rules.identify(&sibling.path, Some(&payload))?.remote_id == identity.remote_id {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deleting a parent may take its children along, on the server.
fn has_declared_children(session: &Session, path: &LogicalPath) -> Result<bool, SyncError> {
    Ok(repository::declares_at_least(session.tree.as_ref(), path, 1)?)
}

/// Reads and names one desired resource. Trees block, so this happens on the blocking pool.
async fn load(session: &Session, file: ResourceFile) -> Result<Desired, SyncError> {
    blocking(session, file.path.clone(), move |session| {
        let rules = session.metadata.rules(&file.path)?;
        let payload: Value = repository::read_payload(session.tree.as_ref(), &file)?;
        let identity = rules.identify(&file.path, Some(&payload))?;
        Ok(Desired {
            path: file.path,
            descriptor: file.descriptor,
            payload: Arc::new(payload),
            identity,
            rules,
        })
    })
    .await
}

async fn blocking<T: Send + 'static>(
    session: &Session,
    path: LogicalPath,
    work: impl FnOnce(&Session) -> Result<T, SyncError> + Send + 'static,
) -> Result<T, SyncError> {
    let session = session.clone();
    let done = tokio::task::spawn_blocking(move || work(&session)).await;
    done.unwrap_or_else(|error| Err(SyncError::Task { path, reason: error.to_string() }))
}
