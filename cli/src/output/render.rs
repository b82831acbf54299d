//! Encodes results.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use declarest_core::payload::{Descriptor, PayloadType, Value, encode};
use serde::Serialize;

use super::OutputError;
use super::policy::Form;

/// Encodes a result in this form, with one final newline. Null and an empty text are encoded as nothing.
pub fn result<T: Serialize>(form: Form, value: &T, text: Option<&str>) -> Result<Vec<u8>, OutputError> {
    match (form, text) {
        (Form::Text | Form::Wide | Form::Markdown | Form::Natural { .. }, Some(text)) => {
            Ok(line(text.to_owned()))
        }
        (Form::Yaml, _) => yaml(value),
        (Form::Ndjson, _) => ndjson(value),
        (Form::Name, _) => Err(OutputError::NoNames),
        // The caller runs the query.
        (Form::Json | Form::Query | Form::Text | Form::Wide | Form::Markdown | Form::Natural { .. }, _) => {
            json(value)
        }
    }
}

/// Encodes the items of a list, or a single value, as JSON on one line each.
fn ndjson<T: Serialize>(value: &T) -> Result<Vec<u8>, OutputError> {
    let items = match serde_json::to_value(value).map_err(failed("ndjson"))? {
        serde_json::Value::Array(items) => items,
        serde_json::Value::Null => Vec::new(),
        other => vec![other],
    };
    let lines = items.iter().flat_map(|item| [escaped(item.to_string()), "\n".to_owned()]);
    Ok(lines.collect::<String>().into_bytes())
}

/// Returns a result as a value that a query can read.
pub fn as_value<T: Serialize>(value: &T) -> Result<Value, OutputError> {
    Ok(Value::from_json(&serde_json::to_value(value).map_err(failed("json"))?))
}

/// Encodes a payload in this form.
pub fn payload(form: Form, value: &Value, descriptor: &Descriptor) -> Result<Vec<u8>, OutputError> {
    let Form::Natural { yaml: keep_yaml, newline } = form else {
        return result(form, &without_bytes(value), None);
    };
    match value {
        Value::Bytes(bytes) => Ok(bytes.clone()),
        Value::String(text) if !is_structured(descriptor) => {
            Ok(if newline { line(text.clone()) } else { text.clone().into_bytes() })
        }
        Value::Array(items) if newline && items.iter().any(holds_bytes) => Err(OutputError::BinaryAsText),
        _ if keep_yaml && descriptor.payload_type == PayloadType::Yaml => yaml(&without_bytes(value)),
        _ => json(&without_bytes(value)),
    }
}

/// Adds a final newline to a text, unless it is empty or already has one.
pub fn line(mut text: String) -> Vec<u8> {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.into_bytes()
}

fn is_structured(descriptor: &Descriptor) -> bool {
    descriptor.payload_type.class() == declarest_core::payload::Class::Structured
}

fn json<T: Serialize>(value: &T) -> Result<Vec<u8>, OutputError> {
    let text = serde_json::to_string_pretty(value).map_err(failed("json"))?;
    Ok(if text == "null" { Vec::new() } else { line(escaped(text)) })
}

