//! Garbage collection: an object is deleted when all its owners are deleted.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{finalizers, is_terminating, meta, owner_references, remove_meta, set_meta};
use super::removal::remove;
use super::resource::{Registry, ResourceType};
use super::status_error::StatusError;
use super::store::{Store, Writer};

/// The finalizer of an object that waits for its dependents (apimachinery, `FinalizerDeleteDependents`).
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// An object and its type.
type Item = (Arc<ResourceType>, Arc<Value>);

/// Deletes dependents without owners, removes deleted owners from the others, and releases owners that waited for
/// their dependents. Repeats this until nothing changes.
pub(super) fn collect(registry: &Registry, store: &Store, writer: &Writer<'_>) -> Result<(), StatusError> {
    loop {
        let population = Population::of(registry, store);
        let mut changed = false;
        // Dependents whose owners no longer hold them.
        for (resource, object) in &population.dependents {
            changed |= population.settle(writer, resource, object)?;
        }
        // Owners in foreground deletion without dependents.
        for (resource, object) in &population.waiting {
            let uid = meta(object, "uid");
            if !population.dependents.iter().any(|(_, dependent)| is_owned_by(dependent, uid)) {
                release(writer, resource, object)?;
                changed = true;
            }
        }
        if !changed {
            return Ok(());
        }
    }
}

/// Removes the owner `uid` from all its dependents, so that they outlive it.
pub(super) fn orphan(
    registry: &Registry,
    store: &Store,
    writer: &Writer<'_>,
    uid: &str,
) -> Result<(), StatusError> {
    for (resource, object) in &Population::of(registry, store).dependents {
        if is_owned_by(object, uid) {
            detach(writer, resource, object, |owner| owner["uid"] == uid)?;
        }
    }
    Ok(())
}

/// The objects that a collection considers.
struct Population {
    uids: HashSet<String>,
    /// Owners in foreground deletion.
    going: HashSet<String>,
    kinds: HashSet<(String, String)>,
    dependents: Vec<Item>,
    waiting: Vec<Item>,
}

impl Population {
    fn of(registry: &Registry, store: &Store) -> Self {
        let kinds = registry.iter().map(|kind| (kind.api_version(), kind.kind.clone())).collect();
        let mut population = Self {
            uids: HashSet::new(),
            going: HashSet::new(),
            kinds,
            dependents: Vec::new(),
            waiting: Vec::new(),
        };
        for resource in registry.stored() {
            for object in store.list(resource.table, None).0 {
                let uid = meta(&object, "uid").to_owned();
                let item = (Arc::clone(resource), object);
                if is_terminating(&item.1) && finalizers(&item.1).contains(&FOREGROUND) {
                    population.going.insert(uid.clone());
                    population.waiting.push(item.clone());
                }
                population.uids.insert(uid);
                if !owner_references(&item.1).is_empty() {
                    population.dependents.push(item);
                }
            }
        }
        population
    }

    /// Returns whether an owner still holds its dependents. An owner of a type that is not served always does.
    fn holds(&self, owner: &Value) -> bool {
        let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
        let is_served = self.kinds.contains(&(text("apiVersion"), text("kind")));
        !is_served || (self.uids.contains(&text("uid")) && !self.going.contains(&text("uid")))
    }

    fn settle(
        &self,
        writer: &Writer<'_>,
        resource: &ResourceType,
        object: &Arc<Value>,
    ) -> Result<bool, StatusError> {
        let owners = owner_references(object);
        let held = owners.iter().filter(|owner| self.holds(owner)).count();
        if held == owners.len() {
            return Ok(false);
        }
        if held > 0 {
            detach(writer, resource, object, |owner| !self.holds(owner))?;
            return Ok(true);
        }
        if is_terminating(object) {
            return Ok(false);
        }
        remove(writer, resource, object)?;
        Ok(true)
    }
}

fn is_owned_by(object: &Value, uid: &str) -> bool {
    owner_references(object).iter().any(|owner| owner["uid"] == uid)
}

fn detach(
    writer: &Writer<'_>,
    resource: &ResourceType,
    object: &Arc<Value>,
    is_gone: impl Fn(&Value) -> bool,
) -> Result<(), StatusError> {
    let mut next = (**object).clone();
    let left: Vec<Value> = owner_references(object).iter().filter(|owner| !is_gone(owner)).cloned().collect();
    if left.is_empty() {
        remove_meta(&mut next, "ownerReferences");
    } else {
        set_meta(&mut next, "ownerReferences", Value::Array(left));
    }
    writer.put(resource, next).map(drop).map_err(StatusError::internal)
}

/// Removes the finalizer of foreground deletion. Deletes the object if it has no other finalizer.
fn release(writer: &Writer<'_>, resource: &ResourceType, object: &Arc<Value>) -> Result<(), StatusError> {
    let mut next = (**object).clone();
    let left: Vec<&str> = finalizers(object).into_iter().filter(|name| *name != FOREGROUND).collect();
    if left.is_empty() {
        remove_meta(&mut next, "finalizers");
        remove(writer, resource, &Arc::new(next))?;
    } else {
        set_meta(&mut next, "finalizers", json!(left));
        writer.put(resource, next).map_err(StatusError::internal)?;
    }
    Ok(())
}
