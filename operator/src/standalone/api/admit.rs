//! Admission of written objects before they are stored: pruning, defaults, validation.

use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use super::object::{finalizers, is_terminating, meta, validate_metadata};
use super::resource::{Family, ResourceType};
use super::schema::prune;
use super::status_error::{FieldError, StatusError};

/// How unknown fields are handled (`fieldValidation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Brings `object` into its stored form and validates it. Returns warnings for the client.
pub(crate) fn admit(
    resource: &ResourceType,
    object: &mut Value,
    old: Option<&Value>,
    validation: FieldValidation,
) -> Result<Vec<String>, StatusError> {
    // Prune unknown fields.
    drop_empty_metadata(object);
    let unknown = prune(object, &resource.merge_schema());
    let warnings = report_unknown(resource, &unknown, validation)?;
    // Validate metadata.
    let mut errors = validate_metadata(resource, object);
    errors.extend(old.and_then(|old| new_finalizers(object, old)));
    // Set defaults and validate the content.
    match &resource.family {
        Family::Custom(schema) => {
            schema.default(object);
            errors.extend(schema.validate(object, old));
        }
        Family::Secret => errors.extend(admit_secret(object, old)?),
        Family::Claim => errors.extend(admit_claim(object, old)),
        Family::Namespace => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        Family::Event | Family::Lease | Family::Observed => {}
    }
    if errors.is_empty() {
        return Ok(warnings);
    }
    let name = match meta(object, "name") {
        "" => meta(object, "generateName"),
        name => name,
    };
    Err(resource.invalid(name, &errors))
}

/// Removes empty lists and maps from `metadata`, such as finalizers and labels, because they equal missing ones.
fn drop_empty_metadata(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        });
    }
}

fn report_unknown(
    resource: &ResourceType,
    unknown: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, StatusError> {
    let described = unknown.iter().map(|path| format!("unknown field \"{path}\""));
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict if !unknown.is_empty() => {
            let (kind, version) = (&resource.kind, &resource.version);
            let described: Vec<String> = described.collect();
            Err(StatusError::bad_request(format!(
                "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {}",
                described.join(", ")
            )))
        }
        _ => Ok(described.collect()),
    }
}

fn new_finalizers(object: &Value, old: &Value) -> Option<FieldError> {
    if !is_terminating(old) {
        return None;
    }
    let known = finalizers(old);
    let added: Vec<&str> = finalizers(object).into_iter().filter(|name| !known.contains(name)).collect();
    (!added.is_empty()).then(|| {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers {}",
            json!(added)
        );
        FieldError::forbidden("metadata.finalizers", &detail)
    })
}

/// Moves `stringData` to `data`, because `stringData` is never stored. Validates the Secret.
fn admit_secret(object: &mut Value, old: Option<&Value>) -> Result<Vec<FieldError>, StatusError> {
    let plain = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    let mut data = object["data"].as_object().cloned().unwrap_or_default();
    data.retain(|_, value| !value.is_null());
    for (key, value) in &data {
        // The error names only the key, because the value is a secret.
        if serde_json::from_value::<ByteString>(value.clone()).is_err() {
            return Err(StatusError::bad_request(format!(
                "Secret in version \"v1\" cannot be handled as a Secret: data.{key} is not base64"
            )));
        }
    }
    data.extend(encode(plain.as_ref())?);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("data");
        if !data.is_empty() {
            fields.insert("data".to_owned(), Value::Object(data));
        }
        if fields.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
            fields.insert("type".to_owned(), json!("Opaque"));
        }
    }
    let mut errors = Vec::new();
    if let Some(old) = old {
        if old["type"] != object["type"] {
            errors.push(FieldError::invalid("type", &object["type"], "field is immutable"));
        }
        if old["immutable"] == true && (old["data"] != object["data"] || object["immutable"] != true) {
            errors.push(FieldError::forbidden("data", "field is immutable when `immutable` is set"));
        }
    }
    Ok(errors)
}

fn encode(plain: Option<&Value>) -> Result<Map<String, Value>, StatusError> {
    let mut data = Map::new();
    for (key, value) in plain.and_then(Value::as_object).into_iter().flatten() {
        let Some(text) = value.as_str() else {
            return Err(StatusError::bad_request(format!(
                "Secret in version \"v1\" cannot be handled as a Secret: stringData.{key} is not a string"
            )));
        };
        let encoded = serde_json::to_value(ByteString(text.as_bytes().to_vec()));
        data.insert(key.clone(), encoded.map_err(StatusError::internal)?);
    }
    Ok(data)
}

/// Validates a claim. Its spec is immutable: only bound claims may grow, and this API never binds one.
fn admit_claim(object: &mut Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, is_missing) in [
        ("spec.accessModes", object["spec"]["accessModes"].as_array().is_none_or(Vec::is_empty)),
        ("spec.resources[storage]", object["spec"]["resources"]["requests"]["storage"].is_null()),
    ] {
        if is_missing {
            errors.push(FieldError::required(field, ""));
        }
    }
    if object["spec"]["volumeMode"].is_null() && object["spec"].is_object() {
        object["spec"]["volumeMode"] = json!("Filesystem");
    }
    match old {
        None => object["status"] = json!({"phase": "Pending"}),
        Some(old) if old["spec"] != object["spec"] => {
            let detail = "spec is immutable after creation except resources.requests and \
                          volumeAttributesClassName for bound claims";
            errors.push(FieldError::forbidden("spec", detail));
        }
        Some(_) => {}
    }
    errors
}
