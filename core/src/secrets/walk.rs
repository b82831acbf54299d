//! Finds placeholders in payloads.

use super::placeholder::{DescriptorPlaceholder, Placeholder, PlaceholderError, is_placeholder};
use crate::error::categories;
use crate::payload::Value;
use crate::payload::pointer::{Pointer, escape, places};

/// The deepest nesting of arrays and objects that is searched for placeholders.
pub const MAX_NESTING: usize = 256;

/// The reason why the placeholders of a payload cannot be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// A placeholder is malformed.
    #[error("the value at \"{at}\": {source}")]
    Malformed {
        /// Its place.
        at: Pointer,
        /// The fault.
        #[source]
        source: PlaceholderError,
    },
    /// The payload nests too deep to be searched.
    #[error("arrays and objects nest deeper than {MAX_NESTING} levels")]
    TooDeep,
}

categories!(WalkError: Validation);

/// A placeholder in a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Secret(Placeholder),
    Descriptor(DescriptorPlaceholder),
}

/// Returns the JSON Pointer (RFC 6901) of the first secret placeholder in `payload` in key order, malformed ones
/// included; `""` if the payload itself is one.
///
/// An unresolved placeholder must never be sent, because it would overwrite the credential on the server.
pub fn find_placeholder(payload: &Value) -> Option<String> {
    match payload {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| Some(format!("/{index}{}", find_placeholder(item)?))),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let below = find_placeholder(member)?;
            Some(format!("/{}{below}", escape(key)))
        }),
        scalar => text_of(scalar).is_some_and(is_placeholder).then(String::new),
    }
}

/// Returns the places of all secret placeholders in `payload`, depth-first; none if one is malformed or the payload
/// nests too deep.
pub fn placeholder_places(payload: &Value) -> Vec<Pointer> {
    secret_placeholders(payload).unwrap_or_default().into_iter().map(|(at, _)| at).collect()
}

/// Returns all secret placeholders in `payload` and their places, depth-first.
///
/// # Errors
/// A placeholder is malformed, or the payload nests too deep.
pub fn secret_placeholders(payload: &Value) -> Result<Vec<(Pointer, Placeholder)>, WalkError> {
    let secret = |(at, found)| match found {
        Found::Secret(placeholder) => Some((at, placeholder)),
        Found::Descriptor(_) => None,
    };
    Ok(placeholders(payload)?.into_iter().filter_map(secret).collect())
}

/// Returns the places of all texts in `payload` that are placeholders of any kind, malformed ones included, or that
/// `is_other`, depth-first.
pub fn template_places(payload: &Value, is_other: impl Fn(&str) -> bool) -> Vec<Pointer> {
    let is_template = |text: &str| {
        is_placeholder(text) || !matches!(DescriptorPlaceholder::parse(text), Ok(None)) || is_other(text)
    };
    places(payload, &|value| may_be_one(value) && text_of(value).is_some_and(is_template))
}

/// Returns the text that may be a placeholder. A binary payload can be one as a whole.
pub(super) fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// Whether `payload` may hold placeholders of any kind. Checks every text once, without allocations.
pub(super) fn may_hold_any(payload: &Value) -> Result<bool, WalkError> {
    fn within(value: &Value, depth: usize) -> Result<bool, WalkError> {
        value.children().try_fold(may_be_one(value), |any, child| {
            if depth < MAX_NESTING { Ok(within(child, depth + 1)? || any) } else { Err(WalkError::TooDeep) }
        })
    }
    within(payload, 0)
}

/// Returns the placeholders in `payload` and their places, depth-first, members by key.
pub(super) fn placeholders(payload: &Value) -> Result<Vec<(Pointer, Found)>, WalkError> {
    let places = if may_hold_any(payload)? { places(payload, &may_be_one) } else { Vec::new() };
    let mut found = Vec::new();
    for at in places {
        let Some(text) = at.get(payload).and_then(text_of) else { continue };
        let malformed = |source| WalkError::Malformed { at: at.clone(), source };
        if let Some(placeholder) = Placeholder::parse(text).map_err(malformed)? {
            found.push((at, Found::Secret(placeholder)));
        } else if let Some(placeholder) = DescriptorPlaceholder::parse(text).map_err(malformed)? {
            found.push((at, Found::Descriptor(placeholder)));
        }
    }
    Ok(found)
}

