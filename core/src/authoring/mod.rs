//! Turning payloads that somebody wants to keep into the files that declare them.
//!
//! [`drafts_of`] takes a list apart into one [`Draft`] per resource. [`check_secrets`] refuses drafts that would
//! write secrets into files. A [`Prepared`] draft is what its files will hold: externalized attributes taken out,
//! defaults left out. Nothing but [`Prepared::write`] writes, so that all of them can be prepared before the first
//! is written.

mod error;
mod items;
mod secrecy;

pub use error::AuthoringError;
pub use items::{drafts_of, is_list};
pub use secrecy::check_secrets;

use std::sync::Arc;

use crate::metadata::document::{Format, Resolved, compact};
use crate::metadata::includes::{self, Externalized};
use crate::metadata::{Metadata, MetadataError};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, PayloadType, Value};
use crate::repository::{self, RepositoryError, ResourceFile, Save, Store};
use crate::secrets::is_placeholder;

/// A payload for a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The resource.
    pub path: LogicalPath,
    /// All of its content.
    pub payload: Value,
    /// What it shall be stored as, if somebody wants it to be.
    pub descriptor: Option<Descriptor>,
}

impl Draft {
    /// The draft without what its defaults say anyway.
    pub fn without_defaults(mut self, metadata: &Metadata) -> Result<Self, AuthoringError> {
        let rules = metadata.rules(&self.path)?;
        self.payload = compact(self.payload, &Value::Object(rules.resolved().defaults.clone()));
        Ok(self)
    }
}

/// What the files of a resource will hold.
#[derive(Debug)]
pub struct Prepared {
    path: LogicalPath,
    saved: Externalized,
    stale: Vec<String>,
    descriptor: Option<Descriptor>,
    format: Option<PayloadType>,
}

impl Prepared {
    /// Makes of `draft` what is stored: its externalized attributes go to files of their own, and what its
    /// defaults say is left out. Blocks.
    pub fn new(store: &Store, metadata: &Metadata, draft: Draft) -> Result<Self, AuthoringError> {
        let Draft { path, payload, descriptor } = draft;
        let rules = metadata.rules(&path)?;
        let resolved = rules.resolved();
        let attributes = &resolved.externalized_attributes;
        let sidecar = |name: &str| repository::read_sidecar(store.tree(), &path, name);
        let mut saved = includes::externalize(payload, attributes, &sidecar)
            .map_err(|source| MetadataError::Include { path: path.clone(), source: Box::new(source) })?;
        saved.payload = without_defaults(&path, saved.payload, resolved)?;
        let stale = match store.get(&path) {
            Ok((_, before)) => saved.stale(&before, attributes),
            // Of what cannot be read nobody knows what belongs to it.
            Err(RepositoryError::ResourceMissing { .. } | RepositoryError::Payload { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let format = match resolved.format {
            Some(Format::Concrete(payload_type)) => Some(payload_type),
            Some(Format::Any) | None => None,
        };
        Ok(Self { path, saved, stale, descriptor, format })
    }

    /// The resource.
    pub fn path(&self) -> &LogicalPath {
        &self.path
    }

    /// Writes the files: first those of externalized attributes, then the payload. Returns its file; `None` if
    /// the payload is null, which removes it.
    pub fn write(&self, store: &Store) -> Result<Option<ResourceFile>, RepositoryError> {
        let save = Save {
            descriptor: self.descriptor.as_ref(),
            format: self.format,
            sidecars: &self.saved.sidecars,
            stale: &self.stale,
        };
        store.save(&self.path, &self.saved.payload, &save)
    }
}

/// What of `payload` has to be stored. A placeholder for the whole resource is stored as it is.
fn without_defaults(
    path: &LogicalPath,
    payload: Value,
    resolved: &Resolved,
) -> Result<Value, AuthoringError> {
    if resolved.defaults.is_empty() || payload.as_str().is_some_and(is_placeholder) {
        return Ok(payload);
    }
    // What could not be read again must not be written.
    resolved
        .with_defaults(payload.clone())
        .map_err(|source| MetadataError::Layers { path: path.clone(), source: Arc::new(source) })?;
    Ok(compact(payload, &Value::Object(resolved.defaults.clone())))
}

/// Fails if one of `paths` is a resource already, of which nobody said that it may be overwritten.
pub fn check_absent<'p>(
    store: &Store,
    paths: impl IntoIterator<Item = &'p LogicalPath>,
) -> Result<(), AuthoringError> {
    for path in paths {
        match store.get(path) {
            Err(RepositoryError::ResourceMissing { .. }) => {}
            Ok(_) | Err(RepositoryError::Payload { .. }) => {
                return Err(AuthoringError::Exists { path: path.clone() });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
