//! Infers defaults from example payloads.

use crate::payload::{Object, Value};

/// Returns the defaults that match all of `samples`: the members that all of them have with the same value.
///
/// Objects are compared by member, arrays and scalars as a whole. An object without common members is omitted, unless
/// it is empty in all samples. Samples that are not objects are ignored. The result is empty for fewer than two
/// objects.
///
/// Merging a sample into the result returns the sample.
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
