//! The content of a metadata document. `None` means absent; an empty list or map clears the inherited one.

#![expect(clippy::doc_markdown, reason = "the comments are also the texts of the JSON Schema")]

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{Display, IntoStaticStr};

use super::headers::headers;
use super::lifecycle::on_remove;
use super::pagination::PaginationFields;
use super::schema_forms as schema;
use super::{
    AbsentSection, ArrayRule, DefaultsSection, ExternalizedAttribute, FailedSection, Headers, OnRemove,
    OperationMode, Pagination, ReadFrom,
};
use crate::path::PathNames;
use crate::payload::fields::{members, one_or_many, unless_blank, value};
use crate::payload::pointer::Pointer;
use crate::payload::{Class, PayloadType, Value};

/// How a resource or collection is mapped to the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Document {
    /// The resources that the metadata of a collection applies to.
    pub selector: Option<SelectorSection>,
    /// The identity and the payload of a resource.
    pub resource: Option<ResourceSection>,
    /// The requests to the server.
    #[schemars(with = "Option<OperationsFields>")]
    pub operations: Option<OperationsSection>,
}

impl Document {
    /// Returns whether the document governs all descendants of its collection. Otherwise it governs the collection and
    /// its direct children.
    pub fn reaches_descendants(&self) -> bool {
        self.selector.as_ref().and_then(|selector| selector.descendants).unwrap_or(false)
    }
}

/// The resources that the metadata of a collection applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SelectorSection {
    /// Whether it applies to all descendants of the collection (default: false).
    pub descendants: Option<bool>,
}

/// The identity and the payload of a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ResourceSection {
    /// Identity template of the remote id, the segment that addresses the resource on the server.
    pub id: Option<String>,
    /// Identity template of the alias, the name in the repository.
    pub alias: Option<String>,
    /// Template of the path of the collection on the server.
    pub remote_collection_path: Option<String>,
    /// How the directories of resources name them: literal (default), or percentEncoded, so that names may have
    /// slashes. Then each value in a path of the server is one segment.
    pub path_names: Option<PathNames>,
    /// The format of payloads.
    #[serde(deserialize_with = "unless_blank")]
    #[schemars(schema_with = "formats")]
    pub format: Option<Format>,
    /// Attributes that a payload must have.
    pub required_attributes: Option<Vec<Pointer>>,
    /// Whether the whole resource is a secret.
    pub secret: Option<bool>,
    /// Attributes that are secret.
    pub secret_attributes: Option<Vec<Pointer>>,
    /// Whether the resource always exists: it is never created, and by default it is kept if Git no longer declares it.
    pub singleton: Option<bool>,
    /// What happens to the resource on the server if Git no longer declares it: delete, keep, or reset with a payload.
    #[schemars(schema_with = "on_remove")]
    pub on_remove: Option<OnRemove>,
    /// Attributes that the server never shows. They are compared with what was written last.
    pub write_only_attributes: Option<Vec<Pointer>>,
    /// Attributes that a create leaves out. An update sets them after the rest of the run.
    pub deferred_attributes: Option<Vec<Pointer>>,
    /// Attributes that an update cannot change. If one differs, the resource is deleted and created again.
    pub replace_on: Option<Vec<Pointer>>,
    /// Templates of the paths of resources or collections that are written before this resource.
    pub depends_on: Option<Vec<String>>,
    /// Attributes that are kept in their own files.
    pub externalized_attributes: Option<Vec<ExternalizedAttribute>>,
    /// Default values of payloads.
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

/// Returns the JSON Schema of the names of formats, also those that are only read. A blank one is absent.
fn formats(_: &mut SchemaGenerator) -> Schema {
    let names = PayloadType::ALL.map(|known| Format::Concrete(known).name());
    let names: Vec<_> = names.into_iter().chain([Format::Any.name(), "binary", "txt", ""]).collect();
    json_schema!({"enum": names})
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
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Concrete(payload_type) => payload_type.name(),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::parse(name).ok_or_else(|| {
            format!(
                "\"{name}\" is not supported; use json, yaml, ini, properties, xml, hcl, text, octet-stream or any"
            )
        })
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The requests to the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "OperationsFields")]
pub struct OperationsSection {
    /// Settings for all operations.
    pub defaults: Option<OperationDefaultsSection>,
    /// Settings by operation.
    #[serde(flatten)]
    pub operations: BTreeMap<OperationName, OperationSection>,
}

/// The requests to the server.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct OperationsFields {
    defaults: Option<OperationDefaultsSection>,
    create: Option<OperationSection>,
    get: Option<OperationSection>,
    update: Option<OperationSection>,
    delete: Option<OperationSection>,
    list: Option<OperationSection>,
    compare: Option<OperationSection>,
}

impl From<OperationsFields> for OperationsSection {
    fn from(fields: OperationsFields) -> Self {
        let sections = [
            (OperationName::Create, fields.create),
            (OperationName::Get, fields.get),
            (OperationName::Update, fields.update),
            (OperationName::Delete, fields.delete),
            (OperationName::List, fields.list),
            (OperationName::Compare, fields.compare),
        ];
        let stated = sections.into_iter().filter_map(|(name, section)| Some((name, section?)));
        Self { defaults: fields.defaults, operations: stated.collect() }
    }
}

