//! Removes the fields that a structural schema does not declare.

use serde_json::Value;

use super::Structural;

/// Removes undeclared fields from `object`. Returns their paths.
pub(crate) fn prune(object: &mut Value, root: &Structural) -> Vec<String> {
    let mut removed = Vec::new();
    walk(object, root, "", &mut removed);
    removed
}

fn walk(value: &mut Value, schema: &Structural, path: &str, removed: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            fields.retain(|name, field| {
                if let Some(schema) = schema.field(name) {
                    walk(field, schema, &below(name), removed);
                    return true;
                }
                if !schema.open {
                    removed.push(below(name));
                }
                schema.open
            });
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, schema, &format!("{path}[{index}]"), removed);
            }
        }
        _ => {}
    }
}
