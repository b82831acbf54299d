//! Server-side apply and the record of field managers (`metadata.managedFields`).

use serde_json::{Value, json};

use super::fields::{Element, FieldSet};
use super::resource::ResourceType;
use super::schema::{ListType, MapType, Structural};
use super::status_error::StatusError;

/// The operation of a field manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// A field manager: the identity of an entry of `managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manager {
    pub name: String,
    pub operation: Operation,
    pub api_version: String,
    /// `status`, or empty.
    pub subresource: String,
}

/// One entry of `managedFields`.
#[derive(Clone, Debug)]
struct Managed {
    manager: Manager,
    time: Value,
    fields: FieldSet,
}

impl Managed {
    fn decode(entry: &Value) -> Self {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let manager = Manager {
            name: text("manager"),
            operation: if entry["operation"] == "Apply" { Operation::Apply } else { Operation::Update },
            api_version: text("apiVersion"),
            subresource: text("subresource"),
        };
        Self { manager, time: entry["time"].clone(), fields: FieldSet::decode(&entry["fieldsV1"]) }
    }

    fn encode(&self) -> Value {
        let Manager { name, operation, api_version, subresource } = &self.manager;
        let mut entry = json!({
            "manager": name,
            "operation": operation.into_str(),
            "apiVersion": api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.encode(),
        });
        if !subresource.is_empty() {
            entry["subresource"] = json!(subresource);
        }
        entry
    }

    /// Returns the name of the manager in conflict messages.
    fn describe(&self) -> String {
        let Manager { name, operation, api_version, subresource } = &self.manager;
        let mut text = format!("\"{name}\"");
        if !subresource.is_empty() {
            text = format!("{text} with subresource \"{subresource}\"");
        }
        if *operation == Operation::Update {
            text.push_str(" using ");
            text.push_str(api_version);
            if let Some(time) = self.time.as_str() {
                text.push_str(" at ");
                text.push_str(time);
            }
        }
        text
    }
}

/// The field managers of one object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managers(Vec<Managed>);

impl Managers {
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array();
        Self(entries.into_iter().flatten().map(Managed::decode).collect())
    }

    pub(crate) fn store(&self, object: &mut Value) {
        let entries: Vec<Value> =
            self.0.iter().filter(|m| !m.fields.is_empty()).map(Managed::encode).collect();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
            if !entries.is_empty() {
                metadata.insert("managedFields".to_owned(), Value::Array(entries));
            }
        }
    }

    fn entry(&mut self, manager: &Manager, time: &str) -> &mut Managed {
        let position = self.0.iter().position(|managed| managed.manager == *manager).unwrap_or_else(|| {
            let (manager, time) = (manager.clone(), json!(time));
            self.0.push(Managed { manager, time, fields: FieldSet::default() });
            self.0.len() - 1
        });
        &mut self.0[position]
    }

    /// Records a create or update: `manager` becomes the owner of changed fields.
    pub(crate) fn record_update(
        &mut self,
        old: &Value,
        new: &Value,
        schema: &Structural,
        manager: &Manager,
        time: &str,
    ) {
        let (changed, removed) = FieldSet::compare(&ownable(old), &ownable(new), schema);
        if changed.is_empty() && removed.is_empty() {
            return;
        }
        for managed in &mut self.0 {
            managed.fields.subtract(&changed);
            managed.fields.subtract(&removed);
        }
        if !changed.is_empty() {
            let entry = self.entry(manager, time);
            entry.fields.union(&changed);
            entry.time = json!(time);
        }
    }
}

/// Returns the fields that can have a manager: without identity and without fields that the server sets.
fn ownable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| {
                matches!(name.as_str(), "labels" | "annotations" | "finalizers" | "ownerReferences")
            });
            if metadata.is_empty() {
                fields.remove("metadata");
            }
        }
    }
    object
}

