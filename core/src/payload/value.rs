//! The value model shared by all payload formats.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// Members of an object. Order carries no meaning; iteration is by key, bytewise.
pub type Object = BTreeMap<String, Value>;

/// One payload, or a part of one.
///
/// Equality is by meaning: numbers compare by mathematical value (`1` equals `1.0`), members in any
/// order, arrays in order, bytes bytewise.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Absence stated explicitly.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer within 64 signed bits; literals outside do not decode.
    Int(i64),
    /// A finite float.
    Float(f64),
    /// Text.
    String(String),
    /// Ordered values.
    Array(Vec<Value>),
    /// Named values.
    Object(Object),
    /// Content that is not text; only binary payloads hold it.
    Bytes(Vec<u8>),
}

impl Value {
    /// The member `key` of an object, if this is one and has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether this is [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// A scalar as the text that stands for it in paths and queries: strings verbatim, integers decimal,
    /// floats shortest without exponent, booleans `true`/`false`. `None` for everything else.
    pub fn scalar_text(&self) -> Option<String> {
        match self {
            Self::Bool(value) => Some(value.to_string()),
            Self::Int(value) => Some(value.to_string()),
            Self::Float(value) => Some(value.to_string()),
            Self::String(value) => Some(value.clone()),
            Self::Null | Self::Array(_) | Self::Object(_) | Self::Bytes(_) => None,
        }
    }
}

/// Whether an integer and a float are the same number; exact, also beyond 2^53.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
fn same_number(int: i64, float: f64) -> bool {
    // 2^63 itself is not an i64, and every float in range with no fraction converts exactly.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float)
        && float.trunc() == float
        && float as i64 == int
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Int(a), Self::Float(b)) | (Self::Float(b), Self::Int(a)) => same_number(*a, *b),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

impl Serialize for Value {
    /// Bytes serialise as an array of numbers; formats that know better use the payload codecs.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::String(value) => serializer.serialize_str(value),
            Self::Bytes(value) => serializer.serialize_bytes(value),
            Self::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}
