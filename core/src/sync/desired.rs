//! Desired resources: what a tree declares, complete with defaults and includes.

use std::sync::Arc;

use super::resource::Resource;
use super::{Session, SyncError};
use crate::metadata::{Metadata, MetadataError, Rules, includes};
use crate::payload::Value;
use crate::repository::{self, ResourceFile, Tree};

/// [`Resource::declared`] in what a run works with.
pub fn desired(session: &Session, file: ResourceFile) -> Result<Resource, SyncError> {
    Resource::declared(session.tree.as_ref(), &session.metadata, file)
}

impl Resource {
    /// Reads the resource in `file` of `tree` as it is meant: its payload with defaults and the text of its
    /// sidecars, named by its rules. A resource that is a secret as a whole has no members to complete.
    /// Blocks.
    pub fn declared(tree: &dyn Tree, metadata: &Metadata, file: ResourceFile) -> Result<Self, SyncError> {
        let rules = metadata.rules(&file.path)?;
        let stored = repository::read_payload(tree, &file)?;
        let payload = if rules.resolved().secret && stored.as_object().is_none() {
            stored
        } else {
            complete(tree, &rules, &file, stored)?
        };
        let identity = rules.identify(&file.path, &payload)?;
        Ok(Self {
            path: file.path,
            descriptor: Some(file.descriptor),
            payload: Arc::new(payload),
            identity,
            rules,
        })
    }
}

/// A stored payload with defaults and the text of its sidecars.
fn complete(tree: &dyn Tree, rules: &Rules, file: &ResourceFile, stored: Value) -> Result<Value, SyncError> {
    let payload = rules
        .resolved()
        .with_defaults(stored)
        .map_err(|source| MetadataError::Defaults { file: file.file.clone(), source: Arc::new(source) })?;
    let attributes = &rules.resolved().externalized_attributes;
    let sidecar = |name: &str| repository::read_sidecar(tree, &file.path, name);
    let payload = includes::expand(payload, attributes, &sidecar)
        .map_err(|source| MetadataError::Include { path: file.path.clone(), source: Box::new(source) })?;
    Ok(payload)
}
