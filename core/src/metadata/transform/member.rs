//! Expressions such as `.data`, which take a member of the payload. They need no jq.

use crate::payload::Value;

/// The names of the members that an expression takes, one in the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberPath(Vec<String>);

impl MemberPath {
    /// Parses an expression. Returns `None` if it does more than to take a member by its name.
    pub fn parse(expression: &str) -> Option<Self> {
        let names = expression.trim().strip_prefix('.')?.split('.');
        let names = names.map(|name| is_identifier(name).then(|| name.to_owned()));
        names.collect::<Option<_>>().map(Self)
    }

    /// Whether `value` has the member.
    pub fn is_in(&self, value: &Value) -> bool {
        self.0.iter().try_fold(value, |value, name| value.get(name)).is_some()
    }

    /// Returns the member of `value`, or null if there is none, as jq does. Returns `value` as an error if it has no
    /// members there, which is an error of jq.
    pub fn take(&self, value: Value) -> Result<Value, Value> {
        let mut below = &value;
        for name in &self.0 {
            match below {
                Value::Object(members) => below = members.get(name).unwrap_or(&Value::Null),
                Value::Null => return Ok(Value::Null),
                _ => return Err(value),
            }
        }
        Ok(self.0.iter().fold(value, |value, name| match value {
            Value::Object(mut members) => members.remove(name).unwrap_or_default(),
            _ => Value::Null,
        }))
    }
}

/// Returns the expression that takes the member `name`.
pub fn member_expression(name: &str) -> String {
    if is_identifier(name) { format!(".{name}") } else { format!(".[{}]", serde_json::Value::from(name)) }
}

/// Returns whether jq and templates can take a member with this name without quotes.
pub fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case(".data", &["data"])]
    #[case(" .data._x9 ", &["data", "_x9"])]
    #[case(".", &[])]
    #[case("", &[])]
    #[case("data", &[])]
    #[case("..", &[])]
    #[case(".data.", &[])]
    #[case(".data[]", &[])]
    #[case(".data?", &[])]
    #[case(".data | .x", &[])]
    #[case(".9", &[])]
    #[case(".\"data\"", &[])]
    #[case(".{{/name}}", &[])]
    fn paths(#[case] expression: &str, #[case] names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected = (!names.is_empty()).then_some(MemberPath(names));
        assert_eq!(MemberPath::parse(expression), expected);
    }

    #[rstest]
    #[case("data", ".data")]
    #[case("tag-type", ".[\"tag-type\"]")]
    #[case("a\"b", ".[\"a\\\"b\"]")]
    fn expressions(#[case] name: &str, #[case] expected: &str) {
        assert_eq!(member_expression(name), expected);
    }

    #[rstest]
    #[case::member(r#"{"a":{"b":[1]},"c":2}"#, Some("[1]"))]
    #[case::no_member(r#"{"a":{}}"#, Some("null"))]
    #[case::no_members_above(r#"{"c":2}"#, Some("null"))]
    #[case::null("null", Some("null"))]
    #[case::null_above(r#"{"a":null}"#, Some("null"))]
    #[case::array("[1]", None)]
    #[case::text_above(r#"{"a":"x"}"#, None)]
    fn members_are_taken_as_by_jq(#[case] input: &str, #[case] expected: Option<&str>) {
        let json = |text: &str| decode(PayloadType::Json, text.as_bytes()).unwrap();
        let expected = expected.map(json).ok_or_else(|| json(input));
        assert_eq!(MemberPath::parse(".a.b").unwrap().take(json(input)), expected);
    }
}
