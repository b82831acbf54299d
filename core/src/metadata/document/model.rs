//! What a document can say. `None` is absent; an empty list or map is present and clears what it inherits.

use std::collections::BTreeMap;
use std::fmt;

use super::{DefaultsSection, ExternalizedAttribute, Headers, Pagination};
use crate::payload::pointer::Pointer;
use crate::payload::{Class, PayloadType, Value};

/// One metadata document. [`Document::decode`] reads it, [`Document::encode_yaml`] writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// How far the document reaches; collection documents only, and never inherited.
    pub selector: Option<SelectorSection>,
    /// Who a resource is and what it holds.
    pub resource: Option<ResourceSection>,
    /// What is sent to the server.
    pub operations: Option<OperationsSection>,
}

impl Document {
    /// Whether the document governs everything below its collection, and not only the collection itself and
    /// its direct children.
    pub fn reaches_descendants(&self) -> bool {
        self.selector.as_ref().and_then(|selector| selector.descendants).unwrap_or(false)
    }
}

/// `selector`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectorSection {
    /// Whether to govern all descendants; false if absent.
    pub descendants: Option<bool>,
}

/// `resource`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceSection {
    /// Identity template of the remote id.
    pub id: Option<String>,
    /// Identity template of the alias.
    pub alias: Option<String>,
    /// Template of the collection's path on the server.
    pub remote_collection_path: Option<String>,
    /// The format of payloads.
    pub format: Option<Format>,
    /// What a payload must have.
    pub required_attributes: Option<Vec<Pointer>>,
    /// Whether the whole resource is a secret.
    pub secret: Option<bool>,
    /// What of a payload is secret.
    pub secret_attributes: Option<Vec<Pointer>>,
    /// What of a payload is kept in files of its own.
    pub externalized_attributes: Option<Vec<ExternalizedAttribute>>,
    /// What payloads inherit.
    pub defaults: Option<DefaultsSection>,
}

/// The format of payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Each payload decides for itself.
    Any,
    /// This one.
    Concrete(PayloadType),
}

impl Format {
    /// Whether payloads cannot have attributes, whatever their value.
    pub fn is_unstructured(self) -> bool {
        matches!(self, Self::Concrete(payload_type) if payload_type.class() != Class::Structured)
    }

    /// The format with this name; `None` if there is none.
    pub fn parse(name: &str) -> Option<Self> {
        if name.trim() == "any" {
            return Some(Self::Any);
        }
        PayloadType::parse_name(name).map(Self::Concrete)
    }

    /// The name, as documents have it.
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
    /// What holds for all operations.
    pub defaults: Option<OperationDefaultsSection>,
    /// What holds for single ones.
    pub operations: BTreeMap<OperationName, OperationSection>,
}

/// `operations.defaults`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationDefaultsSection {
    /// Steps that precede those of every operation.
    pub transforms: Option<Vec<Step>>,
}

/// An operation as documents name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationName {
    /// Make a resource exist.
    Create,
    /// Read one resource.
    Get,
    /// Change an existing resource.
    Update,
    /// Remove a resource.
    Delete,
    /// Read the members of a collection.
    List,
    /// Compare desired and observed payload; sends no request.
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
    /// Template of the HTTP method.
    pub method: Option<String>,
    /// Template of the path; relative to the remote collection if it starts with `.`.
    pub path: Option<String>,
    /// Templates of query values by name.
    pub query: Option<BTreeMap<String, String>>,
    /// Templates of header values.
    pub headers: Option<Headers>,
    /// What is sent instead of the payload, literally.
    pub body: Option<Value>,
    /// Steps on the payload.
    pub transforms: Option<Vec<Step>>,
    /// What a request body must satisfy.
    pub validate: Option<ValidateSection>,
    /// How pages are asked for; only list has them.
    pub pagination: Option<Pagination>,
}

/// One step of a transform pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Keep only these parts.
    Select(Vec<Pointer>),
    /// Drop these parts.
    Exclude(Vec<Pointer>),
    /// Replace the payload by what a template of a jq expression gives.
    Jq(String),
}

/// `operations.<name>.validate`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidateSection {
    /// What the body must have.
    pub required_attributes: Option<Vec<Pointer>>,
    /// The schema it must fit.
    pub schema_ref: Option<SchemaRef>,
    /// Conditions it must meet.
    pub assertions: Option<Vec<Assertion>>,
}

/// A schema in the `OpenAPI` document of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaRef {
    /// The one of the operation's request body.
    RequestBody,
    /// The one at this place of that document.
    At(Pointer),
}

impl SchemaRef {
    /// Parses `openapi:request-body` or `openapi:#/…`; `Err` says what is wrong.
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
    /// A jq expression that must give true.
    pub jq: String,
    /// What to tell whoever violates it.
    pub message: Option<String>,
}
