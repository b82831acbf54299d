//! Masks declared secrets in payloads.

use super::placeholder::{PLACEHOLDER, is_placeholder};
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// Returns `payload` with the placeholder in place of every value at `attributes`, whatever its type. Absent values,
/// nulls and existing placeholders stay.
///
/// Attributes are relative to one resource, so each entry of an array is masked separately.
#[must_use]
pub fn mask(mut payload: Value, attributes: &[Pointer]) -> Value {
    for pointer in attributes {
        if let Some(value) = pointer.get_mut(&mut payload) {
            *value = hidden(std::mem::take(value));
        }
    }
    match payload {
        Value::Array(entries) => {
            Value::Array(entries.into_iter().map(|entry| mask(entry, attributes)).collect())
        }
        other => other,
    }
}

/// Like [`mask`] for a payload that holds resources at unknown places, such as the answer to a list request: every
/// object in it is treated as a resource.
#[must_use]
pub fn mask_list(payload: Value, attributes: &[Pointer]) -> Value {
    if attributes.is_empty() {
        return payload;
    }
    mask(payload, attributes).map_children(|child| mask_list(child, attributes))
}

/// Whether `payload` is one resource with any of these attributes. Otherwise it may be a list of resources.
#[must_use]
pub fn has_any(payload: &Value, attributes: &[Pointer]) -> bool {
    payload.as_object().is_some() && attributes.iter().any(|pointer| pointer.get(payload).is_some())
}

/// Returns the mask of `value`. A placeholder stays, because its key is not secret and may be useful.
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
    #[case(r#"[{"pin":1},{"a":2},{"pin":3}]"#, &["/pin"], r#"[{"pin":"{{secret .}}"},{"a":2},{"pin":"{{secret .}}"}]"#)]
    #[case(r#"{"pin":1,"parts":[{"pin":2}]}"#, &["/pin"], r#"{"pin":"{{secret .}}","parts":[{"pin":2}]}"#)]
    fn masks(#[case] payload: &str, #[case] attributes: &[&str], #[case] expected: &str) {
        let attributes: Vec<Pointer> = attributes.iter().map(|text| Pointer::parse(text).unwrap()).collect();
        assert_eq!(mask(parse(payload), &attributes), parse(expected));
    }

    #[rstest]
    #[case::items(r#"{"items":[{"pin":1,"a":2}]}"#, r#"{"items":[{"pin":"{{secret .}}","a":2}]}"#)]
    #[case::deeper(
        r#"{"_embedded":{"shops":[{"pin":1}]}}"#,
        r#"{"_embedded":{"shops":[{"pin":"{{secret .}}"}]}}"#
    )]
    #[case::by_name(r#"{"rio":{"pin":1}}"#, r#"{"rio":{"pin":"{{secret .}}"}}"#)]
    #[case::beside(
        r#"{"pin":"next","items":[{"pin":1}]}"#,
        r#"{"pin":"{{secret .}}","items":[{"pin":"{{secret .}}"}]}"#
    )]
    fn masks_lists(#[case] payload: &str, #[case] expected: &str) {
        let attributes = [Pointer::parse("/pin").unwrap()];
        assert_eq!(mask_list(parse(payload), &attributes), parse(expected));
        assert_eq!(mask_list(parse(payload), &[]), parse(payload));
    }
}
