//! Errors of finding and evaluating metadata rules.

use std::sync::Arc;

use super::document::{DocumentError, OperationName};
use super::identity::WELL_KNOWN;
use super::includes::IncludeError;
use super::openapi::OpenApiError;
use super::transform::TransformError;
use super::{Origin, ValidationError};
use crate::error::{Category, categories};
use crate::language::jq::EvaluationError;
use crate::language::template::{IdentityError, TemplateError};
use crate::path::{LogicalPath, PathError};
use crate::payload::PayloadError;
use crate::repository::{RepositoryError, metadata_place};

/// An error of finding or evaluating the rules of a resource.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The lookup of documents failed.
    #[error("cannot look up the metadata of {path}")]
    Lookup {
        /// The resource.
        path: LogicalPath,
        /// The cause.
        #[source]
        source: RepositoryError,
    },
    /// A document could not be read.
    #[error("cannot read the metadata document {file}")]
    Read {
        /// The document.
        file: String,
        /// The cause.
        #[source]
        source: RepositoryError,
    },
    /// A document is not valid.
    #[error("{file}: {source}")]
    Document {
        /// The document, relative to the root of its source.
        file: String,
        /// The fault.
        source: Arc<DocumentError>,
    },
    /// Documents contradict each other.
    #[error("the metadata documents of {path} conflict: {source}")]
    Layers {
        /// The resource.
        path: LogicalPath,
        /// The conflict.
        source: Arc<DocumentError>,
    },
    /// Defaults apply to a payload that cannot have defaults.
    #[error("{file}: {source}")]
    Defaults {
        /// The payload file.
        file: String,
        /// The cause.
        source: Arc<DocumentError>,
    },
    /// The alias or id cannot be taken from the payload.
    #[error("{path}: {field}: {source}")]
    Identity {
        /// The resource.
        path: LogicalPath,
        /// The template.
        field: Box<Origin>,
        /// The cause.
        source: IdentityError,
    },
    /// A template cannot be rendered for the resource.
    #[error("{path}: {field}: {source}{}", given(.fields))]
    Render {
        /// The resource.
        path: LogicalPath,
        /// The field that holds the template.
        field: Box<Origin>,
        /// The fault.
        source: Box<TemplateError>,
        /// The fields of the path, if the template needs another one.
        fields: Vec<String>,
    },
    /// The rendered text of a template is not allowed in its field.
    #[error("{path}: {field}: \"{rendered}\" {reason}")]
    Unusable {
        /// The resource.
        path: LogicalPath,
        /// The field that holds the template.
        field: Box<Origin>,
        /// The rendered text.
        rendered: String,
        /// The fault, such as "is empty".
        reason: &'static str,
    },
    /// A transform failed.
    #[error("{path}: {field}: {source}")]
    Transform {
        /// The resource.
        path: LogicalPath,
        /// The steps.
        field: Box<Origin>,
        /// The step, and the cause.
        source: Box<TransformError>,
    },
    /// The server's `OpenAPI` document does not describe the request.
    #[error("{path}: {operation}: {source}; {}", advice(*.operation, *.stated))]
    Api {
        /// The resource.
        path: LogicalPath,
        /// The operation.
        operation: OperationName,
        /// Whether metadata states the method.
        stated: bool,
        /// The methods that the document describes.
        source: Box<OpenApiError>,
    },
    /// A request body is not valid.
    #[error("{path}: operations.{operation}: {source}")]
    Validation {
        /// The resource.
        path: LogicalPath,
        /// The operation.
        operation: OperationName,
        /// The violated rule.
        source: Box<ValidationError>,
    },
    /// An externalized attribute cannot be included in the payload, or moved to its file.
    #[error("{path}: {source}")]
    Include {
        /// The resource.
        path: LogicalPath,
        /// The attribute, and the cause.
        source: Box<IncludeError>,
    },
    /// The payload lacks attributes that metadata requires.
    #[error(
        "{path}: {operation} requires {missing} in the payload; add the missing attributes{}",
        if *only_id { ", or state another attribute in resource.alias if the server assigns the id" } else { "" }
    )]
    MissingAttributes {
        /// The resource.
        path: LogicalPath,
        /// The operation.
        operation: OperationName,
        /// The pointers and expressions without a value.
        missing: String,
        /// Whether only the id of a resource to create is missing.
        only_id: bool,
    },
    /// The payload cannot be encoded as the media type of the request.
    #[error("{path}: cannot encode the payload as {media_type}: {source}")]
    Encode {
        /// The resource.
        path: LogicalPath,
        /// The media type of the request body.
        media_type: String,
        /// The value that does not fit.
        #[source]
        source: PayloadError,
    },
    /// The payload cannot be a form.
    #[error("{0}: cannot encode the payload as a form: {1}")]
    Form(LogicalPath, String),
    /// A list response is neither an array nor an object with one array.
    #[error(
        "list of {collection}: {reason}; select the entries in operations.list.transforms in {file}",
        file = metadata_place(.collection)
    )]
    ListShape {
        /// The collection.
        collection: LogicalPath,
        /// The fault.
        reason: String,
    },
    /// A page of a list does not have the values that `pagination` in metadata refers to.
    #[error("list of {collection}: {field}: {reason}")]
    Pagination {
        /// The collection.
        collection: LogicalPath,
        /// The field of the pagination rule.
        field: Box<Origin>,
        /// The fault.
        reason: String,
    },
    /// A list entry has no alias and no id.
    #[error(
        "list of {collection}: entry {index} has no name: it has no value for the alias template \"{alias}\", for the id template \"{id}\", or at {well_known}; correct resource.alias, or select the entries in operations.list.transforms",
        well_known = WELL_KNOWN.join(", ")
    )]
    AnonymousEntry {
        /// The collection.
        collection: LogicalPath,
        /// The index of the entry, from 0.
        index: usize,
        /// The alias template.
        alias: String,
        /// The id template.
        id: String,
    },
    /// The alias of a list entry cannot be a path segment.
    #[error("list of {collection}: the alias \"{alias}\" cannot be part of a path: {source}")]
    EntryPath {
        /// The collection.
        collection: LogicalPath,
        /// The alias.
        alias: String,
        /// The cause.
        source: PathError,
    },
    /// Two list entries have the same alias.
    #[error("list of {collection}: {}", duplicate(.alias, .ids))]
    DuplicateAlias {
        /// The collection.
        collection: LogicalPath,
        /// The alias.
        alias: String,
        /// The ids of the entries.
        ids: [String; 2],
    },
}

