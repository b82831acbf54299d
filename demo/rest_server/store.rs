//! What the server holds, and the rules of its methods. Knows nothing of HTTP but status codes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use axum::body::Bytes;
use serde_json::{Value, json};

use super::Config;
use super::pattern::{below, is_below, join, matches, normalise, owner, split_last};

/// Entries of `collection` must have a non-null value at `pointer`.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// A pattern: `*` is any one segment.
    pub collection: String,
    /// A JSON Pointer (RFC 6901).
    pub pointer: String,
}

/// Several entries of one collection that claim the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    pub collection: String,
    pub name: String,
    /// The paths of the entries, oldest first.
    pub paths: Vec<String>,
}

/// A refusal, with the status and the text that go into the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub message: String,
}

fn refuse<T>(status: u16, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { status, message: message.into() })
}

/// A created resource, and where.
#[derive(Debug)]
pub struct Created {
    pub path: String,
    pub body: Bytes,
}

/// Bodies are kept as the JSON text that answers carry: reading, which is what clients do most, costs no
/// more than finding.
#[derive(Debug)]
pub struct Store {
    resources: BTreeMap<String, Bytes>,
    /// The text of lists that were asked for, until an entry changes.
    lists: HashMap<String, Bytes>,
    /// Collections that had an entry once: they stay when the last entry goes.
    known: BTreeSet<String>,
    /// Declared collections: those of one path, and patterns.
    declared: BTreeSet<String>,
    patterns: Vec<String>,
    server_ids: Vec<String>,
    versioned: Vec<String>,
    summaries: Vec<String>,
    requirements: Vec<Requirement>,
    id_prefix: String,
    last_id: u64,
    upsert: bool,
    items_envelope: bool,
    refuse_delete_with_children: bool,
}

impl Store {
    pub fn new(config: &Config) -> Store {
        let declared = config.collections.iter().chain(&config.server_ids);
        let (patterns, declared): (Vec<&String>, Vec<&String>) =
            declared.partition(|collection| collection.contains('*'));
        Store {
            resources: BTreeMap::new(),
            lists: HashMap::new(),
            known: BTreeSet::new(),
            declared: declared.into_iter().map(|collection| normalise(collection)).collect(),
            patterns: patterns.into_iter().cloned().collect(),
            server_ids: config.server_ids.clone(),
            versioned: config.versioned.clone(),
            summaries: config.summaries.clone(),
            requirements: config.requirements.clone(),
            id_prefix: config.id_prefix.clone(),
            last_id: 0,
            upsert: config.upsert,
            items_envelope: config.items_envelope,
            refuse_delete_with_children: config.refuse_delete_with_children,
        }
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        self.resources.get(&normalise(path)).map(value)
    }

    /// The text of a resource, by its normalised path.
    pub fn text(&self, path: &str) -> Option<Bytes> {
        self.resources.get(path).cloned()
    }

    pub fn all(&self) -> Vec<(String, Value)> {
        self.resources.iter().map(|(path, body)| (path.clone(), value(body))).collect()
    }

    /// The text of the list of a collection in path order, or none when there is no such collection.
    pub fn list(&mut self, path: &str) -> Option<Bytes> {
        let known = self.known.contains(path)
            || (self.pattern_of(path).is_some() && self.missing_owner(path).is_none());
        if !known {
            return None;
        }
        if let Some(list) = self.lists.get(path) {
            return Some(list.clone());
        }
        let (open, close): (&[u8], &[u8]) =
            if self.items_envelope { (b"{\"items\":[", b"]}") } else { (b"[", b"]") };
        let summary = self.summaries.iter().any(|pattern| matches(pattern, path));
        let mut text = open.to_vec();
        for (index, body) in self.entries(path).enumerate() {
            if index > 0 {
                text.push(b',');
            }
            if summary {
                text.extend_from_slice(json!({"id": value(body)["id"]}).to_string().as_bytes());
            } else {
                text.extend_from_slice(body);
            }
        }
        text.extend_from_slice(close);
        let text = Bytes::from(text);
        self.lists.insert(path.to_owned(), text.clone());
        Some(text)
    }

    pub fn create(&mut self, collection: &str, mut body: Value) -> Result<Created, Refusal> {
        let assigns_ids = self.assigns_ids(collection);
        if !body.is_object() {
            return refuse(400, "the body must be a JSON object");
        }
        if let Some(owner) = self.missing_owner(collection) {
            return refuse(404, format!("no resource {owner}"));
        }
        self.check(collection, &body)?;
        let id = if assigns_ids {
            self.last_id += 1;
            let id = format!("{}{}", self.id_prefix, self.last_id);
            body["id"] = json!(id);
            id
        } else {
            match client_id(&body) {
                Some(id) => id,
                None => return refuse(400, "the body needs an id or a name without a slash"),
            }
        };
        let path = join(collection, &id);
        if self.resources.contains_key(&path) {
            return refuse(409, format!("{path} exists"));
        }
        self.count_version(collection, &path, &mut body);
        let body = self.insert(&path, &body);
        Ok(Created { path, body })
    }

