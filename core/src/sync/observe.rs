//! Reading desired and live state, and deciding resource by resource, so that a run holds the payloads of
//! what changes and not of what exists.

use std::sync::Arc;

use futures::StreamExt;

use super::plan::{self, Action, Desired, decide};
use super::remote::{Remote, Wanted};
use super::report::{Failure, PRUNE};
use super::{Candidate, Options, Selection, Session, Stop, SyncError};
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
    let path = candidate.path.clone();
    let rules = blocking(session, path.clone(), move |session| Ok(session.metadata.rules(&path)?)).await?;
    let identity = rules.identify(&candidate.path, candidate.payload.as_ref())?;
    let wanted =
        Wanted { path: &candidate.path, rules: &rules, remote_id: &identity.remote_id, descriptor: None };
    let observed = remote.read(&wanted).await?;
    Ok(plan::decide_prune(&candidate.path, &rules, &observed))
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
    path: crate::path::LogicalPath,
    work: impl FnOnce(&Session) -> Result<T, SyncError> + Send + 'static,
) -> Result<T, SyncError> {
    let session = session.clone();
    let done = tokio::task::spawn_blocking(move || work(&session)).await;
    done.unwrap_or_else(|error| Err(SyncError::Task { path, reason: error.to_string() }))
}
