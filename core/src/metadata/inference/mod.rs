//! Infers metadata from paths and the `OpenAPI` document of a server.
//!
//! Inference starts from conventions: list and create use the path of the collection, and resources are one level
//! below. The document overrides them: it defines paths, methods, the attributes that identify a resource, and required
//! attributes of bodies. This module does not write metadata.
//!
//! ```
//! use declarest_core::metadata::inference::infer;
//! use declarest_core::metadata::openapi::OpenApi;
//!
//! let shop = r#"{"content": {"application/json": {"schema": {"properties": {"id": {}, "name": {}}}}}}"#;
//! let document = OpenApi::parse(format!(r#"{{"openapi": "3.1.0", "paths": {{
//!     "/shops": {{"get": {{}}, "post": {{}}}},
//!     "/shops/{{shopId}}": {{"get": {{"responses": {{"200": {shop}}}}}, "patch": {{}}}}
//! }}}}"#).as_bytes())?;
//! let inferred = infer("/shops/", Some(&document))?.encode_yaml()?;
//! assert_eq!(String::from_utf8(inferred)?, "resource:\n    alias: '{{/name}}'\n    id: '{{/id}}'\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod choices;
mod direction;
mod format;
mod hal;
mod hint;
mod identity;
mod pages;
mod shape;
mod target;

use std::collections::{BTreeMap, BTreeSet};

use http::Method;

use super::document::{
    Document, Format, OperationDefaultsSection, OperationMode, OperationName, OperationSection,
    OperationsSection, Pagination, ResourceSection, SchemaRef, Step, ValidateSection,
};
use super::evaluation::default_method;
use super::openapi::{ApiOperation, OpenApi, PathItem};
use super::rules::default_path;
use crate::error::{Categorized, Category};
use crate::path::PathError;
use crate::payload::pointer::Pointer;
use crate::payload::{PayloadType, Value};

pub use hint::{children, collections, is_collection, is_read_only};

use direction::OneWay;
use identity::{Basis, IdentityFields};
use shape::Shape;
use target::{Target, placeholder};

/// Metadata cannot be inferred.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot infer metadata: {0}")]
pub struct InferenceError(#[from] PathError);

impl Categorized for InferenceError {
    fn category(&self) -> Category {
        self.0.category()
    }
}

/// A declared resource of the collection. It shows which attributes identify the resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The last segment of its path.
    pub name: String,
    /// Its payload.
    pub payload: Value,
}

/// Infers the metadata of a path or selector, without redundant parts: methods and paths that conventions and the
/// document define for each request, a remote collection that equals the logical one, and default formats.
pub fn infer(target: &str, document: Option<&OpenApi>) -> Result<Document, InferenceError> {
    infer_with(target, document, &[], true)
}

/// Like [`infer`], but declared resources define the attributes of the identity if the document does not describe the
/// attributes of the resources. If neither does, `guesses` determines whether the name of the collection defines them.
pub fn infer_with(
    target: &str,
    document: Option<&OpenApi>,
    examples: &[Example],
    guesses: bool,
) -> Result<Document, InferenceError> {
    let target = Target::parse(target, document)?;
    let inference = Inference::new(&target, document);
    let mut inferred = inference.document(false);
    let (id, alias) = match inference.identity.basis {
        Basis::Variable | Basis::Name if !examples.is_empty() => inference.identity.shown_by(examples),
        Basis::Name if !guesses => (None, None),
        Basis::Schema | Basis::Variable | Basis::Name => return Ok(inferred),
    };
    if let Some(mut resource) = inferred.resource.take() {
        resource.id = resource.id.and(id.map(placeholder));
        resource.alias = resource.alias.and(alias.map(placeholder));
        inferred.resource = (resource != ResourceSection::default()).then_some(resource);
    }
    Ok(inferred)
}

/// Infers the complete metadata of a path or selector, including the parts that conventions define.
pub fn infer_all(target: &str, document: Option<&OpenApi>) -> Result<Document, InferenceError> {
    let target = Target::parse(target, document)?;
    Ok(Inference::new(&target, document).document(true))
}

