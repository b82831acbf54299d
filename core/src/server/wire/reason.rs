//! The reason in a long answer that refuses a request.

use crate::payload::{Object, PayloadType, Value, decode, encode};

/// Members that commonly state why a request was refused. RFC 9457 has `title` and `detail`.
const REASONS: [&str; 11] = [
    "errors", "error", "message", "messages", "detail", "details", "title", "reason", "description",
    "error_description", "msg",
];

/// Returns an object with only those members of `body` that state why the request was refused, or those of a member of it;
/// `None` if it is not such an object.
pub(super) fn reason(body: &str) -> Option<String> {
    let Ok(Value::Object(answer)) = decode(PayloadType::Json, body.as_bytes()) else { return None };
    let members = || answer.values().filter_map(Value::as_object);
    let reasons = stated(&answer).or_else(|| members().find_map(stated))?;
    String::from_utf8(encode(PayloadType::Json, &Value::Object(reasons)).ok()?).ok()
}

fn stated(answer: &Object) -> Option<Object> {
    let is_reason = |name: &str, value: &Value| REASONS.contains(&name) && !is_blank(value);
    let reasons = answer.iter().filter(|(name, value)| is_reason(name, value));
    let reasons: Object = reasons.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    (!reasons.is_empty()).then_some(reasons)
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::json_api(
        r#"{"jsonapi":{"version":"1.0"},"meta":{"description":"x"},"errors":[{"detail":"taken"}]}"#,
        Some(r#"{"errors":[{"detail":"taken"}]}"#)
    )]
    #[case::nested(
        r#"{"detail":null,"id":1,"result":{"error":{"message":"no"},"status":false}}"#,
        Some(r#"{"error":{"message":"no"}}"#)
    )]
    #[case::problem(
        r#"{"type":"about:blank","title":"Bad","status":400,"detail":"no name"}"#,
        Some(r#"{"detail":"no name","title":"Bad"}"#)
    )]
    #[case::no_reason(r#"{"id":1,"error":false}"#, None)]
    #[case::text("<html>", None)]
    fn reasons(#[case] body: &str, #[case] expected: Option<&str>) {
        let shown = reason(body).map(|text| text.split_whitespace().collect::<String>());
        let expected = expected.map(|text| text.split_whitespace().collect::<String>());
        assert_eq!(shown, expected);
    }
}
