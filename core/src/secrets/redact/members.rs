//! Redacts JSON members that look like secrets.

use std::borrow::Cow;

use url::form_urlencoded;

use super::REDACTED;
use crate::secrets::is_secret_name;

/// Returns `text` with `"<redacted>"` in place of strings, numbers and lists of them of JSON members whose name looks like
/// that of a secret, and in place of any value of members whose name is in `declared`. JSON in strings is redacted, too.
///
/// The text is scanned and not parsed, because bodies that are shown may be cut off, or embedded in other text.
pub(super) fn redact(text: &str, declared: &[String]) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        let literal = &rest[start..start + string(&rest[start..])];
        redacted.push_str(&rest[..start]);
        rest = &rest[start + literal.len()..];
        let Some(value) = rest.trim_start().strip_prefix(':').map(str::trim_start) else {
            if let Some(inner) = inner(literal, declared) {
                redacted.push_str(&inner);
                continue;
            }
            // Text around JSON may have a stray quote, so the last quote may begin a name.
            let end =
                if literal.len() > 1 && literal.ends_with('"') { literal.len() - 1 } else { literal.len() };
            redacted.push_str(&literal[..end]);
            rest = &text[text.len() - rest.len() - (literal.len() - end)..];
            continue;
        };
        redacted.push_str(literal);
        redacted.push_str(&rest[..rest.len() - value.len()]);
        let name = serde_json::from_str::<String>(literal).unwrap_or_default();
        let (shown, length) = member(&name, value, declared);
        redacted.push_str(&shown);
        rest = &value[length..];
    }
    redacted.push_str(rest);
    redacted
}

/// Returns the text to show for the value of the member `name`, which `value` starts with, and the length of the value. The
/// length is 0 if the members of the value are checked by their own names.
fn member<'v>(name: &str, value: &'v str, declared: &[String]) -> (Cow<'v, str>, usize) {
    let is_declared = declared.iter().any(|declared| declared == name);
    let is_secret = is_declared || is_secret_name(name);
    let length = match value.as_bytes().first() {
        Some(b'{' | b'[') if is_declared => composite(value),
        Some(b'[') if is_secret && is_scalar(value[1..].trim_start()) => composite(value),
        Some(b't' | b'f') if is_declared => {
            value.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(value.len())
        }
        Some(b'"') => string(value),
        Some(b'-' | b'0'..=b'9') => value.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(value.len()),
        // Other literals are not secrets.
        _ => 0,
    };
    let shown = &value[..length];
    let shown = match inner(shown, declared) {
        _ if is_secret && length > 0 && !value.starts_with("\"\"") => Cow::from(format!("\"{REDACTED}\"")),
        Some(inner) => inner.into(),
        None => shown.into(),
    };
    (shown, length)
}

