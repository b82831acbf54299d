//! Types and functions with which `serde` reads the forms of documents that it does not know.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::payload::Value;
pub use crate::payload::codec::AnyValue;

/// The name of a [`TextOr`] for the deserializer, which calls `visit_str` for a scalar.
pub(super) const TEXT_OR: &str = "$textOr";
/// The name of [`one_or_many`] for the deserializer, which calls `visit_seq` also for a single item.
pub(super) const ONE_OR_MANY: &str = "$oneOrMany";

/// A string, or another type in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextOr<T> {
    /// The text of a scalar.
    Text(String),
    /// A list or an object.
    Other(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TEXT_OR, Form(PhantomData::<Self>))
    }
}

/// Reads a value of the payload model.
pub fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    AnyValue::deserialize(deserializer).map(|value| Some(value.0))
}

/// Reads a text with `parse`, whose error is the fault.
pub fn parsed<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(Error::custom)
}

/// Reads a text; a blank one is absent.
pub fn unless_blank<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() { Ok(None) } else { text.parse().map(Some).map_err(Error::custom) }
}

/// Reads a list, or one item in place of it.
pub fn one_or_many<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_newtype_struct(ONE_OR_MANY, Form(PhantomData::<Vec<T>>)).map(Some)
}

/// Reads an object with arbitrary keys. An object with only null members is absent, and not empty.
pub fn members<'de, D, T>(deserializer: D) -> Result<Option<BTreeMap<String, T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(Form(PhantomData::<BTreeMap<String, T>>))
}

/// A visitor for values in one of several forms.
struct Form<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Form<TextOr<T>> {
    type Value = TextOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an object")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(text.to_owned()))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, other: D) -> Result<TextOr<T>, D::Error> {
        T::deserialize(other).map(TextOr::Other)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Form<Vec<T>> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut written: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = written.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Form<BTreeMap<String, T>> {
    type Value = Option<BTreeMap<String, T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut written: A) -> Result<Self::Value, A::Error> {
        // Null members are counted, but not visited.
        let count = written.size_hint();
        let mut members = BTreeMap::new();
        while let Some((key, member)) = written.next_entry()? {
            members.insert(key, member);
        }
        Ok((!members.is_empty() || count == Some(0)).then_some(members))
    }
}
