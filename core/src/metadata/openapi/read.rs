//! Parses the bytes of a document.
//!
//! Unusual values in parts that are not used must not be errors: integers beyond 64 bits (limits of formats) become
//! floats, and YAML keys that are not strings (status codes) become strings.

use super::OpenApiError;
use crate::payload::{Located, Object, Part, PayloadType, Value, decode_located};

/// Parses JSON, otherwise YAML.
pub fn document(bytes: &[u8]) -> Result<Object, OpenApiError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let json = serde_json::from_slice::<serde_json::Value>(bytes);
    let value = match json {
        Ok(json) => of_json(json),
        Err(json_error) => match decode_located(PayloadType::Yaml, bytes) {
            Ok(Some(root)) => of_yaml(root),
            Ok(None) => Value::Null,
            Err(yaml_error) => {
                let like_json = bytes.trim_ascii_start().starts_with(b"{");
                let reason = if like_json { json_error.to_string() } else { yaml_error.to_string() };
                return Err(OpenApiError::Syntax { reason });
            }
        },
    };
    match value {
        Value::Object(root) => Ok(root),
        other => Err(OpenApiError::NotAnObject { kind: other.kind() }),
    }
}

fn of_json(json: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::String(text) => Value::String(text),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Int(integer),
            None => number.as_f64().map_or(Value::Null, Value::Float),
        },
        Json::Array(items) => Value::Array(items.into_iter().map(of_json).collect()),
        Json::Object(members) => {
            Value::Object(members.into_iter().map(|(key, member)| (key, of_json(member))).collect())
        }
    }
}

fn of_yaml(node: Located) -> Value {
    match node.part {
        Part::Scalar { value: Ok(value), .. } => value,
        Part::Scalar { text, value: Err(_) } => {
            let text = text.unwrap_or_default();
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            number.map_or(Value::String(text), Value::Float)
        }
        Part::Sequence(items) => Value::Array(items.into_iter().map(of_yaml).collect()),
        Part::Mapping(members) => {
            Value::Object(members.into_iter().map(|(key, member)| (key, of_yaml(member))).collect())
        }
    }
}
