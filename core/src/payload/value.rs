//! The value model shared by all payload formats.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::hash::{Hash, Hasher};

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// The deepest nesting of arrays and objects that structured formats decode and encode.
///
/// It is the limit of `serde_json`. With the same limit for all formats every decoded value can be encoded.
pub const MAX_DEPTH: usize = 127;

/// The members of an object. Their order has no meaning; iteration is by key, bytewise.
pub type Object = BTreeMap<String, Value>;

/// One payload, or a part of one.
///
/// Equality is semantic: numbers compare by mathematical value (`1` equals `1.0`), members in any order, arrays in
/// order, bytes bytewise.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// An explicit null.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed 64-bit integer.
    Int(i64),
    /// An integer from 2^63 to 2^64 - 1. Literals of other integers beyond `i64` cannot be decoded.
    Unsigned(u64),
    /// A finite float.
    Float(f64),
    /// Text.
    String(String),
    /// Ordered values.
    Array(Vec<Value>),
    /// Named values.
    Object(Object),
    /// Binary content; only binary payloads hold it.
    Bytes(Vec<u8>),
}

impl Value {
    /// Returns the member `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// Returns the members, if this is an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the items, if this is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the items of an array, or the members of an object by key. Other values have no children.
    pub fn children(&self) -> impl Iterator<Item = &Value> {
        let members = self.as_object().into_iter().flat_map(Object::values);
        self.as_array().unwrap_or_default().iter().chain(members)
    }

    /// Returns the value with `change` applied to each of its children.
    #[must_use]
    pub fn map_children(self, mut change: impl FnMut(Value) -> Value) -> Value {
        let Ok(changed) = self.try_map_children(|child| Ok::<_, Infallible>(change(child)));
        changed
    }

    /// Like [`Value::map_children`]. Returns the first error of `change`.
    pub fn try_map_children<E>(self, mut change: impl FnMut(Value) -> Result<Value, E>) -> Result<Value, E> {
        Ok(match self {
            Self::Array(items) => Self::Array(items.into_iter().map(change).collect::<Result<_, E>>()?),
            Self::Object(members) => {
                let members = members.into_iter().map(|(name, member)| Ok((name, change(member)?)));
                Self::Object(members.collect::<Result<_, E>>()?)
            }
            scalar => scalar,
        })
    }

    /// Whether this is [`Value::Null`].
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Returns the type with its article, for messages that must not show the value.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Unsigned(_) => "an integer",
            Self::Float(_) => "a float",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
            Self::Bytes(_) => "bytes",
        }
    }

    /// Returns a scalar as text for paths and queries: strings verbatim, integers decimal, floats in the shortest
    /// form without exponent, booleans `true`/`false`. `None` for other values.
    pub fn scalar_text(&self) -> Option<String> {
        match self {
            Self::Bool(value) => Some(value.to_string()),
            Self::Int(value) => Some(value.to_string()),
            Self::Unsigned(value) => Some(value.to_string()),
            Self::Float(value) => {
                Some(exact_integer(*value).map_or_else(|| value.to_string(), |integer| integer.to_string()))
            }
            Self::String(value) => Some(value.clone()),
            Self::Null | Self::Array(_) | Self::Object(_) | Self::Bytes(_) => None,
        }
    }
}

/// Returns the integer that equals `float`, exactly also beyond 2^53; `None` if it has a fraction or is outside of
/// `i64`.
#[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
pub(super) fn exact_integer(float: f64) -> Option<i64> {
    // 2^63 is not an i64. Every float in the range without a fraction converts exactly.
    let in_range = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float);
    (in_range && float.trunc() == float).then_some(float as i64)
}

/// Returns the integer from 2^63 to 2^64 - 1 that equals `float`. Floats of this size have no fraction.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn exact_unsigned(float: f64) -> Option<u64> {
    (9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0).contains(&float).then_some(float as u64)
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Unsigned(a), Self::Unsigned(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a == b,
            (Self::Int(a), Self::Float(b)) | (Self::Float(b), Self::Int(a)) => exact_integer(*b) == Some(*a),
            (Self::Unsigned(a), Self::Float(b)) | (Self::Float(b), Self::Unsigned(a)) => {
                exact_unsigned(*b) == Some(*a)
            }
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            _ => false,
        }
    }
}

