//! Desired resources: what a tree declares, complete with defaults and includes.

use std::sync::Arc;

use super::resource::Resource;
use super::{Session, SyncError};
use crate::metadata::{Metadata, MetadataError, includes};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, Value};
use crate::repository::{self, ResourceFile, Tree};

/// Reads the resource in `file` as it is meant: its payload with defaults and the text of its sidecars, named
/// by its rules. Blocks.
pub fn desired(session: &Session, file: ResourceFile) -> Result<Resource, SyncError> {
    let stored = repository::read_payload(session.tree.as_ref(), &file)?;
    Resource::written(session.tree.as_ref(), &session.metadata, file.path, stored, file.descriptor)
}

impl Resource {
    /// The resource at `path` as `stored` means it, which need not be what `tree` holds: with defaults and the
    /// text of its sidecars there, named by its rules. Blocks.
    pub fn written(
        tree: &dyn Tree,
        metadata: &Metadata,
        path: LogicalPath,
        stored: Value,
        descriptor: Descriptor,
    ) -> Result<Self, SyncError> {
        let rules = metadata.rules(&path)?;
        let payload = rules
            .resolved()
            .with_defaults(stored)
            .map_err(|source| MetadataError::Layers { path: path.clone(), source: Arc::new(source) })?;
        let attributes = &rules.resolved().externalized_attributes;
        let sidecar = |name: &str| repository::read_sidecar(tree, &path, name);
        let payload = includes::expand(payload, attributes, &sidecar)
            .map_err(|source| MetadataError::Include { path: path.clone(), source: Box::new(source) })?;
        let identity = rules.identify(&path, &payload)?;
        Ok(Self { path, descriptor: Some(descriptor), payload: Arc::new(payload), identity, rules })
    }
}
