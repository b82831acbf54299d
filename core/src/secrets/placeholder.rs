//! Recognising `{{secret …}}` placeholders.

use crate::payload::Value;
use crate::payload::pointer::escape;

/// The JSON Pointer (RFC 6901) of the first string in `payload` that is a secret placeholder, malformed
/// ones included, in key order; `""` when the payload itself is one.
///
/// A placeholder that nobody resolves must never be sent: it would overwrite a live credential with its
/// own name.
pub fn find_placeholder(payload: &Value) -> Option<String> {
    match payload {
        Value::String(text) => is_placeholder(text).then(String::new),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(index, item)| Some(format!("/{index}{}", find_placeholder(item)?))),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            let below = find_placeholder(member)?;
            Some(format!("/{}{below}", escape(key)))
        }),
        // A binary payload that is a placeholder as a whole; sent as it is, it would replace a live key.
        Value::Bytes(bytes) => std::str::from_utf8(bytes).is_ok_and(is_placeholder).then(String::new),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => None,
    }
}

/// Whether the whole text is `{{ secret … }}`. The word must be followed by white space or the end:
/// `{{secrets .}}` and `{{secret.}}` are plain text.
pub fn is_placeholder(text: &str) -> bool {
    text.trim()
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"))
        .and_then(|body| body.trim().strip_prefix("secret"))
        .is_some_and(|argument| argument.is_empty() || argument.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

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
}
