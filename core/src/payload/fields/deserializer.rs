//! Reads a [`Field`] as a type that implements `Deserialize`.
//!
//! All types get the rules of documents: the object of a struct has no other keys than the fields of the struct, null
//! means absent, and in YAML a string may be any scalar. An error has the place of the innermost field that it is about.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::vec::IntoIter;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::types::{ONE_OR_MANY, TEXT_OR};
use super::{Field, FieldError, failure};
use crate::payload::{Part, Value};

/// Checks the object of a struct before its fields are read: with [`Field::check_keys`] its keys, then the rules that
/// concern several of its fields. `section` is the name of the type, `known` are the keys of its fields.
pub type Rules = fn(section: &str, object: &Field, known: &'static [&'static str]) -> Result<(), FieldError>;

/// Whether an optional field has no value, in addition to one that is null.
pub type Unset = fn(&Field) -> bool;

/// How the fields of a document are read.
#[derive(Clone, Copy)]
struct Reading {
    rules: Rules,
    unset: Unset,
}

/// A field, and how the fields in it are read.
struct Source {
    field: Field,
    reading: Reading,
}

/// An error of `serde`. It is created without its place, which the field that is being read adds.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Placed(FieldError),
    #[error("{0}")]
    Unplaced(Cow<'static, str>),
}

impl Field {
    /// Reads the field as a `T`. `rules` apply to all structs in it.
    pub fn decode<'de, T: Deserialize<'de>>(self, rules: Rules) -> Result<T, FieldError> {
        self.decode_unless(Field::is_null, rules)
    }

    /// [`Self::decode`]; an optional field for which `unset` returns true is absent.
    pub fn decode_unless<'de, T: Deserialize<'de>>(
        self,
        unset: Unset,
        rules: Rules,
    ) -> Result<T, FieldError> {
        Source { field: self, reading: Reading { rules, unset } }.read(PhantomData)
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self::Unplaced(reason.to_string().into())
    }

    /// Does not show the value, which may be a secret.
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn missing_field(key: &'static str) -> Self {
        Self::custom(format_args!("\"{key}\" is missing"))
    }
}

impl Source {
    /// Reads the field, and adds its place to an error that has none.
    fn read<'de, S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, FieldError> {
        let (at, name) = (self.field.node.at, self.field.name.clone());
        seed.deserialize(self).map_err(|fault| match fault {
            Fault::Placed(error) => error,
            Fault::Unplaced(reason) => failure(at, &name, reason),
        })
    }

    fn expected(&self, wanted: &str) -> Fault {
        Fault::Unplaced(format!("expected {wanted}, found {}", self.field.node.kind()).into())
    }

    /// Returns the text of a string; in YAML the source text of any scalar.
    fn text(&self) -> Result<&str, Fault> {
        match &self.field.node.part {
            Part::Scalar { text: Some(text), .. } if !self.field.is_null() => Ok(text),
            _ => Err(self.expected("a string")),
        }
    }

    /// Returns the members of an object without null members.
    fn members(self) -> Result<Members, Fault> {
        let Part::Mapping(members) = &self.field.node.part else { return Err(self.expected("an object")) };
        let written = members.len();
        Ok(Members { rest: self.field.members().into_iter(), reading: self.reading, value: None, written })
    }
}

impl<'de> Deserializer<'de> for Source {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Field { name, node } = self.field;
        let value = node.into_value().map_err(|(at, reason)| Fault::Placed(failure(at, &name, reason)))?;
        let json = value.to_json().map_err(de::Error::custom)?;
        json.deserialize_any(visitor).map_err(de::Error::custom)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.field.node.part {
            Part::Scalar { value: Ok(Value::Bool(value)), .. } => visitor.visit_bool(*value),
            Part::Scalar { value: Ok(Value::String(word)), .. } => match yaml_1_1(word) {
                Some(value) => visitor.visit_bool(value),
                None => Err(self.expected("true or false")),
            },
            _ => Err(self.expected("true or false")),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.field.node.part {
            Part::Scalar { value: Ok(Value::Int(value)), .. } => visitor.visit_i64(value),
            _ => Err(self.expected("an integer")),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers beyond 2^53 mean no more than their neighbours")]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.field.node.part {
            Part::Scalar { value: Ok(Value::Int(value)), .. } => visitor.visit_f64(value as f64),
            Part::Scalar { value: Ok(Value::Float(value)), .. } => visitor.visit_f64(value),
            _ => Err(self.expected("a number")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.field.is_null() || (self.reading.unset)(&self.field) {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match name {
            TEXT_OR if self.field.is_scalar() => self.deserialize_string(visitor),
            ONE_OR_MANY if self.field.is_list() => self.deserialize_seq(visitor),
            ONE_OR_MANY => {
                let Self { field, reading } = self;
                visitor.visit_seq(Items { rest: vec![field].into_iter(), reading })
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Self { field, reading } = self;
        let items = field.items().map_err(Fault::Placed)?;
        visitor.visit_seq(Items { rest: items.into_iter(), reading })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self.members()?)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if !matches!(self.field.node.part, Part::Mapping(_)) {
            return Err(self.expected("an object"));
        }
        (self.reading.rules)(name, &self.field, known).map_err(Fault::Placed)?;
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let text = self.text()?;
        let Some(word) = words.iter().find(|word| **word == text.trim()) else {
            let known = words.join(" or ");
            return Err(de::Error::custom(format_args!("\"{text}\" is not supported; use {known}")));
        };
        visitor.visit_enum(StrDeserializer::new(word))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

/// Returns the boolean that YAML 1.1 understands by a word. Version 0.3.8 accepts these words for booleans.
fn yaml_1_1(word: &str) -> Option<bool> {
    match word {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => Some(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => Some(false),
        _ => None,
    }
}

/// The items of a list.
struct Items {
    rest: IntoIter<Field>,
    reading: Reading,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        let item = self.rest.next().map(|field| Source { field, reading: self.reading });
        item.map(|item| item.read(seed).map_err(Fault::Placed)).transpose()
    }
}

/// The members of an object.
struct Members {
    rest: IntoIter<(String, Field)>,
    reading: Reading,
    value: Option<Field>,
    /// The number of members, also of those that are null.
    written: usize,
}

impl<'de> MapAccess<'de> for Members {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Fault> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(StrDeserializer::new(&key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let value = self.value.take().ok_or(Fault::Unplaced("a value was read before its key".into()))?;
        Source { field: value, reading: self.reading }.read(seed).map_err(Fault::Placed)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.written)
    }
}
