//! Access to `metadata`, and the rules of all objects.

use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::resource::ResourceType;
use super::status_error::{FieldError, StatusError};
use crate::crd::validation::{is_label, is_subdomain};

/// Returns a string field of `metadata`, or an empty string.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns the `PartialObjectMetadata` of an object.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

pub(crate) fn set_meta(object: &mut Value, field: &str, value: Value) {
    object["metadata"][field] = value;
}

pub(crate) fn remove_meta(object: &mut Value, field: &str) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove(field);
    }
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(crate) fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn owner_references(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the current time in the format of `metadata`: RFC 3339 in UTC, whole seconds.
pub(crate) fn now() -> String {
    time(jiff::Timestamp::now())
}

pub(crate) fn time(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Letters of generated names: no vowels, and no letters that look like others.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns five random letters, which `generateName` appends.
pub(crate) fn random_suffix() -> String {
    let random = uuid::Uuid::new_v4();
    let letter = |byte: &u8| char::from(NAME_LETTERS[usize::from(*byte) % NAME_LETTERS.len()]);
    // The version and variant bits of a UUID are not in its first five bytes.
    random.as_bytes().iter().take(5).map(letter).collect()
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
     or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
     must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Checks the parts of `metadata` that a client may write.
pub(crate) fn validate_metadata(resource: &ResourceType, object: &Value) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let mut errors = Vec::new();
    let name = &metadata["name"];
    match name.as_str() {
        None | Some("") => {
            errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        }
        Some(text) if !resource.namespaced && !is_label(text) => {
            errors.push(FieldError::invalid("metadata.name", name, LABEL));
        }
        Some(text) if !is_subdomain(text) => {
            errors.push(FieldError::invalid("metadata.name", name, SUBDOMAIN));
        }
        Some(_) => {}
    }
    let prefix = metadata["generateName"].as_str().unwrap_or_default();
    // A trailing dash is valid, because letters follow.
    if !prefix.is_empty()
        && !is_subdomain(&prefix.strip_suffix('-').map_or(prefix.to_owned(), |p| format!("{p}a")))
    {
        errors.push(FieldError::invalid("metadata.generateName", &metadata["generateName"], SUBDOMAIN));
    }
    let namespace = &metadata["namespace"];
    if resource.namespaced && !is_label(namespace.as_str().unwrap_or_default()) {
        errors.push(FieldError::invalid("metadata.namespace", namespace, LABEL));
    }
    for field in ["labels", "annotations"] {
        for (key, value) in metadata[field].as_object().into_iter().flatten() {
            if !value.is_string() {
                errors.push(FieldError::invalid(
                    format!("metadata.{field}.{key}"),
                    value,
                    "must be a string",
                ));
            }
        }
    }
    for (index, owner) in owner_references(object).iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                errors.push(FieldError::invalid(path, &owner[field], "must not be empty"));
            }
        }
    }
    // An object whose metadata cannot be decoded could be written, and not be read again.
    if errors.is_empty()
        && let Err(error) = serde_json::from_value::<ObjectMeta>(metadata.clone())
    {
        errors.push(FieldError::invalid("metadata", &json!("(not shown)"), &error.to_string()));
    }
    errors
}

/// Checks that `object` matches the path of the request, and fills in missing fields from the path.
pub(crate) fn align_with_path(
    resource: &ResourceType,
    object: &mut Value,
    namespace: &str,
    name: Option<&str>,
) -> Result<(), StatusError> {
    if !object.is_object() {
        return Err(StatusError::bad_request("the body of the request is not a JSON object"));
    }
    align_type(resource, object)?;
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    if !object["metadata"].is_object() {
        return Err(StatusError::bad_request("metadata is not a JSON object"));
    }
    align(
        object,
        "namespace",
        namespace,
        "namespace of the provided object does not match the namespace sent on the request",
    )?;
    if let Some(name) = name {
        let given = meta(object, "name").to_owned();
        let message = format!("the name of the object ({given}) does not match the name on the URL ({name})");
        align(object, "name", name, &message)?;
    }
    if !resource.namespaced {
        remove_meta(object, "namespace");
    }
    Ok(())
}

/// Checks kind and API version. For built-in types they may be missing, because the path names them.
fn align_type(resource: &ResourceType, object: &mut Value) -> Result<(), StatusError> {
    let (kind, expected) = (&resource.kind, resource.api_version());
    match object["kind"].as_str() {
        Some(given) if given == kind => {}
        None | Some("") if resource.is_custom() => {
            return Err(StatusError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing"
            )));
        }
        None | Some("") => object["kind"] = json!(kind),
        Some(given) if resource.is_custom() => {
            return Err(resource.wrong_kind(meta(object, "name"), given));
        }
        Some(given) => {
            return Err(StatusError::bad_request(format!("{given} cannot be handled as a {kind}")));
        }
    }
    match object["apiVersion"].as_str() {
        Some(given) if given == expected => {}
        None | Some("") => object["apiVersion"] = json!(expected),
        Some(given) => {
            return Err(StatusError::bad_request(format!(
                "the API version in the data ({given}) does not match the expected API version ({expected})"
            )));
        }
    }
    Ok(())
}

fn align(object: &mut Value, field: &str, expected: &str, message: &str) -> Result<(), StatusError> {
    match meta(object, field) {
        "" => {
            if !expected.is_empty() {
                set_meta(object, field, json!(expected));
            }
            Ok(())
        }
        given if given == expected => Ok(()),
        _ => Err(StatusError::bad_request(message)),
    }
}
