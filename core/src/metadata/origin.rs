//! Finds the document that states a field, to name it in messages.

use std::fmt;

use super::document::Document;
use crate::payload::Value;

/// A field of metadata and its document, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The field: `operations.get.query.view`.
    pub field: String,
    /// The document that takes precedence; `None` if no document states the field.
    pub file: Option<String>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{} ({file})", self.field),
            None => f.write_str(&self.field),
        }
    }
}

/// Returns whether `document` states `field`. For an element of a list, it returns whether the list is stated.
pub(super) fn states(document: &Document, field: &str) -> bool {
    let is_index = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let list = field.match_indices('[').find_map(|(at, _)| {
        let (index, _) = field[at + 1..].split_once(']')?;
        is_index(index).then_some(&field[..at])
    });
    let field = list.unwrap_or(field);
    within(&document.to_value(), field)
}

/// Matches keys by prefix, because names of query parameters and headers may contain dots. Header names ignore case.
fn within(value: &Value, field: &str) -> bool {
    let Value::Object(members) = value else { return false };
    members.iter().any(|(key, member)| match field.split_at_checked(key.len()) {
        Some((start, "")) => start.eq_ignore_ascii_case(key),
        Some((start, rest)) => {
            start.eq_ignore_ascii_case(key) && rest.strip_prefix('.').is_some_and(|rest| within(member, rest))
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::PayloadType;

    #[rstest]
    #[case("resource.alias", true)]
    #[case("resource.id", false)]
    #[case("operations.get.query.a.b", true)]
    #[case("operations.get.query.a", false)]
    #[case("operations.get.headers.x-shop", true)]
    #[case("operations.get.transforms[0].jqExpression", true)]
    #[case("operations.create.transforms", false)]
    #[case("operations.get.query.filter[name]", true)]
    #[case("operations.get.query.filter[no]", false)]
    #[case("operations.get", true)]
    #[case("resource.alias.x", false)]
    fn documents_state_fields(#[case] field: &str, #[case] stated: bool) {
        let text = "{resource: {alias: /name}, operations: {get: {query: {a.b: x, 'filter[name]': x}, headers: {X-Shop: y}, \
                    transforms: [{jqExpression: .}]}}}";
        let document = Document::decode(PayloadType::Yaml, text.as_bytes()).unwrap();
        assert_eq!(states(&document, field), stated);
    }
}
