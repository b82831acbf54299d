//! Desired resources: the declarations of a tree with defaults, includes and secrets. They are read ahead of the
//! requests.

use std::sync::Arc;

use futures::{Stream, StreamExt as _};

use crate::metadata::{Metadata, MetadataError, Rules, includes};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, Value};
use crate::repository::{self, ResourceFile, Tree};
use crate::secrets::{Scope, is_placeholder};
use crate::sync::model::{Resource, Session, SyncError};

/// The number of resources in a batch: a call of the blocking pool costs more than reading one resource.
const BATCH: usize = 32;
/// The maximum number of batches that are read or wait. They are read while the run waits for answers.
const AHEAD: usize = 32;

/// Returns [`Resource::declared`] for the tree and the metadata of `session`.
pub fn desired(session: &Session, file: ResourceFile) -> Result<Resource, SyncError> {
    Resource::declared(session.tree.as_ref(), &session.metadata, file)
}

/// Returns the resource that the tree of a run declares at `path`, if any. Blocks.
pub(crate) fn desired_at(session: &Session, path: &LogicalPath) -> Result<Option<Resource>, SyncError> {
    let file = repository::resource_file(session.tree.as_ref(), path)?;
    file.map(|file| desired(session, file)).transpose()
}

/// The resource of a file, or the error of reading it.
type Loaded = (LogicalPath, Result<Resource, SyncError>);

/// Returns the resources in `files`, in their order. The first batch has one resource, so that it is available early.
/// Reading a tree blocks, so it happens on the blocking pool.
pub fn loaded(session: &Session, files: Vec<ResourceFile>) -> impl Stream<Item = Loaded> + use<> {
    let (session, mut files, mut size) = (session.clone(), files.into_iter(), 1);
    let batches = std::iter::from_fn(move || {
        let batch: Vec<ResourceFile> = files.by_ref().take(size).collect();
        size = BATCH;
        (!batch.is_empty()).then(|| load(session.clone(), batch))
    });
    futures::stream::iter(batches).buffered(AHEAD).flat_map(futures::stream::iter)
}

async fn load(session: Session, batch: Vec<ResourceFile>) -> Vec<Loaded> {
    let paths: Vec<LogicalPath> = batch.iter().map(|file| file.path.clone()).collect();
    let read = move || batch.into_iter().map(|file| (file.path.clone(), desired(&session, file))).collect();
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| {
        let reason = error.to_string();
        let lost = |path: LogicalPath| (path.clone(), Err(SyncError::Task(path, reason.clone())));
        paths.into_iter().map(lost).collect()
    })
}

impl Session {
    /// Returns `resource` with secrets in the place of placeholders. Do not keep it longer than needed.
    pub(crate) async fn resolved(&self, resource: Resource) -> Result<Resource, SyncError> {
        let scope = Scope::Resource(resource.path.clone());
        let payload = Arc::clone(&resource.payload);
        let resolved = self.secrets.resolve(&scope, resource.descriptor.as_ref(), payload).await?;
        let secrets = if resolved.secrets.is_empty() { resource.secrets } else { resolved.secrets.into() };
        Ok(Resource { payload: resolved.payload, secrets, ..resource })
    }
}

impl Resource {
    /// Reads the resource in `file` of `tree`: its payload with defaults and the text of its sidecars, and its names by
    /// its rules. A resource that is a secret as a whole, by metadata or by its file, gets no defaults and no sidecars.
    /// Blocks.
    pub fn declared(tree: &dyn Tree, metadata: &Metadata, file: ResourceFile) -> Result<Self, SyncError> {
        let stored = repository::read_payload(tree, &file)?;
        Self::written(tree, metadata, file.path, stored, file.descriptor)
    }

    /// Like [`Resource::declared`], for a payload that need not be in `tree`.
    pub fn written(
        tree: &dyn Tree,
        metadata: &Metadata,
        path: LogicalPath,
        stored: Value,
        descriptor: Descriptor,
    ) -> Result<Self, SyncError> {
        let rules = metadata.rules(&path)?;
        let mut payload = stored;
        if !is_whole_secret(&rules, &payload) {
            let resolved = rules.resolved();
            payload = resolved.with_defaults(payload).map_err(|source| MetadataError::Defaults {
                file: format!("{}/resource{}", path.relative(), descriptor.extension),
                source: Arc::new(source),
            })?;
            let sidecar = |name: &str| repository::read_sidecar(tree, &path, name);
            payload = includes::expand(payload, &resolved.externalized_attributes, &sidecar)
                .map_err(|source| MetadataError::Include { path: path.clone(), source: Box::new(source) })?;
        }
        Ok(Self { descriptor: Some(descriptor), ..Self::named(path, rules, payload)? })
    }
}

fn is_whole_secret(rules: &Rules, stored: &Value) -> bool {
    match stored {
        Value::Object(_) => false,
        _ if rules.resolved().secret => true,
        Value::String(text) => is_placeholder(text),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).is_ok_and(is_placeholder),
        _ => false,
    }
}
