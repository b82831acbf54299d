//! The value model shared by all payload formats.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use super::pointer::Pointer;
use super::{PayloadError, PayloadType};

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

    /// What kind of value this is, with its article, for messages that must not show the value itself.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
            Self::Bytes(_) => "bytes",
        }
    }

    /// Converts a parsed JSON value. Integers outside of `i64` are [`PayloadError::WideInteger`].
    pub fn from_json(json: &serde_json::Value) -> Result<Self, PayloadError> {
        use serde_json::Value as Json;
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::String(text) => Self::String(text.clone()),
            Json::Number(number) => match (number.as_i64(), number.is_u64(), number.as_f64()) {
                (Some(integer), _, _) => Self::Int(integer),
                (None, false, Some(float)) => Self::Float(float),
                _ => return Err(PayloadError::WideInteger { at: Pointer::default() }),
            },
            Json::Array(items) => {
                let convert = |(index, item): (usize, &Json)| {
                    Self::from_json(item).map_err(|error| error.below(&index.to_string()))
                };
                Self::Array(items.iter().enumerate().map(convert).collect::<Result<_, _>>()?)
            }
            Json::Object(members) => {
                let convert = |(key, member): (&String, &Json)| match Self::from_json(member) {
                    Ok(member) => Ok((key.clone(), member)),
                    Err(error) => Err(error.below(key)),
                };
                Self::Object(members.iter().map(convert).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Converts to a JSON value. Bytes and non-finite floats are [`PayloadError::Encode`].
    pub fn to_json(&self) -> Result<serde_json::Value, PayloadError> {
        let refuse = |reason: &'static str| Err(PayloadError::encode(PayloadType::Json, reason));
        Ok(match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Float(value) => match (exact_integer(*value), serde_json::Number::from_f64(*value)) {
                (Some(integer), _) => integer.into(),
                (None, Some(number)) => number.into(),
                (None, None) => return refuse("a number that is not finite as a 64-bit float"),
            },
            Self::String(text) => text.clone().into(),
            Self::Bytes(_) => return refuse("bytes cannot be part of a structured payload"),
            Self::Array(items) => {
                let convert = |(index, item): (usize, &Self)| {
                    item.to_json().map_err(|error| error.below(&index.to_string()))
                };
                items.iter().enumerate().map(convert).collect::<Result<Vec<_>, _>>()?.into()
            }
            Self::Object(members) => {
                let convert = |(key, member): (&String, &Self)| match member.to_json() {
                    Ok(member) => Ok((key.clone(), member)),
                    Err(error) => Err(error.below(key)),
                };
                serde_json::Value::Object(members.iter().map(convert).collect::<Result<_, _>>()?)
            }
        })
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

/// The integer that a float is, exact also beyond 2^53; `None` with a fraction or outside of `i64`.
#[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
pub(super) fn exact_integer(float: f64) -> Option<i64> {
    // 2^63 itself is not an i64, and every float in range with no fraction converts exactly.
    let in_range = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    (in_range && float.trunc() == float).then_some(float as i64)
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Int(a), Self::Float(b)) | (Self::Float(b), Self::Int(a)) => exact_integer(*b) == Some(*a),
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
            // A float without a fraction is written as the integer it is, so `1.0` prints as `1`.
            Self::Float(value) => match exact_integer(*value) {
                Some(integer) => serializer.serialize_i64(integer),
                None => serializer.serialize_f64(*value),
            },
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
