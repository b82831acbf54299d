//! Desired resources: what a tree declares, complete with defaults and includes.

use std::sync::Arc;

use super::resource::Resource;
use super::{Session, SyncError};
use crate::metadata::{MetadataError, includes};
use crate::repository::{self, ResourceFile};

/// Reads the resource in `file` as it is meant: its payload with defaults and the text of its sidecars, named
/// by its rules. Blocks.
pub fn desired(session: &Session, file: ResourceFile) -> Result<Resource, SyncError> {
    let rules = session.metadata.rules(&file.path)?;
    let stored = repository::read_payload(session.tree.as_ref(), &file)?;
    let payload = rules
        .resolved()
        .with_defaults(stored)
        .map_err(|source| MetadataError::Defaults { file: file.file.clone(), source: Arc::new(source) })?;
    let attributes = &rules.resolved().externalized_attributes;
    let sidecar = |name: &str| repository::read_sidecar(session.tree.as_ref(), &file.path, name);
    let payload = includes::expand(payload, attributes, &sidecar)
        .map_err(|source| MetadataError::Include { path: file.path.clone(), source: Box::new(source) })?;
    let identity = rules.identify(&file.path, &payload)?;
    Ok(Resource {
        path: file.path,
        descriptor: Some(file.descriptor),
        payload: Arc::new(payload),
        identity,
        rules,
    })
}
