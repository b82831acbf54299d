//! Responses: negotiates the representation of objects and writes it.

use std::convert::Infallible;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::events;
use super::object::metadata_only;
use super::resource::ResourceType;
use super::status_error::StatusError;
use super::table::{self, Include};

/// The body of a response.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The representation of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Representation {
    Full,
    /// `PartialObjectMetadata`
    Metadata,
    /// `Table`, as `kubectl get` prints it.
    Table(Include),
}

impl Representation {
    /// Returns the first media type of `accept` that this API can write.
    pub(crate) fn negotiate(accept: &str, include_object: &str) -> Result<Self, StatusError> {
        let include = match include_object {
            "None" => Include::Nothing,
            "Object" => Include::Object,
            _ => Include::Metadata,
        };
        if accept.trim().is_empty() {
            return Ok(Self::Full);
        }
        accept.split(',').find_map(|range| Self::of(range, include)).ok_or_else(StatusError::not_acceptable)
    }

    fn of(range: &str, include: Include) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        if !matches!(parts.next()?, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let (mut kind, mut version, mut group) = ("", "v1", "");
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name {
                "as" => kind = value,
                "v" => version = value,
                "g" => group = value,
                _ => {}
            }
        }
        match (kind, group, version) {
            ("", _, _) => Some(Self::Full),
            ("Table", "meta.k8s.io", "v1") => Some(Self::Table(include)),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
                Some(Self::Metadata)
            }
            _ => None,
        }
    }

    /// Renders an object. `with_columns` is for tables, whose header is sent once per watch.
    pub(crate) fn object(self, resource: &ResourceType, object: &Arc<Value>, with_columns: bool) -> Value {
        match self {
            Self::Full => (*events::shown(resource, object)).clone(),
            Self::Metadata => metadata_only(object),
            Self::Table(include) => {
                table::table(resource, std::slice::from_ref(object), include, "", with_columns)
            }
        }
    }

    pub(crate) fn list(self, resource: &ResourceType, objects: &[Arc<Value>], revision: u64) -> Value {
        let metadata = json!({"resourceVersion": revision.to_string()});
        match self {
            Self::Full => {
                let items: Vec<Arc<Value>> =
                    objects.iter().map(|object| events::shown(resource, object)).collect();
                json!({
                    "kind": format!("{}List", resource.kind),
                    "apiVersion": resource.api_version(),
                    "metadata": metadata,
                    "items": items,
                })
            }
            Self::Metadata => {
                let items: Vec<Value> = objects.iter().map(|object| metadata_only(object)).collect();
                json!({
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata,
                    "items": items,
                })
            }
            Self::Table(include) => table::table(resource, objects, include, &revision.to_string(), true),
        }
    }

    /// Renders the bookmark of a watch.
    pub(crate) fn bookmark(self, resource: &ResourceType, revision: u64, ends_initial_events: bool) -> Value {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        match self {
            Self::Full => {
                json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata})
            }
            Self::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Self::Table(_) => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "columnDefinitions": null, "rows": [],
            }),
        }
    }
}

/// Returns a response with a JSON body.
pub(crate) fn respond(code: StatusCode, body: &Value, warnings: &[String]) -> Response<Body> {
    // Encoding a `Value` in memory cannot fail.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(bytes)).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for warning in warnings {
        // 299: miscellaneous persistent warning (RFC 7234, 5.5.7), as kube-apiserver sends them.
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {}", json!(warning))) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
    response
}

/// Returns the response of an error.
pub(crate) fn refuse(error: &StatusError) -> Response<Body> {
    if error.is_plain {
        return plain(error.code, &error.message);
    }
    respond(error.code, &error.to_status(), &[])
}

/// Returns a response with a plain text.
pub(crate) fn plain(code: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
