//! Validates values (types, ranges, patterns, enums) with the `jsonschema` crate. Messages are those of
//! kube-apiserver.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value, json};

use crate::standalone::api::status_error::{Cause, FieldError};

/// A compiled JSON schema.
#[derive(Debug)]
pub(super) struct Validator(jsonschema::Validator);

impl Validator {
    /// Compiles the schema of a definition: a JSON schema with the restrictions and extensions of Kubernetes.
    pub(super) fn compile(source: &Value) -> Result<Self, String> {
        // JSONSchemaProps follows draft 4, in which `exclusiveMinimum` is a flag.
        jsonschema::options()
            .with_draft(jsonschema::Draft::Draft4)
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .build(&translate(source))
            .map(Self)
            .map_err(|error| error.to_string())
    }

    pub(super) fn check(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.0
            .iter_errors(object)
            .filter(|error| !is_unchanged(error.instance_path(), object, old))
            .map(|error| field_error(&error))
            .collect()
    }
}

/// Returns whether an update left the value unchanged. Such a value does not fail the update.
fn is_unchanged(path: &Location, object: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old else { return false };
    if path.is_empty() {
        return false;
    }
    object.pointer(path.as_str()) == old.pointer(path.as_str()) && old.pointer(path.as_str()).is_some()
}

/// Translates a Kubernetes schema to JSON schema: removes or translates the keywords of Kubernetes.
fn translate(source: &Value) -> Value {
    let Some(fields) = source.as_object() else { return source.clone() };
    let mut out = Map::new();
    for (key, value) in fields {
        let translated = match key.as_str() {
            "properties" => Value::Object(
                value.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), translate(v))).collect(),
            ),
            "items" | "additionalProperties" | "not" => translate(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array().into_iter().flatten().map(translate).collect(),
            "default" | "description" | "example" | "externalDocs" | "nullable" | "title" => continue,
            key if key.starts_with("x-kubernetes-") => continue,
            _ => value.clone(),
        };
        out.insert(key.clone(), translated);
    }
    if source["x-kubernetes-int-or-string"] == true {
        out.insert("type".to_owned(), json!(["integer", "string"]));
    }
    if source["nullable"] == true {
        allow_null(&mut out);
    }
    Value::Object(out)
}

/// Changes a schema so that it also accepts null.
fn allow_null(schema: &mut Map<String, Value>) {
    let rest = Value::Object(std::mem::take(schema));
    match rest {
        Value::Object(mut rest) if only_typed(&rest) => {
            let mut types = match rest.remove("type") {
                Some(Value::Array(types)) => types,
                Some(one) => vec![one],
                None => Vec::new(),
            };
            if !types.is_empty() {
                types.push(json!("null"));
                rest.insert("type".to_owned(), Value::Array(types));
            }
            if let Some(Value::Array(options)) = rest.get_mut("enum") {
                options.push(Value::Null);
            }
            *schema = rest;
        }
        rest => {
            schema.insert("anyOf".to_owned(), json!([{"type": "null"}, rest]));
        }
    }
}

/// Returns whether only type and enum of the schema can reject null.
fn only_typed(schema: &Map<String, Value>) -> bool {
    !["allOf", "anyOf", "oneOf", "not"].iter().any(|key| schema.contains_key(*key))
}

/// Returns a field path in the form of Kubernetes, such as `spec.items[0].name`.
fn field_path(location: &Location) -> String {
    let mut path = String::new();
    for segment in location.segments() {
        match segment {
            LocationSegment::Index(index) => {
                path.push('[');
                path.push_str(&index.to_string());
                path.push(']');
            }
            LocationSegment::Property(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&name);
            }
        }
    }
    path
}