    /// Replaces a resource. The flag states whether it was created.
    pub fn replace(&mut self, path: &str, mut body: Value) -> Result<(Bytes, bool), Refusal> {
        if !body.is_object() {
            return refuse(400, "the body must be a JSON object");
        }
        let Some((collection, id)) = split_last(path) else {
            return refuse(405, "the root is not a resource");
        };
        let exists = self.resources.contains_key(path);
        if !exists && !self.upsert {
            return refuse(404, format!("no resource {path}"));
        }
        if let (false, Some(owner)) = (exists, self.missing_owner(collection)) {
            return refuse(404, format!("no resource {owner}"));
        }
        self.check(collection, &body)?;
        if self.assigns_ids(collection) {
            body["id"] = json!(id);
        }
        self.count_version(collection, path, &mut body);
        Ok((self.insert(path, &body), !exists))
    }

    /// Applies a JSON merge patch (RFC 7396).
    pub fn patch(&mut self, path: &str, changes: &Value) -> Result<Bytes, Refusal> {
        let Some(mut body) = self.get(path) else {
            return refuse(404, format!("no resource {path}"));
        };
        merge(&mut body, changes);
        self.replace(path, body).map(|(body, _)| body)
    }

    pub fn delete(&mut self, path: &str) -> Result<(), Refusal> {
        if !self.resources.contains_key(path) {
            return refuse(404, format!("no resource {path}"));
        }
        if self.refuse_delete_with_children && self.has_children(path) {
            return refuse(409, format!("{path} has children"));
        }
        self.delete_by_hand(path);
        Ok(())
    }

    pub fn put_by_hand(&mut self, path: &str, body: &Value) {
        self.insert(&normalise(path), body);
    }

    pub fn delete_by_hand(&mut self, path: &str) -> bool {
        let path = normalise(path);
        let children: Vec<String> =
            self.resources.range(below(&path)).map(|(child, _)| child.clone()).collect();
        for child in children {
            self.resources.remove(&child);
        }
        self.known.retain(|collection| !is_below(collection, &path));
        self.lists.retain(|collection, _| collection != &path && !is_below(collection, &path));
        self.forget_list_with(&path);
        self.resources.remove(&path).is_some()
    }

    pub fn duplicates(&self) -> Vec<Duplicate> {
        let mut paths: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
        for (path, body) in &self.resources {
            let Some((collection, _)) = split_last(path) else { continue };
            if let (true, Some(name)) = (self.assigns_ids(collection), value(body)["name"].as_str()) {
                paths.entry((collection, name.to_owned())).or_default().push(path.clone());
            }
        }
        let several = paths.into_iter().filter(|(_, paths)| paths.len() > 1);
        several
            .map(|((collection, name), mut paths)| {
                // Ids count up, so a shorter one is older.
                paths.sort_by_key(|path| (path.len(), path.clone()));
                Duplicate { collection: collection.to_owned(), name, paths }
            })
            .collect()
    }

    fn insert(&mut self, path: &str, body: &Value) -> Bytes {
        if let Some((collection, _)) = split_last(path)
            && !self.known.contains(collection)
        {
            self.known.insert(collection.to_owned());
        }
        self.forget_list_with(path);
        let body = Bytes::from(body.to_string());
        self.resources.insert(path.to_owned(), body.clone());
        body
    }

    /// The list that shows the resource at `path` has to be made again.
    fn forget_list_with(&mut self, path: &str) {
        if let Some((collection, _)) = split_last(path) {
            self.lists.remove(collection);
        }
    }

    fn count_version(&self, collection: &str, path: &str, body: &mut Value) {
        if self.versioned.iter().any(|pattern| matches(pattern, collection)) {
            let before = self.get(path).and_then(|body| body["version"].as_u64()).unwrap_or(0);
            body["version"] = json!(before + 1);
        }
    }

    fn entries<'s>(&'s self, collection: &'s str) -> impl Iterator<Item = &'s Bytes> {
        let inside = self.resources.range(below(collection));
        let entries =
            inside.filter(move |(path, _)| split_last(path).is_some_and(|(parent, _)| parent == collection));
        entries.map(|(_, body)| body)
    }

    fn has_children(&self, path: &str) -> bool {
        self.resources.range(below(path)).next().is_some()
    }

    fn assigns_ids(&self, collection: &str) -> bool {
        self.server_ids.iter().any(|pattern| matches(pattern, collection))
    }

    fn pattern_of(&self, collection: &str) -> Option<&String> {
        let pattern = || self.patterns.iter().find(|pattern| matches(pattern, collection));
        self.declared.get(collection).or_else(pattern)
    }

    /// The resource that must exist before the collection can have entries, when it does not.
    fn missing_owner(&self, collection: &str) -> Option<String> {
        let owner = match self.pattern_of(collection) {
            Some(pattern) => owner(pattern, collection)?,
            // A collection that is itself a resource needs nothing above it.
            None if self.resources.contains_key(collection) => return None,
            None => split_last(collection).map(|(parent, _)| parent.to_owned()).filter(|p| p != "/")?,
        };
        (!self.resources.contains_key(&owner)).then_some(owner)
    }

    fn check(&self, collection: &str, body: &Value) -> Result<(), Refusal> {
        let broken = self.requirements.iter().find(|requirement| {
            matches(&requirement.collection, collection)
                && body.pointer(&requirement.pointer).is_none_or(Value::is_null)
        });
        match broken {
            Some(requirement) => refuse(422, format!("{} is required", requirement.pointer)),
            None => Ok(()),
        }
    }
}

/// What is stored is JSON that was written from a value.
fn value(body: &Bytes) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

/// The id that a body asks for.
fn client_id(body: &Value) -> Option<String> {
    let value = ["id", "name"].iter().map(|key| &body[key]).find(|value| !value.is_null())?;
    let id = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            if let Some(object) = target.as_object_mut() {
                object.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}
