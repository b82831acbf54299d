//! References to the environment: a string of the form `${NAME}` is replaced with the variable's value.

use crate::environment::Environment;

/// Returns the variable of a reference.
fn variable(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("${")?.strip_suffix('}')?;
    let first = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    (first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).then_some(name)
}

/// Returns whether a string is a reference.
pub fn is_reference(text: &str) -> bool {
    variable(text).is_some()
}

/// Returns the value of a reference, which is empty if the variable is not set. Returns `None` for other strings.
pub fn expand(text: &str, environment: &Environment) -> Option<String> {
    variable(text).map(|name| environment.raw(name).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("${HOST}", Some("h.test"))]
    #[case("  ${HOST}\n", Some("h.test"))]
    #[case("${_a1}", Some(" x "))]
    #[case("${UNSET}", Some(""))]
    #[case("https://${HOST}", None)]
    #[case("$HOST", None)]
    #[case("${1A}", None)]
    #[case("${A-B}", None)]
    #[case("${}", None)]
    #[case("${A}${B}", None)]
    fn references(#[case] text: &str, #[case] expected: Option<&str>) {
        let environment = Environment::from_iter([("HOST", "h.test"), ("_a1", " x ")]);
        assert_eq!(expand(text, &environment).as_deref(), expected);
    }
}