/// Floats are finite, so each value equals itself.
impl Eq for Value {}

impl Hash for Value {
    /// Equal values have equal hashes.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Null => 0_u8.hash(state),
            Self::Bool(value) => (1_u8, value).hash(state),
            Self::Int(value) => (2_u8, value).hash(state),
            Self::Unsigned(value) => (8_u8, value).hash(state),
            Self::Float(value) => match (exact_integer(*value), exact_unsigned(*value)) {
                (Some(integer), _) => Self::Int(integer).hash(state),
                (None, Some(integer)) => Self::Unsigned(integer).hash(state),
                (None, None) => (3_u8, value.to_bits()).hash(state),
            },
            Self::String(value) => (4_u8, value).hash(state),
            Self::Array(items) => (5_u8, items).hash(state),
            Self::Object(members) => (6_u8, members).hash(state),
            Self::Bytes(bytes) => (7_u8, bytes).hash(state),
        }
    }
}

impl Serialize for Value {
    /// Serialises bytes as an array of numbers. Formats with binary values use the payload codecs.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            // A float without a fraction is written as an integer, so `1.0` becomes `1`.
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

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Unsigned(number), Self::Int)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

    use rstest::rstest;

    use super::*;

    const TWO_POW_53: i64 = 1 << 53;

    #[rstest]
    #[case(Value::Int(1), Value::Float(1.0), true)]
    #[case(Value::Int(0), Value::Float(-0.0), true)]
    #[case(Value::Int(1), Value::Float(1.5), false)]
    #[case(Value::Int(TWO_POW_53 + 1), Value::Float(9_007_199_254_740_992.0), false)]
    #[case(Value::Int(i64::MIN), Value::Float(-9_223_372_036_854_775_808.0), true)]
    #[case(Value::Int(i64::MAX), Value::Float(9_223_372_036_854_775_808.0), false)]
    #[case(Value::Unsigned(1 << 63), Value::Float(9_223_372_036_854_775_808.0), true)]
    #[case(Value::Unsigned((1 << 63) + 1), Value::Float(9_223_372_036_854_775_808.0), false)]
    #[case(Value::Unsigned(u64::MAX), Value::Float(18_446_744_073_709_551_616.0), false)]
    #[case(Value::Unsigned(u64::MAX), Value::Unsigned(u64::MAX), true)]
    #[case(Value::Unsigned(u64::MAX), Value::Int(-1), false)]
    #[case(Value::from(1_u64), Value::Int(1), true)]
    #[case(Value::Int(1), Value::from("1"), false)]
    #[case(Value::Int(1), Value::Bool(true), false)]
    #[case(Value::Null, Value::from(""), false)]
    #[case(Value::from("a"), Value::Bytes(b"a".to_vec()), false)]
    #[case(Value::Array(vec![Value::Int(1)]), Value::Array(vec![Value::Float(1.0)]), true)]
    fn equality(#[case] a: Value, #[case] b: Value, #[case] equal: bool) {
        assert_eq!(a == b, equal);
        assert_eq!(b == a, equal);
        let hash = |value: &Value| BuildHasherDefault::<DefaultHasher>::default().hash_one(value);
        assert!(!equal || hash(&a) == hash(&b));
    }

    #[rstest]
    #[case(Value::Bool(false), Some("false"))]
    #[case(Value::Int(-7), Some("-7"))]
    #[case(Value::Unsigned(u64::MAX), Some("18446744073709551615"))]
    #[case(Value::Float(2.0), Some("2"))]
    #[case(Value::Float(-0.0), Some("0"))]
    #[case(Value::Float(1e21), Some("1000000000000000000000"))]
    #[case(Value::Float(0.1), Some("0.1"))]
    #[case(Value::from(" a "), Some(" a "))]
    #[case(Value::Null, None)]
    #[case(Value::Array(vec![]), None)]
    #[case(Value::Bytes(vec![]), None)]
    fn text_of_scalars(#[case] value: Value, #[case] text: Option<&str>) {
        assert_eq!(value.scalar_text().as_deref(), text);
    }
}
