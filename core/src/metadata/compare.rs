//! Compares observed payloads with desired ones.

use std::borrow::Cow;

use serde::Serialize;

use super::document::OperationName;
use super::overlay::Relation;
use super::transform::TransformError;
use super::{Evaluation, MetadataError};
use crate::payload::pointer::{Pointer, escape};
use crate::payload::{Class, Descriptor, Object, PayloadType, Value};

/// One difference between the desired and the observed payload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The location as a JSON Pointer (RFC 6901); `""` is the whole payload.
    pub path: String,
    /// The kind of difference.
    pub change: Change,
    /// The desired value; null if there is none.
    pub desired: Value,
    /// The observed value; null if there is none.
    pub observed: Value,
}

impl Difference {
    /// Returns the difference of a write-only attribute. It does not show the value.
    pub fn write_only(pointer: &Pointer) -> Self {
        let (desired, observed) = (Value::Null, Value::Null);
        Self { path: pointer.to_string(), change: Change::Replace, desired, observed }
    }

    /// Whether only the server shows the value at `pointer`, and the difference consists of it and of the objects that
    /// contain nothing else.
    fn is_only(&self, pointer: &str) -> bool {
        let Some(rest) = pointer.strip_prefix(self.path.as_str()) else { return false };
        let mut value = &self.observed;
        for token in rest.split('/').skip(1) {
            match value {
                Value::Object(members) if members.len() == 1 => match members.iter().next() {
                    Some((key, member)) if escape(key) == token => value = member,
                    _ => return false,
                },
                _ => return false,
            }
        }
        rest.is_empty() || (self.change == Change::Add && rest.starts_with('/'))
    }
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// Only the observed payload has the value.
    Add,
    /// Only the desired payload has the value.
    Remove,
    /// The values differ.
    Replace,
}

/// The compared payloads of a resource, and their differences.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The desired payload after the steps of compare.
    pub desired: Value,
    /// The observed payload after the steps of compare, without an id that only the server knows; `None` if the
    /// server does not have the resource.
    pub observed: Option<Value>,
    /// The differences. For an absent resource, it is one difference of the whole payload.
    pub differences: Vec<Difference>,
}

/// The desired and the observed payload.
type Sides<'v> = (Cow<'v, Value>, Option<Cow<'v, Value>>);