/// Returns the text of a form (`application/x-www-form-urlencoded`) with `<redacted>` in place of values whose name is in
/// `declared` or looks like that of a secret. Of a name such as `user[pin]`, the last part counts, too.
pub(super) fn redact_form(text: &str, declared: &[String]) -> String {
    let is_secret = |name: &str| declared.iter().any(|declared| declared == name) || is_secret_name(name);
    let pairs = text.split('&').map(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        let (decoded, _) = form_urlencoded::parse(name.as_bytes()).next().unwrap_or_default();
        let last = decoded.trim_end_matches(']').rsplit('[').next().unwrap_or_default();
        if is_secret(&decoded) || is_secret(last) { format!("{name}={REDACTED}") } else { pair.to_owned() }
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Whether `text` starts with a string or a number.
fn is_scalar(text: &str) -> bool {
    text.starts_with(|c: char| matches!(c, '"' | '-' | '0'..='9'))
}

/// Returns the string literal `literal` with the JSON in it redacted; `None` if there is nothing to redact.
fn inner(literal: &str, declared: &[String]) -> Option<String> {
    if !literal.contains("\\\"") {
        return None;
    }
    // The end may be cut off.
    let text =
        serde_json::from_str::<String>(literal).or_else(|_| serde_json::from_str(&format!("{literal}\"")));
    let text = text.ok()?;
    let redacted = redact(&text, declared);
    (redacted != text).then(|| serde_json::Value::from(redacted).to_string())
}

/// Returns the length of the string at the start of `text`, quotes included; the whole length if it is not closed.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Returns the length of the array or object at the start of `text`; the whole length if it is not closed.
fn composite(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = text.as_bytes().get(at) {
        at += if byte == b'"' { string(&text[at..]) } else { 1 };
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"password":"canary"}"#, r#"{"password":"<redacted>"}"#)]
    #[case(r#"{"a": {"apiKey" : "ca\"nary", "b": 1}}"#, r#"{"a": {"apiKey" : "<redacted>", "b": 1}}"#)]
    #[case(r#"[{"pwd": 1234}, {"token": -1.5e3}]"#, r#"[{"pwd": "<redacted>"}, {"token": "<redacted>"}]"#)]
    #[case::cut_off(r#"{"id": 1, "token": "can"#, r#"{"id": 1, "token": "<redacted>""#)]
    #[case::escaped_name(r#"{"passw\u006frd": "canary"}"#, r#"{"passw\u006frd": "<redacted>"}"#)]
    #[case::within_text(r#"failed: {"secret":"x"} at once"#, r#"failed: {"secret":"<redacted>"} at once"#)]
    #[case::nested(r#"{"secret": {"name": "a"}}"#, r#"{"secret": {"name": "a"}}"#)]
    #[case::other(r#"{"tokenTTL": "5m", "name": "password"}"#, r#"{"tokenTTL": "5m", "name": "password"}"#)]
    #[case::nothing(
        r#"{"password": null, "token": true, "secret": ""}"#,
        r#"{"password": null, "token": true, "secret": ""}"#
    )]
    #[case::list(r#"{"password":["a", "b]"], "id": 7}"#, r#"{"password":"<redacted>", "id": 7}"#)]
    #[case::list_of_objects(r#"{"token":[{"id": 7}]}"#, r#"{"token":[{"id": 7}]}"#)]
    #[case::in_a_list(r#"{"a":["b", {"token": "c"}]}"#, r#"{"a":["b", {"token": "<redacted>"}]}"#)]
    #[case::after_a_quote(r#"of 5" size: {"password":"canary"}"#, r#"of 5" size: {"password":"<redacted>"}"#)]
    #[case::in_a_string(
        r#"{"m":"{\"password\": \"canary\"}","n":["{\"token\":1}"]}"#,
        r#"{"m":"{\"password\": \"<redacted>\"}","n":["{\"token\":\"<redacted>\"}"]}"#
    )]
    #[case::in_a_string_that_is_cut(
        r#"{"m":"{\"password\": \"cana"#,
        r#"{"m":"{\"password\": \"<redacted>\"""#
    )]
    #[case::no_json("plain \"text", "plain \"text")]
    fn members(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(redact(text, &[]), expected);
    }

    #[rstest]
    #[case("name=a+b&password=canary&size=3", "name=a+b&password=<redacted>&size=3")]
    #[case("user%5Bpin%5D=0420&pin=1&pin=2", "user%5Bpin%5D=<redacted>&pin=<redacted>&pin=<redacted>")]
    #[case::without_a_value("token&a", "token=<redacted>&a")]
    #[case::empty("", "")]
    fn forms(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(redact_form(text, &["pin".to_owned()]), expected);
    }

    #[rstest]
    #[case::text(r#"{"pin": "0420"}"#, r#"{"pin": "<redacted>"}"#)]
    #[case::number(r#"{"pin":420,"id":7}"#, r#"{"pin":"<redacted>","id":7}"#)]
    #[case::boolean(r#"{"pin": true}"#, r#"{"pin": "<redacted>"}"#)]
    #[case::array(r#"{"pin": ["]", "b"], "id": 7}"#, r#"{"pin": "<redacted>", "id": 7}"#)]
    #[case::object(r#"[{"pin": {"a": {"b": "}"}}}, 1]"#, r#"[{"pin": "<redacted>"}, 1]"#)]
    #[case::cut_off(r#"{"pin": {"a": "can"#, r#"{"pin": "<redacted>""#)]
    #[case::nothing(r#"{"pin": null, "pins": "1"}"#, r#"{"pin": null, "pins": "1"}"#)]
    fn declared_members(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(redact(text, &["pin".to_owned()]), expected);
    }

    proptest! {
        #[test]
        fn never_panics_and_keeps_other_text(text in "[a-z\":\\\\{}, é]{0,24}") {
            prop_assert_eq!(redact(&text, &[]), text);
        }

        #[test]
        fn never_panics_at_declared_members(text in "[\"p:{}\\[\\], é]{0,24}") {
            redact(&text, &["p".to_owned(), String::new()]);
        }
    }
}
