//! What can be wrong with an identity template, or with the identity that it gives.

use crate::error::{Categorized, Category};
use crate::path::PathError;

/// Why a text is no identity template, or why one gives no identity for a payload.
///
/// Templates are metadata and are shown; of payloads only kinds and places are, except for a name that was
/// rendered but is no path segment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The text breaks the grammar.
    #[error("identity template \"{template}\", column {column}: {reason}")]
    Syntax {
        /// The template as written.
        template: String,
        /// Where, in characters from 1.
        column: usize,
        /// What is wrong there and what would be right.
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
    /// A pointer leads to a container.
    #[error(
        "identity template \"{template}\": {pointer} is {kind}; only text, numbers and booleans can name a resource"
    )]
    NotScalar {
        /// The template as written.
        template: String,
        /// The pointer.
        pointer: String,
        /// What is there instead.
        kind: &'static str,
    },
    /// `substring` with a start or length that the text does not have.
    #[error(
        "identity template \"{template}\": {expression} is out of range of a text of {length} characters"
    )]
    OutOfRange {
        /// The template as written.
        template: String,
        /// The call.
        expression: String,
        /// How long the text is.
        length: usize,
    },
    /// Everything evaluated, and nothing but white space came out.
    #[error("identity template \"{template}\" gives a blank name")]
    Blank {
        /// The template as written.
        template: String,
    },
    /// What came out is not one path segment.
    #[error("identity template \"{template}\" gives no usable name: {source}")]
    NotASegment {
        /// The template as written.
        template: String,
        /// Why not.
        source: PathError,
    },
}

impl IdentityError {
    /// The template as written.
    pub fn template(&self) -> &str {
        match self {
            Self::Syntax { template, .. }
            | Self::Missing { template, .. }
            | Self::NotScalar { template, .. }
            | Self::OutOfRange { template, .. }
            | Self::Blank { template }
            | Self::NotASegment { template, .. } => template,
        }
    }
}

impl Categorized for IdentityError {
    fn category(&self) -> Category {
        Category::Validation
    }
}
