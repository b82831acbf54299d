//! What a parser composes a document into.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::payload::{Position, Value};

/// What a parser knows about a scalar.
pub struct Scalar<'t> {
    /// Its text without quotes and escapes.
    pub text: &'t str,
    /// What it means, or why it means nothing in the value model.
    pub value: Result<Value, Cow<'static, str>>,
    /// Whether the document says what it means by a tag.
    pub tagged: bool,
}

/// What a document can be composed into.
pub trait Compose: Clone {
    /// A scalar; `Err` says why it cannot be one.
    fn scalar(scalar: Scalar<'_>, at: Position) -> Result<Self, Cow<'static, str>>;
    /// A list that begins `at`.
    fn sequence(items: Vec<Self>, at: Position) -> Self;
    /// A mapping that begins `at`.
    fn mapping(members: BTreeMap<String, Self>, at: Position) -> Self;
    /// A member under its key, or why the key cannot be one.
    fn member(key: Self, value: Self) -> Result<(String, Self), Cow<'static, str>>;
    /// The items of a list, or the node itself.
    fn into_items(self) -> Result<Vec<Self>, Self>;
    /// What a key says, if it is a text.
    fn key_text(&self) -> Option<&str>;
    /// A member's value that was left out, colon and all or not, in a mapping within braces.
    #[must_use]
    fn left_out(self) -> Self {
        self
    }
    /// The members of a mapping.
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

/// What is wrong with a key that is there twice. `None` is for one that may be part of a secret.
pub fn repeated(key: Option<&str>) -> String {
    match key {
        Some(key) => format!("the key \"{key}\" is there twice; keep one of them"),
        None => "the key here, in what may be a secret, is there twice; put a text that holds braces in quotes, or \
                 keep one of the keys"
            .to_owned(),
    }
}

/// Why a value of this kind is no key.
pub fn no_key(kind: &str) -> Cow<'static, str> {
    format!("{kind} cannot be a key; put it in quotes").into()
}
