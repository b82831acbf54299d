//! What can be wrong with a metadata document, or with several together.

use std::borrow::Cow;

use super::IncludeError;
use crate::error::{Categorized, Category};
use crate::payload::fields::{FieldError, read_document};
use crate::payload::{PayloadError, PayloadType, Position};

/// Why a document could not be read, is not valid, or does not fit the others.
///
/// Errors name places, fields and keys. The file is not known here; callers add it.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// A format that metadata cannot have.
    #[error("a metadata document is yaml or json, not {0}")]
    Format(PayloadType),
    /// The bytes are not one document of the format, or a field is unknown or has an impossible value.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The document has something that the format cannot hold.
    #[error(transparent)]
    Encode(#[from] PayloadError),
    /// A rule between fields, or about a template, does not hold.
    #[error("{}{field}: {reason}", place(*.position))]
    Invalid {
        /// Where the field stands, if [`DocumentError::located`] was told.
        position: Option<Position>,
        /// The field.
        field: String,
        /// What is wrong.
        reason: Cow<'static, str>,
    },
    /// An included defaults file is missing or cannot be decoded.
    #[error("{}{field}: cannot include {file}", place(*.position))]
    Include {
        /// Where the field stands, if [`DocumentError::located`] was told.
        position: Option<Position>,
        /// The field.
        field: String,
        /// The file, next to the document.
        file: String,
        /// What failed.
        #[source]
        source: IncludeError,
    },
    /// A selected defaults profile that no layer defines.
    #[error(
        "{}{USE_PROFILES}: there is no profile \"{profile}\"; {}",
        place(*.position),
        if .known.is_empty() { "no layer defines any".to_owned() } else { format!("there are {}", .known.join(", ")) }
    )]
    UnknownProfile {
        /// Where the field stands, if [`DocumentError::located`] was told.
        position: Option<Position>,
        /// The profile.
        profile: String,
        /// The profiles that exist.
        known: Vec<String>,
    },
}

const USE_PROFILES: &str = "resource.defaults.useProfiles";

impl DocumentError {
    /// A rule does not hold for `field`.
    pub(in crate::metadata) fn invalid(
        field: impl Into<String>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Invalid { position: None, field: field.into(), reason: reason.into() }
    }

    /// The same error with the place of its field in the document that `bytes` are.
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

/// Where `field` stands in a document, else what it is a part of.
fn find(field: &str, payload_type: PayloadType, bytes: &[u8]) -> Option<Position> {
    let places = read_document(payload_type, bytes).ok()??.places();
    let mut enclosing = std::iter::successors(Some(field), |part| Some(&part[..part.rfind(['.', '['])?]));
    enclosing.find_map(|part| places.get(part).copied())
}

fn place(position: Option<Position>) -> String {
    position.map(|position| format!("{position}: ")).unwrap_or_default()
}

impl Categorized for DocumentError {
    fn category(&self) -> Category {
        Category::Validation
    }
}
