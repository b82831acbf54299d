//! Merges several documents into the effective metadata of a path.

use std::collections::BTreeMap;

use super::defaults::FoldedDefaults;
use super::{
    AbsentSection, ArrayRule, Assertion, Document, DocumentError, ExternalizedAttribute, FailedSection,
    Format, Headers, IncludeError, OnRemove, OperationMode, OperationName, OperationSection, Pagination,
    ReadFrom, ResourceSection, SchemaRef, Step, ValidateSection, merge,
};
use crate::path::PathNames;
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

/// Merges documents, from low to high precedence.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    resolved: Resolved,
    defaults: FoldedDefaults,
}

/// The merged documents of a path. Fields that no document states are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// The identity template of the remote id, if a document states one.
    pub id: Option<String>,
    /// The identity template of the alias, if a document states one.
    pub alias: Option<String>,
    /// The template of the collection's path on the server.
    pub remote_collection_path: Option<String>,
    /// How the segments of the path name resources.
    pub path_names: Option<PathNames>,
    /// The format of payloads.
    pub format: Option<Format>,
    /// The attributes that a payload must have.
    pub required_attributes: Vec<Pointer>,
    /// Whether the whole resource is a secret.
    pub secret: bool,
    /// The attributes that are secret.
    pub secret_attributes: Vec<Pointer>,
    /// Whether the resource always exists.
    pub singleton: bool,
    /// What happens to the resource if Git no longer declares it.
    pub on_remove: Option<OnRemove>,
    /// The attributes that the server never shows.
    pub write_only_attributes: Vec<Pointer>,
    /// The attributes that a create leaves out.
    pub deferred_attributes: Vec<Pointer>,
    /// The attributes whose change replaces the resource.
    pub replace_on: Vec<Pointer>,
    /// The templates of the paths that are written before the resource.
    pub depends_on: Vec<String>,
    /// The attributes that are kept in their own files.
    pub externalized_attributes: Vec<ExternalizedAttribute>,
    /// The default values of payloads: the baseline merged with the selected profiles.
    pub defaults: Object,
    /// The steps that run before the steps of each operation.
    pub transforms: Vec<Step>,
    /// Which answers state a failure, unless the operation states it.
    pub failed: Option<FailedSection>,
    operations: [ResolvedOperation; OperationName::ALL.len()],
}

/// The merged documents of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResolvedOperation {
    /// The template of the HTTP method.
    pub method: Option<String>,
    /// The template of the path.
    pub path: Option<String>,
    /// The templates of query values by name.
    pub query: BTreeMap<String, String>,
    /// The templates of header values.
    pub headers: Headers,
    /// How payloads are compared, what an update sends, or what the entries of a list are.
    pub mode: Option<OperationMode>,
    /// How the entries of arrays are matched.
    pub arrays: BTreeMap<Pointer, ArrayRule>,
    /// Where a resource is read.
    pub from: Option<ReadFrom>,
    /// Which answers mean that the resource does not exist.
    pub absent: Option<AbsentSection>,
    /// Which answers state a failure.
    pub failed: Option<FailedSection>,
    /// The request body that is sent instead of the payload.
    pub body: Option<Value>,
    /// The operation's own steps; [`Resolved::transforms`] run before them.
    pub transforms: Vec<Step>,
    /// The validation of a request body.
    pub validation: ResolvedValidation,
    /// How pages are requested; if `None`, it is taken from the responses.
    pub pagination: Option<Pagination>,
}

/// The merged validation rules of a request body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedValidation {
    /// The attributes that the body must have.
    pub required_attributes: Vec<Pointer>,
    /// The schema of the body.
    pub schema_ref: Option<SchemaRef>,
    /// The conditions on the body.
    pub assertions: Vec<Assertion>,
}

impl Layers {
    /// Merges `document` into the documents before it. `include` reads a defaults file next to the document by its
    /// name. The caller decides whether the document applies, and validates it.
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
            if let Some(shared) = &section.defaults {
                replace(&mut self.resolved.transforms, shared.transforms.as_ref());
                self.resolved.failed = shared.failed.clone().or_else(|| self.resolved.failed.take());
            }
            for (name, operation) in &section.operations {
                self.resolved.operations[*name as usize].push(operation);
            }
        }
        Ok(())
    }

    /// Returns the merged result. Fails if a selected defaults profile does not exist.
    pub fn resolve(self) -> Result<Resolved, DocumentError> {
        Ok(Resolved { defaults: self.defaults.effective()?, ..self.resolved })
    }
}

