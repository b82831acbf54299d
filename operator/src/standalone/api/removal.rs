//! Removes one object, or marks it for deletion.

use std::sync::Arc;

use serde_json::{Value, json};

use super::object::{finalizers, is_terminating, now, set_meta};
use super::resource::ResourceType;
use super::status_error::StatusError;
use super::store::Writer;

/// The result of a delete.
#[derive(Debug)]
pub(crate) enum Deleted {
    Removed(Arc<Value>),
    /// The object still exists, because it has finalizers.
    Marked(Arc<Value>),
}

/// Deletes `live`, but not its dependents.
pub(crate) fn remove(
    writer: &Writer<'_>,
    resource: &ResourceType,
    live: &Arc<Value>,
) -> Result<Deleted, StatusError> {
    if !finalizers(live).is_empty() {
        return mark(writer, resource, live, None).map(Deleted::Marked);
    }
    let removed = writer.remove(resource, (**live).clone()).map_err(StatusError::internal)?;
    Ok(Deleted::Removed(removed))
}

/// Sets the deletion timestamp, which cannot be removed again.
pub(crate) fn mark(
    writer: &Writer<'_>,
    resource: &ResourceType,
    live: &Arc<Value>,
    finalizer: Option<&str>,
) -> Result<Arc<Value>, StatusError> {
    if is_terminating(live) {
        return Ok(Arc::clone(live));
    }
    let mut object = (**live).clone();
    set_meta(&mut object, "deletionTimestamp", json!(now()));
    set_meta(&mut object, "deletionGracePeriodSeconds", json!(0));
    if let Some(generation) = live["metadata"]["generation"].as_i64() {
        set_meta(&mut object, "generation", json!(generation + 1));
    }
    if let Some(finalizer) = finalizer {
        let mut all = finalizers(live);
        all.push(finalizer);
        let all = json!(all);
        set_meta(&mut object, "finalizers", all);
    }
    writer.put(resource, object).map_err(StatusError::internal)
}
