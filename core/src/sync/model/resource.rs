//! One resource as the engine works with it, and what the server has of it.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;

use super::confidential::confidential;
use super::{SyncError, Version};
use crate::metadata::{Entry, Evaluation, Identity, OperationName, Rendered, Rules, Subject};
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

impl Observed {
    /// `payload` as it was found at `at`; `None` if nothing was.
    pub fn new(at: Resource, payload: Option<Value>) -> Self {
        Self { at, payload, version: None, read_at: None }
    }

    /// The path below the server's base URL at which it was read, or would be; the logical path where none can be
    /// rendered.
    pub fn address(&self) -> String {
        if let Some(read_at) = &self.read_at {
            return read_at.to_string();
        }
        let rendered = self.at.render(OperationName::Get);
        rendered.map_or_else(|_| self.at.path.to_string(), |rendered| rendered.path)
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

    /// The resource at `path` with this payload, named by its rules.
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

    /// Where and how its `operation` is sent.
    pub(crate) fn render(&self, operation: OperationName) -> Result<Rendered, SyncError> {
        Ok(self.evaluation()?.render(operation)?)
    }

    /// Whether a create of it is a PUT to the address of its read, which can be repeated without harm.
    pub(crate) fn is_created_by_put(&self) -> bool {
        let Ok(create) = self.render(OperationName::Create) else { return false };
        let reads_there = |get: Rendered| (get.path, get.query) == (create.path, create.query);
        create.method == Method::PUT && self.render(OperationName::Get).is_ok_and(reads_there)
    }

    /// The same resource, addressed by `remote_id`.
    pub(crate) fn with_remote_id(&self, remote_id: &str) -> Self {
        let changed = self.rules.with_remote_id(&self.payload, remote_id);
        let payload = changed.map_or_else(|| Arc::clone(&self.payload), Arc::new);
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
    let body = body.map(|body| Body { media_type: body.media_type, bytes: Bytes::from(body.bytes) });
    let confidential = confidential(evaluation.rules().resolved(), &[]);
    let Rendered { method, path, query, headers, accept, .. } = rendered;
    let accept = Some(accept);
    Ok(Request { method, path, query, headers, accept, body, confidential, ..Request::default() })
}
