//! The ids that the server assigned to resources that the run created, for the addresses of their children.

use std::collections::HashMap;

use http::StatusCode;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::path::{LogicalPath, PathNames};
use crate::payload::{PayloadType, Value, decode};
use crate::server::{Request, Response};
use crate::sync::model::{Call, Resource, Wanted, is_unset};

/// Returns the id in the answer to a create: the value of `resource.id`, else the end of `Location`.
pub fn shown(call: &Call, response: &Response) -> Option<String> {
    let rules = call.names.as_ref()?;
    let location = || in_location(call, rules.path_names(), response).filter(|_| !call.states_id);
    // The body may describe the task that creates the resource (RFC 9110 §15.3.3).
    if response.status == StatusCode::ACCEPTED {
        return location();
    }
    shown_in(call, &answer(call, response, rules.payload_type())).or_else(location)
}

/// Returns the body of the answer, unless it is that of a remote procedure call: it repeats the `id` of the request (JSON-RPC
/// 2.0 §5), which is not that of a resource.
fn answer(call: &Call, response: &Response, payload_type: Option<PayloadType>) -> Value {
    let answer = response.decode_briefly(payload_type);
    let sent = || decode(PayloadType::Json, &call.request.body.as_ref()?.bytes).ok();
    let is_envelope =
        answer.get("result").or(answer.get("error")).is_some() && answer.get("method").is_none();
    let is_of_call = (is_envelope && answer.get("id").is_some())
        && sent().is_some_and(|sent| sent.get("method").is_some() && sent.get("id") == answer.get("id"));
    if is_of_call { Value::Null } else { answer }
}

/// Returns the id in the answer to the create of `desired`, if it is another one than that of the payload, or than the
/// name of the file. Returns no secret.
pub fn another(call: &Call, desired: &Resource, response: &Response) -> Option<String> {
    let (rules, wanted) = (&desired.rules, Wanted::of(desired));
    let own = wanted.id.unwrap_or(wanted.name);
    let answer = answer(call, response, rules.payload_type());
    let is_another = |id: &String| !id.is_empty() && id != own;
    let shown = || rules.identity().id().evaluate(&answer).ok().filter(is_another);
    let usual = || answer.get("id").and_then(Value::scalar_text).filter(|_| !rules.identity().any_explicit());
    let id = shown().or_else(usual).filter(is_another);
    let id = id.or_else(|| in_location(call, rules.path_names(), response).filter(is_another));
    id.filter(|_| !rules.has_secret_id())
}

/// Returns the alias in the answer to the create of `desired`, if it is another one, and metadata states the
/// alias beside the id. Returns no secret.
pub fn alias(call: &Call, desired: &Resource, response: &Response) -> Option<String> {
    let (rules, identity) = (&desired.rules, desired.rules.identity());
    let answer = answer(call, response, rules.payload_type());
    let alias = identity.alias().evaluate(&answer).ok();
    let is_another = |alias: &String| !alias.is_empty() && *alias != desired.identity.alias;
    let names = identity.any_explicit() && !identity.is_one() && !rules.has_secret_alias();
    alias.filter(is_another).filter(|_| names)
}

/// Returns the id that a created resource states.
pub fn shown_in(call: &Call, created: &Value) -> Option<String> {
    let rules = call.names.as_ref()?;
    // An id that the client did not state was assigned by the server.
    let given = || rules.identity().id().evaluate(created).ok().filter(|_| !call.states_id);
    rules.observed_id(created).or_else(given).filter(|id| !is_unset(id))
}

/// What the answer to a create states about the created resource.
#[derive(Clone, Copy, Default)]
pub struct Statement<'r>(Option<(&'r Call, &'r Response)>);

impl<'r> Statement<'r> {
    /// Only an answer 201 is about the resource itself (RFC 9110 §15.3.2): others may be about a task.
    pub fn by(call: &'r Call, response: &'r Response) -> Self {
        Self(Some((call, response)).filter(|_| response.status == StatusCode::CREATED))
    }

