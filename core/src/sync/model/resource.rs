//! One resource as the engine works with it, and what the server has of it.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;

use super::confidential::confidential;
use super::error::SyncError;
use super::version::Version;
use crate::metadata::{Entry, Evaluation, Identity, OperationName, Rules, Subject};
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::payload::{Descriptor, Value};
use crate::server::{Body, Request};

/// A resource with its names, its rules and the payload that templates see.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Where it is declared, or under which path the server knows it.
    pub path: LogicalPath,
    /// The rules that govern it there.
    pub rules: Arc<Rules>,
    /// Its names.
    pub identity: Identity,
    /// The desired payload, or the seed of a read by path alone.
    pub payload: Arc<Value>,
    /// How it is stored, where that is known.
    pub descriptor: Option<Descriptor>,
    /// Where in the payload secrets were put in the place of placeholders.
    pub secrets: Arc<[Pointer]>,
    /// Whether only the path is known, so that names and payload are what the path says.
    pub seeded: bool,
}

/// What the server has of a resource.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The resource as the server addresses it: the path with ids for aliases, the names found there, and
    /// the payload with the remote id at the place that the id template names.
    pub at: Resource,
    /// Its content; `None` if the server surely does not have it.
    pub payload: Option<Value>,
    /// Which version that is, where the server says so.
    pub version: Option<Box<Version>>,
    /// The path at which it was read; `None` where only a list showed it.
    pub(crate) read_at: Option<Box<str>>,
}

/// What a read of one resource showed.
#[derive(Debug)]
pub(crate) struct Content {
    pub payload: Value,
    pub version: Option<Box<Version>>,
    pub read_at: Box<str>,
}

impl Observed {
    /// `payload` as it was found at `at`; `None` if nothing was.
    pub fn new(at: Resource, payload: Option<Value>) -> Self {
        Self { at, payload, version: None, read_at: None }
    }

    /// What a read at `at` showed.
    pub(crate) fn found(at: Resource, Content { payload, version, read_at }: Content) -> Self {
        Self { version, read_at: Some(read_at), ..Self::new(at, Some(payload)) }
    }

    /// The path below the server's base URL at which it was read, or would be; the logical path where none can be
    /// rendered.
    pub fn address(&self) -> String {
        if let Some(read_at) = &self.read_at {
            return read_at.to_string();
        }
        let rendered = self.at.evaluation().and_then(|evaluation| Ok(evaluation.render(OperationName::Get)?));
        rendered.map_or_else(|_| self.at.path.as_str().to_owned(), |rendered| rendered.path)
    }

    /// Whether nothing was found at `path` itself. Where parents have other ids on the server, another list shows what
    /// is there.
    pub(crate) fn is_missing_at(&self, path: &LogicalPath) -> bool {
        self.payload.is_none() && self.at.path == *path
    }

    /// The resource by the id that its content states, which is how requests that change it address it.
    pub(crate) fn addressed(&self) -> Resource {
        match self.payload.as_ref().and_then(|payload| self.at.rules.observed_id(payload)) {
            Some(remote_id) => self.at.with_remote_id(&remote_id),
            None => self.at.clone(),
        }
    }
}

impl Resource {
    /// The resource at `path` of which nothing else is known. Fails if its names need a payload.
    pub fn by_path(path: LogicalPath, rules: Arc<Rules>) -> Result<Self, SyncError> {
        let payload = rules.seed(&path);
        Ok(Self { seeded: true, ..Self::named(path, rules, payload)? })
    }

    /// The resource at `path` with the names that `rules` find in `payload`.
    pub(crate) fn named(path: LogicalPath, rules: Arc<Rules>, payload: Value) -> Result<Self, SyncError> {
        let identity = rules.identify(&path, &payload)?;
        let (payload, descriptor, secrets) = (Arc::new(payload), None, Arc::default());
        Ok(Self { path, rules, identity, payload, descriptor, secrets, seeded: false })
    }

    /// Its rules, applied to it.
    pub fn evaluation(&self) -> Result<Evaluation<'_>, SyncError> {
        let subject = Subject {
            path: &self.path,
            identity: &self.identity,
            payload: Some(&self.payload),
            descriptor: self.descriptor.as_ref(),
        };
        Ok(self.rules.on_resource(subject)?)
    }

    /// Whether a create of it is a PUT to the address of its read, which can be repeated without harm.
    pub(crate) fn is_created_by_put(&self) -> bool {
        let render = |operation| self.evaluation().ok()?.render(operation).ok();
        let Some(create) = render(OperationName::Create).filter(|create| create.method == Method::PUT) else {
            return false;
        };
        render(OperationName::Get).is_some_and(|get| (get.path, get.query) == (create.path, create.query))
    }

    /// The same resource, addressed by `remote_id`.
    pub(crate) fn with_remote_id(&self, remote_id: &str) -> Self {
        let payload = match self.rules.with_remote_id(&self.payload, remote_id) {
            Some(payload) => Arc::new(payload),
            None => Arc::clone(&self.payload),
        };
        let identity = Identity { alias: self.identity.alias.clone(), remote_id: remote_id.to_owned() };
        Self { identity, payload, ..self.clone() }
    }

    /// The resource as the entry of a list shows it: with the entry's names, and its payload as scope.
    pub(crate) fn as_listed(&self, entry: &Entry) -> Self {
        Self {
            identity: Identity { alias: entry.alias.clone(), remote_id: entry.remote_id.clone() },
            payload: Arc::new(entry.payload.clone()),
            ..self.clone()
        }
    }

    /// The same resource at another path, governed by the rules there.
    pub(crate) fn moved(&self, path: LogicalPath, rules: Arc<Rules>) -> Self {
        Self { path, rules, ..self.clone() }
    }
}

/// The request that `operation` becomes, with `payload` as its body where it sends one.
pub(crate) fn request(
    evaluation: &Evaluation<'_>,
    operation: OperationName,
    payload: &Value,
) -> Result<Request, SyncError> {
    let rendered = evaluation.render(operation)?;
    let body = evaluation.body(operation, &rendered, payload)?;
    Ok(Request {
        method: rendered.method,
        path: rendered.path,
        query: rendered.query,
        headers: rendered.headers,
        accept: Some(rendered.accept),
        body: body.map(|body| Body { media_type: body.media_type, bytes: Bytes::from(body.bytes) }),
        confidential: confidential(evaluation.rules().resolved(), &[]),
        ..Request::default()
    })
}