/// Returns the conventions for a path or selector as a metadata document, without fields that are absent by default.
pub fn conventions(target: &str) -> Result<Document, InferenceError> {
    let target = Target::parse(target, None)?;
    let resource = ResourceSection {
        id: Some("/id".to_owned()),
        alias: Some("/id".to_owned()),
        remote_collection_path: Some(target.collection_template()),
        required_attributes: Some(Vec::new()),
        secret: Some(false),
        secret_attributes: Some(Vec::new()),
        externalized_attributes: Some(Vec::new()),
        ..ResourceSection::default()
    };
    let operations = OperationName::ALL.into_iter().map(|name| {
        let section = OperationSection {
            method: conventional_method(name).map(|method| method.to_string()),
            path: Some(default_path(name).to_owned()),
            ..OperationSection::default()
        };
        (name, section)
    });
    let shared = OperationDefaultsSection { transforms: Some(Vec::new()), failed: None };
    Ok(Document {
        selector: None,
        resource: Some(resource),
        operations: Some(OperationsSection { defaults: Some(shared), operations: operations.collect() }),
    })
}

/// Returns the conventional method of an operation; `None` if it sends no request.
fn conventional_method(operation: OperationName) -> Option<Method> {
    match operation {
        OperationName::Compare => None,
        operation => Some(default_method(operation)),
    }
}

struct Inference<'a> {
    target: &'a Target,
    document: Option<&'a OpenApi>,
    /// The paths of the document that describe the collection and its resources best.
    collection: Option<&'a PathItem>,
    item: Option<&'a PathItem>,
    /// The path with the POST request that creates a resource of the collection.
    creator: Option<&'a PathItem>,
    shape: Shape,
    identity: IdentityFields,
    format: Option<Format>,
    one_way: OneWay,
    /// Whether a resource has a member `id` beside its id.
    has_other_id: bool,
}

impl<'a> Inference<'a> {
    fn new(target: &'a Target, document: Option<&'a OpenApi>) -> Self {
        let collection = document.and_then(|document| target.best_collection(document));
        let item = document.and_then(|document| target.best_item(document));
        let creator = document.and_then(|document| target.creator(document));
        let create = creator.and_then(|path| path.operation(&Method::POST));
        let described = |document| Shape::of(document, target, collection, item, create);
        let mut shape = document.map(described).unwrap_or_default();
        let identity = identity::fields(target, document, create, item, &shape);
        // An attribute that identifies a resource makes the id in its link unnecessary.
        shape.is_linked &= identity.id == "id";
        let paths = || collection.into_iter().chain(item);
        let format = document.and_then(|document| format::of_paths(document, paths()));
        // Payloads without attributes have neither identity attributes nor others.
        let has_attributes = target.is_collection && !format.is_some_and(Format::is_unstructured);
        let one_way = document
            .filter(|_| has_attributes)
            .map(|document| direction::one_way(document, create, item, &shape, &identity))
            .unwrap_or_default();
        let resource = document.zip(shape.resource.as_ref());
        let has_id = |(document, schema): (&OpenApi, &Pointer)| document.properties(schema).contains("id");
        let has_other_id = identity.id != "id" && resource.is_some_and(has_id);
        Self { target, document, collection, item, creator, shape, identity, format, one_way, has_other_id }
    }

    fn document(&self, all: bool) -> Document {
        let resource = self.resource(all);
        let operations: BTreeMap<_, _> = OperationName::ALL
            .into_iter()
            .map(|name| (name, self.operation(name, all)))
            .filter(|(_, operation)| *operation != OperationSection::default())
            .collect();
        Document {
            selector: None,
            resource: (resource != ResourceSection::default()).then_some(resource),
            operations: (!operations.is_empty()).then_some(OperationsSection { defaults: None, operations }),
        }
    }

