//! The content of a metadata document. `None` means absent; an empty list or map clears the inherited one.

use std::collections::BTreeMap;
use std::fmt;

use super::{DefaultsSection, ExternalizedAttribute, Headers, Pagination};
use crate::payload::pointer::Pointer;
use crate::payload::{Class, PayloadType, Value};

/// One metadata document. [`Document::decode`] reads it, [`Document::encode_yaml`] writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The resources that the document applies to. Only documents of collections have it, and it is not inherited.
    pub selector: Option<SelectorSection>,
    /// The identity and the payload of a resource.
    pub resource: Option<ResourceSection>,
    /// The requests to the server.
    pub operations: Option<OperationsSection>,
}

impl Document {
    /// Returns whether the document governs all descendants of its collection. Otherwise it governs the collection and
    /// its direct children.
    pub fn reaches_descendants(&self) -> bool {
        self.selector.as_ref().and_then(|selector| selector.descendants).unwrap_or(false)
    }
}

/// `selector`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectorSection {
    /// Whether the document governs all descendants; false if absent.
    pub descendants: Option<bool>,
}

/// `resource`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceSection {
    /// The identity template of the remote id.
    pub id: Option<String>,
    /// The identity template of the alias.
    pub alias: Option<String>,
    /// The template of the collection's path on the server.
    pub remote_collection_path: Option<String>,
    /// The format of payloads.
    pub format: Option<Format>,
    /// The attributes that a payload must have.
    pub required_attributes: Option<Vec<Pointer>>,
    /// Whether the whole resource is a secret.
    pub secret: Option<bool>,
    /// The attributes that are secret.
    pub secret_attributes: Option<Vec<Pointer>>,
    /// The attributes that are kept in their own files.
    pub externalized_attributes: Option<Vec<ExternalizedAttribute>>,
    /// The default values of payloads.
    pub defaults: Option<DefaultsSection>,
}

/// The format of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Each payload has its own format.
    Any,
    /// All payloads have this format.
    Concrete(PayloadType),
}

impl Format {
    /// Returns whether payloads of this format never have attributes.
    pub fn is_unstructured(self) -> bool {
        matches!(self, Self::Concrete(payload_type) if payload_type.class() != Class::Structured)
    }

    /// Returns the format with this name; `None` if it is unknown.
    pub fn parse(name: &str) -> Option<Self> {
        if name.trim() == "any" {
            return Some(Self::Any);
        }
        PayloadType::parse_name(name).map(Self::Concrete)
    }

    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Concrete(payload_type) => payload_type.name(),
        }
    }
}

/// `operations`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationsSection {
    /// Settings for all operations.
    pub defaults: Option<OperationDefaultsSection>,
    /// Settings by operation.
    pub operations: BTreeMap<OperationName, OperationSection>,
}

/// `operations.defaults`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationDefaultsSection {
    /// The steps that run before the steps of each operation.
    pub transforms: Option<Vec<Step>>,
}

/// The name of an operation in documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationName {
    /// Create a resource.
    Create,
    /// Read one resource.
    Get,
    /// Update an existing resource.
    Update,
    /// Delete a resource.
    Delete,
    /// List the members of a collection.
    List,
    /// Compare the desired and the observed payload, without a request.
    Compare,
}

impl OperationName {
    /// All operations.
    pub const ALL: [Self; 6] =
        [Self::Create, Self::Get, Self::Update, Self::Delete, Self::List, Self::Compare];

    /// The key in documents.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Get => "get",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Compare => "compare",
        }
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// `operations.<name>`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationSection {
    /// The template of the HTTP method.
    pub method: Option<String>,
    /// The template of the path; relative to the remote collection if it starts with `.`.
    pub path: Option<String>,
    /// The templates of query values by name.
    pub query: Option<BTreeMap<String, String>>,
    /// The templates of header values.
    pub headers: Option<Headers>,
    /// The request body, sent literally instead of the payload.
    pub body: Option<Value>,
    /// The steps that transform the payload.
    pub transforms: Option<Vec<Step>>,
    /// The validation of a request body.
    pub validate: Option<ValidateSection>,
    /// How pages are requested; for list only.
    pub pagination: Option<Pagination>,
}

/// One step of a transform pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keep only these attributes.
    Select(Vec<Pointer>),
    /// Remove these attributes.
    Exclude(Vec<Pointer>),
    /// Replace the payload with the result of a jq expression, which is a template.
    Jq(String),
}

/// `operations.<name>.validate`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidateSection {
    /// The attributes that the body must have.
    pub required_attributes: Option<Vec<Pointer>>,
    /// The schema of the body.
    pub schema_ref: Option<SchemaRef>,
    /// The conditions on the body.
    pub assertions: Option<Vec<Assertion>>,
}

/// A schema in the `OpenAPI` document of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaRef {
    /// The schema of the operation's request body.
    RequestBody,
    /// The schema at this pointer.
    At(Pointer),
}

impl SchemaRef {
    /// Parses `openapi:request-body` or `openapi:#/…`. The error is the fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "openapi:request-body" {
            return Ok(Self::RequestBody);
        }
        match text.strip_prefix("openapi:#").filter(|pointer| pointer.starts_with('/')) {
            Some(pointer) => Pointer::parse(pointer).map(Self::At).map_err(|error| error.to_string()),
            None => Err(format!("\"{text}\" is neither openapi:request-body nor openapi:#/<pointer>")),
        }
    }
}

impl fmt::Display for SchemaRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RequestBody => f.write_str("openapi:request-body"),
            Self::At(pointer) => write!(f, "openapi:#{pointer}"),
        }
    }
}

/// A condition on a request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    /// A jq expression that must return true.
    pub jq: String,
    /// The error message if the condition is false.
    pub message: Option<String>,
}
