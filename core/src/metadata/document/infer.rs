//! Infers defaults from example payloads.

use crate::payload::{Object, Value};

/// Returns the defaults that match all of `samples`: the members that all of them have with the same value.
///
/// Objects are compared by member, arrays and scalars as a whole. An object without common members is omitted, unless
/// it is empty in all samples. The result is empty for fewer than two samples.
///
/// Merging a sample into the result returns the sample.
pub fn infer_defaults(samples: &[Object]) -> Object {
    match samples {
        [first, others @ ..] if !others.is_empty() => {
            shared_members(first, &others.iter().collect::<Vec<_>>())
        }
        _ => Object::new(),
    }
}

fn shared_members(first: &Object, others: &[&Object]) -> Object {
    let shared = first.iter().filter_map(|(key, value)| {
        let others: Vec<&Value> = others.iter().map(|members| members.get(key)).collect::<Option<_>>()?;
        Some((key.clone(), shared_value(value, &others)?))
    });
    shared.collect()
}

fn shared_value(first: &Value, others: &[&Value]) -> Option<Value> {
    if others.iter().all(|other| *other == first) {
        return Some(first.clone());
    }
    let others: Vec<&Object> = others.iter().map(|other| other.as_object()).collect::<Option<_>>()?;
    let shared = shared_members(first.as_object()?, &others);
    (!shared.is_empty()).then_some(Value::Object(shared))
}
