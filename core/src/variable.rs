//! References to environment variables in settings.

/// Returns the name of the variable if `text` is one reference `${NAME}`, apart from surrounding white space. A name
/// consists of ASCII letters, digits and `_`, and does not begin with a digit.
pub fn referred(text: &str) -> Option<&str> {
    let name = text.trim().strip_prefix("${")?.strip_suffix('}')?;
    let first = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    (first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).then_some(name)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("${HOST}", Some("HOST"))]
    #[case("  ${HOST}\n", Some("HOST"))]
    #[case("${_a1}", Some("_a1"))]
    #[case("https://${HOST}", None)]
    #[case("$HOST", None)]
    #[case("${1A}", None)]
    #[case("${A-B}", None)]
    #[case("${}", None)]
    #[case("${A}${B}", None)]
    fn references(#[case] text: &str, #[case] name: Option<&str>) {
        assert_eq!(referred(text), name);
    }
}
