//! Builds objects from assignments such as `/name=Rio,/address/city=Rio` and `address.city=Rio`.

use declarest_core::payload::pointer::Pointer;
use declarest_core::payload::{Object, Value};

use super::InputError;

/// Builds an object from assignments to JSON Pointers. Returns `None` for other texts.
pub fn pointers(text: &str) -> Option<Result<Object, InputError>> {
    let parts: Option<Vec<_>> = text.split(',').map(|part| part.trim().split_once('=')).collect();
    let parts = parts.filter(|parts| parts.iter().all(|(key, _)| key.starts_with('/')))?;
    let read = |(key, value): (&str, &str)| {
        let key = key.trim();
        let pointer =
            Pointer::parse(key).map_err(|_| bad(key, "has a \"~\" that is not \"~0\" or \"~1\""))?;
        Ok((key.to_owned(), pointer.tokens().to_vec(), value.trim().to_owned()))
    };
    Some(assemble(parts.into_iter().map(read)))
}

/// Builds an object from assignments to keys that are separated by dots; double quotes protect dots and commas.
/// Returns `None` for other texts.
pub fn dotted(text: &str) -> Option<Result<Object, InputError>> {
    if text.trim_start().starts_with(['{', '[', '.', '~', '/']) {
        return None;
    }
    let parts: Option<Vec<_>> = split(text, ',').into_iter().map(|part| halves(part.trim())).collect();
    // A text with a slash is more likely a file name.
    let parts = parts.filter(|parts| parts.iter().all(|(key, _)| !key.contains('/')))?;
    let read = |(key, value): (&str, &str)| {
        let tokens = split(key.trim(), '.').into_iter().map(|token| unquoted(token.trim()).to_owned());
        Ok((key.trim().to_owned(), tokens.collect(), unquoted(value.trim()).to_owned()))
    };
    Some(assemble(parts.into_iter().map(read)))
}

/// A key as written, its segments, and the value.
type Assignment = (String, Vec<String>, String);

fn assemble(assignments: impl Iterator<Item = Result<Assignment, InputError>>) -> Result<Object, InputError> {
    let mut root = Object::new();
    for assignment in assignments {
        let (key, segments, value) = assignment?;
        insert(&mut root, &segments, value).map_err(|reason| bad(&key, reason))?;
    }
    Ok(root)
}

fn insert(object: &mut Object, segments: &[String], value: String) -> Result<(), &'static str> {
    const TAKEN: &str = "conflicts with an earlier one";
    let Some((segment, below)) = segments.split_first() else { return Err("has no key") };
    if segment.is_empty() {
        return Err("has an empty segment");
    }
    if below.is_empty() {
        return match object.insert(segment.clone(), Value::String(value)) {
            None => Ok(()),
            Some(_) => Err(TAKEN),
        };
    }
    match object.entry(segment.clone()).or_insert_with(|| Value::Object(Object::new())) {
        Value::Object(members) => insert(members, below, value),
        _ => Err(TAKEN),
    }
}

fn bad(key: &str, reason: &'static str) -> InputError {
    InputError::Assignment { key: key.to_owned(), reason }
}

/// Splits at separators outside of quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut quoted = false;
    text.split(|character: char| {
        quoted ^= character == '"';
        character == separator && !quoted
    })
    .collect()
}

/// Splits at the first `=` outside of quotes.
fn halves(part: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let at = part.find(|character: char| {
        quoted ^= character == '"';
        character == '=' && !quoted
    })?;
    Some((&part[..at], &part[at + 1..]))
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn json(members: Result<Object, InputError>) -> String {
        match members {
            Ok(members) => Value::Object(members).to_json().unwrap().to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[rstest]
    #[case("/a=b,/c/d=e", r#"{"a":"b","c":{"d":"e"}}"#)]
    #[case("/a = b , /c= d=e ", r#"{"a":"b","c":"d=e"}"#)]
    #[case("/a~1b=x,/m~0n=", r#"{"a/b":"x","m~n":""}"#)]
    #[case("/a=1,/a/b=2", "--payload: the assignment of \"/a/b\" conflicts with an earlier one")]
    #[case("/a/b=1,/a=2", "--payload: the assignment of \"/a\" conflicts with an earlier one")]
    #[case("/a//b=1", "--payload: the assignment of \"/a//b\" has an empty segment")]
    #[case("/=1", "--payload: the assignment of \"/\" has an empty segment")]
    #[case("/a~2=1", "--payload: the assignment of \"/a~2\" has a \"~\" that is not \"~0\" or \"~1\"")]
    fn pointer_assignments(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(json(pointers(text).unwrap()), expected);
    }

    #[rstest]
    #[case("a.b=x,\"k.1\".c=y", r#"{"a":{"b":"x"},"k.1":{"c":"y"}}"#)]
    #[case("a=\"x,y\", b=z", r#"{"a":"x,y","b":"z"}"#)]
    #[case("a=b=c", r#"{"a":"b=c"}"#)]
    #[case("\"a=b\"=c", r#"{"a=b":"c"}"#)]
    #[case("a=1,a.b=2", "--payload: the assignment of \"a.b\" conflicts with an earlier one")]
    #[case("a..b=1", "--payload: the assignment of \"a..b\" has an empty segment")]
    #[case("a.=1", "--payload: the assignment of \"a.\" has an empty segment")]
    #[case("=1", "--payload: the assignment of \"\" has an empty segment")]
    fn dotted_assignments(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(json(dotted(text).unwrap()), expected);
    }

    #[rstest]
    #[case("/etc/hosts")]
    #[case("/a=b,c")]
    #[case("./a=b")]
    #[case("{\"a\":\"=\"}")]
    #[case("a,b=c")]
    #[case("dir/a=b")]
    fn other_texts(#[case] text: &str) {
        assert!(pointers(text).is_none() && dotted(text).is_none());
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-c/~.,=\"{ é]{0,12}") {
            let _ = (pointers(&text), dotted(&text));
        }
    }
}
