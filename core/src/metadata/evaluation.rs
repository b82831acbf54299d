//! Rules applied to one resource or collection: requests, bodies, transforms.

use http::{HeaderName, HeaderValue, Method, header};

use super::document::OperationName;
use super::identity::Identity;
use super::openapi::{ApiOperation, PathItem};
use super::pagination::replace_parameters;
use super::rules::{OperationRules, REMOTE_COLLECTION, StepRules, Steps, step_field};
use super::template::{DerivedFields, Descendants, Scope, Target, Template, derive_fields};
use super::transform::{Context, Pipeline, Step, TransformError};
use super::{MetadataError, Rules};
use crate::path::LogicalPath;
use crate::payload::{Class, Descriptor, Object, PayloadType, Value};

/// What is known of a resource when its operations are rendered.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The resource.
    pub path: &'a LogicalPath,
    /// Its names.
    pub identity: &'a Identity,
    /// What templates see: the desired payload with defaults, includes and secrets, or the seed of a read by
    /// path alone.
    pub payload: Option<&'a Value>,
    /// How the payload is stored, where that is known.
    pub descriptor: Option<&'a Descriptor>,
}

/// A request as rules make it; the body is rendered by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The HTTP method.
    pub method: Method,
    /// The path below the server's base URL, unencoded.
    pub path: String,
    /// Query parameters, sorted by name, unencoded.
    pub query: Vec<(String, String)>,
    /// Headers other than `Accept` and `Content-Type`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The media type to ask for.
    pub accept: String,
    /// The media type of a body, if one is sent.
    pub content_type: String,
}

/// [`Rules`] and what they are applied to. Rendering parses nothing and does no I/O.
#[derive(Debug)]
pub struct Evaluation<'a> {
    pub(super) rules: &'a Rules,
    pub(super) subject: Subject<'a>,
    collection: LogicalPath,
    descendants: Option<Descendants>,
    derived: DerivedFields,
    remote_collection: String,
}

