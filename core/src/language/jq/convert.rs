//! Converts payload values to values of jq and back.

use jaq_json::{Map, Num, Val};

use super::{EvaluationError, StopReason};
use crate::payload::{MAX_DEPTH, Object, Value};

/// The bytes that each value counts in addition to its text.
pub(super) const NODE: usize = 16;

/// Converts a payload value. Floats without a fraction become integers, because jq does not distinguish them.
pub(super) fn to_jq(value: &Value) -> Result<Val, &'static str> {
    Ok(match value {
        Value::Null => Val::Null,
        Value::Bool(value) => Val::Bool(*value),
        Value::Int(value) => Val::Num(Num::from_integral(*value)),
        Value::Unsigned(value) => Val::Num(Num::from_integral(*value)),
        Value::Float(value) => narrow(Num::Float(*value)),
        Value::String(text) => Val::utf8_str(text.clone()),
        Value::Bytes(_) => return Err("jq does not support bytes"),
        Value::Array(items) => items.iter().map(to_jq).collect::<Result<_, _>>()?,
        Value::Object(members) => {
            let convert = |(key, member): (&String, &Value)| Ok((Val::utf8_str(key.clone()), to_jq(member)?));
            Val::obj(members.iter().map(convert).collect::<Result<Map, &'static str>>()?)
        }
    })
}

/// Returns a number as jq 1.7 computes with it: integers beyond `i64` are floats, and floats without a fraction are
/// integers.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn narrow(number: Num) -> Val {
    /// Up to 2^53, integers and floats without a fraction are converted without loss.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = match &number {
        Num::Int(_) => return Val::Num(number),
        other => float(other),
    };
    if float.fract() == 0.0 && float.abs() <= EXACT {
        return Val::Num(Num::from_integral(float as i64));
    }
    Val::Num(Num::Float(float))
}

fn float(number: &Num) -> f64 {
    jaq_std::ValT::as_f64(&Val::Num(number.clone())).unwrap_or(f64::NAN)
}

/// Converts a result; `budget` is the remaining number of bytes.
pub(super) fn from_jq(value: &Val, budget: &mut usize) -> Result<Value, EvaluationError> {
    convert(value, budget, MAX_DEPTH)
}

fn convert(value: &Val, budget: &mut usize, depth: usize) -> Result<Value, EvaluationError> {
    spend(budget, NODE)?;
    let below = || depth.checked_sub(1).ok_or(EvaluationError::Stopped(StopReason::Depth));
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(value) => Value::Bool(*value),
        Val::Num(number) => self::number(number)?,
        Val::TStr(text) => Value::String(self::text(text, budget)?),
        Val::BStr(_) => return Err(EvaluationError::Result("it contains bytes; convert them to text")),
        Val::Arr(items) => {
            let depth = below()?;
            Value::Array(items.iter().map(|item| convert(item, budget, depth)).collect::<Result<_, _>>()?)
        }
        Val::Obj(members) => {
            let depth = below()?;
            let mut object = Object::new();
            for (key, member) in members.iter() {
                let Val::TStr(key) = key else {
                    return Err(EvaluationError::Result("an object has a key that is not text"));
                };
                object.insert(self::text(key, budget)?, convert(member, budget, depth)?);
            }
            Value::Object(object)
        }
    })
}

fn number(number: &Num) -> Result<Value, EvaluationError> {
    if let Some(integer) = number.as_isize().and_then(|integer| i64::try_from(integer).ok()) {
        return Ok(Value::Int(integer));
    }
    if let Num::BigInt(integer) = number
        && let Ok(integer) = u64::try_from(&**integer)
    {
        return Ok(Value::Unsigned(integer));
    }
    let float = float(number);
    if float.is_nan() {
        return Err(EvaluationError::Result("it contains the number nan"));
    }
    if float.is_infinite() {
        return Err(EvaluationError::Result("it contains an infinite number"));
    }
    Ok(Value::Float(float))
}

fn text(bytes: &[u8], budget: &mut usize) -> Result<String, EvaluationError> {
    spend(budget, bytes.len())?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(EvaluationError::Result("it contains text that is not UTF-8")),
    }
}

fn spend(budget: &mut usize, bytes: usize) -> Result<(), EvaluationError> {
    *budget = budget.checked_sub(bytes).ok_or(EvaluationError::Stopped(StopReason::Output))?;
    Ok(())
}
