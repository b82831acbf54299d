//! Desired resources: what a tree declares, complete with defaults and includes.

use std::sync::Arc;

use crate::metadata::{Metadata, MetadataError, Rules, includes};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, Value};
use crate::repository::{self, ResourceFile, Tree};
use crate::secrets::is_placeholder;
use crate::sync::model::{Resource, Session, SyncError};

/// [`Resource::declared`] in what a run works with.
pub fn desired(session: &Session, file: ResourceFile) -> Result<Resource, SyncError> {
    Resource::declared(session.tree.as_ref(), &session.metadata, file)
}

impl Resource {
    /// Reads the resource in `file` of `tree` as it is meant: its payload with defaults and the text of its
    /// sidecars, named by its rules. A resource that is a secret as a whole has no members to complete,
    /// whether metadata says that it is one or only its file does. Blocks.
    pub fn declared(tree: &dyn Tree, metadata: &Metadata, file: ResourceFile) -> Result<Self, SyncError> {
        let stored = repository::read_payload(tree, &file)?;
        Self::written(tree, metadata, file.path, stored, file.descriptor)
    }

    /// [`Resource::declared`] for a payload that `tree` need not hold.
    pub fn written(
        tree: &dyn Tree,
        metadata: &Metadata,
        path: LogicalPath,
        stored: Value,
        descriptor: Descriptor,
    ) -> Result<Self, SyncError> {
        let rules = metadata.rules(&path)?;
        let payload = if is_whole_secret(&rules, &stored) {
            stored
        } else {
            complete(tree, &rules, &path, &descriptor, stored)?
        };
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

/// A stored payload with defaults and the text of its sidecars.
fn complete(
    tree: &dyn Tree,
    rules: &Rules,
    path: &LogicalPath,
    descriptor: &Descriptor,
    stored: Value,
) -> Result<Value, SyncError> {
    let payload = rules.resolved().with_defaults(stored).map_err(|source| MetadataError::Defaults {
        file: format!("{}/resource{}", path.relative(), descriptor.extension),
        source: Arc::new(source),
    })?;
    let attributes = &rules.resolved().externalized_attributes;
    let sidecar = |name: &str| repository::read_sidecar(tree, path, name);
    let payload = includes::expand(payload, attributes, &sidecar)
        .map_err(|source| MetadataError::Include { path: path.clone(), source: Box::new(source) })?;
    Ok(payload)
}
