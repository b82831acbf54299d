//! Attributes that are kept in files of their own beside the payload (`resource.externalizedAttributes`).
//!
//! In the stored payload a placeholder stands for each: [`expand`] puts the files' text in its place when a
//! payload is read, [`externalize`] takes the text out when one is saved. Reading goes payload, defaults,
//! [`expand`]; saving goes [`externalize`], compaction, then sidecars, then the payload.
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

/// Reads a sidecar by its name relative to the directory of the payload; `None` if there is none. For a
/// resource of a tree this is [`read_sidecar`](crate::repository::read_sidecar).
pub type ReadSidecar<'f> = &'f dyn Fn(&str) -> Result<Option<Vec<u8>>, RepositoryError>;

/// A payload as it is stored, and the files that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Externalized {
    /// The payload with placeholders.
    pub payload: Value,
    /// The files to write, in the order of the entries.
    pub sidecars: Vec<Sidecar>,
    /// Files that stay as they are, as the payload had placeholders for them already.
    pub kept: Vec<String>,
}

impl Externalized {
    /// The sidecars that the payload stored before included and this one does not need any more, sorted.
    pub fn stale(&self, before: &Value, attributes: &[ExternalizedAttribute]) -> Vec<String> {
        let needed = |file: &String| {
            self.kept.contains(file) || self.sidecars.iter().any(|sidecar| sidecar.file == *file)
        };
        referenced(before, attributes).into_iter().filter(|file| !needed(file)).collect()
    }
}

/// Puts the text of sidecars in the place of their placeholders.
///
/// Only a string that equals the placeholder of its own file byte by byte is replaced, by all of the file:
/// it must exist and be UTF-8. An attribute that the payload lacks is skipped. A path that runs into a scalar
/// or into null, or that has a name for an array, is an error, and so are two attributes in one file and two
/// entries for one attribute.
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

/// Takes text out of `payload` into sidecars.
///
/// Attributes match as in [`expand`]. Each must be a string or null, which stays where it is. A string that
/// is the placeholder of its own file already stays, too; the file is not touched and must exist, as `read`
/// tells.
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

/// The sidecars that a stored payload includes through entries, sorted. An entry that does not fit the
/// payload includes nothing: what is deleted because of this must be certain.
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
