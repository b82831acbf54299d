//! The desired and the observed state of one resource.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::header::{HeaderValue, IF_MATCH};

use super::{Doubt, SyncError};
use crate::language::jq::ResourceReader;
use crate::language::reference::{Reference, may_hold_any};
use crate::language::referred::{KnownValues, Recorder, ReferenceValues};
use crate::memory::Share;
use crate::metadata::document::Resolved;
use crate::metadata::{self, Evaluation, Identity, OperationName, Rendered, Rules, Subject};
use crate::path::{LogicalPath, is_within};
use crate::payload::pointer::Pointer;
use crate::payload::{Descriptor, Value};
use crate::secrets::{Confidential, Secret, is_placeholder};
use crate::server::{Body, Request, Response};

/// A resource with its names, its rules and the payload for templates.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The path that declares it, or its path on the server.
    pub path: LogicalPath,
    /// The path that declares it, if `path` is that on the server.
    pub declared: Option<LogicalPath>,
    /// The rules of that path.
    pub rules: Arc<Rules>,
    /// Its names.
    pub identity: Identity,
    /// The name in the last segment of the path, if the segment is percent-encoded.
    pub decoded_name: Option<Arc<str>>,
    /// The desired payload, or members taken from the path if only the path is known.
    pub payload: Arc<Value>,
    /// Whether the payload, as it is declared, may refer to other resources.
    pub holds_references: bool,
    /// The format of the file, if it is known.
    pub descriptor: Option<Descriptor>,
    /// The places in the payload where secrets replaced placeholders.
    pub secrets: Arc<[Pointer]>,
    /// Whether only the path is known, so that names and payload are taken from it.
    pub seeded: bool,
    /// The memory that the payload occupies.
    pub held: Share,
    /// The reader of other resources for the jq of its transforms.
    pub reading: Option<Arc<dyn ResourceReader>>,
    /// The values that the templates of its rules refer to.
    pub values: Option<Arc<KnownValues>>,
    /// Those of them that are secret.
    pub secret_values: Arc<[Secret]>,
}

/// The state of a resource on the server.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The resource as the server addresses it: the path with ids in the place of aliases, the observed names, and the
    /// payload with the remote id at the place that `resource.id` names.
    pub at: Resource,
    /// Its content; `None` if the server is proven not to have it.
    pub payload: Option<Value>,
    /// The format of the answer, if the server states one other than JSON and metadata states none.
    pub descriptor: Option<Descriptor>,
    /// The memory that the content occupies, until it is dropped.
    #[allow(dead_code, reason = "held until it is dropped")]
    pub(crate) held: Share,
    /// The version of the content, if the server states it.
    pub version: Option<Box<Version>>,
    /// The path at which it was read; `None` if only a list showed it.
    pub(crate) read_at: Option<Box<str>>,
}

impl Observed {
    /// Returns the observation of `payload` at `at`; `None` means that there is nothing.
    pub fn new(at: Resource, payload: Option<Value>) -> Self {
        Self { at, payload, descriptor: None, held: Share::default(), version: None, read_at: None }
    }

    /// Returns the path of its read below the server's base URL, or the logical path if no path can be rendered.
    pub fn address(&self) -> String {
        if let Some(read_at) = &self.read_at {
            return read_at.to_string();
        }
        let rendered = self.at.render(OperationName::Get);
        rendered.map_or_else(|_| self.at.path.to_string(), |rendered| rendered.path)
    }

    /// Whether it was read at an address that is not below that of its collection.
    pub(crate) fn is_elsewhere(&self) -> bool {
        let Some(read_at) = &self.read_at else { return false };
        self.at.evaluation().is_ok_and(|evaluation| !is_within(read_at, evaluation.remote_collection()))
    }

    /// Returns the resource with the id that its content states. Writes use this id.
    pub(crate) fn addressed(&self) -> Resource {
        match self.payload.as_ref().and_then(|payload| self.at.rules.observed_id(payload)) {
            Some(remote_id) => self.at.with_remote_id(&remote_id),
            None => self.at.clone(),
        }
    }
}

