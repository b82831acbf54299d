//! Payloads as they may be shown.

use super::is_placeholder;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// What stands where a secret is.
pub const PLACEHOLDER: &str = "{{secret .}}";

/// `payload` with the placeholder in place of every value at `attributes`, of whatever type. Nothing is put
/// where there is nothing or null, and a placeholder that is there stays.
#[must_use]
pub fn mask(mut payload: Value, attributes: &[Pointer]) -> Value {
    for pointer in attributes {
        if let Some(value) = pointer.get_mut(&mut payload) {
            *value = hidden(std::mem::take(value));
        }
    }
    payload
}

/// What is shown instead of `value`. A placeholder is no secret, and its key may be of use.
pub(super) fn hidden(value: Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::String(text) if is_placeholder(&text) => Value::String(text),
        _ => Value::from(PLACEHOLDER),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    fn parse(json: &str) -> Value {
        decode(PayloadType::Json, json.as_bytes()).unwrap()
    }

    #[rstest]
    #[case(r#"{"pin":"0420","a":1}"#, &["/pin"], r#"{"pin":"{{secret .}}","a":1}"#)]
    #[case(r#"{"pin":420}"#, &["/pin"], r#"{"pin":"{{secret .}}"}"#)]
    #[case(r#"{"pin":{"x":1}}"#, &["/pin", "/pin/x"], r#"{"pin":"{{secret .}}"}"#)]
    #[case(r#"{"pin":"{{secret other}}"}"#, &["/pin"], r#"{"pin":"{{secret other}}"}"#)]
    #[case(r#"{"keys":["a","b"]}"#, &["/keys/1"], r#"{"keys":["a","{{secret .}}"]}"#)]
    #[case(r#"{"pin":null}"#, &["/pin"], r#"{"pin":null}"#)]
    #[case(r#"{"a":1}"#, &["/pin", "/a/b"], r#"{"a":1}"#)]
    fn masks(#[case] payload: &str, #[case] attributes: &[&str], #[case] expected: &str) {
        let attributes: Vec<Pointer> = attributes.iter().map(|text| Pointer::parse(text).unwrap()).collect();
        assert_eq!(mask(parse(payload), &attributes), parse(expected));
    }
}