/// Applies `config` to `live` for `manager`. Merges it, and removes fields that this manager applied before and that
/// `config` lacks. Takes over fields of other managers only with `force`.
pub(crate) fn apply(
    resource: &ResourceType,
    live: &Value,
    config: &Value,
    manager: &Manager,
    force: bool,
    time: &str,
) -> Result<(Value, Managers), StatusError> {
    // Merge the configuration into the live object.
    let schema = &*resource.merge_schema();
    let mut managers = Managers::of(live);
    let wanted = FieldSet::of(&ownable(config), schema);
    let mut merged = merge(live, config, schema);

    // Remove the fields that the manager no longer applies and no other manager owns.
    let mut others = FieldSet::default();
    for managed in managers.0.iter().filter(|managed| managed.manager != *manager) {
        others.union(&managed.fields);
    }
    let entry = managers.entry(manager, time);
    let previous = std::mem::replace(&mut entry.fields, wanted.clone());
    if previous != wanted {
        entry.time = json!(time);
    }
    others.union(&wanted);
    remove(&mut merged, &previous, &others, schema);

    // Record the new owners, or report conflicts.
    let (changed, removed) = FieldSet::compare(&ownable(live), &ownable(&merged), schema);
    take_over(&mut managers, &changed, manager, force)?;
    for managed in managers.0.iter_mut().filter(|managed| managed.manager != *manager) {
        managed.fields.subtract(&removed);
    }
    if !(changed.is_empty() && removed.is_empty()) {
        managers.entry(manager, time).time = json!(time);
    }
    Ok((merged, managers))
}

/// Moves `changed` fields from other managers to `manager`. Without `force`, returns the conflicts as an error.
fn take_over(
    managers: &mut Managers,
    changed: &FieldSet,
    manager: &Manager,
    force: bool,
) -> Result<(), StatusError> {
    let mut conflicts = Vec::new();
    for managed in managers.0.iter_mut().filter(|managed| managed.manager != *manager) {
        let taken = managed.fields.intersection(changed);
        if force {
            managed.fields.subtract(&taken);
        } else {
            conflicts.extend(taken.paths().into_iter().map(|path| (managed.describe(), path)));
        }
    }
    if conflicts.is_empty() { Ok(()) } else { Err(StatusError::apply_conflict(conflicts)) }
}

/// Returns `live` with the values of `config`.
fn merge(live: &Value, config: &Value, schema: &Structural) -> Value {
    let anything = Structural::anything();
    match (live, config) {
        (Value::Object(live), Value::Object(config)) if schema.map == MapType::Granular => {
            let mut out = live.clone();
            for (name, value) in config {
                let below = schema.field(name).unwrap_or(&anything);
                let merged = match live.get(name) {
                    Some(live) => merge(live, value, below),
                    None => value.clone(),
                };
                out.insert(name.clone(), merged);
            }
            Value::Object(out)
        }
        (Value::Array(live), Value::Array(config)) if schema.list != ListType::Atomic => {
            let items = schema.items.as_deref();
            let element = |item: &Value| Element::of_item(&schema.list, items, item);
            let mut out = live.clone();
            for item in config {
                let key = element(item);
                match out.iter_mut().find(|candidate| element(candidate) == key) {
                    Some(found) => *found = merge(found, item, items.unwrap_or(&anything)),
                    None => out.push(item.clone()),
                }
            }
            Value::Array(out)
        }
        (_, config) => config.clone(),
    }
}

/// Removes the fields from `value` that are in `previous` and not in `keep`.
fn remove(value: &mut Value, previous: &FieldSet, keep: &FieldSet, schema: &Structural) {
    let anything = Structural::anything();
    for (element, below) in &previous.children {
        let kept = keep.children.get(element);
        match (element, &mut *value) {
            (Element::Field(name), Value::Object(fields)) => match (kept, fields.get_mut(name)) {
                (None, _) => {
                    fields.remove(name);
                }
                (Some(kept), Some(field)) => {
                    remove(field, below, kept, schema.field(name).unwrap_or(&anything));
                }
                (Some(_), None) => {}
            },
            (element, Value::Array(items)) => {
                let item_schema = schema.items.as_deref();
                let is_item = |item: &Value| {
                    Element::of_item(&schema.list, item_schema, item).as_ref() == Some(element)
                };
                match kept {
                    None => items.retain(|item| !is_item(item)),
                    Some(kept) => {
                        if let Some(item) = items.iter_mut().find(|item| is_item(item)) {
                            remove(item, below, kept, item_schema.unwrap_or(&anything));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}
