//! Applies rules to one resource or collection: renders requests and runs transforms.

use std::collections::BTreeSet;

use http::{HeaderName, HeaderValue, Method, header};

use super::document::{OperationName, Pagination};
use super::identity::Identity;
use super::openapi::{ApiOperation, PathItem};
use super::pagination::{PageParameters, replace_parameters};
use super::rules::{OperationRules, REMOTE_COLLECTION};
use super::steps::{StepRules, Steps, step_field};
use super::transform::{Pipeline, Step, TransformError};
use super::{MetadataError, Rules};
use crate::language::jq::{Context, ResourceReader};
use crate::language::referred::ReferenceValues;
use crate::language::template::{
    DerivedFields, Descendants, Observed, Scope, Target, Template, TemplateError, derive_fields,
};
use crate::path::{LogicalPath, PathNames, url_path};
use crate::payload::{Class, Descriptor, Object, PayloadType, Value};

/// The maximum length of a method in bytes. The longest registered one has 17.
const MAX_METHOD: usize = 32;

/// The data of a resource that its operations are rendered from.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The resource.
    pub path: &'a LogicalPath,
    /// Its alias and remote id.
    pub identity: &'a Identity,
    /// The payload that templates see: the desired one with defaults, includes and secrets, or the seed if only the
    /// path is known.
    pub payload: Option<&'a Value>,
    /// How the payload is stored, if it is known.
    pub descriptor: Option<&'a Descriptor>,
}

/// A rendered request, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The HTTP method.
    pub method: Method,
    /// The path below the server's base URL: unencoded, or as it is sent if `encoded`.
    pub path: String,
    /// Whether the path is percent-encoded.
    pub encoded: bool,
    /// Query parameters, sorted by name, unencoded.
    pub query: Vec<(String, String)>,
    /// Headers other than `Accept` and `Content-Type`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The value of the `Accept` header.
    pub accept: String,
    /// The media type of a body, if one is sent.
    pub content_type: String,
}

/// [`Rules`], and the resource or collection that they are applied to. Rendering does not parse, and does no I/O.
pub struct Evaluation<'a> {
    pub(super) rules: &'a Rules,
    pub(super) subject: Subject<'a>,
    collection: LogicalPath,
    descendants: Option<Descendants>,
    derived: DerivedFields,
    remote_collection: String,
    /// The content of the resource on the server, which bodies of updates may be based on.
    pub(super) observed: Observed<'a>,
    /// The reader of other resources.
    reader: Option<&'a dyn ResourceReader>,
    /// The values that templates refer to.
    values: Option<&'a dyn ReferenceValues>,
    /// The parameters of the page of a list.
    pub(super) page: PageParameters,
}

impl Rules {
    /// Applies the rules to one resource.
    pub fn on_resource<'a>(&'a self, subject: Subject<'a>) -> Result<Evaluation<'a>, MetadataError> {
        self.on_resource_with(subject, None, None)
    }

    /// Like [`Self::on_resource`], with the values that templates refer to. If the path of the subject has ids of parents,
    /// `declared` is the path of the collection in the repository.
    pub fn on_resource_with<'a>(
        &'a self,
        subject: Subject<'a>,
        values: Option<&'a dyn ReferenceValues>,
        declared: Option<&LogicalPath>,
    ) -> Result<Evaluation<'a>, MetadataError> {
        let collection = subject.path.collection();
        Evaluation::new(self, subject, collection, values, declared)
    }

    /// Applies the rules to the collection at `path` itself.
    pub fn on_collection<'a>(&'a self, path: &'a LogicalPath) -> Result<Evaluation<'a>, MetadataError> {
        self.on_collection_with(path, None, None)
    }

    /// Like [`Self::on_collection`], with the values and the path of [`Self::on_resource_with`].
    pub fn on_collection_with<'a>(
        &'a self,
        path: &'a LogicalPath,
        values: Option<&'a dyn ReferenceValues>,
        declared: Option<&LogicalPath>,
    ) -> Result<Evaluation<'a>, MetadataError> {
        static UNNAMED: Identity = Identity { alias: String::new(), remote_id: String::new() };
        let subject = Subject { path, identity: &UNNAMED, payload: None, descriptor: None };
        Evaluation::new(self, subject, path.clone(), values, declared)
    }
}

