//! The structure of a schema: declared fields, defaults, and how lists and maps merge.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::standalone::api::status_error::{Cause, FieldError};

/// How the items of a list are identified (`x-kubernetes-list-type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    /// The list is one value.
    Atomic,
    /// Items are scalars, each at most once.
    Set,
    /// Items are objects, identified by these fields.
    Map(Vec<String>),
}

/// Whether each field of an object has its own manager (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapType {
    /// Each field has its own manager.
    Granular,
    /// The object is one value.
    Atomic,
}

/// One node of a structural schema.
#[derive(Clone, Debug)]
pub(crate) struct Structural {
    pub properties: BTreeMap<String, Structural>,
    /// The schema of values under undeclared keys.
    pub additional: Option<Box<Structural>>,
    pub items: Option<Box<Structural>>,
    /// Whether undeclared fields are kept.
    pub open: bool,
    pub nullable: bool,
    /// Whether the type is `number`: in CEL, the value is then a double even if the JSON is an integer.
    pub number: bool,
    pub default: Option<Value>,
    pub list: ListType,
    pub map: MapType,
}

impl Structural {
    /// Returns a schema that accepts any value, for built-in types and preserved fields.
    pub(crate) const fn anything() -> Self {
        Self {
            properties: BTreeMap::new(),
            additional: None,
            items: None,
            open: true,
            nullable: true,
            number: false,
            default: None,
            list: ListType::Atomic,
            map: MapType::Granular,
        }
    }

    /// Returns the root schema of a built-in type.
    pub(crate) fn built_in() -> Self {
        let mut root = Self::anything();
        root.properties.insert("metadata".to_owned(), Self::metadata());
        root
    }

    /// Parses the root schema of a custom resource. `metadata` always has the schema of `ObjectMeta`.
    pub(crate) fn parse(source: &Value) -> Self {
        let mut root = Self::node(source);
        root.properties.insert("apiVersion".to_owned(), Self::anything());
        root.properties.insert("kind".to_owned(), Self::anything());
        root.properties.insert("metadata".to_owned(), Self::metadata());
        root
    }

    /// Returns the schema of the field `key`.
    pub(crate) fn field(&self, key: &str) -> Option<&Self> {
        self.properties.get(key).or(self.additional.as_deref())
    }

    /// Returns whether the field is declared by name. A key of a map is not.
    pub(crate) fn declares(&self, key: &str) -> bool {
        self.properties.contains_key(key)
    }

    fn node(source: &Value) -> Self {
        let flag = |key: &str| source[key].as_bool().unwrap_or(false);
        let additional = &source["additionalProperties"];
        let untyped = source.get("type").is_none() && !flag("x-kubernetes-int-or-string");
        let list = match source["x-kubernetes-list-type"].as_str() {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(
                source["x-kubernetes-list-map-keys"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|key| key.as_str().map(str::to_owned))
                    .collect(),
            ),
            _ => ListType::Atomic,
        };
        Self {
            properties: source["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), Self::node(schema)))
                .collect(),
            additional: additional.is_object().then(|| Box::new(Self::node(additional))),
            items: source["items"].is_object().then(|| Box::new(Self::node(&source["items"]))),
            open: untyped
                || additional.as_bool().unwrap_or(false)
                || flag("x-kubernetes-preserve-unknown-fields"),
            nullable: flag("nullable"),
            number: source["type"] == "number",
            default: source.get("default").cloned(),
            list,
            map: if source["x-kubernetes-map-type"] == "atomic" {
                MapType::Atomic
            } else {
                MapType::Granular
            },
        }
    }

    /// Returns the schema of `ObjectMeta` of apimachinery, with its merge rules.
    fn metadata() -> Self {
        let scalar = json!({"type": "string"});
        let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let mut properties = json!({
            "labels": strings,
            "annotations": strings,
            "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                    "apiVersion": {"type": "string"}, "kind": {"type": "string"},
                    "name": {"type": "string"}, "uid": {"type": "string"},
                    "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
                }},
            },
            "managedFields": {"type": "array", "items": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }},
            "generation": {"type": "integer"},
            "deletionGracePeriodSeconds": {"type": "integer"},
        });
        for name in [
            "name", "generateName", "namespace", "uid", "resourceVersion", "selfLink", "creationTimestamp",
            "deletionTimestamp",
        ] {
            properties[name] = scalar.clone();
        }
        Self::node(&json!({"type": "object", "properties": properties}))
    }
}

/// Returns the key that identifies `item` in a list of type `list`, or `None` in an atomic list.
pub(crate) fn item_key(list: &ListType, items: Option<&Structural>, item: &Value) -> Option<Value> {
    match list {
        ListType::Atomic => None,
        ListType::Set => Some(item.clone()),
        ListType::Map(keys) => {
            let of = |key: &String| {
                let default = || items.and_then(|items| items.field(key)).and_then(|key| key.default.clone());
                item.get(key).cloned().or_else(default).map(|value| (key.clone(), value))
            };
            Some(Value::Object(keys.iter().filter_map(of).collect()))
        }
    }
}

/// Returns errors for duplicate items of lists that are sets or maps.
pub(super) fn duplicates(object: &Value, root: &Structural) -> Vec<FieldError> {
    let mut errors = Vec::new();
    find_duplicates(object, root, "", &mut errors);
    errors
}

fn find_duplicates(value: &Value, schema: &Structural, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(schema) = schema.field(name) {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    find_duplicates(field, schema, &path, errors);
                }
            }
        }
        Value::Array(items) => {
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}[{index}]");
                if let Some(key) = item_key(&schema.list, schema.items.as_deref(), item)
                    && !seen.insert(key.to_string())
                {
                    errors.push(FieldError::new(&path, Cause::Duplicate, &key, ""));
                }
                if let Some(schema) = &schema.items {
                    find_duplicates(item, schema, &path, errors);
                }
            }
        }
        _ => {}
    }
}