impl<'a> Evaluation<'a> {
    /// Fails if the path of the collection cannot be rendered.
    pub(super) fn new(
        rules: &'a Rules,
        subject: Subject<'a>,
        collection: LogicalPath,
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
        };
        evaluation.derived = derive_fields(&evaluation.target(), &rules.patterns);
        evaluation.remote_collection = evaluation.render_collection()?;
        Ok(evaluation)
    }

    /// The rules that are evaluated.
    pub fn rules(&self) -> &Rules {
        self.rules
    }

    /// The request that `operation` becomes; for [`OperationName::List`] that for the first page. All templates of the operation are rendered, so that a broken
    /// one shows wherever the operation is used.
    pub fn render(&self, operation: OperationName) -> Result<Rendered, MetadataError> {
        let compiled = self.rules.operation(operation);
        let field = |key: &str| format!("operations.{operation}.{key}");
        let path = self.text(&compiled.path, &|| field("path"))?;
        let path = self.address(&path).map_err(|reason| self.unusable(field("path"), &path, reason))?;
        let item = self.rules.api.as_ref().and_then(|api| api.path(&path));
        let mut query = Vec::with_capacity(compiled.query.len());
        for (name, value) in &compiled.query {
            query.push((name.clone(), self.text(value, &|| field(&format!("query.{name}")))?));
        }
        if let Some(pagination) = self.rules.pagination().filter(|_| operation == OperationName::List) {
            replace_parameters(&mut query, pagination.first_page());
        }
        let mut rendered = Rendered {
            method: self.method(operation, compiled, item)?,
            path,
            query,
            headers: Vec::new(),
            accept: String::new(),
            content_type: String::new(),
        };
        self.headers(operation, compiled, &mut rendered)?;
        let described = match item.filter(|_| operation != OperationName::Compare) {
            Some(item) => Some(item.require(&rendered.method).map_err(|source| MetadataError::Api {
                path: self.subject.path.clone(),
                operation,
                source: Box::new(source),
            })?),
            None => None,
        };
        self.media_types(operation, described, &mut rendered);
        Ok(rendered)
    }

    /// The media types that no header states: those of the `OpenAPI` document, else those of the payload.
    fn media_types(
        &self,
        operation: OperationName,
        described: Option<&ApiOperation>,
        rendered: &mut Rendered,
    ) {
        let own = self.body_descriptor();
        let told = self.subject.descriptor.is_some_and(|own| own.payload_type.class() != Class::Structured)
            || self.rules.format.is_some();
        let format = told.then_some(own.payload_type);
        if rendered.accept.is_empty() {
            let described = described.and_then(|described| described.response_media_type(format));
            described.unwrap_or(own.media_type).clone_into(&mut rendered.accept);
        }
        if rendered.content_type.is_empty() {
            let stated = self.rules.resolved.operation(operation).body.is_some();
            let described = described.and_then(|described| described.request_media_type(format));
            let fallback = if stated { PayloadType::Json.media_type() } else { own.media_type };
            described.unwrap_or(fallback).clone_into(&mut rendered.content_type);
        }
    }

    /// Runs the steps of `operation` on an answer or, for [`OperationName::Compare`], on one of the sides.
    pub fn transform(
        &self,
        operation: OperationName,
        value: Value,
        context: Context<'_>,
    ) -> Result<Value, MetadataError> {
        if self.rules.operation(operation).steps.is_empty() {
            return Ok(value);
        }
        let pipeline = self.pipeline(operation)?;
        pipeline.apply(value, context).map_err(|source| self.untransformable(operation, source))
    }

    /// The names of the resource.
    pub fn identity(&self) -> &Identity {
        self.subject.identity
    }

    /// The path of the collection on the server.
    pub fn remote_collection(&self) -> &str {
        &self.remote_collection
    }

    /// The class of the payload: that of its descriptor, else of its concrete format, else of its value.
    pub(super) fn class(&self) -> Class {
        match (self.descriptor(), self.subject.payload) {
            (Some(descriptor), _) => descriptor.payload_type.class(),
            (None, Some(Value::Bytes(_))) => Class::Binary,
            (None, Some(Value::String(_))) => Class::Text,
            (None, _) => Class::Structured,
        }
    }

    /// How the payload travels where nothing says so: text and binary ones as what they are, structured ones
    /// in their concrete format, else as JSON however they are stored.
    pub(super) fn body_descriptor(&self) -> Descriptor {
        let own = self.subject.descriptor.filter(|own| own.payload_type.class() != Class::Structured);
        if let Some(descriptor) = own.or(self.rules.format.as_ref()) {
            return descriptor.clone();
        }
        Descriptor::of(match self.subject.payload.filter(|_| self.subject.descriptor.is_none()) {
            Some(Value::Bytes(_)) => PayloadType::OctetStream,
            Some(Value::String(_)) => PayloadType::Text,
            _ => PayloadType::Json,
        })
    }

    /// The active descriptor: the explicit one, else that of a concrete format.
    pub(super) fn descriptor(&self) -> Option<&'a Descriptor> {
        self.subject.descriptor.or(self.rules.format.as_ref())
    }

    /// The steps of `operation`, compiled.
    pub(super) fn pipeline(&self, operation: OperationName) -> Result<Pipeline, MetadataError> {
        if let Steps::Fixed(pipeline) = &self.rules.operation(operation).steps {
            return Ok(pipeline.clone());
        }
        Pipeline::compile_rendered(self.steps(operation)?, &self.rules.programs)
            .map_err(|source| self.untransformable(operation, source))
    }

    /// The steps of `operation`, with their templates rendered.
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

    /// What the path tells, as values.
    pub(super) fn path_fields(&self) -> Object {
        self.derived.members()
    }

    fn target(&self) -> Target<'_> {
        Target {
            path: self.subject.path,
            collection: &self.collection,
            descendants: self.descendants.as_ref(),
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
        }
    }

    fn text(&self, template: &Template, field: &dyn Fn() -> String) -> Result<String, MetadataError> {
        if let Some(text) = template.static_text() {
            return Ok(text.to_owned());
        }
        template.render(&self.scope(Some(&self.remote_collection))).map_err(|source| MetadataError::Render {
            path: self.subject.path.clone(),
            field: self.rules.origin(field()).into(),
            source: Box::new(source),
        })
    }

    fn render_collection(&self) -> Result<String, MetadataError> {
        let Some(template) = &self.rules.remote_collection else {
            return Ok(self.collection.as_str().to_owned());
        };
        let rendered = template.render(&self.scope(None)).map_err(|source| MetadataError::Render {
            path: self.subject.path.clone(),
            field: self.rules.origin(REMOTE_COLLECTION.to_owned()).into(),
            source: Box::new(source),
        })?;
        absolute(&[&rendered])
            .map_err(|reason| self.unusable(REMOTE_COLLECTION.to_owned(), &rendered, reason))
    }

    /// The path that a rendered `path` means.
    fn address(&self, rendered: &str) -> Result<String, &'static str> {
        let rendered = rendered.trim();
        match rendered.chars().next() {
            None => Err("is empty"),
            Some('.') => absolute(&[&self.remote_collection, rendered]),
            Some(_) => absolute(&[rendered]),
        }
    }

    fn method(
        &self,
        operation: OperationName,
        compiled: &OperationRules,
        item: Option<&PathItem>,
    ) -> Result<Method, MetadataError> {
        let default = || {
            let described = item.and_then(|item| item.default_method(operation));
            described.cloned().unwrap_or_else(|| default_method(operation))
        };
        let Some(template) = &compiled.method else { return Ok(default()) };
        let field = || format!("operations.{operation}.method");
        let text = self.text(template, &field)?;
        let name = text.trim().to_ascii_uppercase();
        if name.is_empty() {
            return Ok(default());
        }
        Method::from_bytes(name.as_bytes())
            .map_err(|_| self.unusable(field(), &text, "is no HTTP method; write one such as PATCH"))
    }

    /// Renders the headers. One that comes out blank is not sent, so that a condition can leave it out.
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

    fn unusable(&self, field: String, rendered: &str, reason: &'static str) -> MetadataError {
        MetadataError::Unusable {
            path: self.subject.path.clone(),
            field: self.rules.origin(field).into(),
            rendered: rendered.to_owned(),
            reason,
        }
    }
}

/// What an operation does where nothing says so.
pub(super) const fn default_method(operation: OperationName) -> Method {
    match operation {
        OperationName::Create => Method::POST,
        OperationName::Update => Method::PUT,
        OperationName::Delete => Method::DELETE,
        OperationName::Get | OperationName::List | OperationName::Compare => Method::GET,
    }
}

/// The texts joined to one absolute path: without empty and `.` segments, `..` resolved.
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

/// The first `depth` segments of `path`.
fn ancestor(path: &LogicalPath, depth: usize) -> LogicalPath {
    let surplus = path.segments().count().saturating_sub(depth);
    (0..surplus).fold(path.clone(), |path, _| path.parent().unwrap_or(path))
}

#[cfg(test)]
#[path = "evaluation_tests.rs"]
mod tests;
