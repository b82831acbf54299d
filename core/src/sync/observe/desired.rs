//! Desired resources: the declarations of a tree with defaults, includes and secrets. They are read before the requests
//! need them.

use std::cell::Cell;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};

use crate::memory::{self, LIGHT, Pool, Shortage};
use crate::metadata::{Metadata, MetadataError, Rules, includes};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, MAX_WEIGHT, Value};
use crate::repository::{self, MAX_PAYLOAD, RepositoryError, ResourceFile, Tree};
use crate::secrets::{Scope, is_placeholder};
use crate::sync::model::{Resource, Session, SyncError};
use crate::sync::tasks::blocking;

/// The number of resources in a batch: a call of the blocking pool costs more than reading one resource.
const BATCH: usize = 32;
/// The maximum number of batches that are read or wait. They are read while the run waits for answers.
const AHEAD: usize = 8;

/// Returns [`Resource::declared`] for the tree and the metadata of `session`. Blocks. In a process with a budget of
/// memory, fails for a resource that needs more than a quarter of it.
pub fn desired(session: &Session, file: ResourceFile) -> Result<Resource, SyncError> {
    let limit = memory::capacity(Pool::Desired).map_or(MAX_WEIGHT, |capacity| capacity / 4);
    Resource::declared_within(session.tree.as_ref(), &session.metadata, file, limit)
}

/// Returns the resource that the tree of a run declares at `path`, if any. Blocks.
pub(crate) fn desired_at(session: &Session, path: &LogicalPath) -> Result<Option<Resource>, SyncError> {
    let file = repository::resource_file(session.tree.as_ref(), path)?;
    file.map(|file| desired(session, file)).transpose()
}

/// Reads the resource in `file`. If it needs much memory, waits for its share.
async fn reserved(session: &Session, file: ResourceFile) -> Result<Resource, SyncError> {
    match read(session, &file, light()).await {
        Err(error) if error.is_too_heavy() => heavy(session, file).await,
        read => read,
    }
}

/// Returns the file in `tree` that declares the resource at `path`.
pub(crate) async fn file_at(
    tree: &Arc<dyn Tree>,
    path: &LogicalPath,
) -> Result<Option<ResourceFile>, SyncError> {
    let (tree, at) = (Arc::clone(tree), path.clone());
    blocking(path.clone(), move || Ok(repository::resource_file(tree.as_ref(), &at)?)).await
}

/// Like [`desired_at`], but a resource that needs much memory waits for its share.
pub(crate) async fn reserved_at(
    session: &Session,
    path: &LogicalPath,
) -> Result<Option<Resource>, SyncError> {
    match file_at(&session.tree, path).await? {
        Some(file) => reserved(session, file).await.map(Some),
        None => Ok(None),
    }
}

/// The memory that a resource may need without a share.
fn light() -> usize {
    memory::capacity(Pool::Desired).map_or(MAX_WEIGHT, |_| LIGHT)
}

/// Reads a resource that needs at most `limit` bytes of memory.
async fn read(session: &Session, file: &ResourceFile, limit: usize) -> Result<Resource, SyncError> {
    let (session, file) = (session.clone(), file.clone());
    blocking(file.path.clone(), move || {
        Resource::declared_within(session.tree.as_ref(), &session.metadata, file, limit)
    })
    .await
}

/// Reads a resource that needs more than [`LIGHT`] bytes, and waits for its share.
async fn heavy(session: &Session, file: ResourceFile) -> Result<Resource, SyncError> {
    let path = file.path.clone();
    let _turn = memory::turn().await;
    let capacity = memory::capacity(Pool::Desired).unwrap_or(MAX_WEIGHT);
    let resource = match read(session, &file, capacity.min(MAX_WEIGHT)).await {
        Err(error) if capacity < MAX_WEIGHT && error.is_too_heavy() && !error.exceeds_file_limit() => {
            return Err(SyncError::Memory(path, Shortage::TooLarge { pool: Pool::Desired, capacity }));
        }
        read => read?,
    };
    let held = memory::reserve(Pool::Desired, resource.payload.weight()).await;
    Ok(Resource { held: held.map_err(|shortage| SyncError::Memory(path, shortage))?, ..resource })
}

/// The resource of a file, or the error of reading it.
type Loaded = (LogicalPath, Result<Resource, SyncError>);

/// A resource that was read ahead, or the file of one that needs much memory, which is read when it is its turn.
enum Ahead {
    Read(Result<Resource, SyncError>),
    Heavy(ResourceFile),
}

/// Returns the resources in `files`, in their order. The first batch has one resource, so that it is available early.
/// Reading a tree blocks, so it happens on the blocking pool.
pub fn loaded(session: &Session, files: Vec<ResourceFile>) -> impl Stream<Item = Loaded> + use<> {
    let (session, mut files, mut size) = (session.clone(), files.into_iter(), 1);
    let reading = Arc::new(session.clone());
    let batches = std::iter::from_fn(move || {
        let batch: Vec<ResourceFile> = files.by_ref().take(size).collect();
        size = BATCH;
        (!batch.is_empty()).then(|| load(session.clone(), batch))
    });
    let ahead = futures::stream::iter(batches).buffered(AHEAD).flat_map(futures::stream::iter);
    ahead.then(move |(path, ahead)| {
        let session = Arc::clone(&reading);
        async move {
            match ahead {
                Ahead::Read(read) => (path, read),
                Ahead::Heavy(file) => {
                    // In a task of its own: it must not keep its turn while the run writes and does not poll this stream.
                    let read = tokio::spawn(async move { heavy(&session, file).await });
                    let lost =
                        |error: tokio::task::JoinError| SyncError::Task(path.clone(), error.to_string());
                    let read = read.await.unwrap_or_else(|error| Err(lost(error)));
                    (path, read)
                }
            }
        }
    })
}

