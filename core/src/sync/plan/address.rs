//! The addresses of a declared resource on the server.

use bytes::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::metadata::document::OnRemove;
use crate::metadata::{Evaluation, OperationName, Rules, well_known};
use crate::path::PathNames;
use crate::payload::Value;
use crate::server::Request;
use crate::sync::model::{Observed, Resource, SyncError, is_alike, is_unset, request};
use crate::sync::observe::refers;

/// The address of a request. Servers of remote procedures have one path for all resources, and their names in the body.
#[derive(PartialEq, Hash)]
pub struct Address {
    pub path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Bytes>,
}

impl Address {
    /// Returns the address of a request by an [unobserved](Evaluation::unobserved) evaluation, so that it does not depend on
    /// what the server has.
    pub fn of(evaluation: &Evaluation<'_>, operation: OperationName) -> Result<Self, SyncError> {
        let Request { path, encoded, query, body, .. } = request(evaluation, operation, &Value::Null)?;
        let names = if encoded { PathNames::PercentEncoded } else { PathNames::Literal };
        Ok(Self { path: comparable(&path, names), query, body: body.map(|body| body.bytes) })
    }

    /// Returns the address with the path at which the resource was read, if it is known.
    pub fn read_at(self, path: Option<&str>, rules: &Rules) -> Self {
        Self { path: path.map_or(self.path, |path| comparable(path, rules.path_names())), ..self }
    }

    /// Returns the address of the read or, if only a list shows the resource, of the deletion: no request reads it alone.
    /// Returns `None` if the deletion uses what the server has, which may be the only name in it.
    pub fn alone(evaluation: &Evaluation<'_>, rules: &Rules) -> Result<Option<Self>, SyncError> {
        match (rules.reads_from_list(), rules.observes(OperationName::Delete)) {
            (true, true) => Ok(None),
            (true, false) => Self::of(evaluation, OperationName::Delete).map(Some),
            (false, _) => Self::of(evaluation, OperationName::Get).map(Some),
        }
    }

    /// Returns the address of the list, if only that shows the resource. Collections with one list are one collection.
    pub fn of_list(evaluation: &Evaluation<'_>, rules: &Rules) -> Option<Self> {
        rules.reads_from_list().then(|| Self::of(evaluation, OperationName::List).ok())?
    }
}

/// Returns the form in which paths are compared: percent-encoded, because one file may state what another one encodes, and
/// without a slash at the end, because servers with one usually treat both alike.
pub fn comparable(path: &str, names: PathNames) -> String {
    let encoded = |segment| utf8_percent_encode(&names.decode(segment), NON_ALPHANUMERIC).to_string();
    path.trim_end_matches('/').split('/').map(encoded).collect::<Vec<_>>().join("/")
}

/// Returns the place of a resource on the server with this id, in a form that can be compared. Returns `None` if more than
/// its collection and its id may address it, or if two declared resources may be parts of it.
pub fn place_of(resource: &Resource, collection: &str, id: &str) -> Option<(String, String)> {
    let (rules, resolved) = (&resource.rules, resource.rules.resolved());
    let is_whole = *resolved.on_remove() == OnRemove::Delete && !resolved.singleton && rules.replaces_whole();
    let is_place = is_whole && rules.addresses_by_id();
    is_place.then(|| (comparable(collection, rules.path_names()), id.to_owned()))
}

impl Observed {
    /// Returns [its place](place_of), if the server shows it.
    pub(super) fn own_place(&self) -> Option<(String, String)> {
        let (payload, rules) = (self.payload.as_ref()?, &self.at.rules);
        let (collection, segment) = self.read_at.as_ref()?.trim_end_matches('/').rsplit_once('/')?;
        let segment = rules.path_names().decode(segment);
        // The server may ignore the case of names, so the name that it shows counts.
        let id = rules.observed_id(payload).filter(|id| !is_unset(id));
        let id = id.or_else(|| well_known(payload).find(|name| is_alike(name, &segment)));
        place_of(&self.at, collection, &id.unwrap_or_else(|| segment.into_owned()))
    }

    /// Returns the path at which it was read, in a form that can be compared; `None` if only a list showed it.
    pub(super) fn place(&self) -> Option<String> {
        self.read_at.as_ref().map(|path| comparable(path, self.at.rules.path_names()))
    }
}

/// Whether metadata states the address of a resource.
pub fn states_address(rules: &Rules) -> bool {
    let resolved = rules.resolved();
    let states_path = |operation| resolved.operation(operation).path.is_some();
    let operations = [OperationName::Get, OperationName::Update, OperationName::Delete];
    resolved.remote_collection_path.is_some()
        || operations.into_iter().any(states_path)
        || rules.reads_from_list() && states_path(OperationName::List)
}

/// Returns the addresses of the read, the update and the deletion of a declared resource; `None` if metadata does not
/// state them, or if they depend on what the server has. Parts of one object have the address of the object, and are not
/// deleted.
pub fn stated_addresses(declared: &Resource) -> Option<[Address; 3]> {
    let rules = &declared.rules;
    let is_part = *rules.resolved().on_remove() != OnRemove::Delete;
    // If only a list shows the resource, what the server has may be the only name in a write.
    let writes = [OperationName::Update, OperationName::Delete];
    let is_named_by_server = rules.reads_from_list() && writes.iter().any(|write| rules.observes(*write));
    if !states_address(rules) || is_part || is_named_by_server || rules.names_ids() || refers(declared) {
        return None;
    }
    let evaluation = declared.unobserved().ok()?;
    let address = |operation| Address::of(&evaluation, operation).ok();
    Some([address(OperationName::Get)?, address(OperationName::Update)?, address(OperationName::Delete)?])
}

/// Whether an address of the resource has a reference without a value.
pub fn has_unfilled_address(declared: &Resource) -> bool {
    let Ok(evaluation) = declared.unobserved() else { return false };
    let is_unfilled = |operation| match request(&evaluation, operation, &Value::Null) {
        Ok(request) => is_unfilled(&request),
        Err(error) => error.lacks_reference(),
    };
    [OperationName::Get, OperationName::Delete].into_iter().any(is_unfilled)
}

/// Whether a request has the text of a placeholder or a reference, which must not be sent.
pub fn is_unfilled(request: &Request) -> bool {
    let has = |text: &str| text.contains("{{ref ") || text.contains("{{secret");
    let body = request.body.as_ref().map(|body| String::from_utf8_lossy(&body.bytes));
    has(&request.path)
        || request.query.iter().any(|(_, value)| has(value))
        || body.is_some_and(|body| has(&body))
}