impl Resource {
    /// Returns the resource at `path` if only the path is known. Fails if its names need a payload.
    pub fn by_path(path: LogicalPath, rules: Arc<Rules>) -> Result<Self, SyncError> {
        let payload = rules.seed(&path);
        Ok(Self { seeded: true, ..Self::named(path, rules, payload)? })
    }

    /// Returns the resource at `path` with this payload, and names by its rules.
    pub(crate) fn named(path: LogicalPath, rules: Arc<Rules>, payload: Value) -> Result<Self, SyncError> {
        let holds_references = may_hold_any(&payload);
        let identity = match rules.identify(&path, &payload) {
            // The text of a reference may not be a name. Its value replaces it before the resource is read.
            Err(_) if holds_references => rules.identify(&path, &rules.seed(&path))?,
            identity => identity?,
        };
        let decoded_name = match rules.path_names().decode(path.name()) {
            name if name == path.name() => None,
            name => Some(Arc::from(name)),
        };
        let (payload, secrets) = (Arc::new(payload), Arc::default());
        let (declared, descriptor, seeded, held, reading) = (None, None, false, Share::default(), None);
        Ok(Self {
            path,
            declared,
            rules,
            identity,
            decoded_name,
            payload,
            holds_references,
            descriptor,
            secrets,
            seeded,
            held,
            reading,
            values: None,
            secret_values: Arc::default(),
        })
    }

    /// Returns the resource with values in the place of references or placeholders, from which its names may be taken.
    pub(crate) fn with_values(self, payload: Arc<Value>, secrets: Arc<[Pointer]>) -> Result<Self, SyncError> {
        let resource = Self { payload, secrets, ..self };
        if resource.has_unknown_name() {
            return Ok(resource);
        }
        let identity = resource.rules.identify(&resource.path, &resource.payload)?;
        Ok(Self { identity, ..resource })
    }

    /// Whether a name is the text of a placeholder or a reference, whose value is not known yet.
    pub(crate) fn has_unknown_name(&self) -> bool {
        let names = [self.rules.identity().id(), self.rules.identity().alias()];
        let mut stated = names.into_iter().filter_map(|name| name.evaluate(&self.payload).ok());
        stated.any(|name| is_placeholder(&name) || may_hold_any(&Value::from(name)))
    }

    /// The name in the last segment of the path.
    pub fn name(&self) -> &str {
        self.decoded_name.as_deref().unwrap_or_else(|| self.path.name())
    }

