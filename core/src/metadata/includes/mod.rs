//! Attributes that are kept in their own files next to the payload (`resource.externalizedAttributes`).
//!
//! The stored payload has a placeholder for each: [`expand`] replaces it with the text of the file on read, and
//! [`externalize`] moves the text to the file on save. The order on read is payload, defaults, [`expand`]; on save it
//! is [`externalize`], compaction, sidecars, payload.
//!
//! ```
//! use declarest_core::metadata::document::Document;
//! use declarest_core::metadata::includes::{expand, externalize};
//! use declarest_core::payload::{PayloadType, decode};
//!
//! let metadata = b"resource: {externalizedAttributes: [{path: /steps/*/run, file: run.sh}]}";
//! let document = Document::decode(PayloadType::Yaml, metadata)?;
//! let attributes = document.resource.and_then(|resource| resource.externalized_attributes).unwrap_or_default();
//! let payload = decode(PayloadType::Json, br#"{"steps": [{"run": "a"}, {"wait": 1}, {"run": "c"}]}"#)?;
//!
//! let saved = externalize(payload.clone(), &attributes, &|_| Ok(None))?;
//! let stored = r#"{"steps": [{"run": "{{include run-0.sh}}"}, {"wait": 1}, {"run": "{{include run-2.sh}}"}]}"#;
//! assert_eq!(saved.payload, decode(PayloadType::Json, stored.as_bytes())?);
//!
//! let read = |file: &str| {
//!     let sidecar = saved.sidecars.iter().find(|sidecar| sidecar.file == file);
//!     Ok(sidecar.map(|sidecar| sidecar.content.clone()))
//! };
//! assert_eq!(expand(saved.payload.clone(), &attributes, &read)?, payload);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod matching;

use std::collections::BTreeSet;

pub use error::IncludeError;
use matching::{Match, matches, matches_of};

use super::document::ExternalizedAttribute;
use crate::payload::Value;
use crate::repository::{RepositoryError, Sidecar};

/// Reads a sidecar by its name relative to the directory of the payload; returns `None` if it does not exist. For a
/// resource of a tree, this is [`read_sidecar`](crate::repository::read_sidecar).
pub type ReadSidecar<'f> = &'f dyn Fn(&str) -> Result<Option<Vec<u8>>, RepositoryError>;

/// A payload as it is stored, and the files that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Externalized {
    /// The payload with placeholders.
    pub payload: Value,
    /// The files to write, in the order of the entries.
    pub sidecars: Vec<Sidecar>,
    /// The files that are kept, because the payload already had placeholders for them.
    pub kept: Vec<String>,
}

impl Externalized {
    /// Returns the sidecars that the previously stored payload included and that are no longer needed, sorted.
    pub fn stale(&self, before: &Value, attributes: &[ExternalizedAttribute]) -> Vec<String> {
        let needed = |file: &String| {
            self.kept.contains(file) || self.sidecars.iter().any(|sidecar| sidecar.file == *file)
        };
        referenced(before, attributes).into_iter().filter(|file| !needed(file)).collect()
    }
}

/// Replaces the placeholders of sidecars with their text.
///
/// A string is only replaced if it equals the placeholder of its own file, byte by byte. The file must exist and be
/// UTF-8. An attribute that the payload lacks is skipped. It is an error if a path continues below a scalar or null, or
/// has a name where the payload has an array, and if two entries have the same attribute or file.
pub fn expand(
    mut payload: Value,
    attributes: &[ExternalizedAttribute],
    read: ReadSidecar<'_>,
) -> Result<Value, IncludeError> {
    for found in matches(&payload, attributes)? {
        if let Some(Value::String(text)) = found.at.get_mut(&mut payload)
            && *text == found.placeholder
        {
            *text = found.text(read)?;
        }
    }
    Ok(payload)
}

/// Moves attributes of `payload` to sidecars.
///
/// Attributes match as in [`expand`]. Each must be a string or null; null is kept in the payload. A string that already
/// is the placeholder of its own file is also kept; its file is not written, and must exist according to `read`.
pub fn externalize(
    mut payload: Value,
    attributes: &[ExternalizedAttribute],
    read: ReadSidecar<'_>,
) -> Result<Externalized, IncludeError> {
    let (mut sidecars, mut kept) = (Vec::new(), Vec::new());
    for found in matches(&payload, attributes)? {
        match found.at.get_mut(&mut payload) {
            Some(Value::String(text)) if *text == found.placeholder => {
                found.content(read)?;
                kept.push(found.file);
            }
            Some(Value::String(text)) => {
                let content = std::mem::replace(text, found.placeholder).into_bytes();
                sidecars.push(Sidecar { file: found.file, content });
            }
            None | Some(Value::Null) => {}
            Some(other) => {
                let kind = other.kind();
                return Err(IncludeError::NotText { at: found.at, file: found.file, kind });
            }
        }
    }
    Ok(Externalized { payload, sidecars, kept })
}

/// Returns the sidecars that a stored payload includes, sorted. An entry that is an error in [`expand`] is ignored,
/// because files are deleted on the basis of this list.
pub fn referenced(stored: &Value, attributes: &[ExternalizedAttribute]) -> Vec<String> {
    let enabled = attributes.iter().filter(|attribute| attribute.is_enabled());
    let found = enabled.filter_map(|attribute| matches_of(stored, attribute).ok()).flatten();
    let included =
        found.filter(|found| found.at.get(stored).and_then(Value::as_str) == Some(&found.placeholder));
    included.map(|found| found.file).collect::<BTreeSet<_>>().into_iter().collect()
}

impl Match {
    fn content(&self, read: ReadSidecar<'_>) -> Result<Vec<u8>, IncludeError> {
        let (at, file) = (|| self.at.clone(), || self.file.clone());
        match read(&self.file) {
            Ok(Some(content)) => Ok(content),
            Ok(None) => Err(IncludeError::Missing { at: at(), file: file() }),
            Err(source) => Err(IncludeError::Read { at: at(), file: file(), source: Box::new(source) }),
        }
    }

    fn text(&self, read: ReadSidecar<'_>) -> Result<String, IncludeError> {
        String::from_utf8(self.content(read)?)
            .map_err(|_| IncludeError::NotUtf8 { at: self.at.clone(), file: self.file.clone() })
    }
}

#[cfg(test)]
mod tests;