impl<'a> Evaluation<'a> {
    /// Fails if `remoteCollectionPath` cannot be rendered.
    fn new(
        rules: &'a Rules,
        subject: Subject<'a>,
        collection: LogicalPath,
        values: Option<&'a dyn ReferenceValues>,
        declared: Option<&LogicalPath>,
    ) -> Result<Self, MetadataError> {
        let descendants = rules.descendants.map(|depth| {
            let root = ancestor(subject.path, depth);
            Descendants::new(&root, subject.path, &collection)
        });
        let mut evaluation = Self {
            rules,
            subject,
            collection,
            descendants,
            derived: DerivedFields::default(),
            remote_collection: String::new(),
            observed: Observed::Nothing,
            reader: None,
            values,
            page: rules.pagination().map(Pagination::first_page).unwrap_or_default(),
        };
        evaluation.derived = derive_fields(&evaluation.target(), &rules.patterns);
        if let Some(declared) = declared {
            evaluation.derived.set_aliases(declared, rules.path_names());
        }
        evaluation.remote_collection = evaluation.render_collection()?;
        Ok(evaluation)
    }

    /// Returns the evaluation for a resource with this content on the server.
    #[must_use]
    pub fn observing(self, observed: Option<&'a Value>) -> Self {
        Self { observed: observed.map_or(Observed::Nothing, Observed::Content), ..self }
    }

    /// Returns the evaluation for requests that are compared or shown, and not sent: what the server has is not known.
    #[must_use]
    pub fn unobserved(self) -> Self {
        Self { observed: Observed::Unknown, ..self }
    }

    /// Returns the evaluation with a reader of other resources for the jq of transforms. It blocks while it reads.
    #[must_use]
    pub fn reading(self, reader: Option<&'a dyn ResourceReader>) -> Self {
        Self { reader, ..self }
    }

    /// Returns the evaluation for another page of the list than the first one.
    #[must_use]
    pub fn at_page(self, page: PageParameters) -> Self {
        Self { page, ..self }
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        self.rules
    }

    /// Renders the request of `operation`; for [`OperationName::List`], that of the page. It renders all
    /// templates of the operation, so a faulty template fails each use of the operation.
    pub fn render(&self, operation: OperationName) -> Result<Rendered, MetadataError> {
        let compiled = self.rules.operation(operation);
        let field = |key: &str| format!("operations.{operation}.{key}");
        // The path, and its description in the `OpenAPI` document.
        let path = self.text(&compiled.path, &|| field("path"))?;
        let path = self.address(&path).map_err(|reason| self.unusable(field("path"), &path, reason))?;
        let item = self.rules.api.as_ref().and_then(|api| api.path(&path));
        // The query, in which the parameters of the page take precedence.
        let mut query = Vec::with_capacity(compiled.query.len());
        for (name, value) in &compiled.query {
            query.push((name.clone(), self.text(value, &|| field(&format!("query.{name}")))?));
        }
        if operation == OperationName::List {
            replace_parameters(&mut query, &self.page);
        }
        // Method and headers. Without metadata, a create is never a PUT of the collection, which replaces all its members.
        let collection = self.written(self.remote_collection.clone());
        let is_collection = path.trim_end_matches('/') == collection.trim_end_matches('/');
        let mut rendered = Rendered {
            method: self.method(operation, compiled, item, is_collection)?,
            path,
            encoded: self.rules.path_names() == PathNames::PercentEncoded,
            query,
            headers: Vec::new(),
            accept: String::new(),
            content_type: String::new(),
        };
        self.headers(operation, compiled, &mut rendered)?;
        // The media types, which require that the document describes the method.
        let described = match item.filter(|_| operation != OperationName::Compare) {
            Some(item) => Some(item.require(&rendered.method).map_err(|source| MetadataError::Api {
                path: self.subject.path.clone(),
                operation,
                stated: compiled.method.is_some(),
                source: Box::new(source),
            })?),
            None => None,
        };
        self.media_types(operation, described, &mut rendered);
        Ok(rendered)
    }