    fn resource(&self, all: bool) -> ResourceSection {
        // Payloads without attributes have neither identity attributes nor secret attributes.
        let has_attributes = !self.format.is_some_and(Format::is_unstructured);
        let identified = self.target.is_collection && has_attributes;
        let secrets = self.identity.secrets.iter().filter(|_| identified);
        let write_only = &self.one_way.hidden;
        let secrets: BTreeSet<&String> = secrets.chain(&self.one_way.secret).collect();
        let (secrets, write_only) = (pointers(secrets), pointers(write_only));
        let narrowed = self.collection.is_some_and(|path| self.target.is_narrowed_by(path));
        let implied = [None, Some(Format::Any), Some(Format::Concrete(PayloadType::Json))];
        ResourceSection {
            id: identified.then(|| placeholder(&self.identity.id)),
            alias: identified.then(|| placeholder(&self.identity.alias)),
            remote_collection_path: (all || narrowed).then(|| self.collection_template()),
            format: self.format.filter(|_| all || !implied.contains(&self.format)),
            secret_attributes: (!secrets.is_empty()).then_some(secrets),
            write_only_attributes: (!write_only.is_empty()).then_some(write_only),
            ..ResourceSection::default()
        }
    }

    fn operation(&self, name: OperationName, all: bool) -> OperationSection {
        let described = self.described(name);
        let (method, path) = match name {
            _ if all => self.request(name, described),
            OperationName::Create if self.creates_at_item() => {
                let method = described.map(|known| known.method().to_string());
                let path = self.path(name).unwrap_or_else(|| default_path(OperationName::Get).to_owned());
                (method, Some(path))
            }
            // Neither the convention nor the document implies it.
            OperationName::Update => {
                let post = described.filter(|known| *known.method() == Method::POST);
                (post.map(|known| known.method().to_string()), self.path(name))
            }
            _ => (None, self.path(name)),
        };
        let writes = matches!(name, OperationName::Create | OperationName::Update);
        let validate = described.filter(|_| writes).and_then(|operation| self.validate(operation));
        let (taken, removed) = match name {
            OperationName::List => (self.shape.list_expression(self.document, &self.identity.id), None),
            OperationName::Get => (self.shape.read_expression(), excluding(&self.one_way.fixed)),
            OperationName::Create => (None, excluding(&self.one_way.not_created)),
            OperationName::Update => (None, excluding(&self.one_way.not_updated)),
            _ => (None, None),
        };
        let request = self.document.zip(described).filter(|_| writes);
        let wrapped = request.and_then(|(document, request)| self.shape.write_expression(document, request));
        let jq = |step: Option<String>| step.filter(|_| self.target.is_collection).map(Step::Jq);
        let transforms: Vec<Step> = jq(taken).into_iter().chain(removed).chain(jq(wrapped)).collect();
        let transforms = (!transforms.is_empty()).then_some(transforms);
        let pagination = self.pagination().filter(|_| name == OperationName::List);
        let names = self.target.is_collection && name == OperationName::List && self.shape.lists_names;
        let mode = names.then_some(OperationMode::Names);
        OperationSection {
            method,
            path,
            mode,
            transforms,
            validate,
            pagination,
            ..OperationSection::default()
        }
    }

    fn pagination(&self) -> Option<Pagination> {
        let list = self.collection.filter(|_| self.target.is_collection)?;
        pages::pagination(self.document?, list, &self.shape)
    }

    /// Whether the document only describes writes of a resource at its own address, which then also create it.
    fn creates_at_item(&self) -> bool {
        let operation = |method: &Method| self.item.and_then(|path| path.operation(method));
        let mut writes = [Method::PUT, Method::POST].iter().filter_map(operation);
        self.target.is_collection && self.creator.is_none() && writes.any(ApiOperation::may_write)
    }

