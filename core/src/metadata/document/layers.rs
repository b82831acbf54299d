//! Several documents as one: the effective metadata of a path.

use std::collections::BTreeMap;

use super::defaults::FoldedDefaults;
use super::{
    Assertion, Document, DocumentError, ExternalizedAttribute, Format, Headers, OperationName,
    OperationSection, Pagination, ResourceSection, SchemaRef, Step, ValidateSection, merge,
};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

/// Why an included file could not be read.
pub type IncludeError = Box<dyn std::error::Error + Send + Sync>;

/// The fold of documents, from low to high precedence.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    resolved: Resolved,
    defaults: FoldedDefaults,
}

/// What all documents of a path say together. What none of them says is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// Identity template of the remote id, if a document states one.
    pub id: Option<String>,
    /// Identity template of the alias, if a document states one.
    pub alias: Option<String>,
    /// Template of the collection's path on the server.
    pub remote_collection_path: Option<String>,
    /// The format of payloads.
    pub format: Option<Format>,
    /// What a payload must have.
    pub required_attributes: Vec<Pointer>,
    /// Whether the whole resource is a secret.
    pub secret: bool,
    /// What of a payload is secret.
    pub secret_attributes: Vec<Pointer>,
    /// What of a payload is kept in files of its own.
    pub externalized_attributes: Vec<ExternalizedAttribute>,
    /// What payloads inherit: the baseline under the selected profiles.
    pub defaults: Object,
    /// Steps that precede those of every operation.
    pub transforms: Vec<Step>,
    operations: [ResolvedOperation; OperationName::ALL.len()],
}

/// What all documents say about one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedOperation {
    /// Template of the HTTP method.
    pub method: Option<String>,
    /// Template of the path.
    pub path: Option<String>,
    /// Templates of query values by name.
    pub query: BTreeMap<String, String>,
    /// Templates of header values.
    pub headers: Headers,
    /// What is sent instead of the payload.
    pub body: Option<Value>,
    /// The operation's own steps; [`Resolved::transforms`] precede them.
    pub transforms: Vec<Step>,
    /// What a request body must satisfy.
    pub validation: ResolvedValidation,
    /// How pages are asked for; `None` to see from the answers.
    pub pagination: Option<Pagination>,
}

/// What all documents demand of a request body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedValidation {
    /// What it must have.
    pub required_attributes: Vec<Pointer>,
    /// The schema it must fit.
    pub schema_ref: Option<SchemaRef>,
    /// Conditions it must meet.
    pub assertions: Vec<Assertion>,
}

impl Layers {
    /// Lays `document` over those before it. `include` reads a defaults file next to the document by its
    /// name. The document should be valid; whether it applies is for the caller to decide.
    pub fn push(
        &mut self,
        document: &Document,
        include: &dyn Fn(&str) -> Result<Value, IncludeError>,
    ) -> Result<(), DocumentError> {
        if let Some(resource) = &document.resource {
            self.resolved.push_resource(resource);
            if let Some(defaults) = &resource.defaults {
                self.defaults.push(defaults, include)?;
            }
        }
        if let Some(section) = &document.operations {
            let shared = section.defaults.as_ref().and_then(|defaults| defaults.transforms.as_ref());
            replace(&mut self.resolved.transforms, shared);
            for (name, operation) in &section.operations {
                self.resolved.operations[*name as usize].push(operation);
            }
        }
        Ok(())
    }

    /// The result. Fails if a selected defaults profile does not exist.
    pub fn resolve(self) -> Result<Resolved, DocumentError> {
        Ok(Resolved { defaults: self.defaults.effective()?, ..self.resolved })
    }
}

impl Resolved {
    /// What is said about one operation.
    pub fn operation(&self, name: OperationName) -> &ResolvedOperation {
        &self.operations[name as usize]
    }

    /// All steps of one operation, in order.
    pub fn steps(&self, name: OperationName) -> impl Iterator<Item = &Step> {
        self.transforms.iter().chain(&self.operation(name).transforms)
    }

    /// The payload as it is meant: the defaults with `stored` over them. Fails if there are defaults and
    /// `stored` is neither an object nor null. A resource that is stored as one secret as a whole is not for
    /// this function: nobody knows its members yet.
    pub fn with_defaults(&self, stored: Value) -> Result<Value, DocumentError> {
        match stored {
            stored if self.defaults.is_empty() => Ok(stored),
            Value::Null | Value::Object(_) => Ok(merge(Value::Object(self.defaults.clone()), stored)),
            other => Err(DocumentError::invalid(
                "resource.defaults",
                format!(
                    "apply to objects only, and the payload is {}; say mode: ignore in the metadata of the resource",
                    other.kind()
                ),
            )),
        }
    }

    fn push_resource(&mut self, layer: &ResourceSection) {
        replace_text(&mut self.id, layer.id.as_ref());
        replace_text(&mut self.alias, layer.alias.as_ref());
        replace_text(&mut self.remote_collection_path, layer.remote_collection_path.as_ref());
        self.format = layer.format.or(self.format);
        replace(&mut self.required_attributes, layer.required_attributes.as_ref());
        replace(&mut self.externalized_attributes, layer.externalized_attributes.as_ref());
        self.push_secrecy(layer);
    }

    /// A resource is secret as a whole or in parts; the later layer decides which.
    fn push_secrecy(&mut self, layer: &ResourceSection) {
        let parts = layer.secret_attributes.as_ref();
        if layer.secret == Some(true) {
            self.secret_attributes.clear();
        }
        if parts.is_some_and(|parts| !parts.is_empty()) {
            self.secret = false;
        }
        self.secret = layer.secret.unwrap_or(self.secret);
        replace(&mut self.secret_attributes, parts);
    }
}

impl ResolvedOperation {
    fn push(&mut self, layer: &OperationSection) {
        replace_text(&mut self.method, layer.method.as_ref());
        replace_text(&mut self.path, layer.path.as_ref());
        if let Some(query) = &layer.query {
            if query.is_empty() {
                self.query.clear();
            }
            self.query.extend(query.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        if let Some(headers) = &layer.headers {
            self.headers.overlay(headers);
        }
        if let Some(body) = &layer.body {
            self.body = Some(body.clone());
        }
        replace(&mut self.transforms, layer.transforms.as_ref());
        if let Some(validate) = &layer.validate {
            self.validation.push(validate);
        }
        // Its keys mean nothing without its style, so it is replaced as a whole.
        if let Some(pagination) = &layer.pagination {
            self.pagination = Some(pagination.clone());
        }
    }
}

impl ResolvedValidation {
    fn push(&mut self, layer: &ValidateSection) {
        replace(&mut self.required_attributes, layer.required_attributes.as_ref());
        if let Some(schema_ref) = &layer.schema_ref {
            self.schema_ref = Some(schema_ref.clone());
        }
        replace(&mut self.assertions, layer.assertions.as_ref());
    }
}

/// A present list replaces the whole, so an empty one clears.
fn replace<T: Clone>(inherited: &mut Vec<T>, layer: Option<&Vec<T>>) {
    if let Some(list) = layer {
        inherited.clone_from(list);
    }
}

/// Only a text that says something replaces, so nothing clears.
fn replace_text(inherited: &mut Option<String>, layer: Option<&String>) {
    if let Some(text) = layer.filter(|text| !text.trim().is_empty()) {
        *inherited = Some(text.clone());
    }
}