    /// Sets the media types that no header states: those of the `OpenAPI` document, otherwise those of the payload.
    fn media_types(
        &self,
        operation: OperationName,
        described: Option<&ApiOperation>,
        rendered: &mut Rendered,
    ) {
        let own = self.body_descriptor();
        let is_stated = self.subject.descriptor.is_some_and(is_sent_as_stored) || self.rules.format.is_some();
        let format = is_stated.then_some(own.payload_type);
        if rendered.accept.is_empty() {
            let described = described.and_then(|described| described.response_media_type(format));
            described.unwrap_or(own.media_type).clone_into(&mut rendered.accept);
        }
        if let Some(patch_type) =
            self.rules.patch_type(operation).filter(|_| rendered.content_type.is_empty())
        {
            patch_type.clone_into(&mut rendered.content_type);
        }
        if rendered.content_type.is_empty() {
            let stated = self.rules.resolved.operation(operation).body.is_some();
            let described = described.and_then(|described| described.request_media_type(format));
            let fallback = if stated { PayloadType::Json.media_type() } else { own.media_type };
            described.unwrap_or(fallback).clone_into(&mut rendered.content_type);
        }
    }

    /// Runs the steps of `operation` on a request body or a response or, for [`OperationName::Compare`], on one of the
    /// compared payloads.
    pub fn transform(&self, operation: OperationName, value: Value) -> Result<Value, MetadataError> {
        let transformed = if self.rules.operation(operation).steps.is_empty() {
            value
        } else {
            let applied = self.pipeline(operation)?.apply(value, self.context(operation));
            applied.map_err(|source| self.untransformable(operation, source))?
        };
        Ok(if operation == OperationName::Get { self.rules.shown(transformed) } else { transformed })
    }

    /// Runs the steps of `get` on an entry of a list that stands for a read of the resource. See
    /// [`Pipeline::apply_to_entry`].
    pub fn transform_entry(&self, entry: Value) -> Result<Value, MetadataError> {
        let (get, context) = (OperationName::Get, self.context(OperationName::Get));
        let applied = self.pipeline(get)?.apply_to_entry(entry, context);
        Ok(self.rules.shown(applied.map_err(|source| self.untransformable(get, source))?))
    }

