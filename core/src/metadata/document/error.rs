//! What can be wrong with a metadata document, or with several together.

use std::borrow::Cow;

use super::IncludeError;
use crate::error::{Categorized, Category};
use crate::payload::fields::FieldError;
use crate::payload::{PayloadError, PayloadType};

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
    #[error("{field}: {reason}")]
    Invalid {
        /// The field.
        field: String,
        /// What is wrong.
        reason: Cow<'static, str>,
    },
    /// An included defaults file is missing or cannot be decoded.
    #[error("{field}: cannot include {file}")]
    Include {
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
        "resource.defaults.useProfiles: there is no profile \"{profile}\"; {}",
        if .known.is_empty() { "no layer defines any".to_owned() } else { format!("there are {}", .known.join(", ")) }
    )]
    UnknownProfile {
        /// The profile.
        profile: String,
        /// The profiles that exist.
        known: Vec<String>,
    },
}

impl Categorized for DocumentError {
    fn category(&self) -> Category {
        Category::Validation
    }
}
