//! Defaults from examples.

use crate::payload::{Object, Value};

/// The defaults that fit all of `samples`: what every one of them has, with the same value.
///
/// Objects are compared member by member; of an object that all have without agreeing on a member only the
/// empty one is kept, and only if all are empty. Arrays and scalars count as a whole. Samples that are not
/// objects have no members and do not count; fewer than two objects agree on nothing.
///
/// Merging the result under a sample gives that sample back.
///
/// ```
/// use declarest_core::metadata::document::infer_defaults;
/// use declarest_core::payload::{PayloadType, Value, decode};
///
/// let rio = decode(PayloadType::Yaml, b"{name: Rio, tier: gold, limits: {cpu: 1, mem: 256}}")?;
/// let ava = decode(PayloadType::Yaml, b"{name: Ava, tier: gold, limits: {cpu: 4, mem: 256}}")?;
/// let shared = decode(PayloadType::Yaml, b"{tier: gold, limits: {mem: 256}}")?;
/// assert_eq!(Value::Object(infer_defaults(&[rio, ava])), shared);
/// # Ok::<(), declarest_core::payload::PayloadError>(())
/// ```
pub fn infer_defaults(samples: &[Value]) -> Object {
    let objects: Vec<&Object> = samples.iter().filter_map(Value::as_object).collect();
    match objects[..] {
        [first, ref others @ ..] if !others.is_empty() => shared_members(first, others),
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
