//! Values while rendering: borrowed from the payload, the scope or the template wherever possible.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use super::error::Fault;
use crate::payload::{Object, Value};

/// An operand or result of a function.
#[derive(Clone, Debug)]
pub(super) enum Operand<'r> {
    /// Nothing of that name.
    Missing,
    /// The scope itself, `.` and `$`.
    Root,
    /// The payload together with the derived fields.
    Payload,
    Value(&'r Value),
    /// A part of an array.
    Items(&'r [Value]),
    /// Text of the scope.
    Field(&'r str),
    /// Text that a function made.
    Text(Rc<str>),
    Int(i64),
    Bool(bool),
}

/// What an operand is, whoever owns it.
pub(super) enum View<'v> {
    /// Missing or null.
    Nothing,
    Bool(bool),
    Int(i64),
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
            Self::Int(value) | Self::Value(Value::Int(value)) => View::Int(*value),
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

    /// What it is, with its article.
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

    /// The text of a scalar, as [`Value::scalar_text`] defines it.
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

    /// An integer, also one that is written as a float.
    pub(super) fn integer(&self) -> Option<i64> {
        match self.view() {
            View::Int(value) => Some(value),
            View::Float(value) => exact_integer(value),
            _ => None,
        }
    }

    /// Whether two operands are equal. Nothing equals nothing; other kinds must agree.
    pub(super) fn equals(&self, other: &Self) -> Result<bool, Fault> {
        Ok(match (self.view(), other.view()) {
            (View::Nothing, _) | (_, View::Nothing) => false,
            (View::Bool(a), View::Bool(b)) => a == b,
            (View::Text(a), View::Text(b)) => a == b,
            (View::Bytes(a), View::Bytes(b)) => a == b,
            (View::Items(a), View::Items(b)) => a == b,
            (View::Members(a), View::Members(b)) => a == b,
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => a == b,
                _ => return Err(self.incomparable(other)),
            },
        })
    }

    /// The order of two numbers or two texts; texts by bytes.
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

impl View<'_> {
    /// A number as a value, whose equality is by mathematical value.
    fn number(&self) -> Option<Value> {
        match self {
            Self::Int(value) => Some(Value::Int(*value)),
            Self::Float(value) => Some(Value::Float(*value)),
            _ => None,
        }
    }
}

fn exact_integer(float: f64) -> Option<i64> {
    // The text of a float has no exponent, and no fraction if the value has none.
    Value::Float(float).scalar_text()?.parse().ok()
}

/// The order of an integer and a float by mathematical value.
#[allow(clippy::cast_precision_loss)]
fn compare_mixed(integer: i64, float: f64) -> Option<Ordering> {
    match exact_integer(float) {
        Some(other) => Some(integer.cmp(&other)),
        // A float with a fraction is below 2^52 and one that is no i64 beyond all of them, so what the
        // conversion loses does not matter.
        None => (integer as f64).partial_cmp(&float),
    }
}
