//! JSON Pointer (RFC 6901): the address of a part of a value.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_DEPTH, Object, Value};
use crate::error::categories;

/// The reason why a text is not a JSON Pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// Not empty, and the first character is not a slash.
    #[error("JSON Pointer \"{0}\" must be empty or start with \"/\"")]
    Relative(String),
    /// A `~` without `0` or `1` after it.
    #[error("JSON Pointer \"{0}\" has a \"~\" that is not \"~0\" (tilde) or \"~1\" (slash)")]
    BadEscape(String),
    /// More tokens than arrays and objects may nest.
    #[error("the JSON Pointer has {0} tokens, but no payload is deeper than {MAX_DEPTH} levels")]
    TooDeep(usize),
}

categories!(PointerError: Validation);

/// A parsed pointer. The empty pointer is the whole document.
///
/// A document can only hold pointers to a part of a payload: `serde` rejects the empty pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, description = "A JSON Pointer (RFC 6901).", extend("pattern" = "^/"))]
pub struct Pointer {
    tokens: Vec<String>,
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(format!("JSON Pointer \"{text}\" must start with \"/\""));
        }
        Self::parse(&text).map_err(|error| error.to_string())
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.to_string()
    }
}

impl Pointer {
    /// Parses the string form of RFC 6901, section 3. Pointers deeper than [`MAX_DEPTH`] are rejected: they address
    /// nothing, and [`Pointer::put`] would create values that cannot be encoded.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(PointerError::Relative(text.to_owned()));
        };
        let depth = rest.split('/').count();
        if depth > MAX_DEPTH {
            return Err(PointerError::TooDeep(depth));
        }
        let tokens = rest.split('/').map(unescape).collect::<Option<_>>();
        tokens.map(|tokens| Self { tokens }).ok_or_else(|| PointerError::BadEscape(text.to_owned()))
    }

    /// Returns the pointer to the member `token` of the document.
    pub fn from_token(token: &str) -> Self {
        Self { tokens: vec![token.to_owned()] }
    }

    /// Returns the pointer to the member `token` of the part at this pointer.
    #[must_use]
    pub fn child(&self, token: &str) -> Self {
        self.tokens.iter().cloned().chain([token.to_owned()]).collect()
    }

    /// Returns the reference tokens from the root, unescaped.
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }

    /// Whether this is the whole document.
    pub fn is_root(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Returns the part of `value` at this pointer; `None` for a missing member or index, for `-`, and if a token
    /// would descend into a scalar.
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.tokens.iter().try_fold(value, |value, token| match value {
            Value::Object(members) => members.get(token),
            Value::Array(items) => items.get(array_index(token)?),
            _ => None,
        })
    }

    /// Returns `value` with `part` at this pointer, replacing an existing part and creating missing objects above it.
    /// Unchanged if a token would descend into a scalar, null or a missing array element.
    #[must_use]
    pub fn put(&self, mut value: Value, part: Value) -> Value {
        let mut place = &mut value;
        for token in &self.tokens {
            let below = match place {
                Value::Object(members) => {
                    Some(members.entry(token.clone()).or_insert_with(|| Value::Object(Object::new())))
                }
                Value::Array(items) => array_index(token).and_then(|index| items.get_mut(index)),
                _ => None,
            };
            match below {
                Some(below) => place = below,
                None => return value,
            }
        }
        *place = part;
        value
    }

    /// Returns `value` without the object member at this pointer; unchanged if there is none.
    #[must_use]
    pub fn remove(&self, mut value: Value) -> Value {
        if let Some((last, above)) = self.tokens.split_last() {
            let above: Self = above.iter().cloned().collect();
            if let Some(Value::Object(members)) = above.get_mut(&mut value) {
                members.remove(last);
            }
        }
        value
    }

    /// Like [`Pointer::get`], but mutable.
    pub fn get_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.tokens.iter().try_fold(value, |value, token| match value {
            Value::Object(members) => members.get_mut(token),
            Value::Array(items) => items.get_mut(array_index(token)?),
            _ => None,
        })
    }

    pub(super) fn prepend(&mut self, token: &str) {
        self.tokens.insert(0, token.to_owned());
    }
}

/// Returns the places of the scalars in `value` for which `is_wanted` returns true, depth-first, members by key.
/// Allocates only for these.
pub fn places(value: &Value, is_wanted: &impl Fn(&Value) -> bool) -> Vec<Pointer> {
    let below = |token: &dyn fmt::Display, child: &Value| {
        let mut found = places(child, is_wanted);
        for at in &mut found {
            at.prepend(&token.to_string());
        }
        found
    };
    match value {
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(index, item)| below(&index, item)).collect()
        }
        Value::Object(members) => members.iter().flat_map(|(name, member)| below(name, member)).collect(),
        scalar => Vec::from_iter(is_wanted(scalar).then(Pointer::default)),
    }
}

/// Returns the name of a member, escaped for a pointer (RFC 6901 §3).
pub fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

/// Returns the array index of a token: decimal digits without a leading zero (RFC 6901, section 4).
pub fn array_index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    (canonical && token.bytes().all(|byte| byte.is_ascii_digit())).then(|| token.parse().ok()).flatten()
}

