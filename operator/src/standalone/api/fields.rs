//! Sets of fields. Server-side apply records the set that each manager applied.
//!
//! The rules are those of Kubernetes' structured merge: objects are granular unless they are declared atomic, lists
//! are atomic unless they are declared sets or maps. The JSON form is `FieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::{ListType, MapType, Structural, item_key};

/// One step from a value to a value in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    Field(String),
    /// An item of a list map, identified by its key fields as JSON with sorted names.
    Key(String),
    /// An item of a set, as JSON.
    Value(String),
}

impl Element {
    /// Returns the element of a list item, or `None` if the list is atomic.
    pub(crate) fn of_item(list: &ListType, items: Option<&Structural>, item: &Value) -> Option<Self> {
        let key = item_key(list, items, item)?;
        Some(if *list == ListType::Set { Self::Value(key.to_string()) } else { Self::Key(sorted(&key)) })
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => Some(Self::Key(rest.to_owned())),
            "v" => Some(Self::Value(rest.to_owned())),
            _ => None,
        }
    }

    fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(key) => format!("k:{key}"),
            Self::Value(value) => format!("v:{value}"),
        }
    }

    /// Returns the form of field paths in conflict messages.
    fn display(&self) -> String {
        match self {
            Self::Field(name) => format!(".{name}"),
            Self::Value(value) => format!("[={value}]"),
            Self::Key(key) => {
                let keys: BTreeMap<String, Value> = serde_json::from_str(key).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("[{}]", keys.join(","))
            }
        }
    }
}

/// Encodes an object with sorted names, independent of the map type of JSON objects.
fn sorted(key: &Value) -> String {
    let keys: BTreeMap<&String, &Value> = key.as_object().into_iter().flatten().collect();
    json!(keys).to_string()
}

/// A set of fields: a tree in which `member` marks the nodes that are in the set themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    pub member: bool,
    pub children: BTreeMap<Element, FieldSet>,
}

impl FieldSet {
    fn leaf() -> Self {
        Self { member: true, children: BTreeMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Returns the fields that `value` sets. Fields of maps and items of lists are always members; declared fields
    /// are members only if nothing is below them.
    pub(crate) fn of(value: &Value, schema: &Structural) -> Self {
        let anything = Structural::anything();
        let mut set = Self::default();
        match value {
            Value::Object(fields) if schema.map == MapType::Granular && !fields.is_empty() => {
                for (name, field) in fields {
                    let mut below = Self::of(field, schema.field(name).unwrap_or(&anything));
                    below.member |= !schema.declares(name);
                    set.children.insert(Element::Field(name.clone()), below);
                }
            }
            Value::Array(items) if schema.list != ListType::Atomic && !items.is_empty() => {
                let item_schema = schema.items.as_deref();
                for item in items {
                    if let Some(element) = Element::of_item(&schema.list, item_schema, item) {
                        let mut below = Self::of(item, item_schema.unwrap_or(&anything));
                        below.member = true;
                        set.children.insert(element, below);
                    }
                }
            }
            _ => set.member = true,
        }
        set
    }

    /// Returns the fields that were added or changed from `old` to `new`, and the fields that were removed.
    pub(crate) fn compare(old: &Value, new: &Value, schema: &Structural) -> (Self, Self) {
        if old == new {
            return (Self::default(), Self::default());
        }
        let anything = Structural::anything();
        let (mut changed, mut removed) = (Self::default(), Self::default());
        let mut pair =
            |element: Element, old: Option<&Value>, new: Option<&Value>, schema: Option<&Structural>| {
                let schema = schema.unwrap_or(&anything);
                let (below_changed, below_removed) = match (old, new) {
                    (Some(old), Some(new)) => Self::compare(old, new, schema),
                    (None, Some(new)) => (Self { member: true, ..Self::of(new, schema) }, Self::default()),
                    (Some(old), None) => (Self::default(), Self { member: true, ..Self::of(old, schema) }),
                    (None, None) => return,
                };
                if !below_changed.is_empty() {
                    changed.children.insert(element.clone(), below_changed);
                }
                if !below_removed.is_empty() {
                    removed.children.insert(element, below_removed);
                }
            };
        match (old, new) {
            (Value::Object(old), Value::Object(new)) if schema.map == MapType::Granular => {
                for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
                    pair(Element::Field(name.clone()), old.get(name), new.get(name), schema.field(name));
                }
            }
            (Value::Array(old), Value::Array(new)) if schema.list != ListType::Atomic => {
                let items = schema.items.as_deref();
                let index = |list: &[Value]| -> BTreeMap<Element, Value> {
                    let keyed = |item: &Value| {
                        Element::of_item(&schema.list, items, item).map(|element| (element, item.clone()))
                    };
                    list.iter().filter_map(keyed).collect()
                };
                let (old, new) = (index(old), index(new));
                for element in old.keys().chain(new.keys().filter(|element| !old.contains_key(*element))) {
                    pair(element.clone(), old.get(element), new.get(element), items);
                }
            }
            _ => return (Self::leaf(), Self::default()),
        }
        (changed, removed)
    }

    pub(crate) fn union(&mut self, other: &Self) {
        self.member |= other.member;
        for (element, below) in &other.children {
            self.children.entry(element.clone()).or_default().union(below);
        }
    }

    /// Removes every member of `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.member &= !other.member;
        for (element, below) in &other.children {
            if let Some(mine) = self.children.get_mut(element) {
                mine.subtract(below);
                if mine.is_empty() {
                    self.children.remove(element);
                }
            }
        }
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut set = Self { member: self.member && other.member, children: BTreeMap::new() };
        for (element, below) in &self.children {
            if let Some(theirs) = other.children.get(element) {
                let both = below.intersection(theirs);
                if !both.is_empty() {
                    set.children.insert(element.clone(), both);
                }
            }
        }
        set
    }

    /// Returns the paths of all members, in the form of conflict messages.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    /// Collects the paths of members; each member comes before the members below it.
    fn collect(&self, path: &str, paths: &mut Vec<String>) {
        let members = self.children.iter().filter(|(_, below)| below.member);
        paths.extend(members.map(|(element, _)| format!("{path}{}", element.display())));
        for (element, below) in &self.children {
            below.collect(&format!("{path}{}", element.display()), paths);
        }
    }

    /// Decodes `FieldsV1`.
    pub(crate) fn decode(fields: &Value) -> Self {
        let mut set = Self::default();
        for (key, below) in fields.as_object().into_iter().flatten() {
            if key == "." {
                set.member = true;
            } else if let Some(element) = Element::parse(key) {
                let mut below_set = Self::decode(below);
                below_set.member |= below.as_object().is_none_or(Map::is_empty);
                set.children.insert(element, below_set);
            }
        }
        set
    }

    /// Encodes `FieldsV1`.
    pub(crate) fn encode(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.children.is_empty() {
            fields.insert(".".to_owned(), json!({}));
        }
        for (element, below) in &self.children {
            fields.insert(element.encode(), below.encode());
        }
        Value::Object(fields)
    }
}