async fn load(session: Session, batch: Vec<ResourceFile>) -> Vec<(LogicalPath, Ahead)> {
    let paths: Vec<LogicalPath> = batch.iter().map(|file| file.path.clone()).collect();
    let light = light();
    let read = move |file: ResourceFile| {
        let declared =
            Resource::declared_within(session.tree.as_ref(), &session.metadata, file.clone(), light);
        let ahead = match declared {
            Err(error) if error.is_too_heavy() => Ahead::Heavy(file.clone()),
            declared => Ahead::Read(declared),
        };
        (file.path, ahead)
    };
    let read = move || batch.into_iter().map(read).collect();
    tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| {
        let reason = error.to_string();
        let lost =
            |path: LogicalPath| (path.clone(), Ahead::Read(Err(SyncError::Task(path, reason.clone()))));
        paths.into_iter().map(lost).collect()
    })
}

impl Session {
    /// Returns `resource` with secrets in the place of placeholders. Do not keep it longer than needed.
    pub(crate) async fn resolved(&self, resource: Resource) -> Result<Resource, SyncError> {
        let scope = Scope::Resource(resource.path.clone());
        let payload = Arc::clone(&resource.payload);
        let resolved = self.secrets.resolve(&scope, resource.descriptor.as_ref(), payload).await?;
        if Arc::ptr_eq(&resolved.payload, &resource.payload) {
            return Ok(resource);
        }
        let secrets = match resolved.secrets {
            none if none.is_empty() => Arc::clone(&resource.secrets),
            secrets => secrets.into(),
        };
        resource.with_values(resolved.payload, secrets)
    }
}

impl Resource {
    /// Reads the resource in `file` of `tree`: its payload with defaults and the text of its sidecars, and its names by
    /// its rules. A resource that is a secret as a whole, by metadata or by its file, gets no defaults and no sidecars.
    /// Blocks.
    pub fn declared(tree: &dyn Tree, metadata: &Metadata, file: ResourceFile) -> Result<Self, SyncError> {
        Self::declared_within(tree, metadata, file, MAX_WEIGHT)
    }

    /// Like [`Resource::declared`], but texts that include sidecars are not replaced.
    pub fn unexpanded(tree: &dyn Tree, metadata: &Metadata, file: ResourceFile) -> Result<Self, SyncError> {
        let stored = repository::read_payload_within(tree, &file, MAX_WEIGHT)?;
        let ResourceFile { path, descriptor, .. } = file;
        let rules = metadata.rules(&path)?;
        let payload = if is_whole_secret(&rules, &stored) {
            stored
        } else {
            with_defaults(&rules, &path, stored, &descriptor)?
        };
        Ok(Self { descriptor: Some(descriptor), ..Self::named(path, rules, payload)? })
    }

    /// Like [`Resource::declared`], but fails if the resource needs more than `limit` bytes of memory.
    fn declared_within(
        tree: &dyn Tree,
        metadata: &Metadata,
        file: ResourceFile,
        limit: usize,
    ) -> Result<Self, SyncError> {
        let stored = repository::read_payload_within(tree, &file, limit)?;
        Self::written_within(tree, metadata, file.path, stored, file.descriptor, limit)
    }

    /// Like [`Resource::declared`], for a payload that need not be in `tree`.
    pub fn written(
        tree: &dyn Tree,
        metadata: &Metadata,
        path: LogicalPath,
        stored: Value,
        descriptor: Descriptor,
    ) -> Result<Self, SyncError> {
        Self::written_within(tree, metadata, path, stored, descriptor, MAX_WEIGHT)
    }

    fn written_within(
        tree: &dyn Tree,
        metadata: &Metadata,
        path: LogicalPath,
        stored: Value,
        descriptor: Descriptor,
        limit: usize,
    ) -> Result<Self, SyncError> {
        let rules = metadata.rules(&path)?;
        let mut payload = stored;
        if !is_whole_secret(&rules, &payload) {
            payload = with_defaults(&rules, &path, payload, &descriptor)?;
            // Many attributes may include the same sidecar.
            let (included, most) = (Cell::new(0), MAX_PAYLOAD.min(limit as u64));
            let sidecar = |name: &str| {
                let content = repository::read_sidecar(tree, &path, name)?;
                included.set(included.get() + content.as_ref().map_or(0, |content| content.len() as u64));
                if included.get() <= most {
                    Ok(content)
                } else {
                    Err(sidecars_too_large(&path, &included, most))
                }
            };
            let expanded = includes::expand(payload, &rules.resolved().externalized_attributes, &sidecar);
            if included.get() > most {
                return Err(sidecars_too_large(&path, &included, most).into());
            }
            payload = expanded
                .map_err(|source| MetadataError::Include { path: path.clone(), source: Box::new(source) })?;
        }
        Ok(Self { descriptor: Some(descriptor), ..Self::named(path, rules, payload)? })
    }
}

fn with_defaults(
    rules: &Rules,
    path: &LogicalPath,
    stored: Value,
    descriptor: &Descriptor,
) -> Result<Value, MetadataError> {
    rules.resolved().with_defaults(stored).map_err(|source| MetadataError::Defaults {
        file: format!("{}/resource{}", path.relative(), descriptor.extension),
        source: Arc::new(source),
    })
}

fn sidecars_too_large(path: &LogicalPath, included: &Cell<u64>, limit: u64) -> RepositoryError {
    let file = format!("{} with its sidecars", path.relative());
    RepositoryError::TooLarge { file, size: included.get(), limit }
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