/// Returns all differences, sorted by path. Objects are compared by member, and arrays by index: surplus elements
/// are added or removed. Other values are compared as a whole.
pub fn differences(desired: &Value, observed: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    // Most payloads are equal, and need no paths.
    if desired == observed {
        return found;
    }
    walk(&mut String::new(), desired, observed, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl Evaluation<'_> {
    /// Returns the differences between `observed` and the desired payload of the resource, sorted by path. The steps
    /// of compare are applied to both first.
    ///
    /// An id that the server assigned and the desired payload does not state is not a difference. Otherwise
    /// collections with ids of the server would never converge.
    pub fn compare(&self, observed: &Value) -> Result<Vec<Difference>, MetadataError> {
        let (desired, observed) = self.sides(Some(observed))?;
        let mut found = differences(&desired, observed.as_deref().unwrap_or(&Value::Null));
        if let Some(id) = self.given_id(&desired) {
            let id = id.to_string();
            found.retain(|difference| !difference.is_only(&id));
        }
        Ok(found)
    }

    /// Returns the differences together with the compared payloads, to show them to users. If the server does not
    /// have the resource, only the desired payload is transformed.
    pub fn comparison(&self, observed: Option<&Value>) -> Result<Comparison, MetadataError> {
        let (desired, observed) = self.sides(observed)?;
        let given = self.given_id(&desired);
        let shown = |side: Cow<'_, Value>| match given {
            Some(id) => without(id, side.into_owned()),
            None => side.into_owned(),
        };
        let (desired, observed) = (shown(desired), observed.map(shown));
        let differences = match &observed {
            Some(observed) => differences(&desired, observed),
            None => vec![Difference {
                path: String::new(),
                change: Change::Replace,
                desired: desired.clone(),
                observed: Value::Null,
            }],
        };
        Ok(Comparison { desired, observed, differences })
    }

    /// Returns the values between which a patch of an update changes the resource: the compared sides, but with
    /// everything that a comparison ignores.
    pub(super) fn patched(&self, payload: &Value, observed: &Value) -> Result<(Value, Value), MetadataError> {
        let (desired, observed) = self.transformed(payload, Some(observed))?;
        let (mut desired, mut observed) =
            (desired.into_owned(), observed.map(Cow::into_owned).unwrap_or_default());
        if let Some(id) = self.rules.identity.id().simple().filter(|id| id.get(&desired).is_none()) {
            observed = id.remove(observed);
        }
        // The server does not show whether write-only attributes differ, so a patch always sets them. An index counts the
        // entries of the payload, and those of the server may have another order.
        for pointer in &self.rules.resolved.write_only_attributes {
            if let Some(value) = pointer.get(payload) {
                desired = pointer.put(desired, value.clone());
                let has_index =
                    pointer.tokens().iter().any(|token| token.bytes().all(|byte| byte.is_ascii_digit()));
                observed = if has_index { observed } else { pointer.remove(observed) };
            }
        }
        let relation = Relation::of(&self.rules.resolved);
        self.check_keys(relation, &desired)?;
        let is_equal = relation.align(&desired, observed.clone()) == desired;
        if is_equal && self.rules.resolved.write_only_attributes.is_empty() {
            return Ok((observed.clone(), observed));
        }
        if relation.ignores_undeclared() {
            if let Value::Object(members) = &mut observed {
                self.add_path_names(&desired, members);
            }
            desired = without_absent_nulls(relation.overlay(desired, observed.clone()), &observed);
        }
        Ok((desired, observed))
    }

    /// Returns the pointer of the id if the desired payload leaves the id to the server. Steps of compare that select
    /// the id make it null in `desired`; if they set it to a value, the value is compared.
    fn given_id(&self, desired: &Value) -> Option<&Pointer> {
        let id = self.rules.identity.id().simple()?;
        let is_open = |side: &Value| id.get(side).is_none_or(Value::is_null);
        (is_open(self.wanted()) && is_open(desired)).then_some(id)
    }

    /// Fails if an entry of a keyed array has no key.
    fn check_keys(&self, relation: Relation<'_>, desired: &Value) -> Result<(), MetadataError> {
        const FIELD: &str = "operations.compare.arrays";
        match relation.keyless(desired) {
            Some(place) => Err(self.unusable(
                FIELD.to_owned(),
                &place.to_string(),
                "lacks the attribute that is the key of the array",
            )),
            None => Ok(()),
        }
    }

    fn wanted(&self) -> &Value {
        static ABSENT: Value = Value::Null;
        self.subject.payload.unwrap_or(&ABSENT)
    }

    /// Returns the desired and the observed payload after the steps of compare, the observed one in the form of the
    /// desired one.
    fn sides<'v>(&'v self, observed: Option<&'v Value>) -> Result<Sides<'v>, MetadataError> {
        let (desired, observed) = self.transformed(self.wanted(), observed)?;
        let (desired, observed) = (self.shown(desired), observed.map(|observed| self.shown(observed)));
        let relation = Relation::of(&self.rules.resolved);
        if relation.is_exact() {
            return Ok((desired, observed));
        }
        self.check_keys(relation, &desired)?;
        let observed = observed.map(|observed| {
            let mut aligned = relation.align(&desired, observed.into_owned());
            if let (Value::Object(members), true) = (&mut aligned, relation.ignores_undeclared()) {
                self.add_path_names(&desired, members);
            }
            Cow::Owned(aligned)
        });
        Ok((desired, observed))
    }

    /// Returns `side` without write-only attributes, and without the objects that hold nothing else: servers often show
    /// neither.
    fn shown<'v>(&self, side: Cow<'v, Value>) -> Cow<'v, Value> {
        let write_only = &self.rules.resolved.write_only_attributes;
        if write_only.is_empty() {
            return side;
        }
        Cow::Owned(write_only.iter().fold(side.into_owned(), |side, pointer| without(pointer, side)))
    }

    /// Adds the names that `desired` states only for templates: a name from the path is not a part of the content.
    fn add_path_names(&self, desired: &Value, observed: &mut Object) {
        let identity = self.identity();
        let ids = [("id", &identity.remote_id), ("alias", &identity.alias)];
        let ids = ids.map(|(name, value)| (name.to_owned(), Value::from(value.as_str())));
        // The members that metadata states as names.
        let (id, alias) = (self.rules.identity().id(), self.rules.identity().alias());
        let stated =
            [(id, &identity.remote_id), (alias, &identity.alias)].into_iter().filter_map(|(at, value)| {
                let [name] = at.simple()?.tokens() else { return None };
                let stated = desired
                    .get(name)
                    .filter(|stated| stated.scalar_text().is_some_and(|text| text == *value))?;
                Some((name.clone(), stated.clone()))
            });
        for (name, value) in self.path_fields().into_iter().chain(ids).chain(stated) {
            if desired.get(&name) == Some(&value) {
                observed.entry(name).or_insert(value);
            }
        }
    }

    /// Returns both payloads after the steps of compare.
    fn transformed<'v>(
        &'v self,
        desired: &'v Value,
        observed: Option<&'v Value>,
    ) -> Result<Sides<'v>, MetadataError> {
        // A comparison sends no request, but a faulty template fails each use of an operation.
        let stated = self.rules.resolved().operation(OperationName::Compare);
        if stated.path.is_some() || !stated.query.is_empty() {
            self.render(OperationName::Compare)?;
        }
        if self.rules.operation(OperationName::Compare).steps.is_empty() {
            return Ok((Cow::Borrowed(desired), observed.map(Cow::Borrowed)));
        }
        let pipeline = self.pipeline(OperationName::Compare)?;
        let (desired, observed) = self.comparable(desired, observed)?;
        let apply = |side| {
            let applied = pipeline.apply(side, self.context(OperationName::Compare));
            applied.map_err(|source| self.untransformable(OperationName::Compare, source))
        };
        Ok((Cow::Owned(apply(desired)?), observed.map(apply).transpose()?.map(Cow::Owned)))
    }

    /// Returns both payloads in the form that steps can transform. Text and bytes have no attributes, so they are an
    /// error, except that a resource that is secret as a whole is compared by its description.
    fn comparable(
        &self,
        desired: &Value,
        observed: Option<&Value>,
    ) -> Result<(Value, Option<Value>), MetadataError> {
        let structured =
            self.descriptor().is_none_or(|descriptor| descriptor.payload_type.class() == Class::Structured);
        if structured {
            return Ok((desired.clone(), observed.cloned()));
        }
        if !self.rules.resolved.secret {
            return Err(self.untransformable(OperationName::Compare, TransformError::BytesInput));
        }
        let description = self.description();
        let observed = observed.map(|observed| match observed {
            Value::Object(_) | Value::Array(_) => observed.clone(),
            _ => description.clone(),
        });
        Ok((description, observed))
    }

    fn description(&self) -> Value {
        let descriptor =
            self.descriptor().cloned().unwrap_or_else(|| Descriptor::of(PayloadType::OctetStream));
        let identity = self.identity();
        let texts = [
            ("id", identity.remote_id.as_str()),
            ("alias", &identity.alias),
            ("name", &identity.alias),
            ("payloadType", descriptor.payload_type.name()),
            ("contentType", descriptor.media_type),
            ("payloadExtension", &descriptor.extension),
        ];
        let said = texts.into_iter().filter(|(_, text)| !text.trim().is_empty());
        Value::Object(said.map(|(key, text)| (key.to_owned(), Value::from(text))).collect::<Object>())
    }
}

