//! Documents with the place of each part, for files whose errors show a line number.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::compose::{Compose, Scalar, no_key};
use crate::payload::{Position, Value};

/// A part of a document and its place.
#[derive(Clone, Debug)]
pub struct Located {
    /// The place where it begins. A member of a mapping begins with its key.
    pub at: Position,
    /// The content.
    pub part: Part,
    /// The type of its key, if the key is not a string and only its text is stored.
    odd_key: Option<&'static str>,
    /// Whether its key has no value in a mapping within braces, which may be a piece of an unquoted text.
    alone: bool,
}

/// The content of a [`Located`].
#[derive(Clone, Debug)]
pub enum Part {
    /// A scalar.
    Scalar {
        /// The text to use if a string is expected; `None` if the format distinguishes strings by quotes and this is
        /// another scalar.
        text: Option<String>,
        /// The value to use if any value is expected, or the reason why it is outside of the value model.
        value: Result<Value, Cow<'static, str>>,
    },
    /// A list.
    Sequence(Vec<Located>),
    /// A mapping.
    Mapping(BTreeMap<String, Located>),
}

impl Located {
    pub(super) fn new(part: Part, at: Position) -> Self {
        Self { at, part, odd_key: None, alone: false }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(&self.part, Part::Scalar { value: Ok(Value::Null), .. })
    }

    /// Whether this is the omitted value in `{key}`, which YAML allows. The author may have meant the text `{key}`,
    /// or `a,key` in the member before it.
    pub fn is_left_out(&self) -> bool {
        self.alone
    }

    /// Returns the type of the value, with its article.
    pub fn kind(&self) -> &'static str {
        match &self.part {
            Part::Scalar { value: Ok(value), .. } => value.kind(),
            Part::Scalar { value: Err(_), .. } => "a number",
            Part::Sequence(_) => "an array",
            Part::Mapping(_) => "an object",
        }
    }

    /// Returns the value; `Err` is the place and the reason if a part is outside of the value model.
    pub fn into_value(self) -> Result<Value, (Position, Cow<'static, str>)> {
        match self.part {
            Part::Scalar { value, .. } => value.map_err(|reason| (self.at, reason)),
            Part::Sequence(items) => {
                Ok(Value::Array(items.into_iter().map(Self::into_value).collect::<Result<_, _>>()?))
            }
            Part::Mapping(members) => {
                let members = members.into_iter().map(|(key, member)| match member.odd_key {
                    Some(kind) => Err((member.at, no_key(kind))),
                    None => Ok((key, member.into_value()?)),
                });
                Ok(Value::Object(members.collect::<Result<_, _>>()?))
            }
        }
    }
}

impl Compose for Located {
    /// An untagged scalar outside of the value model is an error only if a value is expected: a string may have any
    /// digits.
    fn scalar(scalar: Scalar<'_>, at: Position) -> Result<Self, Cow<'static, str>> {
        let value = if scalar.tagged { Ok(scalar.value?) } else { scalar.value };
        Ok(Self::new(Part::Scalar { text: Some(scalar.text.to_owned()), value }, at))
    }

    fn sequence(items: Vec<Self>, at: Position) -> Self {
        Self::new(Part::Sequence(items), at)
    }

    fn mapping(members: BTreeMap<String, Self>, at: Position) -> Self {
        Self::new(Part::Mapping(members), at)
    }

    fn member(key: Self, value: Self) -> Result<(String, Self), Cow<'static, str>> {
        let kind = key.kind();
        match key.part {
            Part::Scalar { text: Some(text), value: meaning } if !matches!(meaning, Ok(Value::Null)) => {
                let odd_key = (!matches!(meaning, Ok(Value::String(_)))).then_some(kind);
                Ok((text, Self { at: key.at, odd_key, ..value }))
            }
            _ => Err(no_key(kind)),
        }
    }

    fn into_items(self) -> Result<Vec<Self>, Self> {
        match self.part {
            Part::Sequence(items) => Ok(items),
            _ => Err(self),
        }
    }

    fn key_text(&self) -> Option<&str> {
        match &self.part {
            Part::Scalar { text, .. } => text.as_deref(),
            _ => None,
        }
    }

    fn left_out(self) -> Self {
        Self { alone: true, ..self }
    }

    fn into_members(self) -> Option<BTreeMap<String, Self>> {
        match self.part {
            Part::Mapping(members) => Some(members),
            _ => None,
        }
    }
}