fn unescape(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (plain, rest) = match part.as_bytes().first() {
            Some(b'0') => ('~', &part[1..]),
            Some(b'1') => ('/', &part[1..]),
            _ => return None,
        };
        text.push(plain);
        text.push_str(rest);
    }
    Some(text)
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens.iter().try_for_each(|token| write!(f, "/{}", escape(token)))
    }
}

impl FromIterator<String> for Pointer {
    /// Returns the pointer with these unescaped reference tokens.
    fn from_iter<I: IntoIterator<Item = String>>(tokens: I) -> Self {
        Self { tokens: tokens.into_iter().collect() }
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode, encode};

    /// The document and pointers of RFC 6901, section 5.
    const DOCUMENT: &[u8] = br#"{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4,
        "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8}"#;

    #[rstest]
    #[case("/foo/0", Some(Value::from("bar")))]
    #[case("/", Some(Value::Int(0)))]
    #[case("/a~1b", Some(Value::Int(1)))]
    #[case("/c%d", Some(Value::Int(2)))]
    #[case("/e^f", Some(Value::Int(3)))]
    #[case("/g|h", Some(Value::Int(4)))]
    #[case("/i\\j", Some(Value::Int(5)))]
    #[case("/k\"l", Some(Value::Int(6)))]
    #[case("/ ", Some(Value::Int(7)))]
    #[case("/m~0n", Some(Value::Int(8)))]
    #[case("/foo/2", None)]
    #[case("/foo/-", None)]
    #[case("/foo/00", None)]
    #[case("/foo/+1", None)]
    #[case("/foo/", None)]
    #[case("/foo/0/x", None)]
    #[case("/absent", None)]
    fn finds(#[case] pointer: &str, #[case] expected: Option<Value>) {
        let document = decode(PayloadType::Json, DOCUMENT).unwrap();
        let pointer = Pointer::parse(pointer).unwrap();
        assert_eq!(pointer.get(&document), expected.as_ref());
        assert_eq!(pointer.get_mut(&mut document.clone()).cloned(), expected);
    }

    #[test]
    fn the_empty_pointer_is_the_document() {
        let pointer: Pointer = "".parse().unwrap();
        assert!(pointer.is_root());
        assert_eq!(pointer.get(&Value::Int(1)), Some(&Value::Int(1)));
    }

    #[rstest]
    #[case("/a", r#"{"b":{"c":1},"l":[1]}"#)]
    #[case("/b/c", r#"{"a":0,"b":{},"l":[1]}"#)]
    #[case("/none/c", r#"{"a":0,"b":{"c":1},"l":[1]}"#)]
    #[case("/l/0", r#"{"a":0,"b":{"c":1},"l":[1]}"#)]
    #[case("", r#"{"a":0,"b":{"c":1},"l":[1]}"#)]
    fn removes_members(#[case] pointer: &str, #[case] expected: &str) {
        let value = decode(PayloadType::Json, br#"{"a":0,"b":{"c":1},"l":[1]}"#).unwrap();
        let left = Pointer::parse(pointer).unwrap().remove(value);
        assert_eq!(left, decode(PayloadType::Json, expected.as_bytes()).unwrap());
    }

    #[test]
    fn order_of_unescaping_keeps_an_escaped_tilde() {
        assert_eq!(Pointer::parse("/~01").unwrap().tokens(), ["~1"]);
    }

    #[rstest]
    #[case("foo", PointerError::Relative("foo".into()))]
    #[case("/~", PointerError::BadEscape("/~".into()))]
    #[case("/a~2b", PointerError::BadEscape("/a~2b".into()))]
    #[case("/a~é", PointerError::BadEscape("/a~é".into()))]
    fn rejects(#[case] text: &str, #[case] expected: PointerError) {
        assert_eq!(Pointer::parse(text), Err(expected));
    }

    #[test]
    fn pointers_are_not_deeper_than_payloads() {
        let deepest = Pointer::parse(&"/a".repeat(MAX_DEPTH)).unwrap();
        let value = deepest.put(Value::Object(Object::new()), Value::Int(1));
        let bytes = encode(PayloadType::Json, &value).unwrap();
        assert_eq!(deepest.get(&decode(PayloadType::Json, &bytes).unwrap()), Some(&Value::Int(1)));
        assert_eq!(Pointer::parse(&"/".repeat(200_000)), Err(PointerError::TooDeep(200_000)));
        assert_eq!(Pointer::parse(&"/a".repeat(MAX_DEPTH + 1)), Err(PointerError::TooDeep(MAX_DEPTH + 1)));
    }

    proptest! {
        #[test]
        fn text_and_tokens_agree(tokens in prop::collection::vec("[a~/0é-]{0,4}", 0..5)) {
            let pointer: Pointer = tokens.into_iter().collect();
            prop_assert_eq!(Pointer::parse(&pointer.to_string()), Ok(pointer));
        }

        #[test]
        fn never_panics(text in any::<String>()) {
            if let Ok(pointer) = Pointer::parse(&text) {
                prop_assert_eq!(pointer.to_string(), text);
            }
        }
    }
}