impl Resolved {
    /// Returns the merged documents of one operation.
    pub fn operation(&self, name: OperationName) -> &ResolvedOperation {
        &self.operations[name as usize]
    }

    /// Returns what happens to the resource on the server if Git no longer declares it.
    pub fn on_remove(&self) -> &OnRemove {
        let default = if self.singleton { &OnRemove::Keep } else { &OnRemove::Delete };
        self.on_remove.as_ref().unwrap_or(default)
    }

    /// Returns all steps of one operation, in order.
    pub fn steps(&self, name: OperationName) -> impl Iterator<Item = &Step> {
        self.transforms.iter().chain(&self.operation(name).transforms)
    }

    /// Returns the payload `stored` merged with the defaults. Fails if there are defaults, but `stored` is neither an
    /// object nor null. Do not call this for a resource that is a secret as a whole before its secret is resolved,
    /// because its members are not known.
    pub fn with_defaults(&self, stored: Value) -> Result<Value, DocumentError> {
        match stored {
            stored if self.defaults.is_empty() => Ok(stored),
            Value::Null | Value::Object(_) => Ok(merge(Value::Object(self.defaults.clone()), stored)),
            other => Err(DocumentError::invalid(
                "resource.defaults",
                format!(
                    "apply to objects only, but the payload is {}; set mode: ignore in the metadata of the resource",
                    other.kind()
                ),
            )),
        }
    }

    fn push_resource(&mut self, layer: &ResourceSection) {
        replace_text(&mut self.id, layer.id.as_ref());
        replace_text(&mut self.alias, layer.alias.as_ref());
        replace_text(&mut self.remote_collection_path, layer.remote_collection_path.as_ref());
        self.path_names = layer.path_names.or(self.path_names);
        self.format = layer.format.or(self.format);
        replace(&mut self.required_attributes, layer.required_attributes.as_ref());
        self.singleton = layer.singleton.unwrap_or(self.singleton);
        self.on_remove = layer.on_remove.clone().or_else(|| self.on_remove.take());
        replace(&mut self.write_only_attributes, layer.write_only_attributes.as_ref());
        replace(&mut self.deferred_attributes, layer.deferred_attributes.as_ref());
        replace(&mut self.replace_on, layer.replace_on.as_ref());
        replace(&mut self.depends_on, layer.depends_on.as_ref());
        replace(&mut self.externalized_attributes, layer.externalized_attributes.as_ref());
        self.push_secrecy(layer);
    }

    /// Merges `secret` and `secretAttributes`. A resource is secret as a whole or in parts; the last layer decides.
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
        self.mode = layer.mode.or(self.mode);
        self.from = layer.from.or(self.from);
        self.absent = layer.absent.clone().or_else(|| self.absent.take());
        self.failed = layer.failed.clone().or_else(|| self.failed.take());
        if let Some(arrays) = &layer.arrays {
            if arrays.is_empty() {
                self.arrays.clear();
            }
            self.arrays.extend(arrays.iter().map(|(at, rule)| (at.clone(), rule.clone())));
        }
        if let Some(body) = &layer.body {
            self.body = Some(body.clone());
        }
        replace(&mut self.transforms, layer.transforms.as_ref());
        if let Some(validate) = &layer.validate {
            self.validation.push(validate);
        }
        // The keys depend on the style, so the section is replaced as a whole.
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

/// Replaces a list if the layer states one. An empty list clears the inherited one.
fn replace<T: Clone>(inherited: &mut Vec<T>, layer: Option<&Vec<T>>) {
    if let Some(list) = layer {
        inherited.clone_from(list);
    }
}

/// Replaces a text if the layer states one that is not blank. An inherited text cannot be cleared.
fn replace_text(inherited: &mut Option<String>, layer: Option<&String>) {
    if let Some(text) = layer.filter(|text| !text.trim().is_empty()) {
        *inherited = Some(text.clone());
    }
}
