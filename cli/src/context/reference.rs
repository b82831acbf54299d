//! References to the environment: a string of the form `${NAME}` is replaced with the variable's value.

use declarest_core::variable::referred;

use crate::environment::Environment;

/// Returns whether a string is a reference.
pub fn is_reference(text: &str) -> bool {
    referred(text).is_some()
}

/// Returns the value of a reference, which is empty if the variable is not set. Returns `None` for other strings.
pub fn expand(text: &str, environment: &Environment) -> Option<String> {
    referred(text).map(|name| environment.raw(name).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("${HOST}", Some("h.test"))]
    #[case("${_a1}", Some(" x "))]
    #[case("${UNSET}", Some(""))]
    #[case("$HOST", None)]
    fn references(#[case] text: &str, #[case] expected: Option<&str>) {
        let environment = Environment::from_iter([("HOST", "h.test"), ("_a1", " x ")]);
        assert_eq!(expand(text, &environment).as_deref(), expected);
    }
}
