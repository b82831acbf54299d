//! Errors in the form that Kubernetes clients expect: `metav1.Status`.
//!
//! Codes, reasons and messages follow the API conventions of Kubernetes and kube-apiserver, because clients match
//! codes and reasons, and users search for messages.

use std::fmt;

use http::StatusCode;
use serde_json::{Value, json};

/// The error of a rejected request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct StatusError {
    pub code: StatusCode,
    pub reason: &'static str,
    pub message: String,
    details: Value,
    /// Whether the response is plain text, as for paths that kube-apiserver rejects before it creates a `Status`.
    pub is_plain: bool,
}

/// The cause of a rejected field (`metav1.CauseType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Required,
    Invalid,
    TypeInvalid,
    NotSupported,
    Duplicate,
    TooLong,
    TooMany,
    Forbidden,
}

impl Cause {
    const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Forbidden => "FieldValueForbidden",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Forbidden => "Forbidden",
        }
    }

    /// Returns whether this error prevents the CEL rules of the object from running.
    pub(crate) const fn blocks_rules(self) -> bool {
        matches!(self, Self::Required | Self::TypeInvalid | Self::TooLong | Self::TooMany)
    }
}

/// A rejected field, with the message of `field.Error` of apimachinery.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    pub field: String,
    pub cause: Cause,
    body: String,
}

impl FieldError {
    /// Creates an error. The message contains `value` if the cause is about a value.
    pub(crate) fn new(field: impl Into<String>, cause: Cause, value: &Value, detail: &str) -> Self {
        let mut body = match cause {
            Cause::Required | Cause::Forbidden | Cause::TooLong | Cause::TooMany => cause.title().to_owned(),
            // The message does not repeat objects and lists.
            _ if value.is_object() || value.is_array() => cause.title().to_owned(),
            _ => format!("{}: {value}", cause.title()),
        };
        if !detail.is_empty() {
            body = format!("{body}: {detail}");
        }
        Self { field: field.into(), cause, body }
    }

    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, Cause::Required, &Value::Null, detail)
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, Cause::Forbidden, &Value::Null, detail)
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new(field, Cause::Invalid, value, detail)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body)
    }
}

impl StatusError {
    pub(super) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null, is_plain: false }
    }

    /// Adds the object that the error is about. `plural` is that of its type.
    pub(super) fn about(mut self, group: &str, plural: &str, name: &str) -> Self {
        self.details = json!({"name": name, "group": group, "kind": plural});
        self
    }

    /// Returns the error of a path that this API does not serve.
    pub(crate) fn unknown_path() -> Self {
        let mut error = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found");
        error.is_plain = true;
        error
    }

    pub(crate) fn unknown_subresource() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    /// Returns the error of a malformed resourceVersion. kube-apiserver returns an internal error for a watch.
    pub(crate) fn malformed_revision(given: &str, is_watch: bool) -> Self {
        let message = format!("resourceVersion: Invalid value: {}: not a number", json!(given));
        if is_watch {
            return Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message);
        }
        Self::bad_request(format!("invalid resource version: {message}"))
    }

    /// Returns the conflict of an apply that would take the fields `(manager, field)` from other managers.
    pub(crate) fn apply_conflict(mut conflicts: Vec<(String, String)>) -> Self {
        conflicts.sort_by(|one, other| one.0.cmp(&other.0));
        let message = match conflicts.as_slice() {
            [(manager, field)] => format!("Apply failed with 1 conflict: conflict with {manager}: {field}"),
            many => {
                let mut lines = Vec::new();
                for of_manager in many.chunk_by(|one, next| one.0 == next.0) {
                    lines.extend(of_manager.first().map(|(manager, _)| format!("conflicts with {manager}:")));
                    lines.extend(of_manager.iter().map(|(_, field)| format!("- {field}")));
                }
                format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
            }
        };
        let cause = |(manager, field): &(String, String)| {
            let message = format!("conflict with {manager}");
            json!({"reason": "FieldManagerConflict", "message": message, "field": field})
        };
        let causes: Vec<Value> = conflicts.iter().map(cause).collect();
        let mut error = Self::new(StatusCode::CONFLICT, "Conflict", message);
        error.details = json!({ "causes": causes });
        error
    }

    /// Returns the error of an object with rejected fields.
    pub(super) fn invalid(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> Self {
        let subject = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = match text.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"reason": error.cause.reason(), "message": error.body, "field": error.field}))
            .collect();
        let message = format!("{subject} \"{name}\" is invalid: {text}");
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        error.details = json!({"name": name, "group": group, "kind": kind, "causes": causes});
        error
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Returns the error of a well-formed patch that does not fit the object.
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    pub(crate) fn unauthorized() -> Self {
        let message =
            "the token is missing or wrong; use the file kubeconfig in the state directory of the operator";
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// Returns the error of a revision that is no longer in the history. The client must list again.
    pub(crate) fn expired(requested: u64, available: u64) -> Self {
        let message = format!("too old resource version: {requested} ({available})");
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        let message = format!("Internal error occurred: {message}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// Returns the `metav1.Status` object.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