    /// Returns its rules, applied to it.
    pub fn evaluation(&self) -> Result<Evaluation<'_>, SyncError> {
        self.evaluation_with(self.values.as_deref().map(|values| values as &dyn ReferenceValues))
    }

    /// Like [`Self::evaluation`], with other values that templates refer to.
    pub fn evaluation_with<'a>(
        &'a self,
        values: Option<&'a dyn ReferenceValues>,
    ) -> Result<Evaluation<'a>, SyncError> {
        let Self { path, identity, payload, descriptor, .. } = self;
        let subject = Subject { path, identity, payload: Some(payload), descriptor: descriptor.as_ref() };
        let reader = self.reading.as_deref();
        let declared = self.declared.as_ref().and_then(LogicalPath::parent);
        Ok(self.rules.on_resource_with(subject, values, declared.as_ref())?.reading(reader))
    }

    /// Returns the evaluation for requests that are compared, and not sent.
    pub(crate) fn unobserved(&self) -> Result<Evaluation<'_>, SyncError> {
        Ok(self.evaluation()?.unobserved())
    }

    /// Returns the references in the templates of its rules.
    pub(crate) fn template_references(&self) -> Vec<Reference> {
        if self.rules.refers() { self.recorded(Recorder::default()) } else { Vec::new() }
    }

    /// Returns the references that the templates of its rules need beyond those with `known` values.
    pub(crate) fn references_beyond(&self, known: &KnownValues) -> Vec<Reference> {
        self.recorded(Recorder::beyond(known))
    }

    fn recorded(&self, recorder: Recorder<'_>) -> Vec<Reference> {
        // A template that cannot be rendered fails the operation that needs it.
        if let Ok(evaluation) = self.evaluation_with(Some(&recorder)) {
            // The list of a collection is read with values of its own, unless it is the only place of its members.
            let from_list = self.rules.reads_from_list();
            let is_read = |name: &OperationName| from_list || *name != OperationName::List;
            evaluation
                .unobserved()
                .visit_templates(&OperationName::ALL.into_iter().filter(is_read).collect::<Vec<_>>());
        }
        recorder.into_references()
    }

    /// Whether `at` is a deferred attribute or a part of one.
    pub(crate) fn defers(&self, at: &Pointer) -> bool {
        let mut deferred = self.rules.resolved().deferred_attributes.iter();
        deferred.any(|deferred| at.tokens().starts_with(deferred.tokens()))
    }

    /// Returns the write-only attributes that the payload states.
    pub(crate) fn write_only(&self) -> impl Iterator<Item = (&Pointer, &Value)> {
        let pointers = self.rules.resolved().write_only_attributes.iter();
        pointers.filter_map(|pointer| Some((pointer, pointer.get(&self.payload)?)))
    }

    /// Returns the method, address and headers of `operation`.
    pub(crate) fn render(&self, operation: OperationName) -> Result<Rendered, SyncError> {
        Ok(self.evaluation()?.render(operation)?)
    }

    /// Whether its member `id`, which templates use, is not its id on the server.
    pub(crate) fn has_other_id(&self) -> bool {
        let remote_id = self.identity.remote_id.as_str();
        let is_other = |id: &Value| !id.is_null() && id.scalar_text().is_none_or(|id| id.trim() != remote_id);
        !remote_id.is_empty() && self.payload.get("id").is_some_and(is_other)
    }

    /// Returns the resource without its member `id`, so that templates use its id on the server.
    pub(crate) fn without_other_id(&self) -> Self {
        let id = Pointer::from_token("id");
        Self { payload: Arc::new(id.remove(self.payload.as_ref().clone())), ..self.clone() }
    }

    /// Whether its create is a PUT to the address of its read, which is idempotent.
    pub(crate) fn is_created_by_put(&self) -> bool {
        let Ok(create) = self.render(OperationName::Create) else { return false };
        let reads_there = |get: Rendered| (get.path, get.query) == (create.path, create.query);
        create.method == Method::PUT && self.render(OperationName::Get).is_ok_and(reads_there)
    }

    /// Whether a create is a POST to the path of its collection.
    pub(crate) fn is_created_by_post(&self) -> bool {
        let Ok(create) = self.render(OperationName::Create) else { return false };
        let is_collection = |evaluation: Evaluation<'_>| evaluation.remote_collection() == create.path;
        create.method == Method::POST && self.evaluation().is_ok_and(is_collection)
    }

    /// Returns the resource with another remote id.
    pub(crate) fn with_remote_id(&self, remote_id: &str) -> Self {
        let changed = self.rules.with_remote_id(&self.payload, remote_id);
        let payload = changed.map_or_else(|| Arc::clone(&self.payload), Arc::new);
        let identity = Identity { alias: self.identity.alias.clone(), remote_id: remote_id.to_owned() };
        Self { identity, payload, ..self.clone() }
    }

    /// Returns the resource with the id of the server, in the form in which the `observed` payload states it.
    pub(crate) fn renumbered(&self, remote_id: &str, observed: &Value) -> Self {
        let renumbered = self.with_remote_id(remote_id);
        let Some(pointer) = self.rules.identity().id().simple() else { return renumbered };
        let is_it = |shown: &&Value| shown.scalar_text().is_some_and(|text| text.trim() == remote_id);
        let Some(shown) = pointer.get(observed).filter(is_it) else { return renumbered };
        let payload = pointer.put(renumbered.payload.as_ref().clone(), shown.clone());
        Self { payload: Arc::new(payload), ..renumbered }
    }

    /// Returns the resource at a path with the ids of its parents. Its rules stay those of its path in the repository.
    pub(crate) fn moved(&self, path: LogicalPath) -> Self {
        let declared = Some(self.declared.as_ref().unwrap_or(&self.path).clone());
        Self { path, declared, ..self.clone() }
    }

    /// Returns the resource at `path`, like [`Self::moved`], if there is one.
    pub(crate) fn moved_to(&self, path: Option<LogicalPath>) -> Self {
        path.map_or_else(|| self.clone(), |path| self.moved(path))
    }
}

