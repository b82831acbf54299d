//! The environment variables of the process.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A snapshot of the environment. Variables that are not UTF-8 count as unset.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// Returns the environment of this process.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { variables: std::env::vars_os().filter_map(text).collect() }
    }

    /// Returns the environment with another value of a variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// Returns a variable without changes.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Returns a variable, trimmed. An empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.raw(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns a boolean variable. An invalid one counts as unset.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        parse_boolean(self.get(name)?).ok()
    }

    /// Returns the home directory: `HOME`, and on Windows `USERPROFILE` if that is not set.
    pub fn home(&self) -> Option<PathBuf> {
        let profile = || self.get("USERPROFILE").filter(|_| cfg!(windows));
        self.get("HOME").or_else(profile).map(PathBuf::from)
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Environment {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(variables: I) -> Self {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self { variables: variables.into_iter().map(owned).collect() }
    }
}

/// Parses a boolean of a flag or variable.
pub fn parse_boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Ok(true),
        "0" | "f" | "false" => Ok(false),
        _ => Err("use true or false".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("true", Some(true))]
    #[case(" 1 ", Some(true))]
    #[case("T", Some(true))]
    #[case("f", Some(false))]
    #[case("0", Some(false))]
    #[case("False", Some(false))]
    #[case("yes", None)]
    #[case("2", None)]
    #[case("", None)]
    fn booleans(#[case] text: &str, #[case] expected: Option<bool>) {
        assert_eq!(Environment::from_iter([("X", text)]).boolean("X"), expected);
    }

    #[test]
    fn values_are_trimmed_and_blank_ones_unset() {
        let environment = Environment::from_iter([("A", " a "), ("B", "  ")]);
        assert_eq!(environment.get("A"), Some("a"));
        assert_eq!((environment.get("B"), environment.get("C")), (None, None));
    }
}
