//! The names of the properties of schemas.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::OpenApi;
use super::reference::{follow, reference, target};
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The keywords below which a schema has properties of the same value, or of the items of an array.
const ALL: &[&str] = &["allOf", "anyOf", "oneOf", "items"];

impl OpenApi {
    /// Returns the properties that the schema at a pointer requires in requests, itself and through `$ref` and `allOf`.
    /// Those that are `readOnly` are only required in answers (`OpenAPI` 3.0, Schema Object).
    pub fn required_properties(&self, schema: &Pointer) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.walk(schema, &["allOf"], &mut |schema| {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            names.extend(required.filter_map(Value::as_str).map(str::to_owned));
        });
        &names - &self.read_only_properties(schema)
    }

    /// Returns the properties that requests cannot set (`readOnly`), of the schema at a pointer and through `$ref` and
    /// `allOf`.
    fn read_only_properties(&self, schema: &Pointer) -> BTreeSet<String> {
        self.names_where(schema, &["allOf"], |property| self.is_read_only(property))
    }

    /// Whether requests cannot set a property with this schema.
    pub(super) fn is_read_only(&self, property: &Value) -> bool {
        self.states(property, "readOnly", &Value::Bool(true))
    }

    /// Whether a schema has this value of `keyword`, itself, through `$ref` and `allOf`, or in the only alternative besides
    /// null, as documents of `OpenAPI` 3.1 describe optional values.
    fn states<'a>(&'a self, schema: &'a Value, keyword: &str, value: &Value) -> bool {
        let list = |schema: &'a Value, keyword: &str| schema.get(keyword).and_then(Value::as_array);
        let mut states = false;
        self.walk_from(schema, &mut |schema, open| {
            states |= schema.get(keyword) == Some(value);
            let is_value = |schema: &&Value| schema.get("type").and_then(Value::as_str) != Some("null");
            let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| list(schema, keyword));
            open.extend(alternatives.filter_map(|schemas| only(schemas.iter().filter(is_value))));
            open.extend(list(schema, "allOf").into_iter().flatten());
        });
        states
    }

    /// Returns the properties that the schema at a pointer names, itself and through `$ref` and `allOf`.
    pub(super) fn named_properties(&self, schema: &Pointer) -> BTreeSet<String> {
        self.names_where(schema, &["allOf"], |_| true)
    }

    /// Returns the properties that the schema at a pointer names, itself and through `$ref`, `allOf`, `anyOf`, `oneOf`
    /// and the `items` of an array.
    pub fn properties(&self, schema: &Pointer) -> BTreeSet<String> {
        self.names_where(schema, ALL, |_| true)
    }

    /// Returns the same properties without those that a request cannot set (`readOnly`).
    pub fn writable_properties(&self, schema: &Pointer) -> BTreeSet<String> {
        let keywords = &["allOf", "anyOf", "oneOf"];
        self.names_where(schema, keywords, |property| !self.is_read_only(property))
    }

    /// Returns the same properties as [`Self::properties`], but only those with `flag`: `readOnly` or `writeOnly`.
    pub fn flagged_properties(&self, schema: &Pointer, flag: &str) -> BTreeSet<String> {
        self.properties_with(schema, flag, &Value::Bool(true))
    }

    /// Returns the same properties as [`Self::properties`], but only points in time.
    pub fn times(&self, schema: &Pointer) -> BTreeSet<String> {
        self.properties_with(schema, "format", &Value::from("date-time"))
    }

    /// Returns the same properties as [`Self::properties`], but only UUIDs.
    pub fn uuids(&self, schema: &Pointer) -> BTreeSet<String> {
        self.properties_with(schema, "format", &Value::from("uuid"))
    }

    /// Returns the same properties as [`Self::properties`], but only those whose values must not be shown.
    pub fn passwords(&self, schema: &Pointer) -> BTreeSet<String> {
        self.properties_with(schema, "format", &Value::from("password"))
    }

    fn properties_with(&self, schema: &Pointer, keyword: &str, value: &Value) -> BTreeSet<String> {
        self.names_where(schema, ALL, |property| self.states(property, keyword, value))
    }

    /// Returns whether the schema at a pointer forbids properties that it does not name.
    pub fn is_closed(&self, schema: &Pointer) -> bool {
        let mut is_closed = false;
        self.walk(schema, &[], &mut |schema| {
            is_closed |= schema.get("additionalProperties") == Some(&Value::Bool(false));
        });
        is_closed
    }

    /// Returns the schemas of the properties that the schema at a pointer names, itself and through `$ref` and `allOf`.
    pub fn members(&self, schema: &Pointer) -> BTreeMap<String, Pointer> {
        let (mut members, mut seen) = (BTreeMap::new(), HashSet::new());
        let mut open = vec![schema.clone()];
        while let Some(part) = open.pop().and_then(|at| follow(&self.root, at).ok()) {
            if !seen.insert(part.at.clone()) {
                continue;
            }
            let at = part.at.child("properties");
            members.extend(properties(part.value).map(|(name, _)| (name.clone(), at.child(name))));
            let (at, parts) = (part.at.child("allOf"), part.value.get("allOf").and_then(Value::as_array));
            open.extend((0..parts.map_or(0, <[Value]>::len)).map(|index| at.child(&index.to_string())));
        }
        members
    }

    /// Returns the schema of the items, if the schema at a pointer is that of an array.
    pub fn items(&self, schema: &Pointer) -> Option<Pointer> {
        let array = follow(&self.root, schema.clone()).ok()?;
        self.resolved(&array.member("items")?)
    }

    /// Returns the properties of a schema that are arrays, and the schemas of their entries.
    pub fn arrays(&self, schema: &Pointer) -> Vec<(String, Pointer)> {
        let members = self.members(schema).into_iter();
        members.filter_map(|(name, member)| Some((name, self.items(&member)?))).collect()
    }

    /// Returns the schema of the values of an object whose members have no fixed names.
    pub fn values(&self, schema: &Pointer) -> Option<Pointer> {
        let object = follow(&self.root, schema.clone()).ok()?;
        let values = self.resolved(&object.member("additionalProperties")?)?;
        // Documents describe any object by values of the type object.
        (self.members(schema).is_empty() && !self.members(&values).is_empty()).then_some(values)
    }

    /// Whether the schema at a pointer is that of an object.
    pub fn is_object(&self, schema: &Pointer) -> bool {
        self.has_type(schema, "object") || !self.members(schema).is_empty()
    }

    /// Whether the schema at a pointer is that of a text.
    pub fn is_text(&self, schema: &Pointer) -> bool {
        self.has_type(schema, "string")
    }

    fn has_type(&self, schema: &Pointer, name: &str) -> bool {
        let part = follow(&self.root, schema.clone());
        part.is_ok_and(|part| part.value.get("type").and_then(Value::as_str) == Some(name))
    }

    /// Returns the pointer of a schema after following its references.
    pub fn resolved(&self, schema: &Pointer) -> Option<Pointer> {
        follow(&self.root, schema.clone()).ok().map(|part| part.at)
    }

    /// Returns the names of the properties that `counts`, of the schema at a pointer and those below its `keywords`.
    fn names_where(
        &self,
        schema: &Pointer,
        keywords: &[&str],
        counts: impl Fn(&Value) -> bool,
    ) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        self.walk(schema, keywords, &mut |schema| {
            let counted = properties(schema).filter(|(_, property)| counts(property));
            names.extend(counted.map(|(name, _)| name.clone()));
        });
        names
    }

    /// Visits the schema at a pointer, and the schemas below its `keywords` and `$ref`. Each is visited once, so
    /// circular references end. References that cannot be resolved are skipped.
    fn walk(&self, schema: &Pointer, keywords: &[&str], visit: &mut dyn FnMut(&Value)) {
        let Some(start) = schema.get(&self.root) else { return };
        self.walk_from(start, &mut |schema, open| {
            visit(schema);
            for below in keywords.iter().filter_map(|keyword| schema.get(keyword)) {
                match below {
                    Value::Array(schemas) => open.extend(schemas),
                    schema => open.push(schema),
                }
            }
        });
    }

    /// Visits `start`, what it refers to, and the further schemas that `visit` adds.
    fn walk_from<'a>(&'a self, start: &'a Value, visit: &mut dyn FnMut(&'a Value, &mut Vec<&'a Value>)) {
        let mut open = vec![start];
        let mut seen: HashSet<*const Value> = HashSet::new();
        while let Some(schema) = open.pop() {
            if seen.insert(std::ptr::from_ref(schema)) {
                let referred = reference(schema).and_then(|text| target(text).ok());
                open.extend(referred.and_then(|at| at.get(&self.root)));
                visit(schema, &mut open);
            }
        }
    }
}

/// Returns the item if it is the only one.
pub fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    items.next().filter(|_| items.next().is_none())
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}
