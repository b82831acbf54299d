//! The metadata document: what one `metadata.yaml` or `metadata.json` says, and what several of them say
//! together.
//!
//! [`Document::decode`] is strict, so that a misspelt key is an error with its place and not a rule that
//! silently does not hold. [`Document::validate`] checks what only templates and the document's address
//! decide. [`Layers`] folds documents in merge order into [`Resolved`], the effective metadata of one path.
//! Nothing here reads files: what a document includes is read by a function of the caller.
//!
//! ```
//! use declarest_core::metadata::document::{Document, Layers, OperationName};
//! use declarest_core::payload::PayloadType;
//!
//! let shops = Document::decode(PayloadType::Yaml, b"operations: {update: {method: PATCH}}")?;
//! let rio = Document::decode(PayloadType::Json, br#"{"resource": {"alias": "/name"}}"#)?;
//! let mut layers = Layers::default();
//! for document in [&shops, &rio] {
//!     layers.push(document, &|file| Err(format!("{file} is not here").into()))?;
//! }
//! let resolved = layers.resolve()?;
//! assert_eq!(resolved.alias.as_deref(), Some("/name"));
//! assert_eq!(resolved.operation(OperationName::Update).method.as_deref(), Some("PATCH"));
//! # Ok::<(), declarest_core::metadata::document::DocumentError>(())
//! ```

mod decode;
mod defaults;
mod encode;
mod error;
mod externalized;
mod headers;
mod infer;
mod layers;
mod managed;
mod model;
mod pagination;
mod resolved;
mod schema;
mod validate;

pub use defaults::{DefaultsMode, DefaultsSection, DefaultsSource, compact, merge};
pub use error::DocumentError;
pub use externalized::{ExternalizedAttribute, ExternalizedMode, RenderBehavior, SaveBehavior};
pub use headers::Headers;
pub use infer::infer_defaults;
pub use layers::{IncludeError, Layers, Resolved, ResolvedOperation, ResolvedValidation};
pub use model::{
    Assertion, Document, Format, OperationDefaultsSection, OperationName, OperationSection,
    OperationsSection, ResourceSection, SchemaRef, SelectorSection, Step, ValidateSection,
};
pub use pagination::{Numbered, Pagination, PaginationStyle};
pub use schema::json_schema;
pub(super) use validate::NO_HEADER_NAME;
pub use validate::{Checks, TemplateField};

#[cfg(test)]
mod decode_tests;
#[cfg(test)]
mod defaults_tests;
#[cfg(test)]
mod encode_tests;
#[cfg(test)]
mod layers_tests;
#[cfg(test)]
mod managed_tests;
#[cfg(test)]
mod validate_tests;