/// Escapes the control characters that JSON allows in texts (RFC 8259 §7), because a terminal would execute them.
pub fn escaped(json: String) -> String {
    let is_control = |character: char| character.is_control() && !character.is_ascii_whitespace();
    if !json.contains(is_control) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_control(character) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn yaml<T: Serialize>(value: &T) -> Result<Vec<u8>, OutputError> {
    let value = Value::from_json(&serde_json::to_value(value).map_err(failed("yaml"))?);
    Ok(if value.is_null() { Vec::new() } else { encode(PayloadType::Yaml, &value)? })
}

fn failed(format: &'static str) -> impl Fn(serde_json::Error) -> OutputError {
    move |error| OutputError::Encode { format, reason: error.to_string() }
}

fn holds_bytes(value: &Value) -> bool {
    matches!(value, Value::Bytes(_)) || value.children().any(holds_bytes)
}

/// Replaces bytes with the object that represents them in structured formats.
pub fn without_bytes(value: &Value) -> Value {
    match value {
        Value::Bytes(bytes) => {
            let members = [
                ("encoding", "base64".to_owned()),
                ("mediaType", "application/octet-stream".to_owned()),
                ("data", STANDARD.encode(bytes)),
            ];
            Value::Object(members.map(|(key, text)| (key.to_owned(), Value::from(text))).into())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_bytes).collect()),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, member)| (key.clone(), without_bytes(member))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NATURAL: Form = Form::Natural { yaml: true, newline: false };
    const NO_YAML: Form = Form::Natural { yaml: false, newline: false };
    const AS_TEXT: Form = Form::Natural { yaml: true, newline: true };

    fn shop() -> Value {
        Value::Object([("name".to_owned(), "Rio".into()), ("id".to_owned(), 7_i64.into())].into())
    }

    fn shown(form: Form, value: &Value, payload_type: PayloadType) -> String {
        String::from_utf8(payload(form, value, &Descriptor::of(payload_type)).unwrap()).unwrap()
    }

    #[rstest]
    #[case(NATURAL, PayloadType::Json, "{\n  \"id\": 7,\n  \"name\": \"Rio\"\n}\n")]
    #[case(NATURAL, PayloadType::Ini, "{\n  \"id\": 7,\n  \"name\": \"Rio\"\n}\n")]
    #[case(NATURAL, PayloadType::Properties, "{\n  \"id\": 7,\n  \"name\": \"Rio\"\n}\n")]
    #[case(NATURAL, PayloadType::Yaml, "id: 7\nname: Rio\n")]
    #[case(NO_YAML, PayloadType::Yaml, "{\n  \"id\": 7,\n  \"name\": \"Rio\"\n}\n")]
    #[case(AS_TEXT, PayloadType::Yaml, "id: 7\nname: Rio\n")]
    #[case(Form::Yaml, PayloadType::Json, "id: 7\nname: Rio\n")]
    fn structured_payloads(#[case] form: Form, #[case] payload_type: PayloadType, #[case] expected: &str) {
        assert_eq!(shown(form, &shop(), payload_type), expected);
    }

    #[rstest]
    #[case(NATURAL, PayloadType::Text, "hello")]
    #[case(NATURAL, PayloadType::Xml, "hello")]
    #[case(NATURAL, PayloadType::Hcl, "hello")]
    #[case(AS_TEXT, PayloadType::Text, "hello\n")]
    #[case(Form::Json, PayloadType::Text, "\"hello\"\n")]
    #[case(NATURAL, PayloadType::Json, "\"hello\"\n")]
    fn texts(#[case] form: Form, #[case] payload_type: PayloadType, #[case] expected: &str) {
        assert_eq!(shown(form, &"hello".into(), payload_type), expected);
    }

    #[test]
    fn binary_payloads_are_raw_or_marked() {
        let octets = Descriptor::of(PayloadType::OctetStream);
        let bytes = Value::Bytes(vec![0, 255]);
        assert_eq!(payload(NATURAL, &bytes, &octets).unwrap(), [0, 255]);
        let marked = shown(Form::Json, &bytes, PayloadType::OctetStream);
        insta::assert_snapshot!(marked, @r#"
        {
          "data": "AP8=",
          "encoding": "base64",
          "mediaType": "application/octet-stream"
        }
        "#);
        let list = Value::Array(vec![bytes]);
        assert!(matches!(payload(AS_TEXT, &list, &octets), Err(OutputError::BinaryAsText)));
        assert!(payload(NATURAL, &list, &octets).unwrap().starts_with(b"[\n"));
    }

    #[rstest]
    #[case(Form::Json)]
    #[case(Form::Yaml)]
    #[case(NATURAL)]
    fn null_prints_nothing(#[case] form: Form) {
        assert_eq!(shown(form, &Value::Null, PayloadType::Json), "");
    }

    #[test]
    fn empty_lists_are_printed() {
        assert_eq!(result(Form::Json, &Vec::<u8>::new(), None).unwrap(), b"[]\n");
        assert_eq!(result(Form::Yaml, &Vec::<u8>::new(), None).unwrap(), b"[]\n");
        assert_eq!(result(Form::Text, &Vec::<u8>::new(), Some("")).unwrap(), b"");
    }
}
