//! The reason in a long answer that refuses a request.

use crate::payload::{Object, PayloadType, Value, decode, encode};

/// Members that state why a request was refused, the most important first. RFC 9457 has `detail`.
const REASONS: [&str; 6] = ["message", "error", "detail", "errors", "messages", "fault"];

/// Members of such an answer that may add something. Those of an answer that is keyed by attributes have the same names.
const FURTHER: [&str; 6] = ["title", "reason", "error_description", "description", "code", "details"];

/// Members that may hold the reasons.
const HOLDERS: [&str; 3] = ["result", "response", "status"];

/// Returns an object with only those members of `body` that state why the request was refused, or those of a member of it;
/// `None` if it is not such an object.
pub(super) fn reason(body: &str) -> Option<String> {
    let Ok(Value::Object(answer)) = decode(PayloadType::Json, body.as_bytes()) else { return None };
    let held = || HOLDERS.iter().filter_map(|name| answer.get(*name)?.as_object()).find_map(stated);
    stated(&answer).or_else(held)
}

/// Returns the reasons in an order that shows the most important ones, although the text is cut.
fn stated(answer: &Object) -> Option<String> {
    let member = |name: &&str| {
        let value = answer.get(*name).filter(|value| !is_blank(value))?;
        let text = value.as_object().and_then(stated).or_else(|| encoded(value))?;
        Some(format!("\"{name}\":{text}"))
    };
    let mut members: Vec<String> = REASONS.iter().filter_map(member).collect();
    if members.is_empty() {
        return None;
    }
    members.extend(FURTHER.iter().filter_map(member));
    Some(format!("{{{}}}", members.join(",")))
}

fn encoded(value: &Value) -> Option<String> {
    let text = String::from_utf8(encode(PayloadType::Json, value).ok()?).ok()?;
    Some(text.trim_end().to_owned())
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
    #[case::details(
        r#"{"error":{"code":409,"details":[{"domain":"x"}],"message":"in progress"}}"#,
        Some(r#"{"error":{"message":"in progress","code":409,"details":[{"domain":"x"}]}}"#)
    )]
    #[case::by_attribute(r#"{"name":["taken"],"description":["too long"]}"#, None)]
    #[case::no_reason(r#"{"id":1,"error":false}"#, None)]
    #[case::text("<html>", None)]
    fn reasons(#[case] body: &str, #[case] expected: Option<&str>) {
        let spaceless = |text: String| text.split_whitespace().collect::<String>();
        assert_eq!(reason(body).map(spaceless), expected.map(|text| spaceless(text.to_owned())));
    }
}
