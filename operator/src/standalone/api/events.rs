//! Converts events between `events.k8s.io/v1` and core `v1`. Events are stored as `v1`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::resource::ResourceType;

/// Top-level fields by their name in `v1` and in `events.k8s.io/v1` (conversion of kube-apiserver).
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Returns a stored object in the version of `resource`.
pub(crate) fn shown(resource: &ResourceType, object: &Arc<Value>) -> Arc<Value> {
    if resource.is_events_view() {
        Arc::new(rename(object, "events.k8s.io/v1", |(stored, shown)| (stored, shown)))
    } else {
        Arc::clone(object)
    }
}

/// Returns an object of the version of `resource` in its stored form.
pub(crate) fn stored(resource: &ResourceType, object: Value) -> Value {
    if resource.is_events_view() { rename(&object, "v1", |(stored, shown)| (shown, stored)) } else { object }
}

fn rename(
    object: &Value,
    api_version: &str,
    direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Value {
    let mut out = Map::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        let renamed = RENAMED.into_iter().map(&direction).find(|(from, _)| from == name);
        out.insert(renamed.map_or(name.as_str(), |(_, to)| to).to_owned(), value.clone());
    }
    out.insert("apiVersion".to_owned(), json!(api_version));
    Value::Object(out)
}
