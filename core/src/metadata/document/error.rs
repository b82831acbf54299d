//! Errors of metadata documents.

use std::borrow::Cow;

use crate::error::categories;
use crate::payload::fields::{FieldError, read_document};
use crate::payload::{PayloadError, PayloadType, Position};

/// The error of reading an included file.
pub type IncludeError = Box<dyn std::error::Error + Send + Sync>;

/// A document cannot be read, is not valid, or conflicts with others.
///
/// Messages name the position, field and key. Callers add the file.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// A format that metadata does not support.
    #[error("a metadata document is yaml or json, not {0}")]
    Format(PayloadType),
    /// The bytes are not one document of the format, or a field is unknown or has an invalid value.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The document has a value that the format cannot represent.
    #[error(transparent)]
    Encode(#[from] PayloadError),
    /// A template or a combination of fields is not valid.
    #[error("{}{field}: {reason}", place(*.position))]
    Invalid {
        /// The position of the field, if [`DocumentError::located`] added it.
        position: Option<Position>,
        /// The field.
        field: String,
        /// The fault.
        reason: Cow<'static, str>,
    },
    /// An included defaults file is missing or cannot be decoded.
    #[error("{}{field}: cannot include {file}", place(*.position))]
    Include {
        /// The position of the field, if [`DocumentError::located`] added it.
        position: Option<Position>,
        /// The field.
        field: String,
        /// The file, next to the document.
        file: String,
        /// The cause.
        #[source]
        source: IncludeError,
    },
    /// A selected defaults profile that no layer defines.
    #[error(
        "{}{USE_PROFILES}: unknown profile \"{profile}\"; {}",
        place(*.position),
        if .known.is_empty() { "no document defines a profile".to_owned() } else { format!("known are {}", .known.join(", ")) }
    )]
    UnknownProfile {
        /// The position of the field, if [`DocumentError::located`] added it.
        position: Option<Position>,
        /// The profile.
        profile: String,
        /// The profiles that exist.
        known: Vec<String>,
    },
}

const USE_PROFILES: &str = "resource.defaults.useProfiles";

impl DocumentError {
    /// Returns an error that `field` is not valid.
    pub(crate) fn invalid(field: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Invalid { position: None, field: field.into(), reason: reason.into() }
    }

    /// Adds the position of the field in the document, whose content is `bytes`.
    #[must_use]
    pub fn located(mut self, payload_type: PayloadType, bytes: &[u8]) -> Self {
        let (position, field) = match &mut self {
            Self::Invalid { position, field, .. } | Self::Include { position, field, .. } => {
                (position, field.as_str())
            }
            Self::UnknownProfile { position, .. } => (position, USE_PROFILES),
            Self::Format(_) | Self::Field(_) | Self::Encode(_) => return self,
        };
        if position.is_none() {
            *position = find(field, payload_type, bytes);
        }
        self
    }
}

/// Returns the position of `field` in a document, otherwise that of the nearest enclosing field.
fn find(field: &str, payload_type: PayloadType, bytes: &[u8]) -> Option<Position> {
    let places = read_document(payload_type, bytes).ok()??.places();
    let mut enclosing = std::iter::successors(Some(field), |part| Some(&part[..part.rfind(['.', '['])?]));
    enclosing.find_map(|part| places.get(part).copied())
}

fn place(position: Option<Position>) -> String {
    position.map(|position| format!("{position}: ")).unwrap_or_default()
}

categories!(DocumentError: Validation);
