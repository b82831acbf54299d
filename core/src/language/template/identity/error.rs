//! Errors of identity templates.

use crate::error::categories;
use crate::path::PathError;

/// A text is not an identity template, or a template cannot be rendered for a payload.
///
/// Messages contain templates, which are metadata. Of payloads they contain only types and pointers, and a rendered
/// name that is not a path segment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The syntax of the template is not valid.
    #[error("identity template \"{template}\", column {column}: {reason}")]
    Syntax {
        /// The template as written.
        template: String,
        /// The column, in characters from 1.
        column: usize,
        /// The fault and the correction.
        reason: String,
    },
    /// The payload lacks a value.
    #[error("identity template \"{template}\": {expression} has no value in the payload")]
    Missing {
        /// The template as written.
        template: String,
        /// The pointer or helper call without a value.
        expression: String,
    },
    /// A pointer refers to an object or array.
    #[error(
        "identity template \"{template}\": {pointer} is {kind}; only text, numbers and booleans can name a resource"
    )]
    NotScalar {
        /// The template as written.
        template: String,
        /// The pointer.
        pointer: String,
        /// The type of the value.
        kind: &'static str,
    },
    /// The start or length of `substring` exceeds the text.
    #[error(
        "identity template \"{template}\": {expression} is out of range of a text of {length} characters"
    )]
    OutOfRange {
        /// The template as written.
        template: String,
        /// The call.
        expression: String,
        /// The length of the text, in characters.
        length: usize,
    },
    /// The rendered name is blank.
    #[error("identity template \"{0}\" renders a blank name")]
    Blank(String),
    /// The rendered name is not a path segment.
    #[error(
        "identity template \"{template}\" renders an invalid name: {source}{hint}",
        hint = match source {
            PathError::NotASegment(name) if name.contains('/') => SLASHES,
            _ => "",
        }
    )]
    NotASegment {
        /// The template as written.
        template: String,
        /// The fault.
        source: PathError,
    },
}

/// The end of a message about a name with slashes.
const SLASHES: &str = "; if names may have slashes, state resource.pathNames: percentEncoded";

impl IdentityError {
    /// The template as written.
    pub fn template(&self) -> &str {
        match self {
            Self::Syntax { template, .. }
            | Self::Missing { template, .. }
            | Self::NotScalar { template, .. }
            | Self::OutOfRange { template, .. }
            | Self::Blank(template)
            | Self::NotASegment { template, .. } => template,
        }
    }
}

categories!(IdentityError: Validation);
