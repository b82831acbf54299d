//! Reads the contents of other resources, for references in payloads and for `resource()` in jq, once per run.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use super::contents::{Content, Seen};
use super::desired::{desired_at, file_at};
use super::once::cell;
use super::server::{Remote, Waiting};
use crate::error::{Categorized, Category};
use crate::language::jq::{ResourceError, ResourceReader};
use crate::language::reference::{Reference, may_hold_any, references};
use crate::language::referred::{KnownValues, Recorder};
use crate::metadata::{OperationName, Rules};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::secrets::placeholder_places;
use crate::sync::model::{Observed, Resource, SyncError, Unresolved, add_texts};
use crate::sync::tasks::blocking;

/// The maximum number of references of templates that need each other.
const ROUNDS: usize = 8;
/// The maximum depth of resources whose transforms need each other.
const MAX_NESTING: usize = 8;

/// Whether other resources are read for `resource`, so that the run looks at it after them.
pub(crate) fn refers(resource: &Resource) -> bool {
    resource.holds_references || resource.rules.reads_others() || resource.rules.refers()
}

/// The lack of a value that a resource refers to: Git declares the other resource, and the server does not have it yet.
pub(crate) struct Lacking {
    pub error: SyncError,
    /// Whether only deferred attributes need the value.
    pub deferred: bool,
}

impl Remote {
    /// Records that the run looks at `resource` with the current values of those that it refers to.
    pub(crate) fn look_at(&self, resource: &Resource) {
        if refers(resource) {
            self.references.look_at(&resource.path);
        }
    }

    /// Records that the run has written the resource at `path`. The values of those that refer to it may have changed;
    /// after an update with the content `updated`, only values that it states.
    pub(crate) fn outdate_referrers(&self, path: &LogicalPath, updated: Option<&Value>) {
        let is_stated = |pointer: &Option<Pointer>| match (pointer, updated) {
            (Some(pointer), Some(payload)) => pointer.get(payload).is_some(),
            _ => true,
        };
        let referrers = self.session.knowledge.referrers(path).into_iter();
        self.references.outdate(referrers.filter(|(_, pointer)| is_stated(pointer)).map(|(path, _)| path));
    }

    /// Whether others refer to the resource at `path`.
    pub(crate) fn has_referrers(&self, path: &LogicalPath) -> bool {
        !self.session.knowledge.referrers(path).is_empty()
    }

    /// Returns the content of the resource or collection at `path`; `None` if the server does not have it.
    async fn content(&self, path: &LogicalPath) -> Result<Seen, Arc<SyncError>> {
        let reference = Waiting::Reference(path.clone());
        if self.within.contains(&reference) || self.within.len() >= MAX_NESTING {
            return Err(Arc::new(SyncError::ReadCycle(path.clone())));
        }
        if let Some(seen) = self.references.seen(path).await {
            return Ok(seen);
        }
        // An absent resource may be created during the run, so only contents are kept.
        let nested = self.nested(reference);
        let read = || async {
            let (observed, secrets) = Box::pin(nested.referred_at(path)).await?;
            let payload = observed.payload.ok_or_else(|| SyncError::Absent(path.clone()))?;
            Ok::<_, SyncError>(Arc::new(Content { payload, rules: observed.at.rules, secrets, part: None }))
        };
        match cell(&self.references.known, path).get_or_try_init(read).await {
            Ok(content) => Ok(Some(Arc::clone(content))),
            Err(error) if error.category() == Category::NotFound => Ok(None),
            Err(error) => Err(Arc::new(error)),
        }
    }

    /// Reads the resource or collection at `path`, a resource that Git declares by its declared names. Also returns the
    /// places where the declaration has placeholders of secrets.
    async fn referred_at(&self, path: &LogicalPath) -> Result<(Observed, Arc<[Pointer]>), SyncError> {
        let (session, at) = (self.session.clone(), path.clone());
        let Some(declared) = blocking(path.clone(), move || desired_at(&session, &at)).await? else {
            return Ok((self.get(path).await?, Arc::default()));
        };
        let secrets = placeholder_places(&declared.payload).into();
        let read = match self.with_known_names(declared).await {
            Ok(named) => self.read(&named).await,
            Err(error) => Err(error),
        };
        match read {
            // A read needs no proof that nothing exists. Without its names, it was not created.
            Err(error) if error.is_lack_of_proof() || error.lacks().is_some() => {
                Err(SyncError::Absent(path.clone()))
            }
            read => Ok((read?, secrets)),
        }
    }

