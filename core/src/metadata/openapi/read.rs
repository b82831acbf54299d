//! Parses the bytes of a document.
//!
//! Unusual values in parts that are not used must not be errors: integers beyond 64 bits (limits of formats) become
//! floats, and YAML keys that are not strings (status codes) become strings.

use super::OpenApiError;
use crate::payload::{
    Located, Object, Part, PayloadType, TOO_HEAVY, Value, decode_leniently, decode_located_within,
};

/// Parses JSON, otherwise YAML. The result needs at most `limit` bytes of memory.
pub fn document(bytes: &[u8], limit: usize) -> Result<Object, OpenApiError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value = match decode_leniently(bytes, limit) {
        Ok(value) => value,
        Err(error) if error.to_string().starts_with(TOO_HEAVY) => return Err(OpenApiError::TooHeavy),
        Err(json_error) => match decode_located_within(PayloadType::Yaml, bytes, limit) {
            Ok(Some(root)) => of_yaml(root),
            Ok(None) => Value::Null,
            Err(error) if error.is_too_heavy() => return Err(OpenApiError::TooHeavy),
            Err(yaml_error) => {
                let like_json = bytes.trim_ascii_start().starts_with(b"{");
                let reason = if like_json { json_error.to_string() } else { yaml_error.to_string() };
                return Err(OpenApiError::Syntax(reason));
            }
        },
    };
    match value {
        Value::Object(root) => Ok(root),
        other => Err(OpenApiError::NotAnObject(other.kind())),
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