/// Settings for all operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OperationDefaultsSection {
    /// Steps that run before the steps of each operation.
    pub transforms: Option<Vec<Step>>,
    /// Which answers with a status of success state a failure.
    pub failed: Option<FailedSection>,
}

/// The name of an operation in documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Display, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
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
    pub fn key(self) -> &'static str {
        self.into()
    }
}

/// One operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OperationSection {
    /// Template of the HTTP method.
    pub method: Option<String>,
    /// Template of the path; relative to the remote collection if it starts with a dot.
    pub path: Option<String>,
    /// Templates of query values.
    #[serde(deserialize_with = "members")]
    pub query: Option<BTreeMap<String, String>>,
    /// Templates of header values.
    #[serde(deserialize_with = "headers")]
    #[schemars(schema_with = "schema::headers")]
    pub headers: Option<Headers>,
    /// How payloads are compared, what an update sends, or what the entries of a list are.
    pub mode: Option<OperationMode>,
    /// How the entries of arrays are matched: the pointer of the array, with `*` for any member or entry, and "set",
    /// "ordered", or the pointer of a key in the entries.
    #[serde(deserialize_with = "array_rules")]
    pub arrays: Option<BTreeMap<Pointer, ArrayRule>>,
    /// Where a resource is read (default: address).
    pub from: Option<ReadFrom>,
    /// Which answers mean that the resource does not exist, in addition to 404 and 410, or that the list is empty.
    pub absent: Option<AbsentSection>,
    /// Which answers with a status of success state a failure.
    pub failed: Option<FailedSection>,
    /// The request body, sent instead of the payload. Its texts are templates.
    #[serde(deserialize_with = "value")]
    #[schemars(schema_with = "schema::any")]
    pub body: Option<Value>,
    /// Steps that transform the payload.
    pub transforms: Option<Vec<Step>>,
    /// The validation of a request body.
    pub validate: Option<ValidateSection>,
    /// How the pages after the first one are requested. By default, this is taken from the responses.
    #[schemars(with = "Option<PaginationFields>")]
    pub pagination: Option<Pagination>,
}

/// Reads the rules of arrays, by their pointers.
fn array_rules<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<Pointer, ArrayRule>>, D::Error> {
    let Some(rules) = members::<D, ArrayRule>(deserializer)? else { return Ok(None) };
    let parsed = rules.into_iter().map(|(at, rule)| Ok((Pointer::try_from(at)?, rule)));
    parsed.collect::<Result<_, String>>().map(Some).map_err(D::Error::custom)
}

/// One step of a transform pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "StepFields")]
pub enum Step {
    /// Keep only these attributes.
    #[serde(rename = "selectAttributes")]
    Select(Vec<Pointer>),
    /// Remove these attributes.
    #[serde(rename = "excludeAttributes")]
    Exclude(Vec<Pointer>),
    /// Replace the payload with the result of a jq expression, which is a template.
    #[serde(rename = "jqExpression")]
    Jq(String),
}

/// One step of a transform pipeline.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
struct StepFields {
    /// Keep only these attributes.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::pointers")]
    select_attributes: Option<Vec<Pointer>>,
    /// Remove these attributes.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::pointers")]
    exclude_attributes: Option<Vec<Pointer>>,
    /// Replace the payload with the result of this jq expression.
    jq_expression: Option<String>,
}

impl TryFrom<StepFields> for Step {
    type Error = &'static str;

    fn try_from(fields: StepFields) -> Result<Self, &'static str> {
        let jq = fields.jq_expression.filter(|text| !text.trim().is_empty());
        match (fields.select_attributes, fields.exclude_attributes, jq) {
            (Some(pointers), None, None) => Ok(Self::Select(pointers)),
            (None, Some(pointers), None) => Ok(Self::Exclude(pointers)),
            (None, None, Some(expression)) => Ok(Self::Jq(expression)),
            _ => Err("a step has exactly one of selectAttributes, excludeAttributes and jqExpression"),
        }
    }
}

/// The validation of a request body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ValidateSection {
    /// Attributes that the body must have.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(schema_with = "schema::pointers")]
    pub required_attributes: Option<Vec<Pointer>>,
    /// The schema of the body: openapi:request-body, or openapi:# and a JSON Pointer into the OpenAPI document.
    #[serde(deserialize_with = "unless_blank")]
    #[schemars(with = "String")]
    pub schema_ref: Option<SchemaRef>,
    /// Conditions that the body must meet.
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

impl FromStr for SchemaRef {
    type Err = String;

    /// Parses `openapi:request-body` or `openapi:#/…`. The error is the fault.
    fn from_str(text: &str) -> Result<Self, String> {
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

impl Serialize for SchemaRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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

/// A condition on the request body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// A jq expression that must return true.
    pub jq: String,
    /// The error message if the condition is false.
    pub message: Option<String>,
}