    /// Returns what the jq of `operation` sees in addition to its input.
    pub(super) fn context(&self, operation: OperationName) -> Context<'_> {
        let writes = matches!(operation, OperationName::Update | OperationName::Delete);
        Context { resources: self.reader, observed: self.observed.content().filter(|_| writes) }
    }

    /// The alias and remote id of the resource.
    pub fn identity(&self) -> &Identity {
        self.subject.identity
    }

    /// The path of the collection on the server.
    pub fn remote_collection(&self) -> &str {
        &self.remote_collection
    }

    /// Returns the paths of the resources and collections that are written before the resource.
    pub fn dependencies(&self) -> Result<Vec<LogicalPath>, MetadataError> {
        let path = |(index, template): (usize, &Template)| {
            let field = || format!("resource.dependsOn[{index}]");
            let text = self.text(template, &field)?;
            LogicalPath::parse(&text)
                .map_err(|_| self.unusable(field(), &text, "is not a path of the repository"))
        };
        self.rules.depends_on.iter().enumerate().map(path).collect()
    }

    /// Renders all templates of these operations, to record the references in them. Faults are found when the operation
    /// is used.
    pub fn visit_templates(&self, operations: &[OperationName]) {
        for operation in operations {
            let _ = self.render(*operation);
            let _ = self.steps(*operation);
            if let Some(body) = &self.rules.resolved.operation(*operation).body {
                let _ = self.filled(body.clone(), &String::new);
            }
        }
    }

    /// Returns the class of the payload: that of its descriptor, otherwise of its concrete format, otherwise of its
    /// value.
    pub(super) fn class(&self) -> Class {
        match (self.descriptor(), self.subject.payload) {
            (Some(descriptor), _) => descriptor.payload_type.class(),
            (None, Some(Value::Bytes(_))) => Class::Binary,
            (None, Some(Value::String(_))) => Class::Text,
            (None, _) => Class::Structured,
        }
    }

    /// Returns the format of the body if neither metadata nor `OpenAPI` states one: text and bytes keep their format,
    /// and structured payloads use the concrete format of metadata, otherwise JSON, regardless of how they are stored.
    pub(super) fn body_descriptor(&self) -> Descriptor {
        let own = self.subject.descriptor.filter(|own| is_sent_as_stored(own));
        if let Some(descriptor) = own.or(self.rules.format.as_ref()) {
            return descriptor.clone();
        }
        Descriptor::of(match self.subject.payload.filter(|_| self.subject.descriptor.is_none()) {
            Some(Value::Bytes(_)) => PayloadType::OctetStream,
            Some(Value::String(_)) => PayloadType::Text,
            _ => PayloadType::Json,
        })
    }

    /// Returns the explicit descriptor, otherwise that of a concrete format.
    pub(super) fn descriptor(&self) -> Option<&'a Descriptor> {
        self.subject.descriptor.or(self.rules.format.as_ref())
    }

    /// Returns the compiled steps of `operation`.
    pub(super) fn pipeline(&self, operation: OperationName) -> Result<Pipeline, MetadataError> {
        if let Steps::Fixed(pipeline) = &self.rules.operation(operation).steps {
            return Ok(pipeline.clone());
        }
        Pipeline::compile_rendered(self.steps(operation)?, &self.rules.programs)
            .map_err(|source| self.untransformable(operation, source))
    }

    /// Returns the steps of `operation`, with their templates rendered.
    pub(super) fn steps(&self, operation: OperationName) -> Result<Vec<Step>, MetadataError> {
        let steps = match &self.rules.operation(operation).steps {
            Steps::Fixed(_) => return Ok(self.rules.resolved.steps(operation).cloned().collect()),
            Steps::Rendered(steps) => steps,
        };
        let mut rendered = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            rendered.push(match step {
                StepRules::Fixed(step) => step.clone(),
                StepRules::Jq(template) => Step::Jq(self.text(template, &|| {
                    format!("{}.jqExpression", step_field(&self.rules.resolved, operation, index))
                })?),
            });
        }
        Ok(rendered)
    }

    pub(super) fn untransformable(
        &self,
        operation: OperationName,
        mut source: TransformError,
    ) -> MetadataError {
        let mut field = format!("operations.{operation}.transforms");
        if let Some(step) = source.step_mut() {
            match step.checked_sub(self.rules.resolved.transforms.len()) {
                Some(own) => *step = own,
                None => "operations.defaults.transforms".clone_into(&mut field),
            }
        }
        let field = self.rules.origin(field).into();
        MetadataError::Transform { path: self.subject.path.clone(), field, source: Box::new(source) }
    }

    /// Returns the fields that are derived from the logical path.
    pub(super) fn path_fields(&self) -> Object {
        self.derived.members()
    }

    fn target(&self) -> Target<'_> {
        Target {
            path: self.subject.path,
            collection: &self.collection,
            descendants: self.descendants.as_ref(),
            names: self.rules.path_names(),
        }
    }

    fn scope<'s>(&'s self, remote_collection: Option<&'s str>) -> Scope<'s> {
        Scope {
            target: self.target(),
            payload: self.subject.payload,
            descriptor: self.descriptor(),
            remote_collection,
            alias: &self.subject.identity.alias,
            remote_id: &self.subject.identity.remote_id,
            derived: &self.derived,
            values: self.values,
            observed: self.observed,
        }
    }

    pub(super) fn text(
        &self,
        template: &Template,
        field: &dyn Fn() -> String,
    ) -> Result<String, MetadataError> {
        if let Some(text) = template.static_text() {
            return Ok(text.to_owned());
        }
        match template.render(&self.scope(Some(&self.remote_collection))) {
            // A function may not accept the empty text of an unknown value.
            Err(_) if self.is_unobserved() && template.observes() && !template.refers() => Ok(String::new()),
            rendered => rendered.map_err(|source| self.unrendered(field(), source)),
        }
    }

    fn is_unobserved(&self) -> bool {
        matches!(self.observed, Observed::Unknown)
    }

    fn unrendered(&self, field: String, source: TemplateError) -> MetadataError {
        let is_missing = matches!(source, TemplateError::Missing(_));
        let fields: BTreeSet<_> = self.derived.names().filter(|_| is_missing).collect();
        let fields = fields.into_iter().map(str::to_owned).collect();
        let field = self.rules.origin(field).into();
        MetadataError::Render { path: self.subject.path.clone(), field, source: Box::new(source), fields }
    }

    fn render_collection(&self) -> Result<String, MetadataError> {
        let Some(template) = &self.rules.remote_collection else {
            return Ok(self.written(self.collection.as_str().to_owned()));
        };
        let rendered = template
            .render(&self.scope(None))
            .map_err(|source| self.unrendered(REMOTE_COLLECTION.to_owned(), source))?;
        absolute(&[&rendered])
            .map(|path| self.written(path))
            .map_err(|reason| self.unusable(REMOTE_COLLECTION.to_owned(), &rendered, reason))
    }

    /// Returns the absolute path for a rendered `path`; one that starts with `.` is relative to the collection. A slash
    /// after its last name is kept, because some servers know no other address.
    fn address(&self, rendered: &str) -> Result<String, &'static str> {
        let mut path = match rendered.chars().next() {
            None => return Err("is empty"),
            Some('.') => absolute(&[&self.remote_collection, rendered])?,
            Some(_) => absolute(&[rendered])?,
        };
        let last = rendered.trim_end_matches('/').rsplit('/').next();
        if rendered.ends_with('/') && !matches!(last, Some("" | "." | "..")) {
            path.push('/');
        }
        Ok(self.written(path))
    }

    /// Returns a path in the form of [`Rendered::path`].
    fn written(&self, path: String) -> String {
        match self.rules.path_names() {
            PathNames::Literal => path,
            PathNames::PercentEncoded => url_path(&path),
        }
    }

    fn method(
        &self,
        operation: OperationName,
        compiled: &OperationRules,
        item: Option<&PathItem>,
        is_collection: bool,
    ) -> Result<Method, MetadataError> {
        let replaces =
            |method: &&Method| operation == OperationName::Create && is_collection && **method == Method::PUT;
        let default = || {
            if self.rules.patch_type(operation).is_some() {
                return Method::PATCH;
            }
            let described =
                item.and_then(|item| item.default_method(operation)).filter(|method| !replaces(method));
            described.cloned().unwrap_or_else(|| default_method(operation))
        };
        let Some(template) = &compiled.method else { return Ok(default()) };
        let field = || format!("operations.{operation}.method");
        let text = self.text(template, &field)?;
        let name = text.trim().to_ascii_uppercase();
        if name.is_empty() {
            return Ok(default());
        }
        let method = Method::from_bytes(name.as_bytes()).ok().filter(|_| name.len() <= MAX_METHOD);
        method.ok_or_else(|| self.unusable(field(), &text, "is not an HTTP method; write one such as PATCH"))
    }

    /// Renders the headers. A header whose value is blank is not sent, so a condition in a template can omit it.
    fn headers(
        &self,
        operation: OperationName,
        compiled: &OperationRules,
        rendered: &mut Rendered,
    ) -> Result<(), MetadataError> {
        for (name, template) in &compiled.headers {
            let field = || format!("operations.{operation}.headers.{name}");
            let text = self.text(template, &field)?;
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            let value = HeaderValue::from_bytes(text.as_bytes())
                .map_err(|_| self.unusable(field(), "its value", "holds control characters"))?;
            match *name {
                header::ACCEPT => text.clone_into(&mut rendered.accept),
                header::CONTENT_TYPE => text.clone_into(&mut rendered.content_type),
                _ => rendered.headers.push((name.clone(), value)),
            }
        }
        Ok(())
    }

    pub(super) fn unusable(&self, field: String, rendered: &str, reason: &'static str) -> MetadataError {
        MetadataError::Unusable {
            path: self.subject.path.clone(),
            field: self.rules.origin(field).into(),
            rendered: rendered.to_owned(),
            reason,
        }
    }
}