    /// Returns `resource` with a reader for the jq of its transforms, if they read other resources.
    pub(crate) fn with_reader(&self, resource: &Resource) -> Resource {
        let mut resource = resource.clone();
        if resource.reading.is_none() && resource.rules.reads_others() {
            let of = Some(resource.path.clone());
            resource.reading = Some(Arc::new(Reader { of, ..self.reader() }));
        }
        resource
    }

    /// Returns a reader of resources for jq.
    pub(super) fn reader(&self) -> Reader {
        Reader { remote: self.clone(), runtime: Handle::current(), of: None }
    }

    /// Returns `resource` with the values that its payload and the templates of its rules refer to. If Git declares a
    /// resource that it refers to and the server does not have it yet, the reference stays, and the error is returned,
    /// too.
    pub(crate) async fn filled(&self, resource: Resource) -> Result<(Resource, Option<Lacking>), SyncError> {
        let resource = self.with_reader(&resource);
        let (resource, pending) = if may_hold_any(&resource.payload) {
            self.with_payload_values(resource).await?
        } else {
            (resource, None)
        };
        let (resource, lacking) = self.with_template_values(resource).await?;
        let lacking = lacking.map(|error| Lacking { error, deferred: false });
        Ok((resource, lacking.or(pending)))
    }

    /// Returns `declared` with the values of placeholders and references if a name is one of them. Fails if such a name
    /// remains unknown.
    pub(crate) async fn with_known_names(&self, declared: Resource) -> Result<Resource, SyncError> {
        if !declared.has_unknown_name() {
            return Ok(declared);
        }
        match self.filled(self.session.resolved(declared).await?).await? {
            (known, Some(lacking)) if known.has_unknown_name() => Err(lacking.error),
            (known, _) => Ok(known),
        }
    }

    /// Returns `resource` with the values that the templates of its rules refer to, as [`Self::filled`] does.
    pub(crate) async fn with_template_values(
        &self,
        resource: Resource,
    ) -> Result<(Resource, Option<SyncError>), SyncError> {
        // Every read asks, and few rules refer to other resources.
        if resource.rules.refers() { self.read_template_values(resource).await } else { Ok((resource, None)) }
    }

