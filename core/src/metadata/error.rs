//! Why rules could not be found or evaluated.

use std::sync::Arc;

use super::document::{DocumentError, OperationName};
use super::identity::IdentityError;
use super::includes::IncludeError;
use super::list;
use super::openapi::OpenApiError;
use super::template::TemplateError;
use super::transform::TransformError;
use super::{Origin, ValidationError};
use crate::error::{Categorized, Category};
use crate::path::{LogicalPath, PathError};
use crate::payload::PayloadError;
use crate::repository::RepositoryError;

/// Why rules could not be found or evaluated for a resource.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// Looking for documents failed.
    #[error("cannot look up the metadata of {path}")]
    Lookup {
        /// The resource.
        path: LogicalPath,
        /// What failed.
        #[source]
        source: RepositoryError,
    },
    /// A document could not be read.
    #[error("cannot read the metadata document {file}")]
    Read {
        /// The document.
        file: String,
        /// What failed.
        #[source]
        source: RepositoryError,
    },
    /// A document is not valid.
    #[error("{file}: {source}")]
    Document {
        /// The document, relative to the root of its source.
        file: String,
        /// What is wrong with it.
        source: Arc<DocumentError>,
    },
    /// Documents do not fit each other.
    #[error("the metadata documents of {path} do not fit together: {source}")]
    Layers {
        /// The resource.
        path: LogicalPath,
        /// What does not fit.
        source: Arc<DocumentError>,
    },
    /// Defaults apply to a payload that cannot have any.
    #[error("{file}: {source}")]
    Defaults {
        /// The payload file.
        file: String,
        /// Why not.
        source: Arc<DocumentError>,
    },
    /// The payload gives the resource no usable names.
    #[error("{path}: {field}: {source}")]
    Identity {
        /// The resource.
        path: LogicalPath,
        /// The template.
        field: Box<Origin>,
        /// Why not.
        source: IdentityError,
    },
    /// A template cannot be rendered for the resource.
    #[error("{path}: {field}: {source}")]
    Render {
        /// The resource.
        path: LogicalPath,
        /// The field that holds the template.
        field: Box<Origin>,
        /// What is missing or wrong.
        source: Box<TemplateError>,
    },
    /// A template gives a text that its field cannot have.
    #[error("{path}: {field}: \"{rendered}\" {reason}")]
    Unusable {
        /// The resource.
        path: LogicalPath,
        /// The field that holds the template.
        field: Box<Origin>,
        /// What it gave.
        rendered: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A transform failed.
    #[error("{path}: {field}: {source}")]
    Transform {
        /// The resource.
        path: LogicalPath,
        /// The steps.
        field: Box<Origin>,
        /// Which step, and why.
        source: Box<TransformError>,
    },
    /// The server's `OpenAPI` document does not know the request.
    #[error("{path}: {operation}: {source}; set operations.{operation}.method or path")]
    Api {
        /// The resource.
        path: LogicalPath,
        /// The operation.
        operation: OperationName,
        /// What the document has instead.
        source: Box<OpenApiError>,
    },
    /// A body must not be sent.
    #[error("{path}: operations.{operation}: {source}")]
    Validation {
        /// The resource.
        path: LogicalPath,
        /// The operation.
        operation: OperationName,
        /// What it violates.
        source: Box<ValidationError>,
    },
    /// An attribute that is kept in a file of its own could not be put in place.
    #[error("{path}: {source}")]
    Include {
        /// The resource.
        path: LogicalPath,
        /// Which one, and why.
        source: Box<IncludeError>,
    },
    /// The payload lacks what metadata requires.
    #[error("{path}: {operation} needs {missing} in the payload; add what is missing")]
    MissingAttributes {
        /// The resource.
        path: LogicalPath,
        /// The operation.
        operation: OperationName,
        /// Pointers and expressions without a value.
        missing: String,
    },
    /// The payload cannot be encoded for the wire.
    #[error("{path}: cannot encode the payload as {media_type}: {source}")]
    Encode {
        /// The resource.
        path: LogicalPath,
        /// The media type on the wire.
        media_type: String,
        /// What does not fit.
        #[source]
        source: PayloadError,
    },
    /// A list answer that is neither an array nor an object with one array.
    #[error("list of {collection}: {reason}")]
    ListShape {
        /// The collection.
        collection: LogicalPath,
        /// What was found instead.
        reason: String,
    },
    /// A page of a list that does not fit what metadata says about pages.
    #[error("list of {collection}: {field}: {reason}")]
    Pagination {
        /// The collection.
        collection: LogicalPath,
        /// The rule.
        field: Box<Origin>,
        /// What does not fit.
        reason: String,
    },
    /// A list entry that nothing identifies.
    #[error(
        "list of {collection}: entry {index} has no name: neither the alias template \"{alias}\" nor the id template \"{id}\" gives one, nor has it {well_known}",
        well_known = list::WELL_KNOWN.join(", ")
    )]
    AnonymousEntry {
        /// The collection.
        collection: LogicalPath,
        /// Its place in the list, from 0.
        index: usize,
        /// The alias template.
        alias: String,
        /// The id template.
        id: String,
    },
    /// A list entry whose alias is no part of a path.
    #[error("list of {collection}: the alias \"{alias}\" cannot be part of a path: {source}")]
    EntryPath {
        /// The collection.
        collection: LogicalPath,
        /// The alias.
        alias: String,
        /// Why not.
        source: PathError,
    },
    /// Two list entries of one alias.
    #[error(
        "list of {collection}: several entries have the alias \"{alias}\"; set resource.alias to something unique"
    )]
    DuplicateAlias {
        /// The collection.
        collection: LogicalPath,
        /// The alias.
        alias: String,
    },
}

impl Categorized for MetadataError {
    fn category(&self) -> Category {
        match self {
            Self::Lookup { source, .. } | Self::Read { source, .. } => source.category(),
            Self::Transform { source, .. } => source.category(),
            Self::Include { source, .. } => source.category(),
            Self::Api { source, .. } => source.category(),
            Self::Validation { source, .. } => source.category(),
            Self::Document { .. }
            | Self::Layers { .. }
            | Self::Defaults { .. }
            | Self::Identity { .. }
            | Self::Render { .. }
            | Self::Unusable { .. }
            | Self::MissingAttributes { .. }
            | Self::Encode { .. }
            | Self::ListShape { .. }
            | Self::Pagination { .. }
            | Self::AnonymousEntry { .. }
            | Self::EntryPath { .. } => Category::Validation,
            Self::DuplicateAlias { .. } => Category::Conflict,
        }
    }
}
