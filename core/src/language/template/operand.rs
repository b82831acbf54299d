//! Values while rendering. They are borrowed from the payload, the scope or the template if possible.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use super::error::Fault;
use crate::payload::{Object, Value};

/// The bytes of an operand that one step reads.
const BYTES_PER_STEP: usize = 64;

/// An operand or result of a function.
#[derive(Clone, Debug)]
pub(super) enum Operand<'r> {
    /// A value that does not exist.
    Missing,
    /// The scope, `.` and `$`.
    Root,
    /// The payload together with the derived fields.
    Payload,
    Value(&'r Value),
    /// A part of an array.
    Items(&'r [Value]),
    /// Text of the scope.
    Field(&'r str),
    /// Text that a function returned.
    Text(Rc<str>),
    Int(i64),
    Bool(bool),
}

/// The value of an operand, regardless of its owner.
pub(super) enum View<'v> {
    /// Missing or null.
    Nothing,
    Bool(bool),
    /// A signed or unsigned integer of 64 bits.
    Int(i128),
    Float(f64),
    Text(&'v str),
    Bytes(&'v [u8]),
    Items(&'v [Value]),
    Members(&'v Object),
    /// The root or the payload with derived fields.
    Scope,
}

impl Operand<'_> {
    pub(super) fn view(&self) -> View<'_> {
        match self {
            Self::Missing | Self::Value(Value::Null) => View::Nothing,
            Self::Root | Self::Payload => View::Scope,
            Self::Bool(value) | Self::Value(Value::Bool(value)) => View::Bool(*value),
            Self::Int(value) | Self::Value(Value::Int(value)) => View::Int((*value).into()),
            Self::Value(Value::Unsigned(value)) => View::Int((*value).into()),
            Self::Value(Value::Float(value)) => View::Float(*value),
            Self::Field(text) => View::Text(text),
            Self::Text(text) => View::Text(text),
            Self::Value(Value::String(text)) => View::Text(text),
            Self::Value(Value::Bytes(bytes)) => View::Bytes(bytes),
            Self::Items(items) => View::Items(items),
            Self::Value(Value::Array(items)) => View::Items(items),
            Self::Value(Value::Object(members)) => View::Members(members),
        }
    }

    /// Returns the steps that reading the value takes; those of arrays and objects count only if it `compares` them.
    pub(super) fn steps(&self, compares: bool) -> usize {
        let bytes = match self.view() {
            View::Text(text) => text.len(),
            View::Bytes(bytes) => bytes.len(),
            View::Items(items) if compares => items.iter().map(Value::weight).sum(),
            View::Members(members) if compares => members.values().map(Value::weight).sum(),
            _ => 0,
        };
        1 + bytes / BYTES_PER_STEP
    }

    /// Returns the type of the value, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self.view() {
            View::Nothing if matches!(self, Self::Missing) => "missing",
            View::Nothing => "null",
            View::Bool(_) => "a boolean",
            View::Int(_) => "an integer",
            View::Float(_) => "a float",
            View::Text(_) => "a string",
            View::Bytes(_) => "bytes",
            View::Items(_) => "an array",
            View::Members(_) | View::Scope => "an object",
        }
    }

    /// Returns the text of a scalar, as defined by [`Value::scalar_text`].
    pub(super) fn text(&self) -> Result<Cow<'_, str>, Fault> {
        match self.view() {
            View::Text(text) => Ok(Cow::Borrowed(text)),
            View::Bool(value) => Ok(Cow::Borrowed(if value { "true" } else { "false" })),
            View::Int(value) => Ok(Cow::Owned(value.to_string())),
            View::Float(value) => Ok(Cow::Owned(Value::Float(value).scalar_text().unwrap_or_default())),
            View::Nothing if matches!(self, Self::Missing) => Err(Fault::Missing),
            View::Nothing | View::Bytes(_) | View::Items(_) | View::Members(_) | View::Scope => {
                Err(Fault::NotScalar(self.kind()))
            }
        }
    }

    /// Returns the value as an integer, including a float without a fraction.
    pub(super) fn integer(&self) -> Option<i64> {
        match self.view() {
            View::Int(value) => i64::try_from(value).ok(),
            View::Float(value) => exact_integer(value)?.try_into().ok(),
            _ => None,
        }
    }

    /// Returns whether two operands are equal. A missing or null value equals no value; other types must be the same.
    pub(super) fn equals(&self, other: &Self) -> Result<bool, Fault> {
        Ok(match (self.view(), other.view()) {
            (View::Nothing, _) | (_, View::Nothing) => false,
            (View::Bool(a), View::Bool(b)) => a == b,
            (View::Text(a), View::Text(b)) => a == b,
            (View::Bytes(a), View::Bytes(b)) => a == b,
            (View::Items(a), View::Items(b)) => a == b,
            (View::Members(a), View::Members(b)) => a == b,
            _ => self.compare(other)? == Ordering::Equal,
        })
    }

    /// Compares two numbers, or two texts by bytes.
    pub(super) fn compare(&self, other: &Self) -> Result<Ordering, Fault> {
        match (self.view(), other.view()) {
            (View::Text(a), View::Text(b)) => Some(a.cmp(b)),
            (View::Int(a), View::Int(b)) => Some(a.cmp(&b)),
            (View::Float(a), View::Float(b)) => a.partial_cmp(&b),
            (View::Int(a), View::Float(b)) => compare_mixed(a, b),
            (View::Float(a), View::Int(b)) => compare_mixed(b, a).map(Ordering::reverse),
            _ => None,
        }
        .ok_or_else(|| self.incomparable(other))
    }

    fn incomparable(&self, other: &Self) -> Fault {
        Fault::evaluate(format!("{} and {} cannot be compared", self.kind(), other.kind()))
    }
}

fn exact_integer(float: f64) -> Option<i128> {
    // The text of a float has no exponent, and no fraction if the value has none.
    Value::Float(float).scalar_text()?.parse().ok()
}

/// Compares an integer and a float by mathematical value.
#[allow(clippy::cast_precision_loss)]
fn compare_mixed(integer: i128, float: f64) -> Option<Ordering> {
    match exact_integer(float) {
        Some(other) => Some(integer.cmp(&other)),
        // A float with a fraction is below 2^52, and a float outside of i128 is beyond all integers, so the loss of
        // precision of the conversion does not matter.
        None => (integer as f64).partial_cmp(&float),
    }
}
