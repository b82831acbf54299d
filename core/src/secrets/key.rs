//! The keys of secrets in a store.

use std::fmt;

use crate::error::categories;
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;

/// The key of a secret in any store: `db/main:/users/0/pw`.
///
/// It is relative, and no `/`-separated segment is empty, `.` or `..`, so it cannot leave the directory of the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretKey(String);

/// The reason why a text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is blank.
    #[error("a secret's key must not be empty")]
    Empty,
    /// A segment is empty, `.` or `..`.
    #[error("secret key {0:?} has an empty, . or .. segment; write plain names between the slashes")]
    Segment(String),
    /// The pointer ends in a slash, so it addresses a member with an empty name.
    #[error(
        "secret key {0:?} ends in a slash, which addresses a member with an empty name; remove the slash, or give \
         the secret another name"
    )]
    EmptyName(String),
    /// White space around the name of a member would be lost, and the key be that of another one.
    #[error(
        "secret key {0:?} begins or ends with white space, which keys cannot have; rename the attribute, or give the \
         secret another name"
    )]
    WhiteSpace(String),
}

categories!(KeyError: Validation);

impl SecretKey {
    /// The name for the whole payload of a resource.
    pub const WHOLE: &str = ".";

    /// Parses a key, without white space and slashes around it.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let key = text.trim().trim_start_matches('/');
        if key.trim_end_matches('/').is_empty() {
            return Err(KeyError::Empty);
        }
        // A trailing slash is ignored, except in a pointer. There it addresses the member with the empty name, which
        // must not become its parent.
        if key.ends_with('/') && key.contains(":/") {
            return Err(KeyError::EmptyName(key.to_owned()));
        }
        let key = key.trim_end_matches('/');
        if key.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            return Err(KeyError::Segment(key.to_owned()));
        }
        Ok(Self(key.to_owned()))
    }

    /// Returns the key of `name` in the resource at `path`. The name is a JSON Pointer (RFC 6901) to the value, `.`
    /// for the whole payload, or any other name.
    pub fn of_resource(path: &LogicalPath, name: &str) -> Result<Self, KeyError> {
        // Without the last slash, the pointer would address the parent.
        if name.starts_with('/') && name.ends_with('/') {
            return Err(KeyError::EmptyName(format!("{path}:{name}")));
        }
        if name.trim() != name {
            return Err(KeyError::WhiteSpace(format!("{path}:{name}")));
        }
        Self::parse(&format!("{path}:{name}"))
    }

    /// Returns the key of the value at `at` in a payload that does not belong to a resource.
    pub fn of_pointer(at: &Pointer) -> Result<Self, KeyError> {
        let text = at.to_string();
        if text.ends_with('/') {
            return Err(KeyError::EmptyName(text));
        }
        if text.trim() != text {
            return Err(KeyError::WhiteSpace(text));
        }
        Self::parse(&text)
    }

    /// Returns the text of the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::error::{Categorized, Category};

    #[rstest]
    #[case("/db/main:/users/0/pw", "db/main:/users/0/pw")]
    #[case("/db/main:ci", "db/main:ci")]
    #[case("/certs/a:.", "certs/a:.")]
    #[case(" /token/ ", "token")]
    #[case("/a~1b", "a~1b")]
    fn keeps(#[case] text: &str, #[case] stored: &str) {
        assert_eq!(SecretKey::parse(text).unwrap().as_str(), stored);
    }

    #[rstest]
    #[case::nothing("")]
    #[case::slashes(" // ")]
    #[case::empty_segment("a//b")]
    #[case::current("a/./b")]
    #[case::parent("a/../b")]
    #[case::parent_first("../b")]
    #[case::member_without_name("a:/")]
    #[case::member_without_name_below("a:/b/")]
    #[case::member_without_name_in_a_path("/a/b:/c/")]
    #[case::members_without_name("a:/b//")]
    #[case::member_without_name_and_space(" a:/b/ ")]
    fn rejects(#[case] text: &str) {
        assert_eq!(SecretKey::parse(text).unwrap_err().category(), Category::Validation);
    }

    #[test]
    fn the_error_explains_a_trailing_slash() {
        assert_eq!(
            SecretKey::parse("a:/b/").unwrap_err().to_string(),
            "secret key \"a:/b/\" ends in a slash, which addresses a member with an empty name; remove the slash, or give \
             the secret another name"
        );
    }

    #[rstest]
    #[case("/db/main", "/users/0/pw", Some("db/main:/users/0/pw"))]
    #[case("/certs/a", ".", Some("certs/a:."))]
    #[case("/certs/a", "ci", Some("certs/a:ci"))]
    #[case("/certs/a", "/users/", None)]
    #[case("/certs/a", "/", None)]
    #[case("/certs/a", "/pw ", None)]
    #[case("/certs/a", " /pw", None)]
    fn of_resources(#[case] path: &str, #[case] name: &str, #[case] stored: Option<&str>) {
        let key = SecretKey::of_resource(&LogicalPath::parse(path).unwrap(), name);
        assert_eq!(key.ok().as_ref().map(SecretKey::as_str), stored);
    }
}
