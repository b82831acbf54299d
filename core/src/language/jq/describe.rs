//! Describes errors of jq without values.

use jaq_core::Error;
use jaq_json::Val;

use super::natives::{DIVISION_BY_ZERO, NOT_JSON, NOT_TEXT};
use super::regex;

/// The types in messages of jaq.
const TYPES: [&str; 8] = [
    "integer",
    "floating-point number",
    "number",
    "string",
    "array",
    "iterable (array or object)",
    "rangeable (array or string)",
    "object",
];

/// Returns a message for `error`.
///
/// Messages of jaq contain values; they are replaced with their types. A message that the expression itself raises is
/// kept if `source` contains it literally, because then it is metadata.
pub(super) fn error(error: Error<Val>, source: Option<&str>) -> String {
    let message = match error.into_val() {
        Val::TStr(text) => text,
        other => return format!("the expression raised {} as an error", kind(&other)),
    };
    let Ok(message) = std::str::from_utf8(&message) else { return "an error was raised".to_owned() };
    if [DIVISION_BY_ZERO, NOT_JSON, NOT_TEXT].contains(&message) {
        return message.to_owned();
    }
    if !message.trim().is_empty() && source.is_some_and(|source| source.contains(message)) {
        return message.to_owned();
    }
    known(message).unwrap_or_else(|| "the expression raised an error".to_owned())
}

/// Returns the message for a known message of jaq, which is recognized by its prefix or suffix.
fn known(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("cannot use ") {
        let (value, expected) = rest.rsplit_once(" as ")?;
        let expected = TYPES.iter().find(|known| **known == expected)?;
        return Some(format!("cannot use {} as {expected}", kind_of_text(value)));
    }
    if let Some(rest) = message.strip_prefix("cannot index ") {
        let (value, index) = rest.rsplit_once(" with ")?;
        return Some(format!("cannot index {} with {}", kind_of_text(value), kind_of_text(index)));
    }
    if let Some(rest) = message.strip_prefix("cannot calculate ") {
        let operators = [" + ", " - ", " * ", " / ", " % "];
        let (left, right) = operators.iter().find_map(|operator| rest.rsplit_once(operator))?;
        return Some(format!("cannot calculate with {} and {}", kind_of_text(left), kind_of_text(right)));
    }
    if message.starts_with("invalid path expression with input ") {
        return Some("the left side of an update, or the argument of path(), is not a path".to_owned());
    }
    if message.starts_with("index ") && message.ends_with(" out of bounds") {
        return Some("an array index is out of bounds".to_owned());
    }
    if message.starts_with(regex::TOO_LARGE) {
        return Some("a regular expression is too large".to_owned());
    }
    if message.starts_with("invalid regex") {
        return Some("a regular expression, or its flags, are not valid".to_owned());
    }
    let no_length = message.ends_with(" has no length");
    no_length.then(|| format!("{} has no length", kind_of_text(message)))
}

const fn kind(value: &Val) -> &'static str {
    match value {
        Val::Null => "null",
        Val::Bool(_) => "a boolean",
        Val::Num(_) => "a number",
        Val::BStr(_) => "bytes",
        Val::TStr(_) => "a string",
        Val::Arr(_) => "an array",
        Val::Obj(_) => "an object",
    }
}

/// Returns the type of the value that starts with this JSON.
fn kind_of_text(json: &str) -> &'static str {
    match json.bytes().next() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        Some(b'-' | b'0'..=b'9') => "a number",
        _ => "a value",
    }
}
