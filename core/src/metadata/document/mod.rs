//! The metadata document: the content of one `metadata.yaml` or `metadata.json`, and the merged content of several.
//!
//! [`Document::decode`] is strict: a misspelt key is an error with its position, not an ignored rule.
//! [`Document::validate`] checks templates, and the rules that depend on the location of the document. [`Layers`]
//! merges documents into [`Resolved`], the effective metadata of one path. This module does not read files: a function
//! of the caller reads included files.
//!
//! ```
//! use declarest_core::metadata::document::{Document, Layers, OperationName};
//! use declarest_core::payload::PayloadType;
//!
//! let shops = Document::decode(PayloadType::Yaml, b"operations: {update: {method: PATCH}}")?;
//! let rio = Document::decode(PayloadType::Json, br#"{"resource": {"alias": "/name"}}"#)?;
//! let mut layers = Layers::default();
//! for document in [&shops, &rio] {
//!     layers.push(document, &|file| Err(format!("cannot include {file}").into()))?;
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
mod lifecycle;
mod managed;
mod mode;
mod model;
mod pagination;
mod resolved;
mod schema;
mod schema_forms;
mod validate;

pub use defaults::{DefaultsMode, DefaultsSection, DefaultsSource, compact, merge};
pub use error::{DocumentError, IncludeError};
pub use externalized::{ExternalizedAttribute, ExternalizedMode, RenderBehavior, SaveBehavior};
pub use headers::Headers;
pub use infer::infer_defaults;
pub use layers::{Layers, Resolved, ResolvedOperation, ResolvedValidation};
pub use lifecycle::{AbsentSection, FailedSection, OnRemove, ReadFrom};
pub use mode::{ArrayRule, OperationMode};
pub use model::{
    Assertion, Document, Format, OperationDefaultsSection, OperationName, OperationSection,
    OperationsSection, ResourceSection, SchemaRef, SelectorSection, Step, ValidateSection,
};
pub use pagination::{Numbered, Pagination, PaginationStyle};
pub use schema::json_schema;
pub use validate::read;
pub(super) use validate::{NO_HEADER_NAME, any_in_body};

#[cfg(test)]
mod tests;
