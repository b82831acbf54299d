//! The requests that actions send.

use std::sync::Arc;

use http::header::{HeaderValue, IF_MATCH};

use super::error::SyncError;
use super::resource::{Observed, Resource, request};
use crate::metadata::document::merge;
use crate::metadata::{OperationName, Rules};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::server::Request;

/// A request ready to be sent.
///
/// A plan that is shown holds encoded bodies: they are smaller than payloads, and what cannot be encoded fails
/// before anything is sent. What only a rare answer asks for is made when that answer comes.
#[derive(Debug)]
pub(crate) struct Call {
    pub request: Request,
    /// Where the server has the resource, or will have it, if that is another path than the declared one.
    pub at: Option<LogicalPath>,
    /// Find the id that the server gives to what is created; `None` where the payload states it.
    pub names: Option<Arc<Rules>>,
    /// Whether what is created states that id itself. Where it was created says nothing then: some
    /// servers keep a resource at one id and name it in the paths of its children by another.
    pub states_id: bool,
    /// Sent once when an update or deletion is answered with 404: its address needs what only the server knows.
    pub on_missing: Option<Box<Request>>,
    /// The version that the request asks for, if it does so on account of what was read.
    pub guarded: Option<HeaderValue>,
    /// The resource, where a guarded request is about one that no tree declares any more.
    pub declared: Option<Box<Resource>>,
}

impl Call {
    /// Makes `desired` exist at `at`.
    pub fn create(desired: &Resource, at: &Resource) -> Result<Self, SyncError> {
        let states_id = at.rules.states_id(&desired.payload);
        let named = at.rules.identity().any_explicit() || !states_id;
        Ok(Self {
            names: named.then(|| Arc::clone(&at.rules)),
            states_id,
            ..Self::new(
                desired.guarding(request(&at.evaluation()?, OperationName::Create, &desired.payload)?),
                desired,
                at,
            )
        })
    }

    /// Changes what was `observed`.
    pub fn update(desired: &Resource, observed: &Observed) -> Result<Self, SyncError> {
        let at = observed.addressed();
        let mut update = Self::update_at(desired, &at)?;
        if !update.send_where_read(OperationName::Update, observed) {
            update.on_missing = elsewhere(&at, observed, OperationName::Update, &update.request);
        }
        Ok(update.guard(observed))
    }

    /// Changes whatever `at` addresses.
    pub fn update_at(desired: &Resource, at: &Resource) -> Result<Self, SyncError> {
        let request = request(&at.evaluation()?, OperationName::Update, &desired.payload)?;
        Ok(Self::new(desired.guarding(request), desired, at))
    }

    /// Removes what was `observed`; `None` if there is nothing.
    pub fn delete(declared: &Resource, observed: &Observed) -> Result<Option<Self>, SyncError> {
        if observed.payload.is_none() {
            return Ok(None);
        }
        let at = observed.addressed();
        let at = at.with_remote_id(&at.identity.remote_id);
        let request = match request(&at.evaluation()?, OperationName::Delete, &Value::Null) {
            Ok(request) => at.guarding(request),
            // The address needs what only the server knows.
            Err(error) => {
                let known = request_of(&observed_scope(&at, observed), OperationName::Delete);
                at.guarding(known.map_err(|_| error)?)
            }
        };
        let mut call = Self::new(request, declared, &at);
        if !call.send_where_read(OperationName::Delete, observed) {
            call.on_missing = elsewhere(&at, observed, OperationName::Delete, &call.request);
        }
        let mut call = call.guard(observed);
        call.declared = Some(Box::new(declared.clone()));
        Ok(Some(call))
    }

    /// Addresses a write, of which no document states the path, where the read succeeded: whatever other id the payload
    /// or the server states, that is where the resource is. Returns whether it does.
    fn send_where_read(&mut self, operation: OperationName, observed: &Observed) -> bool {
        let resolved = observed.at.rules.resolved();
        let stated = |operation| resolved.operation(operation).path.is_some();
        let Some(read_at) = observed.read_at.as_ref() else { return false };
        if stated(operation) || stated(OperationName::Get) {
            return false;
        }
        read_at.as_ref().clone_into(&mut self.request.path);
        true
    }

    fn new(request: Request, resource: &Resource, at: &Resource) -> Self {
        let at = (at.path != resource.path).then(|| at.path.clone());
        Self { request, at, names: None, states_id: false, on_missing: None, guarded: None, declared: None }
    }

    /// Lets the request succeed only while the server has what was observed.
    fn guard(mut self, observed: &Observed) -> Self {
        self.guarded = observed.version.as_ref().and_then(|version| version.guard(&mut self.request));
        self
    }

    /// Lets the request succeed whatever the server has.
    pub fn unguard(&mut self) {
        if self.guarded.take().is_some() {
            self.request.headers.retain(|(name, _)| *name != IF_MATCH);
        }
    }
}

/// Where else the server may have what is written: some address writes by a field that only they know. The observed
/// fields, below the desired ones, then take part in the path.
fn elsewhere(
    at: &Resource,
    observed: &Observed,
    operation: OperationName,
    first: &Request,
) -> Option<Box<Request>> {
    let scope = observed_scope(at, observed);
    let second = scope.evaluation().and_then(|evaluation| Ok(evaluation.render(operation)?));
    let second = second.ok().filter(|second| second.path != first.path)?;
    Some(Box::new(Request {
        method: second.method,
        path: second.path,
        query: second.query,
        headers: second.headers,
        ..first.clone()
    }))
}

/// `at` with the observed members below its own.
fn observed_scope(at: &Resource, observed: &Observed) -> Resource {
    let known = observed.payload.clone().unwrap_or_default();
    let payload = Arc::new(merge(known, at.payload.as_ref().clone()));
    Resource { payload, ..at.clone() }
}

fn request_of(at: &Resource, operation: OperationName) -> Result<Request, SyncError> {
    request(&at.evaluation()?, operation, &Value::Null)
}