/// Describes two entries with one alias. Different ids are two resources of the server with the same name.
fn duplicate(alias: &str, ids: &[String; 2]) -> String {
    let [first, second] = ids;
    if first == second {
        return format!(
            "the alias \"{alias}\" is ambiguous, because several entries have it; set resource.alias to a unique value"
        );
    }
    format!(
        "the entries with the ids {first} and {second} have the same name \"{alias}\"; rename one of them on the server, \
         or set resource.alias to a unique value"
    )
}

impl MetadataError {
    /// Returns the resource that a transform needs and the server does not have.
    pub(crate) fn lacks(&self) -> Option<&LogicalPath> {
        let Self::Transform { source, .. } = self else { return None };
        match source.as_ref() {
            TransformError::Evaluation { source: EvaluationError::Resource(path, failure), .. }
                if failure.category() == Category::NotFound =>
            {
                Some(path)
            }
            _ => None,
        }
    }
}

categories!(MetadataError {
    .source: Lookup, Read, Transform, Include, Api, Validation;
    Validation: Document, Layers, Defaults, Identity, Render, Unusable, MissingAttributes, Encode, Form,
        ListShape, Pagination, AnonymousEntry, EntryPath;
    Conflict: DuplicateAlias;
});

fn given(fields: &[String]) -> String {
    if fields.is_empty() { String::new() } else { format!("; the path has {}", fields.join(", ")) }
}

/// Returns what to do if the `OpenAPI` document does not have the method of `operation`, which metadata may state.
fn advice(operation: OperationName, stated: bool) -> String {
    if stated {
        return "metadata states the method; add it to the document that http.openapi names".to_owned();
    }
    let correction = format!("set operations.{operation}.method or path");
    match operation {
        OperationName::Get => {
            format!("{correction}, or operations.get.from: list if lists show whole resources")
        }
        _ => correction,
    }
}
