//! `meta.k8s.io/v1 Table`: the tables that `kubectl get` prints.

use std::sync::Arc;

use serde_json::{Value, json};

use super::column::Column;
use super::events;
use super::object::{meta, metadata_only};
use super::resource::ResourceType;

/// The part of the object that a table row contains in addition to its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// Returns the table of `objects`.
pub(crate) fn table(
    resource: &ResourceType,
    objects: &[Arc<Value>],
    include: Include,
    resource_version: &str,
    with_columns: bool,
) -> Value {
    let age = [Column::age()];
    let columns: &[Column] = if resource.columns.is_empty() { &age } else { &resource.columns };
    let definitions = with_columns.then(|| {
        let description = "Name must be unique within a namespace.";
        let mut definitions = vec![json!({
            "name": "Name", "type": "string", "format": "name", "description": description, "priority": 0,
        })];
        definitions.extend(columns.iter().map(Column::definition));
        definitions
    });
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut cells = vec![json!(meta(object, "name"))];
            cells.extend(columns.iter().map(|column| column.cell(object)));
            let object = match include {
                Include::Nothing => Value::Null,
                Include::Metadata => metadata_only(object),
                Include::Object => json!(events::shown(resource, object)),
            };
            json!({"cells": cells, "object": object})
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": resource_version},
        "columnDefinitions": definitions,
        "rows": rows,
    })
}
