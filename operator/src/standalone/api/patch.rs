//! The patch formats of the API: JSON patch, JSON merge patch, strategic merge patch.

use serde_json::Value;

use super::resource::ResourceType;
use super::status_error::StatusError;

/// The format of the body of a PATCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    /// For built-in types only. Lists are replaced, as in a merge patch.
    Strategic,
    Apply,
}

impl PatchType {
    pub(crate) fn of(resource: &ResourceType, content_type: &str) -> Result<Self, StatusError> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let is_custom = resource.is_custom();
        match media_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/apply-patch+yaml" | "application/apply-patch+json" => Ok(Self::Apply),
            "application/strategic-merge-patch+json" if !is_custom => Ok(Self::Strategic),
            _ => Err(StatusError::unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
        }
    }
}

/// Returns `live` with the patch `body`. Does not handle server-side apply.
pub(crate) fn patch(kind: PatchType, live: &Value, body: &Value) -> Result<Value, StatusError> {
    let mut object = live.clone();
    if kind == PatchType::Json {
        let patch: json_patch::Patch = serde_json::from_value(body.clone())
            .map_err(|error| StatusError::bad_request(format!("error decoding patch: {error}")))?;
        json_patch::patch(&mut object, &patch).map_err(|error| failed(&error))?;
        return Ok(object);
    }
    if !body.is_object() {
        return Err(StatusError::bad_request("error decoding patch: it is not a JSON object"));
    }
    if let (PatchType::Strategic, Some(directive)) = (kind, directive(body)) {
        return Err(StatusError::bad_request(format!(
            "the directive {directive} of strategic merge patches is not supported; use a JSON merge patch"
        )));
    }
    json_patch::merge(&mut object, body);
    Ok(object)
}

/// Returns the error of a JSON patch that does not fit the object: 422, as kube-apiserver returns.
fn failed(error: &json_patch::PatchError) -> StatusError {
    StatusError::unprocessable(format!(
        "the server rejected our request due to an error in our request: {error}"
    ))
}

/// Returns the first key that is a directive instead of a field.
fn directive(patch: &Value) -> Option<&str> {
    match patch {
        Value::Object(fields) => {
            fields.iter().find_map(
                |(name, value)| {
                    if name.starts_with('$') { Some(name.as_str()) } else { directive(value) }
                },
            )
        }
        Value::Array(items) => items.iter().find_map(directive),
        _ => None,
    }
}