/// Returns the method of an operation if neither metadata nor `OpenAPI` states one.
pub(super) const fn default_method(operation: OperationName) -> Method {
    match operation {
        OperationName::Create => Method::POST,
        OperationName::Update => Method::PUT,
        OperationName::Delete => Method::DELETE,
        OperationName::Get | OperationName::List | OperationName::Compare => Method::GET,
    }
}

/// Joins the texts to an absolute path, without empty and `.` segments and a slash at the end, and with `..` resolved.
fn absolute(parts: &[&str]) -> Result<String, &'static str> {
    let mut segments: Vec<&str> = Vec::new();
    for segment in parts.iter().flat_map(|part| part.split('/')) {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop().ok_or("leads above the root of the server")?),
            _ => segments.push(segment),
        }
    }
    Ok(format!("/{}", segments.join("/")))
}

/// Returns the first `depth` segments of `path`.
fn ancestor(path: &LogicalPath, depth: usize) -> LogicalPath {
    let surplus = path.segments().count().saturating_sub(depth);
    (0..surplus).fold(path.clone(), |path, _| path.parent().unwrap_or(path))
}

/// Whether a payload is sent in the format of its file unless metadata states another. YAML is a form in which people
/// write JSON, which most servers expect.
fn is_sent_as_stored(own: &Descriptor) -> bool {
    !matches!(own.payload_type, PayloadType::Json | PayloadType::Yaml)
}

#[cfg(test)]
#[path = "evaluation_tests.rs"]
mod tests;
