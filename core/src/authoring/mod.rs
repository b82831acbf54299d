//! Turning payloads that somebody wants to keep into the files that declare them.
//!
//! [`drafts_of`] takes a list apart into one [`Draft`] per resource. [`conceal`] takes secrets out of drafts and
//! refuses those that would write some into files; [`detect_stored`] finds what is there already. A [`Prepared`] draft is what its files will hold: externalized attributes taken out,
//! defaults left out. Nothing but [`Prepared::write`] writes, so that all of them can be prepared before the first
//! is written.

mod conceal;
mod declare;
mod detection;
mod error;
mod items;

pub use conceal::{Attributes, Concealed, SecretOptions, conceal};
pub use declare::Declaration;
pub use detection::{Detected, detect_stored};
pub use error::AuthoringError;
pub use items::{drafts_of, is_list};

use std::sync::Arc;

use crate::metadata::document::{Format, Resolved, compact};
use crate::metadata::includes::{self, Externalized};
use crate::metadata::{Metadata, MetadataError};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, PayloadType, Value};
use crate::repository::{self, RepositoryError, ResourceFile, Save, Store};
use crate::secrets::find_placeholder;

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
    /// Leaves out what its defaults say anyway.
    pub fn prune_defaults(&mut self, metadata: &Metadata) -> Result<(), AuthoringError> {
        let rules = metadata.rules(&self.path)?;
        let defaults = Value::Object(rules.resolved().defaults.clone());
        self.payload = compact(std::mem::take(&mut self.payload), &defaults);
        Ok(())
    }
}

/// Drafts that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The collection that they are the items of; `None` if each was meant by itself.
    pub collection: Option<LogicalPath>,
    /// The drafts.
    pub drafts: Vec<Draft>,
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
    let is_whole_secret = find_placeholder(&payload).is_some_and(|at| at.is_empty());
    if resolved.defaults.is_empty() || is_whole_secret {
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
mod conceal_tests;
#[cfg(test)]
mod tests;