    fn read_template_values(
        &self,
        mut resource: Resource,
    ) -> BoxFuture<'_, Result<(Resource, Option<SyncError>), SyncError>> {
        // Boxed, because the read of the other resource may need further ones.
        Box::pin(async move {
            let (mut values, mut secrets, mut pending) = (KnownValues::default(), Vec::new(), None);
            let mut found = resource.template_references();
            if found.is_empty() {
                return Ok((resource, None));
            }
            // Placeholders may lead to references that the templates do not need, and values to further ones. So an
            // error counts only if the templates need the reference with all other values.
            let mut without = HashMap::new();
            for _ in 0..ROUNDS {
                for reference in found.drain(..) {
                    match self.referred(&resource.path, None, &reference).await {
                        Ok(Ok((value, is_secret))) => {
                            if is_secret {
                                add_texts(&value, &mut secrets);
                            }
                            values.add(reference, value);
                        }
                        Ok(Err(absent)) => drop(without.insert(reference, Ok(absent))),
                        Err(error) => drop(without.insert(reference, Err(error))),
                    }
                }
                for reference in resource.references_beyond(&values) {
                    match without.remove(&reference) {
                        None => found.push(reference),
                        Some(absent) => pending = pending.or(Some(absent?)),
                    }
                }
                if found.is_empty() || pending.is_some() {
                    break;
                }
            }
            (resource.values, resource.secret_values) = (Some(Arc::new(values)), secrets.into());
            Ok((resource, pending))
        })
    }

    /// Returns the values that the templates of a list refer to.
    pub(super) fn values_of_list<'a>(
        &'a self,
        rules: &'a Rules,
        collection: &'a LogicalPath,
        declared: &'a LogicalPath,
    ) -> BoxFuture<'a, Result<Option<Arc<KnownValues>>, SyncError>> {
        Box::pin(async move {
            if !rules.refers() {
                return Ok(None);
            }
            let recorder = Recorder::default();
            if let Ok(evaluation) = rules.on_collection_with(collection, Some(&recorder), Some(declared)) {
                evaluation.visit_templates(&[OperationName::List]);
            }
            let mut values = KnownValues::default();
            for reference in recorder.into_references() {
                let (value, is_secret) = self.referred(collection, None, &reference).await??;
                if is_secret {
                    let mut texts = Vec::new();
                    add_texts(&value, &mut texts);
                    for text in texts {
                        self.session.secrets.add_shown(text);
                    }
                }
                values.add(reference, value);
            }
            Ok(Some(Arc::new(values)))
        })
    }

    /// Returns the value of a reference, and whether it is a secret. The inner error is that Git declares the other
    /// resource, and the server does not have it yet.
    async fn referred(
        &self,
        resource: &LogicalPath,
        at: Option<&Pointer>,
        reference: &Reference,
    ) -> Result<Result<(Value, bool), SyncError>, SyncError> {
        let failed = |why| SyncError::Reference {
            resource: resource.clone(),
            at: at.cloned(),
            reference: Box::new(reference.clone()),
            why,
        };
        self.session.knowledge.note_reference(resource, &reference.path, Some(&reference.pointer));
        let content = self.content(&reference.path).await;
        match content.map_err(|error| failed(Unresolved::Failed(error)))? {
            Some(content) => {
                let value = reference.pointer.get(&content.payload).filter(|value| !value.is_null());
                let value = value.ok_or_else(|| failed(Unresolved::NoValue))?.clone();
                Ok(Ok((value, content.is_secret(&reference.pointer))))
            }
            None if self.is_declared(&reference.path).await? => Ok(Err(failed(Unresolved::Absent))),
            None => Err(failed(Unresolved::Undeclared)),
        }
    }

    async fn with_payload_values(
        &self,
        resource: Resource,
    ) -> Result<(Resource, Option<Lacking>), SyncError> {
        let found = references(&resource.payload);
        let found = found.map_err(|error| SyncError::MalformedReference(resource.path.clone(), error))?;
        let (mut payload, mut pending) = (resource.payload.as_ref().clone(), None::<Lacking>);
        let mut secrets = resource.secrets.to_vec();
        for (at, reference) in found {
            match self.referred(&resource.path, Some(&at), &reference).await? {
                Ok((value, is_secret)) => {
                    secrets.extend(is_secret.then(|| at.clone()));
                    payload = at.put(payload, value);
                }
                Err(error) => {
                    let lacking = Lacking { error, deferred: resource.defers(&at) };
                    pending = pending.filter(|first| !first.deferred || lacking.deferred).or(Some(lacking));
                }
            }
        }
        Ok((resource.with_values(Arc::new(payload), secrets.into())?, pending))
    }

    /// Whether Git declares the resource at `path`.
    pub(crate) async fn is_declared(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        Ok(file_at(&self.session.tree, path).await?.is_some())
    }
}

/// Reads resources for `resource("path")` in jq.
pub(super) struct Reader {
    remote: Remote,
    runtime: Handle,
    /// The resource whose transforms read others.
    of: Option<LogicalPath>,
}

impl ResourceReader for Reader {
    fn read(&self, path: &LogicalPath) -> Result<Value, ResourceError> {
        if let Some(of) = &self.of {
            self.remote.session.knowledge.note_reference(of, path, None);
        }
        match self.runtime.block_on(self.remote.content(path)) {
            Ok(Some(content)) => Ok(content.payload.clone()),
            Ok(None) => Err(Arc::new(SyncError::Absent(path.clone()))),
            Err(error) => Err(error),
        }
    }
}
