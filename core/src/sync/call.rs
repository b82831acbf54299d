//! The requests that actions send.

use std::sync::Arc;

use http::header::{HeaderValue, IF_MATCH};

use super::SyncError;
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
pub(super) struct Call {
    pub request: Request,
    /// Where the server has the resource, or will have it, if that is another path than the declared one.
    pub at: Option<LogicalPath>,
    /// Tells the id that the server gives to what is created; `None` where it is the path's own name.
    pub names: Option<Arc<Rules>>,
    /// Whether what is created states that id itself. Where it was created does not tell it then: some
    /// servers keep a resource at one id and name it in the paths of its children by another.
    pub states_id: bool,
    /// Sent once when an update is answered with 404: its address needs what only the server knows.
    pub on_missing: Option<Box<Request>>,
    /// The version that the request asks for, if it does so on account of what was read.
    pub guarded: Option<HeaderValue>,
    /// The resource, where a guarded request is about one that no tree declares any more.
    pub declared: Option<Box<Resource>>,
}

impl Call {
    /// Makes `desired` exist at `at`.
    pub fn create(desired: &Resource, at: &Resource) -> Result<Self, SyncError> {
        let names = at.rules.identity().any_explicit().then(|| Arc::clone(&at.rules));
        Ok(Self {
            names,
            states_id: at.rules.states_id(&desired.payload),
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
        let update = Self::update_at(desired, &at)?;
        let on_missing = Self::elsewhere(&at, observed, &update.request);
        Ok(Self { on_missing, ..update }.guard(observed))
    }

    /// Changes whatever `at` addresses.
    pub fn update_at(desired: &Resource, at: &Resource) -> Result<Self, SyncError> {
        let request = request(&at.evaluation()?, OperationName::Update, &desired.payload)?;
        Ok(Self::new(desired.guarding(request), desired, at))
    }

    /// Where else the server may have what is updated: some address updates by a field that only they know.
    /// The observed fields, below the desired ones, then take part in the path.
    fn elsewhere(at: &Resource, observed: &Observed, first: &Request) -> Option<Box<Request>> {
        let resolved = at.rules.resolved();
        let stated = resolved.operation(OperationName::Update).path.is_some();
        let known =
            observed.payload.as_ref().filter(|_| stated || resolved.remote_collection_path.is_some())?;
        let scope = merge(known.clone(), at.payload.as_ref().clone());
        let scope = Resource { payload: Arc::new(scope), ..at.clone() };
        let second = scope.evaluation().and_then(|evaluation| Ok(evaluation.render(OperationName::Update)?));
        let second = second.ok().filter(|second| second.path != first.path)?;
        Some(Box::new(Request {
            method: second.method,
            path: second.path,
            query: second.query,
            headers: second.headers,
            ..first.clone()
        }))
    }

    /// Removes what was `observed`, and how it is addressed; `None` if there is nothing.
    pub fn delete(declared: &Resource, observed: &Observed) -> Result<Option<(Self, Resource)>, SyncError> {
        let Some(payload) = &observed.payload else { return Ok(None) };
        let at = observed.addressed();
        let at = at.with_remote_id(&at.identity.remote_id);
        // What the server says beats what was declared last.
        let scope = merge(at.payload.as_ref().clone(), payload.clone());
        let at = Resource { payload: Arc::new(scope), ..at };
        let request = at.guarding(request(&at.evaluation()?, OperationName::Delete, &Value::Null)?);
        let mut call = Self::new(request, declared, &at).guard(observed);
        call.declared = call.guarded.is_some().then(|| Box::new(declared.clone()));
        Ok(Some((call, at)))
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
