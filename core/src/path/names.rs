//! The names of resources in the segments of a path.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PathError, is_single_segment};

/// How the segments of a path name resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PathNames {
    /// A segment is the name.
    #[default]
    Literal,
    /// A segment is the percent-encoded name (RFC 3986, section 2.1), so that names may have slashes.
    PercentEncoded,
}

/// Whether a segment of a logical path is to have this character percent-encoded.
fn is_reserved(character: char) -> bool {
    character.is_control() || matches!(character, '%' | '/' | '\\')
}

impl PathNames {
    /// Returns the name in `segment`. A segment that is not percent-encoded text in UTF-8 is the name itself.
    pub fn decode(self, segment: &str) -> Cow<'_, str> {
        match self {
            Self::Literal => Cow::Borrowed(segment),
            Self::PercentEncoded => {
                percent_decode_str(segment).decode_utf8().unwrap_or(Cow::Borrowed(segment))
            }
        }
    }

    /// Returns the segment for `name`: the only segment that names of resources on the server are written as.
    pub fn encode(self, name: &str) -> Cow<'_, str> {
        if self == Self::Literal {
            return Cow::Borrowed(name);
        }
        // A path cannot have these segments, so their first character is encoded.
        let is_special = matches!(name, "." | ".." | "_") || name.eq_ignore_ascii_case(".git");
        if !is_special && !name.contains(is_reserved) {
            return Cow::Borrowed(name);
        }
        let encoded = |(at, character): (usize, char)| {
            if is_reserved(character) || is_special && at == 0 {
                utf8_percent_encode(&character.to_string(), NON_ALPHANUMERIC).to_string()
            } else {
                character.to_string()
            }
        };
        Cow::Owned(name.char_indices().map(encoded).collect())
    }

    /// Checks that a rendered alias or remote id is a name, and returns it trimmed. A percent-encoded name may have
    /// slashes; a name that is `.` or `..` can never be the segment of a URL.
    pub fn check(self, text: &str) -> Result<&str, PathError> {
        let name = text.trim();
        let is_name = match self {
            Self::Literal => is_single_segment(name),
            Self::PercentEncoded => !matches!(name, "" | "." | ".."),
        };
        if is_name { Ok(name) } else { Err(PathError::NotASegment(text.to_owned())) }
    }
}

/// The characters that a URL cannot have in its path, or not in a segment.
const URL: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// A semicolon begins a parameter of a segment, which some servers remove. In the text of metadata, it is deliberate.
const VALUE: AsciiSet = URL.add(b';');

/// Returns a value as one segment of a URL, or as a part of one.
pub fn url_segment(value: &str) -> Cow<'_, str> {
    utf8_percent_encode(value, &VALUE).into()
}

/// Returns `path` as the path of a URL. Slashes separate segments, and percent-encoded characters stay as they are.
pub fn url_path(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    let is_hex =
        |digits: Option<&[u8]>| digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    for (at, part) in path.split('%').enumerate() {
        if at > 0 {
            encoded.push_str(if is_hex(part.as_bytes().get(..2)) { "%" } else { "%25" });
        }
        for (at, segment) in part.split('/').enumerate() {
            encoded.push_str(if at > 0 { "/" } else { "" });
            encoded.extend(utf8_percent_encode(segment, &URL));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::path::LogicalPath;

    #[rstest]
    #[case("%2F", "/")]
    #[case("a%2Fb", "a/b")]
    #[case("orders-order.#", "orders-order.#")]
    #[case("50%25", "50%")]
    #[case("%5F", "_")]
    #[case("%2Egit", ".git")]
    #[case("a%5Cb", "a\\b")]
    #[case("Ärger%2Fñ", "Ärger/ñ")]
    #[case("%C2%85", "\u{85}")]
    fn segments_and_names(#[case] segment: &str, #[case] name: &str) {
        let names = PathNames::PercentEncoded;
        assert_eq!((&*names.decode(segment), &*names.encode(name)), (name, segment));
        assert_eq!(
            (&*PathNames::Literal.decode(segment), &*PathNames::Literal.encode(name)),
            (segment, name)
        );
    }

    #[rstest]
    #[case::lower_case("%2f", "/")]
    #[case::more_than_needed("a%20b", "a b")]
    #[case::not_encoded("50%", "50%")]
    #[case::not_text("%FF", "%FF")]
    #[case::once("%252F", "%2F")]
    fn other_segments(#[case] segment: &str, #[case] name: &str) {
        assert_eq!(PathNames::PercentEncoded.decode(segment), name);
    }

    #[rstest]
    #[case("/", true)]
    #[case("_", true)]
    #[case("..", false)]
    #[case(" ", false)]
    fn names(#[case] name: &str, #[case] is_name: bool) {
        assert_eq!(PathNames::PercentEncoded.check(name).is_ok(), is_name);
        assert!(PathNames::Literal.check(name).is_err());
    }

    #[test]
    fn a_value_has_no_parameter() {
        assert_eq!(url_segment("a;v2/b"), "a%3Bv2%2Fb");
    }

    #[rstest]
    #[case("/a b/%2F/c", "/a%20b/%2F/c")]
    #[case("/50%/%zz/%4", "/50%25/%25zz/%254")]
    #[case("/é?#", "/%C3%A9%3F%23")]
    #[case("/shops;area=1", "/shops;area=1")]
    fn paths_of_urls(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(url_path(path), expected);
        assert_eq!(url_path(expected), expected);
    }

    proptest! {
        #[test]
        fn every_name_is_one_segment(name in ".*") {
            let names = PathNames::PercentEncoded;
            if let Ok(name) = names.check(&name) {
                let segment = names.encode(name);
                prop_assert_eq!(names.decode(&segment), name);
                let path = LogicalPath::root().child(&segment).unwrap();
                prop_assert_eq!(LogicalPath::parse(path.as_str()).unwrap(), path);
            }
        }
    }
}
