//! The keys of metadata documents, according to their JSON Schema.

use std::collections::BTreeSet;

use declarest_core::metadata::OperationName;
use declarest_core::metadata::document::json_schema;
use serde_json::Value;

/// The keys that the schema allows, such as `resource.dependsOn` and `operations.*.path`. A key of all operations
/// occurs once.
pub fn allowed() -> BTreeSet<String> {
    let all = places(None);
    all.iter().map(|place| named(place, &all)).collect()
}

/// The keys in a document.
pub fn used(document: &Value) -> BTreeSet<String> {
    let all = places(None);
    places(Some(document)).iter().map(|place| named(place, &all)).collect()
}

/// Returns the name of a key. Keys that all operations have, have one name.
fn named(place: &[String], all: &BTreeSet<Vec<String>>) -> String {
    if let [operations, _, rest @ ..] = place
        && operations == "operations"
        && !rest.is_empty()
    {
        let has = |operation: OperationName| {
            let start = [operations.clone(), operation.key().to_owned()];
            all.contains(&[&start, rest].concat())
        };
        if OperationName::ALL.into_iter().all(has) {
            return format!("operations.*.{}", rest.join("."));
        }
    }
    place.join(".")
}

/// Returns the places of the keys of the schema; those of a document only, if there is one.
fn places(document: Option<&Value>) -> BTreeSet<Vec<String>> {
    let root = json_schema();
    let mut visitor = Visitor { root: &root, found: BTreeSet::new() };
    visitor.visit(&root, document, &[]);
    visitor.found
}

struct Visitor<'v> {
    root: &'v Value,
    found: BTreeSet<Vec<String>>,
}

impl Visitor<'_> {
    fn visit(&mut self, schema: &Value, document: Option<&Value>, at: &[String]) {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.root.pointer(reference.trim_start_matches('#')).unwrap();
            self.visit(target, document, at);
        }
        for choice in schema["oneOf"].as_array().into_iter().flatten() {
            self.visit(choice, document, at);
        }
        for (key, below) in schema["properties"].as_object().into_iter().flatten() {
            let value = document.map(|document| document.get(key));
            if value != Some(None) {
                let place = [at, std::slice::from_ref(key)].concat();
                self.visit(below, value.flatten(), &place);
                self.found.insert(place);
            }
        }
        for inner in [&schema["additionalProperties"], &schema["items"]] {
            let values: Vec<Option<&Value>> = match document {
                _ if !inner.is_object() => Vec::new(),
                None => vec![None],
                Some(Value::Array(items)) => items.iter().map(Some).collect(),
                Some(Value::Object(members)) => members.values().map(Some).collect(),
                Some(_) => Vec::new(),
            };
            for value in values {
                self.visit(inner, value, at);
            }
        }
    }
}
