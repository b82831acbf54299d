//! Sets missing declared fields to the defaults of their schema.

use serde_json::Value;

use super::Structural;

/// Removes nulls of fields that are not nullable, then sets defaults, outermost first.
pub(super) fn apply(value: &mut Value, schema: &Structural) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| {
                !field.is_null() || schema.field(name).is_none_or(|schema| schema.nullable)
            });
            for (name, schema) in &schema.properties {
                if let Some(default) = &schema.default
                    && !fields.contains_key(name)
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in fields {
                if let Some(schema) = schema.field(name) {
                    apply(field, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    apply(item, schema);
                }
            }
        }
        _ => {}
    }
}
