//! Errors of `OpenAPI` documents.

use http::Method;

use super::reference::ReferenceError;
use crate::error::categories;
use crate::payload::pointer::Pointer;

/// A document, or a part of it, cannot be used. Callers add its file or URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenApiError {
    /// The bytes are neither JSON nor YAML.
    #[error("the OpenAPI document is neither JSON nor YAML: {0}")]
    Syntax(String),
    /// The document needs too much memory.
    #[error("the OpenAPI document has too many values: decoded, it exceeds the limit of memory")]
    TooHeavy,
    /// The document is not an object.
    #[error("the OpenAPI document is {0}, not an object")]
    NotAnObject(&'static str),
    /// The object has no member of such a document.
    #[error("this is not an OpenAPI document: it has none of the members openapi, swagger and paths")]
    Unknown,
    /// A path of the document does not have this method.
    #[error("the OpenAPI document has no {method} for {template}; it has {}", listed(.known))]
    Method {
        /// The path template.
        template: String,
        /// The requested method.
        method: Method,
        /// The methods that the path has.
        known: Vec<Method>,
    },
    /// A pointer does not refer to a schema.
    #[error("the OpenAPI document has no schema at #{at}: {source}")]
    Schema {
        /// The pointer.
        at: Pointer,
        /// The cause.
        #[source]
        source: ReferenceError,
    },
}

categories!(OpenApiError: Validation);

fn listed(methods: &[Method]) -> String {
    if methods.is_empty() {
        return "no methods".to_owned();
    }
    methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ")
}