/// Returns the request of `operation`, with `payload` as its body if it has a body.
pub fn request(
    evaluation: &Evaluation<'_>,
    operation: OperationName,
    payload: &Value,
) -> Result<Request, SyncError> {
    let rendered = evaluation.render(operation)?;
    let body = evaluation.body(operation, &rendered, payload)?;
    Ok(rendered_request(evaluation, operation, rendered, body))
}

/// Returns the request of `operation`, whose body is what metadata states, or nothing.
pub fn request_without_payload(
    evaluation: &Evaluation<'_>,
    operation: OperationName,
) -> Result<Request, SyncError> {
    let rendered = evaluation.render(operation)?;
    let states_body = evaluation.rules().resolved().operation(operation).body.is_some();
    let body = states_body.then(|| evaluation.body(operation, &rendered, &Value::Null));
    Ok(rendered_request(evaluation, operation, rendered, body.transpose()?.flatten()))
}

fn rendered_request(
    evaluation: &Evaluation<'_>,
    operation: OperationName,
    rendered: Rendered,
    body: Option<metadata::Body>,
) -> Request {
    let body = body.map(|body| Body { media_type: body.media_type, bytes: Bytes::from(body.bytes) });
    let confidential = confidential(evaluation.rules().resolved(), &[]);
    let Rendered { method, path, encoded, query, headers, accept, .. } = rendered;
    let (accept, failed) = (Some(accept.into()), evaluation.rules().failed(operation).cloned());
    let rest = Request::default();
    Request { method, path, encoded, query, headers, accept, body, failed, confidential, ..rest }
}

/// Returns the secret parts of request bodies: those that metadata declares, and those at these places.
pub fn confidential(declared: &Resolved, places: &[Pointer]) -> Confidential {
    if declared.secret {
        Confidential::Everything
    } else {
        Confidential::at(places.iter().chain(&declared.secret_attributes))
    }
}

impl Resource {
    /// Returns the error that `doubt` about the resource causes.
    pub(crate) fn undecided(&self, doubt: Doubt) -> SyncError {
        let alias = self.rules.identity().constant_alias();
        let constant = alias.filter(|_| matches!(doubt, Doubt::Several(_)));
        let doubt = constant.map_or(doubt, |alias| Doubt::ConstantAlias(alias.to_owned()));
        SyncError::Undecided(self.path.clone(), doubt)
    }

    /// Returns `request` with the secrets of this resource, which are redacted if the answer repeats them.
    pub(crate) fn guarding(&self, request: Request) -> Request {
        let confidential = confidential(self.rules.resolved(), &self.secrets);
        let body = request.body.map(|body| Body { bytes: self.held.keep(body.bytes), ..body });
        Request { body, secrets: self.secret_texts().into(), confidential, ..request }
    }

    /// Returns the secrets in the payload and in the names: values of placeholders, and attributes that metadata
    /// declares secret.
    pub(crate) fn secret_texts(&self) -> Vec<Secret> {
        let resolved = self.rules.resolved();
        let whole = resolved.secret || self.secrets.iter().any(Pointer::is_root);
        let mut secrets = Vec::new();
        if whole {
            add_texts(&self.payload, &mut secrets);
        } else {
            let places = self.secrets.iter().chain(&resolved.secret_attributes);
            places.filter_map(|at| at.get(&self.payload)).for_each(|part| add_texts(part, &mut secrets));
        }
        secrets.extend(self.secret_values.iter().cloned());
        secrets.extend(self.secret_names());
        secrets
    }

