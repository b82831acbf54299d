//! The operations of a document: their media types, and the locations of their schemas.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderValue, Method};

use super::OpenApiError;
use super::reference::{Part, follow};
use crate::metadata::document::OperationName;
use crate::payload::pointer::Pointer;
use crate::payload::{Class, Descriptor, Object, PayloadType, Value, form};

/// The methods of a path item and their keys.
pub const METHODS: [(&str, Method); 8] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("options", Method::OPTIONS),
    ("head", Method::HEAD),
    ("patch", Method::PATCH),
    ("trace", Method::TRACE),
];

/// The preferred statuses to take the content of responses from, in order; the others follow sorted.
const STATUSES: [&str; 4] = ["200", "201", "202", "default"];

/// The maximum number of media types of one body that are read, also in converted documents.
pub const MAX_MEDIA_TYPES: usize = 32;
/// The maximum length of the name of a media type, in bytes.
const MAX_MEDIA_NAME: usize = 256;

/// One operation of a path.
#[derive(Clone, Debug)]
pub struct ApiOperation {
    method: Method,
    request: Arc<[Media]>,
    response: Arc<[Media]>,
    states_body: bool,
}

/// The bodies and responses of a document. Those that operations share are read once.
pub(super) struct Bodies<'d> {
    root: &'d Value,
    read: HashMap<Pointer, Arc<[Media]>>,
}

/// A media type of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    /// The media type or range as written, such as `application/json; charset=utf-8` or `*/*`.
    pub name: String,
    /// The payload type, if it is known.
    pub payload_type: Option<PayloadType>,
    /// The pointer of the schema in the document.
    pub schema: Option<Pointer>,
}

impl ApiOperation {
    /// Reads the operation at a pointer of the document.
    pub(super) fn read(bodies: &mut Bodies<'_>, method: Method, at: &Pointer) -> Self {
        let request = bodies.contents(at.child("requestBody"));
        let responses = at.child("responses");
        let statuses =
            responses.get(bodies.root).and_then(Value::as_object).map(statuses).unwrap_or_default();
        let mut answers = statuses.into_iter().map(|status| bodies.contents(responses.child(status)));
        let response = answers.find(|media| !media.is_empty()).unwrap_or_default();
        let states_body = at.child("requestBody").get(bodies.root).is_some();
        Self { method, request, response, states_body }
    }

    /// The HTTP method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Whether the operation may write the resource at its path. `POST` without a body is an action, such as a restart.
    pub fn may_write(&self) -> bool {
        self.method != Method::POST || self.states_body
    }

    /// The media types of the request, the preferred first: `application/json`, other JSON, then by name.
    pub fn request(&self) -> &[Media] {
        &self.request
    }

    /// The media types of the response, the preferred first. The response is that of the first status with content:
    /// 200, 201, 202, `default`, then the others sorted.
    pub fn response(&self) -> &[Media] {
        &self.response
    }

    /// Returns the media type to send: one of the concrete `format`, otherwise the preferred one. Ranges are ignored,
    /// because they do not state a type to send.
    pub fn request_media_type(&self, format: Option<PayloadType>) -> Option<&str> {
        media_type(&self.request, format)
    }

    /// Returns the media type to accept, selected like [`Self::request_media_type`].
    pub fn response_media_type(&self, format: Option<PayloadType>) -> Option<&str> {
        media_type(&self.response, format)
    }

    /// Returns the pointer of the schema of the request body, preferably that of JSON.
    pub fn request_schema(&self) -> Option<&Pointer> {
        self.request.iter().find_map(|media| media.schema.as_ref())
    }

    /// Returns the pointer of the schema of a structured request body.
    pub fn structured_request_schema(&self) -> Option<&Pointer> {
        let mut structured = self.request.iter().filter(|media| media.is_structured());
        structured.find_map(|media| media.schema.as_ref())
    }

    /// Returns the pointer of the schema of the response, preferably that of JSON.
    pub fn response_schema(&self) -> Option<&Pointer> {
        self.response.iter().find_map(|media| media.schema.as_ref())
    }
}

impl Media {
    fn new(name: &str, schema: Option<Pointer>) -> Option<Self> {
        let name = name.trim();
        // Ignore names that are not valid in a header.
        HeaderValue::from_str(name).ok().filter(|_| name.contains('/'))?;
        let payload_type = Descriptor::from_media_type(name).map(|descriptor| descriptor.payload_type);
        Some(Self { name: name.to_owned(), payload_type, schema })
    }

    fn is_structured(&self) -> bool {
        form::is_form(&self.name)
            || self.payload_type.is_some_and(|payload_type| payload_type.class() == Class::Structured)
    }

    fn is_range(&self) -> bool {
        self.name.contains('*')
    }

    fn rank(&self) -> u8 {
        let essence = self.name.split(';').next().unwrap_or_default().trim();
        match self.payload_type {
            Some(PayloadType::Json) if essence.eq_ignore_ascii_case(PayloadType::Json.media_type()) => 0,
            Some(PayloadType::Json) => 1,
            _ if self.is_range() => 3,
            _ => 2,
        }
    }
}

/// Returns the default methods of an operation; the first one that a path has applies. `compare` has that of the read
/// whose response is compared.
pub(super) fn default_method(name: OperationName) -> &'static [Method] {
    match name {
        OperationName::Create => &[Method::POST, Method::PUT],
        OperationName::Update => &[Method::PUT, Method::PATCH, Method::POST],
        OperationName::Delete => &[Method::DELETE],
        OperationName::Get | OperationName::List | OperationName::Compare => &[Method::GET],
    }
}

/// Returns the error for a method that a path does not have.
pub(super) fn unknown_method(template: &str, method: &Method, operations: &[ApiOperation]) -> OpenApiError {
    OpenApiError::Method {
        template: template.to_owned(),
        method: method.clone(),
        known: operations.iter().map(|operation| operation.method.clone()).collect(),
    }
}

fn media_type(media: &[Media], format: Option<PayloadType>) -> Option<&str> {
    let concrete = || media.iter().filter(|media| !media.is_range());
    let of_format = concrete().find(|media| format.is_some() && media.payload_type == format);
    of_format.or_else(|| concrete().next()).map(|media| media.name.as_str())
}

fn statuses(responses: &Object) -> Vec<&str> {
    let preferred = STATUSES.into_iter().filter(|status| responses.contains_key(*status));
    let others = responses.keys().map(String::as_str).filter(|status| !STATUSES.contains(status));
    preferred.chain(others).collect()
}

impl<'d> Bodies<'d> {
    pub(super) fn new(root: &'d Value) -> Self {
        Self { root, read: HashMap::new() }
    }

    /// Returns the media types of the body or response at a pointer; empty if it cannot be resolved.
    fn contents(&mut self, at: Pointer) -> Arc<[Media]> {
        match follow(self.root, at) {
            Ok(Part { at, value }) => {
                Arc::clone(self.read.entry(at).or_insert_with_key(|at| media(value, &at.child("content"))))
            }
            Err(_) => Arc::default(),
        }
    }
}

fn media(body: &Value, at: &Pointer) -> Arc<[Media]> {
    let names = body.get("content").and_then(Value::as_object).into_iter().flatten();
    let named = names.filter(|(name, _)| name.len() <= MAX_MEDIA_NAME).take(MAX_MEDIA_TYPES);
    let media = named.filter_map(|(name, media)| {
        let place = Part { at: at.child(name), value: media };
        Media::new(name, place.member("schema"))
    });
    let mut media: Vec<_> = media.collect();
    media.sort_by(|a, b| (a.rank(), &a.name).cmp(&(b.rank(), &b.name)));
    media.into()
}
