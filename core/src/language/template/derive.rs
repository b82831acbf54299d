//! Derives fields from the path of a resource.

use std::collections::BTreeMap;

use super::pattern::PathPattern;
use super::target::{Descendants, Target};
use crate::path::{LogicalPath, PathNames};
use crate::payload::{Object, Value};

/// The names of the resource itself.
const NAMES: [&str; 3] = ["id", "alias", "remoteID"];

/// Fields that are derived from a path. They are part of the scope, but not of a body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DerivedFields {
    from_patterns: BTreeMap<String, String>,
    plural: BTreeMap<String, String>,
    aliases: Value,
    ids: Value,
}

impl DerivedFields {
    /// The fields from matching path templates with the path. Only these are part of the seed of a read by path.
    pub fn from_patterns(&self) -> &BTreeMap<String, String> {
        &self.from_patterns
    }

    /// Returns [`Self::from_patterns`] as the members of a payload.
    pub fn members(&self) -> Object {
        self.from_patterns.iter().map(|(key, text)| (key.clone(), Value::from(text.as_str()))).collect()
    }

    /// The fields from plural names of collections.
    pub fn plural(&self) -> &BTreeMap<String, String> {
        &self.plural
    }

    /// Returns the field `name`. Fields of templates take precedence over fields of plural names.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.from_patterns.get(name).or_else(|| self.plural.get(name)).map(String::as_str)
    }

    /// Returns the names of the parents by the singular names of their collections, as an object: `aliases` are those in
    /// the repository, and `ids` those on the server.
    pub fn of_parents(&self, name: &str) -> Option<&Value> {
        match name {
            "aliases" => Some(&self.aliases),
            "ids" => Some(&self.ids),
            _ => None,
        }
    }

    /// Sets the aliases to the segments of `collection`, which is the path in the repository. The path on the server
    /// may have ids instead. `names` is how its segments name resources.
    pub fn set_aliases(&mut self, collection: &LogicalPath, names: PathNames) {
        self.aliases = parents(collection, names);
    }

    /// All names; a name may be duplicated.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.from_patterns.keys().chain(self.plural.keys()).map(String::as_str)
    }
}

/// Derives fields from the path of `target`, by `patterns` in their order and by plural names. For each name, the first
/// value applies.
pub fn derive_fields(target: &Target<'_>, patterns: &[PathPattern]) -> DerivedFields {
    let mut fields = DerivedFields::default();
    // `/{{/user}}` means a user, and `/{{/id}}` the resource, not the collection `users` at the beginning of the path.
    let (first, is_member) = (target.path.segments().next(), !target.collection.is_root());
    let is_first = |key: &str, value: &str| {
        first == Some(value) && (singular(value).as_deref() == Some(key) || is_member && NAMES.contains(&key))
    };
    for bound in patterns.iter().filter_map(|pattern| pattern.bind(target.path, target.collection)) {
        for (key, value) in bound.into_iter().filter(|(key, value)| !is_first(key, value)) {
            let name = || target.names.decode(value).into_owned();
            fields.from_patterns.entry(key.to_owned()).or_insert_with(name);
        }
    }
    fields.plural = plural(target.descendants.map_or(target.collection, Descendants::root), target.names);
    fields.ids = parents(target.collection, target.names);
    fields.aliases = fields.ids.clone();
    fields
}

/// Returns the names of the parents in the path of a collection, as an object.
fn parents(collection: &LogicalPath, names: PathNames) -> Value {
    Value::Object(plural(collection, names).into_iter().map(|(key, name)| (key, Value::from(name))).collect())
}

/// Returns the segments after plural names, by the singular. For each name, the first value applies.
fn plural(collection: &LogicalPath, names: PathNames) -> BTreeMap<String, String> {
    let (segments, mut fields) = (collection.segments().collect::<Vec<_>>(), BTreeMap::new());
    for pair in segments.windows(2) {
        if let [name, value] = pair
            && let Some(key) = singular(name)
        {
            fields.entry(key).or_insert_with(|| names.decode(value).into_owned());
        }
    }
    fields
}

/// Returns the singular of the last word of a plural name: `key` for `api-keys`.
pub fn singular(name: &str) -> Option<String> {
    let word = name.rsplit(['-', '_', '.']).next().unwrap_or(name);
    let stem = word.strip_suffix('s')?;
    let key = match stem.strip_suffix("ie") {
        Some(stem) => format!("{stem}y"),
        None => stem.to_owned(),
    };
    (!key.is_empty()).then_some(key)
}
