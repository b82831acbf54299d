//! The base of the relative keys in placeholders.

use std::fmt;

use super::placeholder::Placeholder;
use super::{KeyError, SecretKey};
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;

/// The origin of a payload. Keys of its placeholders are relative to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The payload of a resource.
    Resource(LogicalPath),
    /// A payload that does not belong to a resource.
    Payload,
}

impl Scope {
    /// Returns the store key of `placeholder`, which is at `at`.
    pub fn key(&self, at: &Pointer, placeholder: &Placeholder) -> Result<SecretKey, KeyError> {
        match (self, placeholder) {
            (Self::Resource(path), Placeholder::Implicit) if at.is_root() => {
                SecretKey::of_resource(path, SecretKey::WHOLE)
            }
            (Self::Resource(path), Placeholder::Implicit) => SecretKey::of_resource(path, &at.to_string()),
            (Self::Resource(path), Placeholder::Explicit(key)) => SecretKey::of_resource(path, key),
            (Self::Payload, Placeholder::Implicit) => SecretKey::of_pointer(at),
            (Self::Payload, Placeholder::Explicit(key)) => SecretKey::parse(key),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(path) => path.fmt(f),
            Self::Payload => f.write_str("the payload"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::error::{Categorized as _, Category};

    #[rstest]
    #[case::implicit("/db/main", "/users/0/pw", "{{secret .}}", Some("db/main:/users/0/pw"))]
    #[case::explicit("/db/main", "/tok", "{{secret ci}}", Some("db/main:ci"))]
    #[case::whole("/certs/a", "", "{{secret .}}", Some("certs/a:."))]
    #[case::whole_explicit("/certs/a", "", "{{secret k}}", Some("certs/a:k"))]
    #[case::escaped("/a", "/p~1w~0", "{{secret .}}", Some("a:/p~1w~0"))]
    #[case::dot("/a", "/b", r#"{{secret "."}}"#, Some("a:."))]
    #[case::colon("/a:b", "/c", "{{secret .}}", Some("a:b:/c"))]
    #[case::member_without_name("/a", "/b/", "{{secret .}}", None)]
    #[case::traversal("/a", "/b", "{{secret x/../y}}", None)]
    #[case::bare_implicit("", "/users/0/pw", "{{secret .}}", Some("users/0/pw"))]
    #[case::bare_explicit("", "/tok", "{{secret ci}}", Some("ci"))]
    #[case::bare_root("", "", "{{secret .}}", None)]
    #[case::bare_member_without_name("", "/b/", "{{secret .}}", None)]
    fn keys(#[case] path: &str, #[case] at: &str, #[case] text: &str, #[case] expected: Option<&str>) {
        let scope = match path {
            "" => Scope::Payload,
            path => Scope::Resource(LogicalPath::parse(path).unwrap()),
        };
        let placeholder = Placeholder::parse(text).unwrap().unwrap();
        let key = scope.key(&Pointer::parse(at).unwrap(), &placeholder);
        assert!(key.as_ref().err().is_none_or(|error| error.category() == Category::Validation));
        assert_eq!(key.ok().as_ref().map(SecretKey::as_str), expected);
    }
}