    /// Returns `request` with the names of this resource that are secrets.
    pub(crate) fn hiding_names(&self, request: Request) -> Request {
        if !(self.rules.has_secret_id() || self.rules.has_secret_alias()) {
            return request;
        }
        let secrets = request.secrets.iter().cloned().chain(self.secret_names()).collect();
        Request { secrets, ..request }
    }

    /// Returns the id and the alias if they are secrets. The name in the path is not one.
    fn secret_names(&self) -> impl Iterator<Item = Secret> {
        let Identity { alias, remote_id } = &self.identity;
        let names = [(remote_id, self.rules.has_secret_id()), (alias, self.rules.has_secret_alias())];
        let hidden = names.into_iter().filter(|(name, hides)| *hides && *name != self.path.name());
        hidden.map(|(name, _)| Secret::from(name.clone()))
    }
}

pub(crate) fn add_texts(value: &Value, texts: &mut Vec<Secret>) {
    match value {
        Value::String(text) => texts.push(Secret::from(text.clone())),
        Value::Bytes(bytes) => {
            texts.extend(std::str::from_utf8(bytes).ok().map(|text| Secret::from(text.to_owned())));
        }
        _ => value.children().for_each(|child| add_texts(child, texts)),
    }
}

/// The version of a resource from a read: its strong entity tag (RFC 9110 §8.8.3) and its address.
#[derive(Clone, Debug)]
pub struct Version {
    tag: HeaderValue,
    path: String,
    query: Vec<(String, String)>,
}

impl Version {
    /// Returns the version that `response` to the read `request` states, if any.
    pub(crate) fn of(request: &Request, response: &Response) -> Option<Box<Self>> {
        let tag = response.etag.clone()?;
        Some(Box::new(Self { tag, path: request.path.clone(), query: request.query.clone() }))
    }

    /// Adds `If-Match` to `request` (RFC 9110 §13.1.1) and returns the tag. Returns `None` if metadata states the
    /// header or if the request has another address.
    pub(crate) fn guard(&self, request: &mut Request) -> Option<HeaderValue> {
        let stated = request.headers.iter().any(|(name, _)| *name == IF_MATCH);
        if stated || request.path != self.path || request.query != self.query {
            return None;
        }
        request.headers.push((IF_MATCH, self.tag.clone()));
        Some(self.tag.clone())
    }

    /// Whether this is the version of `tag`.
    pub(crate) fn is(&self, tag: &HeaderValue) -> bool {
        self.tag == tag
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use rstest::rstest;

    use super::*;

    fn request(path: &str, query: &[(&str, &str)], stated: Option<&'static str>) -> Request {
        let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let headers = stated.map(|tag| (IF_MATCH, HeaderValue::from_static(tag))).into_iter().collect();
        Request { query, headers, ..Request::new(Method::PUT, path) }
    }

    #[rstest]
    #[case::same("/a/b", &[], None, &["\"v1\""])]
    #[case::elsewhere("/a/c", &[], None, &[])]
    #[case::another_view("/a/b", &[("view", "full")], None, &[])]
    #[case::stated("/a/b", &[], Some("*"), &["*"])]
    fn guards(
        #[case] path: &str,
        #[case] query: &[(&str, &str)],
        #[case] stated: Option<&'static str>,
        #[case] expected: &[&str],
    ) {
        let version =
            Version { tag: HeaderValue::from_static("\"v1\""), path: "/a/b".to_owned(), query: Vec::new() };
        let mut request = request(path, query, stated);
        let guarded = version.guard(&mut request);
        let sent: Vec<&str> = request.headers.iter().map(|(_, value)| value.to_str().unwrap()).collect();
        assert_eq!(sent, expected);
        assert_eq!(guarded.is_some(), stated.is_none() && !expected.is_empty());
    }
}