fn may_be_one(value: &Value) -> bool {
    text_of(value).is_some_and(|text| text.trim_start().starts_with("{{"))
}

/// Returns `payload` with every secret placeholder in its canonical form: `{{secret .}}` or `{{secret "key"}}`. Other
/// values stay, and the store is not used.
pub fn normalize(mut payload: Value) -> Result<Value, WalkError> {
    for (at, found) in placeholders(&payload)? {
        if let (Found::Secret(placeholder), Some(value)) = (found, at.get_mut(&mut payload)) {
            let text = placeholder.to_string();
            *value = match value {
                Value::Bytes(_) => Value::Bytes(text.into_bytes()),
                _ => Value::String(text),
            };
        }
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::error::{Categorized, Category};
    use crate::payload::{PayloadType, decode};

    fn yaml(text: &str) -> Value {
        decode(PayloadType::Yaml, text.as_bytes()).unwrap()
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::from("{{secret .}}"), |inner, _| Value::Array(vec![inner]))
    }

    #[rstest]
    #[case("{{secret .}}", true)]
    #[case(" {{ secret  . }} ", true)]
    #[case("{{secret \"db pass\"}}", true)]
    #[case("{{secret}}", true)]
    #[case("x {{secret .}}", false)]
    #[case("{{secrets .}}", false)]
    #[case("{{secret.}}", false)]
    #[case("{{include a}}", false)]
    fn recognises(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(find_placeholder(&Value::from(text)).is_some(), expected);
        assert_eq!(find_placeholder(&Value::Bytes(text.into())).is_some(), expected);
    }

    #[test]
    fn names_the_pointer() {
        let users = Value::Array(vec![Value::Object([("p/w".to_owned(), "{{secret .}}".into())].into())]);
        let payload = Value::Object([("users".to_owned(), users)].into());
        assert_eq!(find_placeholder(&payload).as_deref(), Some("/users/0/p~1w"));
    }

    #[test]
    fn places_are_sorted_and_names_are_ignored() {
        let payload = yaml(
            "{b: '{{secret b}}', a: [x, {'k~/': '{{secret .}}'}], '{{secret c}}': 1, c: '{{payload_type .}}'}",
        );
        let found = placeholders(&payload).unwrap();
        let places: Vec<String> = found.iter().map(|(at, _)| at.to_string()).collect();
        assert_eq!(places, ["/a/1/k~0~1", "/b", "/c"]);
        assert_eq!(found[0].1, Found::Secret(Placeholder::Implicit));
        assert_eq!(found[2].1, Found::Descriptor(DescriptorPlaceholder::PayloadType));
    }

    #[rstest]
    #[case("{a: '{{ secret . }}'}", "{a: '{{secret .}}'}")]
    #[case("{a: '{{secret k}}'}", "{a: '{{secret \"k\"}}'}")]
    #[case("['{{secret  \"a \\\"b\\\"\" }}']", "['{{secret \"a \\\"b\\\"\"}}']")]
    #[case("'{{secret .}}'", "'{{secret .}}'")]
    #[case(
        "{a: 'x {{ secret . }}', b: '{{ payload_type . }}', c: 1}",
        "{a: 'x {{ secret . }}', b: '{{ payload_type . }}', c: 1}"
    )]
    fn normal_forms(#[case] payload: &str, #[case] expected: &str) {
        assert_eq!(normalize(yaml(payload)).unwrap(), yaml(expected));
    }

    #[test]
    fn the_error_names_the_place_of_a_malformed_placeholder() {
        let error = normalize(yaml("{a: [{b: '{{secret x canary}}'}]}")).unwrap_err();
        assert_eq!(error.category(), Category::Validation);
        let text = error.to_string();
        assert!(text.starts_with("the value at \"/a/0/b\": ") && !text.contains("canary"), "{text}");
    }

    #[test]
    fn too_deep_nesting_is_rejected() {
        assert!(normalize(nested(MAX_NESTING)).is_ok());
        assert_eq!(normalize(nested(MAX_NESTING + 1)), Err(WalkError::TooDeep));
    }
}
