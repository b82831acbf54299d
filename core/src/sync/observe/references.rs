//! The contents of other resources, for references in payloads and for `resource()` in jq. Each is read once per run.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::contents::{Content, Expected, Seen};
use super::once::cell;
use super::server::Remote;
use crate::error::{Categorized, Category};
use crate::language::jq::{ResourceError, ResourceReader};
use crate::language::reference::{may_hold_any, references};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository;
use crate::sync::model::{JqReader, Observed, Resource, SyncError, Unresolved};
use crate::sync::tasks::blocking;

/// The maximum depth of resources whose transforms need each other.
const MAX_NESTING: usize = 8;

/// Whether other resources are read for `resource`, so that the run looks at it after them.
pub(crate) fn refers(resource: &Resource) -> bool {
    resource.rules.reads_others() || may_hold_any(&resource.payload)
}

impl Remote {
    /// Announces that the run looks at the resource at `path`. Others that refer to it wait for the result.
    pub(crate) fn expect(&self, path: &LogicalPath) -> Option<Expected> {
        self.references.expect(path)
    }

    /// Remembers the resource at `path`, which the run has just read, for others that refer to it.
    pub(crate) fn remember(&self, path: &LogicalPath, observed: &Observed) {
        self.references.remember(path, observed);
    }

    /// Returns the content of the resource or collection at `path`; `None` if the server does not have it.
    async fn content(&self, path: &LogicalPath) -> Result<Seen, Arc<SyncError>> {
        if self.within.contains(path) || self.within.len() >= MAX_NESTING {
            return Err(Arc::new(SyncError::ReadCycle(path.clone())));
        }
        if let Some(seen) = self.references.seen(path).await {
            return Ok(seen);
        }
        // An absent resource may be created during the run, so only contents are kept.
        let read = || async {
            let observed = Box::pin(self.nested(path).get(path)).await?;
            let payload = observed.payload.ok_or_else(|| SyncError::Absent(path.clone()))?;
            Ok::<_, SyncError>(Arc::new(Content { payload, rules: observed.at.rules }))
        };
        match cell(&self.references.known, path).get_or_try_init(read).await {
            Ok(content) => Ok(Some(Arc::clone(content))),
            Err(error) if error.category() == Category::NotFound => Ok(None),
            Err(error) => Err(Arc::new(error)),
        }
    }

    /// Returns `resource` with a reader for the jq of its transforms, if they read other resources.
    pub(crate) fn with_reader(&self, resource: &Resource) -> Resource {
        let mut resource = resource.clone();
        if resource.reading.is_none() && resource.rules.reads_others() {
            resource.reading = Some(JqReader::new(Arc::new(self.reader())));
        }
        resource
    }

    /// Returns a reader of resources for jq.
    pub(super) fn reader(&self) -> Reader {
        Reader { remote: self.clone(), runtime: Handle::current() }
    }

    /// Returns `resource` with the values that its payload refers to. If Git declares a resource that it refers to and
    /// the server does not have it yet, the reference stays, and the error is returned, too.
    pub(crate) async fn filled(
        &self,
        resource: Resource,
    ) -> Result<(Resource, Option<SyncError>), SyncError> {
        let mut resource = self.with_reader(&resource);
        if !may_hold_any(&resource.payload) {
            return Ok((resource, None));
        }
        let found = references(&resource.payload);
        let found = found.map_err(|error| SyncError::MalformedReference(resource.path.clone(), error))?;
        let (mut payload, mut pending) = (resource.payload.as_ref().clone(), None);
        let mut secrets = resource.secrets.to_vec();
        for (at, reference) in found {
            let failed = |why| SyncError::Reference {
                resource: resource.path.clone(),
                at: at.clone(),
                reference: Box::new(reference.clone()),
                why,
            };
            let content = self.content(&reference.path).await;
            match content.map_err(|error| failed(Unresolved::Failed(error)))? {
                Some(content) => {
                    let value = reference.pointer.get(&content.payload).filter(|value| !value.is_null());
                    let value = value.ok_or_else(|| failed(Unresolved::NoValue))?.clone();
                    secrets.extend(content.is_secret(&reference.pointer).then(|| at.clone()));
                    payload = at.put(payload, value);
                }
                None if self.is_declared(&reference.path).await? => {
                    pending = pending.or(Some(failed(Unresolved::Absent)));
                }
                None => return Err(failed(Unresolved::Undeclared)),
            }
        }
        (resource.payload, resource.secrets) = (Arc::new(payload), secrets.into());
        Ok((resource, pending))
    }

    /// Whether Git declares the resource at `path`.
    pub(crate) async fn is_declared(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        let (tree, at) = (Arc::clone(&self.session.tree), path.clone());
        let file = move || Ok(repository::resource_file(tree.as_ref(), &at)?);
        Ok(blocking(path.clone(), file).await?.is_some())
    }
}

/// Reads resources for `resource("path")` in jq.
pub(super) struct Reader {
    remote: Remote,
    runtime: Handle,
}

impl ResourceReader for Reader {
    fn read(&self, path: &LogicalPath) -> Result<Value, ResourceError> {
        match self.runtime.block_on(self.remote.content(path)) {
            Ok(Some(content)) => Ok(content.payload.clone()),
            Ok(None) => Err(Arc::new(SyncError::Absent(path.clone()))),
            Err(error) => Err(error),
        }
    }
}