    /// Whether it describes the resource that the server shows as `shown` at `id`: `Location` ends with the path of the create
    /// and this id, or the body has several members of `shown` and none with another value.
    pub fn is(&self, shown: &Value, id: &str) -> bool {
        let Some((call, response)) = self.0 else { return false };
        let url = response.location.as_deref().and_then(|location| response.url.join(location).ok());
        let decoded = |path: &str| percent_decode_str(path).decode_utf8_lossy().into_owned();
        let Request { path, encoded, .. } = &call.request;
        let collection = if *encoded { decoded(path) } else { path.clone() };
        let place = format!("{}/{id}", collection.trim_end_matches('/'));
        let is_place = |url: Url| decoded(url.path().trim_end_matches('/')).ends_with(&place);
        collection != "/" && url.is_some_and(is_place) || {
            let answer = response.decode_briefly(None);
            shared(&answer, shown).count() > 1 && shared(&answer, shown).all(|(one, other)| one == other)
        }
    }
}

/// Returns the values of the members that both objects have, without the id.
pub fn shared<'v>(one: &'v Value, other: &'v Value) -> impl Iterator<Item = (&'v Value, &'v Value)> {
    let members = one.as_object().into_iter().flatten().filter(|(name, _)| *name != "id");
    members.filter_map(|(name, value)| Some((value, other.get(name)?)))
}

/// Returns the last segment of `Location`. With status 202 it counts only if the segment before it is in the path of the
/// request, because the URL may be that of a task.
fn in_location(call: &Call, names: PathNames, response: &Response) -> Option<String> {
    let location = response.location.as_deref()?;
    let url = response.url.join(location).ok()?;
    let mut segments = url.path().trim_end_matches('/').rsplit('/');
    let id = percent_decode_str(segments.next()?).decode_utf8().ok()?;
    let above = segments.next().filter(|above| !above.is_empty());
    let is_member = above.is_some_and(|above| call.request.path.split('/').any(|segment| segment == above));
    let is_task = response.status == StatusCode::ACCEPTED && !is_member;
    names.check(&id).ok().filter(|_| !is_task).map(str::to_owned)
}

/// The ids of created resources and of their parents, as segments of paths, if they differ from those of the paths.
#[derive(Default)]
pub struct GivenIds(Mutex<HashMap<LogicalPath, String>>);

impl GivenIds {
    /// Stores the id in the answer to a create.
    pub fn learn(&self, path: &LogicalPath, call: &Call, response: &Response) {
        self.note(path, call, shown(call, response));
    }

    /// Stores `id` as the id of the resource at `path`, and the ids of its parents in `call`.
    pub fn note(&self, path: &LogicalPath, call: &Call, id: Option<String>) {
        let Some(rules) = &call.names else { return };
        let names = rules.path_names();
        let is_new = |id: &String| !id.is_empty() && *id != names.decode(path.name());
        let Some(id) = id.filter(is_new) else { return };
        let id = names.encode(&id).into_owned();
        let mut given = self.0.lock();
        given.insert(path.clone(), id);
        let parents = path.ancestors().zip(call.at.iter().flat_map(LogicalPath::ancestors));
        for (parent, at) in parents.filter(|(parent, at)| parent.name() != at.name()) {
            given.insert(parent, at.name().to_owned());
        }
    }

    /// Returns the ids, and forgets them.
    pub fn take(&self) -> HashMap<LogicalPath, String> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Returns `path` with the ids of its parents; `None` if all of them have their names as ids. `planned` is this path as
    /// far as the plan knew the ids.
    pub fn resolve(&self, path: &LogicalPath, planned: Option<&LogicalPath>) -> Option<LogicalPath> {
        let given = self.0.lock();
        if given.is_empty() {
            return planned.cloned();
        }
        let prefixes: Vec<LogicalPath> = std::iter::once(path.clone()).chain(path.ancestors()).collect();
        let prefixes = prefixes.iter().rev().filter(|prefix| !prefix.is_root());
        let mut resolved = LogicalPath::root();
        for (prefix, known) in prefixes.zip(planned.unwrap_or(path).segments()) {
            let own = given.get(prefix).filter(|_| prefix != path);
            resolved = resolved.child(own.map_or(known, String::as_str)).ok()?;
        }
        (resolved != *path).then_some(resolved)
    }
}
