//! The requests that actions send.

use std::sync::Arc;

use http::Method;
use http::header::{HeaderValue, IF_MATCH};

use super::{Observed, Resource, SyncError, Wanted, request};
use crate::metadata::document::merge;
use crate::metadata::{OperationName, Rendered, Rules, is_assigned};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::server::Request;

/// A request ready to be sent.
///
/// A plan that is shown holds encoded bodies: they are smaller than payloads, and encoding errors occur before anything
/// is sent. Requests that only a rare answer needs are made after that answer.
#[derive(Debug, Default)]
pub(crate) struct Call {
    pub request: Request,
    /// The logical path of the resource on the server, if it differs from the declared one.
    pub at: Option<LogicalPath>,
    /// The rules that find the id of the created resource; `None` if the payload states the id.
    pub names: Option<Arc<Rules>>,
    /// Whether the payload states the id. Then the `Location` of the answer is ignored: some servers address a resource
    /// by one id, and by another one in the paths of its children.
    pub states_id: bool,
    /// The attributes that a create leaves out and an update sets later.
    pub deferred: Vec<Pointer>,
    /// Whether a create or update sends write-only attributes.
    pub has_write_only: bool,
    /// The changed write-only attributes that an update does not contain.
    pub unsent: Vec<Pointer>,
    /// Sent once if an update or deletion is answered with 404. Its address contains fields that only the server knows.
    pub on_missing: Option<Box<Request>>,
    /// Whether the request addresses the resource by another name than the id that the server shows. Some servers accept
    /// names in reads only, and answer a deletion of a name as they do if the resource is already gone.
    pub by_name: bool,
    /// The version that the request requires, if it was taken from a read.
    pub guarded: Option<Box<HeaderValue>>,
    /// The resource to delete or to reset.
    pub declared: Option<Box<Resource>>,
}

/// Returns `payload` without these attributes.
pub(crate) fn without(payload: Value, attributes: &[Pointer]) -> Value {
    attributes.iter().fold(payload, |payload, attribute| attribute.remove(payload))
}

impl Call {
    /// Returns the request that creates `desired` at `at`.
    pub fn create(desired: &Resource, at: &Resource) -> Result<Self, SyncError> {
        Self::create_with(desired, at, &desired.payload)
    }

    /// Like [`Self::create`], but without the deferred attributes.
    pub fn create_first(desired: &Resource, at: &Resource) -> Result<Self, SyncError> {
        let deferred = desired.rules.resolved().deferred_attributes.iter();
        let deferred: Vec<Pointer> =
            deferred.filter(|pointer| pointer.get(&desired.payload).is_some()).cloned().collect();
        if deferred.is_empty() {
            return Self::create(desired, at);
        }
        let payload = without(desired.payload.as_ref().clone(), &deferred);
        Ok(Self { deferred, ..Self::create_with(desired, at, &payload)? })
    }

    fn create_with(desired: &Resource, at: &Resource, payload: &Value) -> Result<Self, SyncError> {
        let mut request = request(&at.evaluation()?, OperationName::Create, payload)?;
        request.once = request.method != Method::PUT || !at.is_created_by_put();
        if let Some(id) = unsent_id(at, &request) {
            return Err(SyncError::IdNotSent(desired.path.clone(), id.to_owned()));
        }
        let states_id = at.rules.states_id(&desired.payload);
        let named = at.rules.identity().any_explicit() || !states_id;
        let names = named.then(|| Arc::clone(&at.rules));
        Ok(Self { names, states_id, ..Self::new(desired.guarding(request), desired, at) })
    }

    /// Returns the request that updates the `observed` resource to `desired`.
    pub fn update(desired: &Resource, observed: &Observed) -> Result<Self, SyncError> {
        let rules = &observed.at.rules;
        let is_shown = observed.payload.as_ref().is_some_and(|payload| !payload.is_null());
        let is_listed = is_shown && observed.read_at.is_none();
        if is_listed && rules.merges() && !rules.reads_from_list() {
            return Err(SyncError::OnlyListed(desired.path.clone()));
        }
        let at = observed.addressed();
        Ok(Self::update_at(desired, &at, observed.payload.as_ref())?.of_observed(
            OperationName::Update,
            &at,
            observed,
        ))
    }

    /// Returns the request that updates the resource that `at` addresses, with the `observed` content.
    pub fn update_at(desired: &Resource, at: &Resource, observed: Option<&Value>) -> Result<Self, SyncError> {
        let request =
            request(&at.evaluation()?.observing(observed), OperationName::Update, &desired.payload)?;
        Ok(Self::new(at.hiding_names(desired.guarding(request)), desired, at))
    }

    /// Returns the request that deletes the `observed` resource; `None` if the server does not have it.
    pub fn delete(declared: &Resource, observed: &Observed) -> Result<Option<Self>, SyncError> {
        if observed.payload.is_none() {
            return Ok(None);
        }
        let at = observed.addressed();
        let at = at.with_remote_id(&at.identity.remote_id);
        let evaluation = at.evaluation()?.observing(observed.payload.as_ref());
        let request = request(&evaluation, OperationName::Delete, &Value::Null).or_else(|error| {
            let scope = observed_scope(&at, observed);
            let known = scope.evaluation().and_then(|known| {
                request(&known.observing(observed.payload.as_ref()), OperationName::Delete, &Value::Null)
            });
            known.map_err(|_| error)
        })?;
        let call = Self::new(at.guarding(request), declared, &at);
        let call = call.of_observed(OperationName::Delete, &at, observed);
        Ok(Some(Self { declared: Some(Box::new(declared.clone())), has_write_only: false, ..call }))
    }