fn field_error(error: &ValidationError<'_>) -> FieldError {
    let path = field_path(error.instance_path());
    let instance = error.instance().clone().into_owned();
    let body = |text: String| format!("{path} in body {text}");
    let invalid = |text: String| FieldError::invalid(&path, &instance, &body(text));
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            FieldError::required(path, "")
        }
        ValidationErrorKind::Type { kind } => type_error(&path, &instance, kind),
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> = options
                .as_array()
                .into_iter()
                .flatten()
                .filter(|option| !option.is_null())
                .map(Value::to_string)
                .collect();
            let detail = format!("supported values: {}", options.join(", "));
            FieldError::new(path, Cause::NotSupported, &instance, &detail)
        }
        ValidationErrorKind::Pattern { pattern } => invalid(format!("should match '{pattern}'")),
        ValidationErrorKind::MinLength { limit } => invalid(format!("should be at least {limit} chars long")),
        ValidationErrorKind::MaxLength { limit } => {
            FieldError::new(path, Cause::TooLong, &instance, &format!("may not be more than {limit} bytes"))
        }
        ValidationErrorKind::Minimum { limit } => {
            invalid(format!("should be greater than or equal to {}", short(limit)))
        }
        ValidationErrorKind::ExclusiveMinimum { limit } => {
            invalid(format!("should be greater than {}", short(limit)))
        }
        ValidationErrorKind::Maximum { limit } => {
            invalid(format!("should be less than or equal to {}", short(limit)))
        }
        ValidationErrorKind::ExclusiveMaximum { limit } => {
            invalid(format!("should be less than {}", short(limit)))
        }
        ValidationErrorKind::MinItems { limit } => invalid(format!("should have at least {limit} items")),
        ValidationErrorKind::MaxItems { limit } | ValidationErrorKind::MaxProperties { limit } => {
            too_many(&path, &instance, *limit)
        }
        ValidationErrorKind::MinProperties { limit } => {
            invalid(format!("should have at least {limit} properties"))
        }
        ValidationErrorKind::UniqueItems => invalid("shouldn't contain duplicates".to_owned()),
        ValidationErrorKind::Format { format } => invalid(format!("must be of type {format}: {instance}")),
        ValidationErrorKind::AnyOf { .. }
        | ValidationErrorKind::OneOfNotValid { .. }
        | ValidationErrorKind::OneOfMultipleValid { .. }
        | ValidationErrorKind::Not { .. } => alternatives(&path, &instance, error.kind()),
        _ => invalid(format!("is not valid: {}", error.masked())),
    }
}

/// Returns a limit without a fraction as an integer, because limits of definitions are doubles.
fn short(limit: &Value) -> String {
    limit.as_f64().map_or_else(|| limit.to_string(), |limit| limit.to_string())
}

fn type_error(path: &str, instance: &Value, kind: &TypeKind) -> FieldError {
    let wanted: Vec<&str> = match kind {
        TypeKind::Single(one) => vec![one.as_str()],
        TypeKind::Multiple(set) => set.iter().map(JsonType::as_str).filter(|one| *one != "null").collect(),
    };
    let found = match instance {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let detail = format!("{path} in body must be of type {}: \"{found}\"", wanted.join(","));
    FieldError::new(path, Cause::TypeInvalid, &json!(found), &detail)
}

fn too_many(path: &str, instance: &Value, limit: u64) -> FieldError {
    let count = match instance {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    let detail = format!("{count}: must have at most {limit} items");
    FieldError::new(path, Cause::TooMany, instance, &detail)
}

/// Returns the error of a schema that combines others.
fn alternatives(path: &str, instance: &Value, kind: &ValidationErrorKind) -> FieldError {
    let rule = match kind {
        ValidationErrorKind::AnyOf { .. } => "must validate at least one schema (anyOf)",
        ValidationErrorKind::OneOfNotValid { .. } => {
            "must validate one and only one schema (oneOf). Found none valid"
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "must validate one and only one schema (oneOf). Found more than one valid"
        }
        _ => "must not validate the schema (not)",
    };
    FieldError::invalid(path, instance, &format!("\"{path}\" {rule}"))
}