    /// Returns the path of an operation that sends a request if no convention implies it: the document writes it with a
    /// slash at the end, or creates resources at a path below the collection.
    fn path(&self, name: OperationName) -> Option<String> {
        let described = self.path_item(name)?;
        let slash = self.slash(name);
        let is_of_item =
            default_path(name) != "." || (name == OperationName::Create && self.creates_at_item());
        if is_of_item {
            // In the default path, `{{/id}}` is the member `id` if there is one, and not the id of the resource.
            let has_other_id = conventional_method(name).is_some() && self.has_other_id;
            let path = if has_other_id { "./{{/remoteID}}" } else { default_path(OperationName::Get) };
            return (has_other_id || !slash.is_empty()).then(|| format!("{path}{slash}"));
        }
        // A variable of the document, such as that of a parent, may have the name of an attribute of the resource.
        let last = described.segments().last()?.literal()?;
        if name == OperationName::Create && self.target.is_below(described) {
            return Some(format!("./{last}{slash}"));
        }
        (!slash.is_empty()).then(|| format!("../{last}{slash}"))
    }

    /// Returns the slash with which the document ends the path of an operation that sends a request.
    fn slash(&self, name: OperationName) -> &'static str {
        let sends = conventional_method(name).is_some();
        let ends = self.path_item(name).is_some_and(|path| path.template().ends_with('/'));
        if sends && ends { "/" } else { "" }
    }

    /// Returns the path of the document for an operation.
    fn path_item(&self, name: OperationName) -> Option<&'a PathItem> {
        match name {
            OperationName::List => self.collection,
            OperationName::Create if self.creates_at_item() => self.item,
            OperationName::Create => self.creator.or(self.collection),
            _ => self.item,
        }
    }

    /// Returns the description of an operation in the document.
    fn described(&self, name: OperationName) -> Option<&'a ApiOperation> {
        let path = self.path_item(name)?;
        let methods: &[Method] = match name {
            OperationName::Update => return path.update(),
            OperationName::Create if self.creates_at_item() => &[Method::PUT, Method::POST],
            OperationName::Create => &[Method::POST],
            OperationName::List | OperationName::Get | OperationName::Compare => &[Method::GET],
            OperationName::Delete => &[Method::DELETE],
        };
        methods.iter().find_map(|method| path.operation(method))
    }

    fn request(
        &self,
        name: OperationName,
        described: Option<&ApiOperation>,
    ) -> (Option<String>, Option<String>) {
        let convention = conventional_method(name);
        let method =
            convention.map(|convention| described.map_or(convention, |known| known.method().clone()));
        let id_field = &self.identity.id;
        let path = match (name, self.path_item(name).filter(|_| described.is_some())) {
            (_, Some(path)) => self.target.template_of(path, id_field),
            (OperationName::List, None) => self.collection_template(),
            (OperationName::Create, None) if self.target.is_collection => self.target.collection_template(),
            (_, None) => self.target.item_template(id_field),
        };
        (method.map(|method| method.to_string()), Some(path + self.slash(name)))
    }

    fn collection_template(&self) -> String {
        match self.collection {
            Some(path) => self.target.template_of(path, &self.identity.id),
            None => self.target.collection_template(),
        }
    }

    /// Returns the validation of structured bodies that the document defines.
    fn validate(&self, operation: &ApiOperation) -> Option<ValidateSection> {
        if self.format.is_some_and(Format::is_unstructured) {
            return None;
        }
        let (document, schema) = (self.document?, operation.structured_request_schema()?);
        let required = document.required_properties(schema);
        let required = pointers(&required);
        Some(ValidateSection {
            required_attributes: (!required.is_empty()).then_some(required),
            schema_ref: Some(SchemaRef::RequestBody),
            assertions: None,
        })
    }
}

fn pointers<'n>(names: impl IntoIterator<Item = &'n String>) -> Vec<Pointer> {
    names.into_iter().map(|name| Pointer::from_token(name)).collect()
}

fn excluding(attributes: &BTreeSet<String>) -> Option<Step> {
    (!attributes.is_empty()).then(|| Step::Exclude(pointers(attributes)))
}

#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;
