//! The requests that actions send.

use std::sync::Arc;

use http::header::{HeaderValue, IF_MATCH};

use super::{Observed, Resource, SyncError, request};
use crate::metadata::document::merge;
use crate::metadata::{OperationName, Rendered, Rules};
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
        let request = request(&at.evaluation()?, OperationName::Create, &desired.payload)?;
        let states_id = at.rules.states_id(&desired.payload);
        let named = at.rules.identity().any_explicit() || !states_id;
        let names = named.then(|| Arc::clone(&at.rules));
        Ok(Self { names, states_id, ..Self::new(desired.guarding(request), desired, at) })
    }

    /// Changes what was `observed`.
    pub fn update(desired: &Resource, observed: &Observed) -> Result<Self, SyncError> {
        let at = observed.addressed();
        Ok(Self::update_at(desired, &at)?.of_observed(OperationName::Update, &at, observed))
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
        let evaluation = at.evaluation()?;
        let request = request(&evaluation, OperationName::Delete, &Value::Null).or_else(|error| {
            let scope = observed_scope(&at, observed);
            let known =
                scope.evaluation().and_then(|known| request(&known, OperationName::Delete, &Value::Null));
            known.map_err(|_| error)
        })?;
        let call = Self::new(at.guarding(request), declared, &at);
        let call = call.of_observed(OperationName::Delete, &at, observed);
        Ok(Some(Self { declared: Some(Box::new(declared.clone())), ..call }))
    }

    /// Addresses a write, of which no document states the path, where the read succeeded: whatever other id the payload
    /// or the server states, that is where the resource is. The request succeeds only while the server has what was
    /// `observed`.
    fn of_observed(mut self, operation: OperationName, at: &Resource, observed: &Observed) -> Self {
        let resolved = observed.at.rules.resolved();
        let stated = |operation| resolved.operation(operation).path.is_some();
        match &observed.read_at {
            Some(read_at) if !stated(operation) && !stated(OperationName::Get) => {
                self.request.path = read_at.to_string();
            }
            // Some address writes by a field that only they know.
            _ => {
                let elsewhere = observed_scope(at, observed).render(operation).ok();
                let elsewhere = elsewhere.filter(|elsewhere| elsewhere.path != self.request.path);
                self.on_missing = elsewhere.map(|Rendered { method, path, query, headers, .. }| {
                    Box::new(Request { method, path, query, headers, ..self.request.clone() })
                });
            }
        }
        self.guarded = observed.version.as_ref().and_then(|version| version.guard(&mut self.request));
        self
    }

    fn new(request: Request, resource: &Resource, at: &Resource) -> Self {
        let at = (at.path != resource.path).then(|| at.path.clone());
        Self { request, at, names: None, states_id: false, on_missing: None, guarded: None, declared: None }
    }

    /// Lets the request succeed whatever the server has.
    pub fn unguard(&mut self) {
        if self.guarded.take().is_some() {
            self.request.headers.retain(|(name, _)| *name != IF_MATCH);
        }
    }
}

/// `at` with the observed members below its own, for addresses that need what only the server knows.
fn observed_scope(at: &Resource, observed: &Observed) -> Resource {
    let known = observed.payload.clone().unwrap_or_default();
    let payload = Arc::new(merge(known, at.payload.as_ref().clone()));
    Resource { payload, ..at.clone() }
}
