//! References to the environment: a string that is `${NAME}` and nothing else stands for a variable.

use crate::environment::Environment;

/// The variable that a whole string names.
fn variable(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("${")?.strip_suffix('}')?;
    let first = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    (first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).then_some(name)
}

/// Whether a string is a reference.
pub fn is_reference(text: &str) -> bool {
    variable(text).is_some()
}

/// The value of a reference, empty if the variable is not set; `None` for other strings.
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
