//! References: texts in payloads that stand for the value of another resource on the server.

use std::fmt;

use crate::error::categories;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::{Pointer, places};

/// A reference: a text that consists of `{{ref "/roles/viewer" "/id"}}`.
///
/// ```text
/// reference = WS* "{{" WS* "ref" WS+ quoted WS+ quoted WS* "}}" WS*
/// ```
///
/// The first text is the path of a resource, the second one the JSON Pointer of its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// The resource.
    pub path: LogicalPath,
    /// The place of the value in its payload.
    pub pointer: Pointer,
}

/// A text begins like a reference and is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the reference at \"{at}\" is malformed; write {{{{ref \"/path/of/a/resource\" \"/pointer\"}}}}, with an absolute path and a JSON Pointer in double quotes"
)]
pub struct ReferenceError {
    /// The place in the payload.
    pub at: Pointer,
}

categories!(ReferenceError: Validation);

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{ref \"{}\" \"{}\"}}}}", self.path, self.pointer)
    }
}

impl Reference {
    /// Parses `text`; `None` for plain text. A text whose first argument has a quote must be a reference: if it were
    /// sent as it is, a mistake would end up on the server.
    fn parse(text: &str) -> Option<Result<Self, ()>> {
        let body = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
        let argument = body.trim().strip_prefix("ref")?;
        let quoted =
            argument.trim().strip_prefix('"').filter(|_| argument.starts_with(char::is_whitespace))?;
        let parsed = || {
            let (path, rest) = quoted.split_once('"')?;
            let pointer = rest.trim().strip_prefix('"').filter(|_| rest.starts_with(char::is_whitespace))?;
            let pointer = pointer.strip_suffix('"').filter(|pointer| !pointer.contains('"'))?;
            let pointer = Pointer::parse(pointer).ok()?;
            Some(Self { path: LogicalPath::parse(path).ok()?, pointer })
        };
        Some(parsed().ok_or(()))
    }
}

/// Returns the references in `payload` and their places, depth-first.
pub fn references(payload: &Value) -> Result<Vec<(Pointer, Reference)>, ReferenceError> {
    let parsed = |at: Pointer| match Reference::parse(at.get(payload)?.as_str()?)? {
        Ok(reference) => Some(Ok((at, reference))),
        Err(()) => Some(Err(ReferenceError { at })),
    };
    places(payload, &may_be_one).into_iter().filter_map(parsed).collect()
}

/// Whether `text` is a reference, or begins like one.
pub fn is_reference(text: &str) -> bool {
    Reference::parse(text).is_some()
}

/// Whether `value` may hold references. Checks every text once, without allocations.
pub fn may_hold_any(value: &Value) -> bool {
    may_be_one(value) || value.children().any(may_hold_any)
}

fn may_be_one(value: &Value) -> bool {
    let body = value.as_str().and_then(|text| text.trim_start().strip_prefix("{{"));
    body.is_some_and(|body| body.trim_start().starts_with("ref"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{{ref "/roles/x" "/id"}}"#, "/roles/x", "/id")]
    #[case(" {{ ref  \"/roles/a b\"\t\"/a/0/b~1c\" }} ", "/roles/a b", "/a/0/b~1c")]
    #[case(r#"{{ref "/roles/x" ""}}"#, "/roles/x", "")]
    fn parses(#[case] text: &str, #[case] path: &str, #[case] pointer: &str) {
        let reference = Reference::parse(text).unwrap().unwrap();
        assert_eq!((reference.path.as_str(), reference.pointer.to_string().as_str()), (path, pointer));
        assert_eq!(Reference::parse(&reference.to_string()), Some(Ok(reference)));
    }

    #[rstest]
    #[case("{{ref}}")]
    #[case("{{ref .}}")]
    #[case("{{refer \"/a\" \"/b\"}}")]
    #[case("{{ref\"/a\" \"/b\"}}")]
    #[case("x {{ref \"/a\" \"/b\"}}")]
    #[case("{{secret .}}")]
    #[case("")]
    fn plain_text(#[case] text: &str) {
        assert_eq!(Reference::parse(text), None);
    }

    #[rstest]
    #[case(r#"{{ref "/roles/x"}}"#)]
    #[case(r#"{{ref "/roles/x" "id"}}"#)]
    #[case(r#"{{ref "roles/x" "/id"}}"#)]
    #[case(r#"{{ref "/roles/x" "/id" "/more"}}"#)]
    #[case(r#"{{ref "/roles/x""/id"}}"#)]
    #[case(r#"{{ref "/roles/x" /id}}"#)]
    fn malformed(#[case] text: &str) {
        assert_eq!(Reference::parse(text), Some(Err(())));
    }

    #[test]
    fn places_are_found_at_any_depth() {
        let text = || Value::from(r#"{{ref "/roles/x" "/id"}}"#);
        let inner = Value::Object([("a/b".to_owned(), text()), ("c".to_owned(), Value::Int(1))].into());
        let payload = Value::Array(vec![Value::Null, inner, text()]);
        let places: Vec<_> = references(&payload).unwrap().iter().map(|(at, _)| at.to_string()).collect();
        assert_eq!(places, ["/1/a~1b", "/2"]);
        let error = references(&Value::Array(vec![Value::from(r#"{{ref "/roles/x"}}"#)])).unwrap_err();
        assert!(error.to_string().starts_with("the reference at \"/0\" is malformed"), "{error}");
    }
}
