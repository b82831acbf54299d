//! What can be wrong with an `OpenAPI` document, or with what is asked of it.

use http::Method;

use super::reference::ReferenceError;
use crate::error::{Categorized, Category};
use crate::payload::pointer::Pointer;

/// Why a document, or a part of it, cannot be used.
///
/// The file or URL is not known here; callers add it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenApiError {
    /// The bytes are neither JSON nor YAML.
    #[error("the OpenAPI document is neither JSON nor YAML: {reason}")]
    Syntax {
        /// What a parser says: that of JSON if the text starts like JSON, else that of YAML.
        reason: String,
    },
    /// The document is something else than an object.
    #[error("the OpenAPI document is {kind}, not an object")]
    NotAnObject {
        /// What it is.
        kind: &'static str,
    },
    /// A path of the document has no such method.
    #[error("the OpenAPI document has no {method} for {template}; it has {}", listed(.known))]
    Method {
        /// The path as the document writes it.
        template: String,
        /// The method asked for.
        method: Method,
        /// The methods that the path has.
        known: Vec<Method>,
    },
    /// A place of the document cannot be reached.
    #[error("no schema in the OpenAPI document at #{at}: {source}")]
    Schema {
        /// The place.
        at: Pointer,
        /// Why not.
        #[source]
        source: ReferenceError,
    },
}

impl Categorized for OpenApiError {
    fn category(&self) -> Category {
        Category::Validation
    }
}

fn listed(methods: &[Method]) -> String {
    if methods.is_empty() {
        return "no method at all".to_owned();
    }
    methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ")
}