/// Returns `side` without the value at `pointer`, and without the objects that contain nothing else.
fn without(pointer: &Pointer, side: Value) -> Value {
    let mut side = pointer.remove(side);
    for length in (1..pointer.tokens().len()).rev() {
        let above: Pointer = pointer.tokens()[..length].iter().cloned().collect();
        if !above.get(&side).and_then(Value::as_object).is_some_and(Object::is_empty) {
            break;
        }
        side = above.remove(side);
    }
    side
}

/// Returns `desired` without members that are null and that `observed` lacks: null declares that they are absent.
fn without_absent_nulls(desired: Value, observed: &Value) -> Value {
    let Value::Object(members) = desired else { return desired };
    let kept = members.into_iter().filter_map(|(key, value)| match observed.get(&key) {
        None if value.is_null() => None,
        None => Some((key, value)),
        Some(shown) => Some((key, without_absent_nulls(value, shown))),
    });
    Value::Object(kept.collect())
}

fn walk(at: &mut String, desired: &Value, observed: &Value, found: &mut Vec<Difference>) {
    match (desired, observed) {
        (Value::Object(desired), Value::Object(observed)) => {
            for (key, value) in desired {
                step(at, &escape(key), Some(value), observed.get(key), found);
            }
            for (key, value) in observed.iter().filter(|(key, _)| !desired.contains_key(*key)) {
                step(at, &escape(key), None, Some(value), found);
            }
        }
        (Value::Array(desired), Value::Array(observed)) => {
            for index in 0..desired.len().max(observed.len()) {
                step(at, &index.to_string(), desired.get(index), observed.get(index), found);
            }
        }
        _ if desired == observed => {}
        _ => found.push(Difference {
            path: at.clone(),
            change: Change::Replace,
            desired: desired.clone(),
            observed: observed.clone(),
        }),
    }
}

fn step(
    at: &mut String,
    token: &str,
    desired: Option<&Value>,
    observed: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    let above = at.len();
    at.push('/');
    at.push_str(token);
    let one_sided = |change, desired: Option<&Value>, observed: Option<&Value>| Difference {
        path: at.clone(),
        change,
        desired: desired.cloned().unwrap_or_default(),
        observed: observed.cloned().unwrap_or_default(),
    };
    match (desired, observed) {
        (Some(desired), Some(observed)) => walk(at, desired, observed, found),
        (None, observed) => found.push(one_sided(Change::Add, None, observed)),
        (desired, None) => found.push(one_sided(Change::Remove, desired, None)),
    }
    at.truncate(above);
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case(
        r#"{"a":1,"t":["x"],"p/q":0}"#,
        r#"{"a":1.0,"t":["x","y"],"z":null}"#,
        &["Remove /p~1q", "Add /t/1", "Add /z"]
    )]
    #[case("{}", "{}", &[])]
    #[case(r#"{"a":{"b":1}}"#, r#"{"a":[1]}"#, &["Replace /a"])]
    #[case("[1,2]", "[1]", &["Remove /1"])]
    #[case("1", "\"1\"", &["Replace "])]
    #[case(r#"{"a":null}"#, "{}", &["Remove /a"])]
    fn finds(#[case] desired: &str, #[case] observed: &str, #[case] expected: &[&str]) {
        let parse = |json: &str| decode(PayloadType::Json, json.as_bytes()).unwrap();
        let found: Vec<String> = differences(&parse(desired), &parse(observed))
            .iter()
            .map(|difference| format!("{:?} {}", difference.change, difference.path))
            .collect();
        assert_eq!(found, expected);
    }
}