    /// Addresses the write by the path of the successful read if no document states a path: the resource is there even
    /// if the payload or the server states another id. The request succeeds only while the server has the `observed`
    /// version.
    fn of_observed(mut self, operation: OperationName, at: &Resource, observed: &Observed) -> Self {
        if (at.rules.observes(operation) || at.rules.has_secrets() || !at.secrets.is_empty())
            && let Some(payload) = &observed.payload
        {
            // The request and its answer may contain secrets that only the server has.
            let shown = Resource { payload: Arc::new(payload.clone()), ..at.clone() };
            let known = std::mem::take(&mut self.request.secrets);
            self.request.secrets = known.iter().cloned().chain(shown.secret_texts()).collect();
        }
        let resolved = observed.at.rules.resolved();
        let stated = |operation| resolved.operation(operation).path.is_some();
        match &observed.read_at {
            Some(read_at) if !stated(operation) && !stated(OperationName::Get) => {
                self.by_name = at.identity.remote_id != observed.at.identity.remote_id;
                let by_read = Request { path: read_at.to_string(), ..self.request.clone() };
                // Since the read, the server may have assigned a number that was a name to another resource.
                let name = read_at.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                let are_numbers = is_number(name) && is_number(&at.identity.remote_id);
                if self.by_name && are_numbers && at.rules.identity().any_explicit() {
                    self.use_remote_id(operation, at, observed);
                } else {
                    self.request = by_read;
                }
            }
            // Some servers address writes by a field that only they know.
            _ => {
                if !stated(operation) {
                    self.use_remote_id(operation, at, observed);
                }
                let known = observed_scope(at, observed);
                let known = if stated(operation) { known } else { known.without_other_id() };
                let elsewhere = rendered(&known, operation, observed).ok();
                let elsewhere = elsewhere.filter(|elsewhere| elsewhere.path != self.request.path);
                self.on_missing =
                    elsewhere.map(|Rendered { method, path, encoded, query, headers, .. }| {
                        Box::new(Request { method, path, encoded, query, headers, ..self.request.clone() })
                    });
            }
        }
        self.guarded =
            observed.version.as_ref().and_then(|version| version.guard(&mut self.request)).map(Box::new);
        self
    }

    /// Addresses the write by the id of the resource on the server instead of another member `id` of its payload, unless the
    /// `observed` one was read by the latter.
    fn use_remote_id(&mut self, operation: OperationName, at: &Resource, observed: &Observed) {
        if !at.has_other_id() {
            return;
        }
        let by_remote_id = at.without_other_id();
        let reads = |at: &Resource| {
            at.render(OperationName::Get).is_ok_and(|get| Some(&*get.path) == observed.read_at.as_deref())
        };
        if reads(at) && !reads(&by_remote_id) {
            return;
        }
        if let Ok(Rendered { path, encoded, .. }) = rendered(&by_remote_id, operation, observed) {
            (self.request.path, self.request.encoded) = (path, encoded);
        }
    }

    fn new(request: Request, resource: &Resource, at: &Resource) -> Self {
        let at = (at.path != resource.path).then(|| at.path.clone());
        let has_write_only = resource.write_only().next().is_some();
        Self { request, at, has_write_only, ..Self::default() }
    }

    /// Removes the required version from the request.
    pub fn unguard(&mut self) {
        if self.guarded.take().is_some() {
            self.request.headers.retain(|(name, _)| *name != IF_MATCH);
        }
    }
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the id that the payload of `at` states as its only name, if it looks like one that a server assigns and
/// `create` does not contain it: the server cannot know it, and assigns another one.
fn unsent_id<'r>(at: &'r Resource, create: &Request) -> Option<&'r str> {
    let wanted = Wanted::of(at);
    let id = wanted.id.filter(|id| wanted.one_name && is_assigned(id))?;
    let has_id = |bytes: &[u8]| bytes.windows(id.len()).any(|part| part == id.as_bytes());
    let body = create.body.as_ref().is_some_and(|body| has_id(&body.bytes));
    let headers = create.headers.iter().any(|(_, value)| has_id(value.as_bytes()));
    let query = create.query.iter().any(|(_, value)| has_id(value.as_bytes()));
    (!body && !headers && !query && !has_id(create.path.as_bytes())).then_some(id)
}

/// Returns method, address and headers of `operation` for the `observed` content.
fn rendered(at: &Resource, operation: OperationName, observed: &Observed) -> Result<Rendered, SyncError> {
    Ok(at.evaluation()?.observing(observed.payload.as_ref()).render(operation)?)
}

/// Returns `at` with the observed members merged below its own, for addresses with fields that only the server knows.
fn observed_scope(at: &Resource, observed: &Observed) -> Resource {
    let known = observed.payload.clone().unwrap_or_default();
    let payload = Arc::new(merge(known, at.payload.as_ref().clone()));
    Resource { payload, ..at.clone() }
}
