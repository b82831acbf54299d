//! The result types of a parser.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::payload::{Position, Value};

/// A parsed scalar.
pub struct Scalar<'t> {
    /// Its text without quotes and escapes.
    pub text: &'t str,
    /// Its value, or the reason why it is outside of the value model.
    pub value: Result<Value, Cow<'static, str>>,
    /// Whether a tag in the document determines its type.
    pub tagged: bool,
}

/// A type that a document can be composed into.
pub trait Compose: Clone {
    /// Returns a scalar; `Err` is the reason why it is not allowed.
    fn scalar(scalar: Scalar<'_>, at: Position) -> Result<Self, Cow<'static, str>>;
    /// Returns a list that begins `at`.
    fn sequence(items: Vec<Self>, at: Position) -> Self;
    /// Returns a mapping that begins `at`.
    fn mapping(members: BTreeMap<String, Self>, at: Position) -> Self;
    /// Returns a member with its key, or the reason why the key is not allowed.
    fn member(key: Self, value: Self) -> Result<(String, Self), Cow<'static, str>>;
    /// Returns the items of a list, or the node itself.
    fn into_items(self) -> Result<Vec<Self>, Self>;
    /// Returns the text of a key, if it is a text.
    fn key_text(&self) -> Option<&str>;
    /// Marks the omitted value of a key in a mapping within braces, as in `{key}` and `{key:}`.
    #[must_use]
    fn left_out(self) -> Self {
        self
    }
    /// Returns the members of a mapping.
    fn into_members(self) -> Option<BTreeMap<String, Self>>;
}

impl Compose for Value {
    fn scalar(scalar: Scalar<'_>, _: Position) -> Result<Self, Cow<'static, str>> {
        scalar.value
    }

    fn sequence(items: Vec<Self>, _: Position) -> Self {
        Self::Array(items)
    }

    fn mapping(members: BTreeMap<String, Self>, _: Position) -> Self {
        Self::Object(members)
    }

    fn member(key: Self, value: Self) -> Result<(String, Self), Cow<'static, str>> {
        match key {
            Self::String(key) => Ok((key, value)),
            other => Err(no_key(other.kind())),
        }
    }

    fn into_items(self) -> Result<Vec<Self>, Self> {
        match self {
            Self::Array(items) => Ok(items),
            other => Err(other),
        }
    }

    fn key_text(&self) -> Option<&str> {
        self.as_str()
    }

    fn into_members(self) -> Option<BTreeMap<String, Self>> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }
}

/// Returns the error for a duplicate key; `None` for a key that may be part of a secret.
pub fn repeated(key: Option<&str>) -> String {
    match key {
        Some(key) => format!("duplicate key \"{key}\"; keep one of them"),
        None => "duplicate key, not shown because it may be part of a secret; put text with braces in quotes, or keep \
                 one of the keys"
            .to_owned(),
    }
}

/// Returns the error for a key that is of this kind.
pub fn no_key(kind: &str) -> Cow<'static, str> {
    format!("{kind} cannot be a key; put it in quotes").into()
}
