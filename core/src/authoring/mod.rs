//! Turns payloads into the repository files that declare them.
//!
//! [`drafts_of`] splits a list into one [`Draft`] per resource. [`conceal`] takes secrets out of drafts, and rejects
//! drafts that would write secrets to files; [`detect_stored`] finds secrets that are in files already. A
//! [`Prepared`] draft is the content of its files: externalized attributes are moved to their own files, and defaults
//! are omitted. Only [`Prepared::write`] and [`Declaration::write`] write, so all drafts can be prepared before the
//! first file is written.

mod conceal;
mod declare;
mod detection;
mod error;
mod inferred;
mod items;
mod masked;
mod templates;

pub use conceal::{Attributes, Concealed, SecretOptions, any_readable, conceal, is_readable};
pub use declare::Declaration;
pub use detection::{Detected, detect_stored};
pub use error::AuthoringError;
pub use inferred::add_inferred;
pub use items::{drafts_of, is_list};
pub use templates::{check_saved_texts, check_texts, has_template, with_templates_of};

use std::sync::Arc;

use crate::metadata::document::{Resolved, compact};
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
    /// The complete payload.
    pub payload: Value,
    /// The requested format of the file, if any.
    pub descriptor: Option<Descriptor>,
    /// The text that the payload was read from, if any. It becomes the file, with its comments, if the file has this
    /// payload and format.
    pub text: Option<Vec<u8>>,
}

impl Draft {
    /// Returns a draft without a requested format.
    pub fn new(path: LogicalPath, payload: Value) -> Self {
        Self { path, payload, descriptor: None, text: None }
    }

    /// Omits values that equal the resource's defaults.
    pub fn prune_defaults(&mut self, metadata: &Metadata) -> Result<(), AuthoringError> {
        let rules = metadata.rules(&self.path)?;
        let defaults = Value::Object(rules.resolved().defaults.clone());
        self.payload = compact(std::mem::take(&mut self.payload), &defaults);
        Ok(())
    }

    /// Adds the write-only attributes that the existing file states and the draft does not.
    fn keep_write_only(&mut self, store: &Store, resolved: &Resolved) -> Result<(), RepositoryError> {
        if resolved.write_only_attributes.is_empty() {
            return Ok(());
        }
        let Some(before) = stored(store, &self.path)? else { return Ok(()) };
        for attribute in &resolved.write_only_attributes {
            if let (Some(value), None) = (attribute.get(&before), attribute.get(&self.payload)) {
                self.payload = attribute.put(std::mem::take(&mut self.payload), value.clone());
            }
        }
        Ok(())
    }
}

/// Returns the payload of the file of the resource. Returns `None` if the file is missing or cannot be decoded.
fn stored(store: &Store, path: &LogicalPath) -> Result<Option<Value>, RepositoryError> {
    match store.get(path) {
        Ok((_, payload)) => Ok(Some(payload)),
        Err(RepositoryError::ResourceMissing(_) | RepositoryError::Payload { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Drafts that are saved together.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The collection whose items the drafts are; `None` if each was given by itself.
    pub collection: Option<LogicalPath>,
    /// The drafts.
    pub drafts: Vec<Draft>,
    /// Whether the drafts were read from the server. Then write-only attributes, which it does not show, stay as the
    /// existing files state them.
    pub observed: bool,
}

/// The future content of the files of a resource.
#[derive(Debug)]
pub struct Prepared {
    path: LogicalPath,
    saved: Externalized,
    stale: Vec<String>,
    descriptor: Option<Descriptor>,
    format: Option<PayloadType>,
    text: Option<Vec<u8>>,
}

impl Prepared {
    /// Prepares `draft` for storing: moves its externalized attributes to their own files, and omits values that
    /// equal its defaults. Blocks.
    pub fn new(store: &Store, metadata: &Metadata, draft: Draft) -> Result<Self, AuthoringError> {
        let Draft { path, payload, descriptor, text } = draft;
        let rules = metadata.rules(&path)?;
        let resolved = rules.resolved();
        let attributes = &resolved.externalized_attributes;
        let sidecar = |name: &str| repository::read_sidecar(store.tree(), &path, name);
        let mut saved = includes::externalize(payload, attributes, &sidecar)
            .map_err(|source| MetadataError::Include { path: path.clone(), source: Box::new(source) })?;
        saved.payload = without_defaults(&path, saved.payload, resolved)?;
        // The files of a payload that cannot be read are unknown, so none of them is stale.
        let stale = stored(store, &path)?.map_or_else(Vec::new, |before| saved.stale(&before, attributes));
        Ok(Self { path, saved, stale, descriptor, format: rules.payload_type(), text })
    }

    /// The resource.
    pub fn path(&self) -> &LogicalPath {
        &self.path
    }

    /// Writes the files of externalized attributes, then the payload. Returns the payload's file, or `None` if the
    /// payload is null, which removes the file.
    pub fn write(&self, store: &Store) -> Result<Option<ResourceFile>, RepositoryError> {
        store.save(&self.path, &self.saved.payload, &self.save())
    }

    /// Returns the files that [`Prepared::write`] writes, relative to the root.
    pub fn files(&self, store: &Store) -> Result<Vec<String>, RepositoryError> {
        store.files(&self.path, &self.saved.payload, &self.save())
    }

    fn save(&self) -> Save<'_> {
        Save {
            descriptor: self.descriptor.as_ref(),
            format: self.format,
            text: self.text.as_deref(),
            sidecars: &self.saved.sidecars,
            stale: &self.stale,
        }
    }
}

/// Returns `payload` without the values that equal the defaults. A placeholder for the whole resource is kept.
fn without_defaults(
    path: &LogicalPath,
    payload: Value,
    resolved: &Resolved,
) -> Result<Value, AuthoringError> {
    let is_whole_secret = find_placeholder(&payload).is_some_and(|at| at.is_empty());
    if resolved.defaults.is_empty() || is_whole_secret {
        return Ok(payload);
    }
    // Do not write a payload that could not be read again.
    resolved
        .with_defaults(payload.clone())
        .map_err(|source| MetadataError::Layers { path: path.clone(), source: Arc::new(source) })?;
    Ok(compact(payload, &Value::Object(resolved.defaults.clone())))
}

/// Fails if a new file with this content of the server would declare another resource: by its id and its alias, it is not
/// the resource that was read. Blocks.
pub fn check_names(store: &Store, metadata: &Metadata, draft: &Draft) -> Result<(), AuthoringError> {
    let rules = metadata.rules(&draft.path)?;
    let is_declared = || repository::resource_file(store.tree(), &draft.path);
    // By default, the names are not certain to be in the content, and a singleton needs none.
    if !rules.identity().any_explicit() || rules.resolved().singleton || is_declared()?.is_some() {
        return Ok(());
    }
    let Ok(names) = rules.identify(&draft.path, &draft.payload) else { return Ok(()) };
    // Servers may ignore the case of letters.
    let name = rules.path_names().decode(draft.path.name()).to_lowercase();
    let is_own = [&names.remote_id, &names.alias].into_iter().any(|own| own.to_lowercase() == name);
    if is_own { Ok(()) } else { Err(AuthoringError::OtherNames(draft.path.clone())) }
}

/// Fails if one of `paths` is already a resource.
pub fn check_absent<'p>(
    store: &Store,
    paths: impl IntoIterator<Item = &'p LogicalPath>,
) -> Result<(), AuthoringError> {
    for path in paths {
        match store.get(path) {
            Err(RepositoryError::ResourceMissing(_)) => {}
            Ok(_) | Err(RepositoryError::Payload { .. }) => {
                return Err(AuthoringError::Exists(path.clone()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
