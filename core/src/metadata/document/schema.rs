//! The JSON Schema of a metadata document.

use serde_json::{Value as Json, json};

use super::{Document, OperationName};
use crate::payload::fields::json_schema_of;

/// Returns the JSON Schema (draft 2020-12) for completion and checks in editors. It defines the keys and the types of
/// values. Only [`Document::decode`] and validation check templates and combinations of fields.
pub fn json_schema() -> Json {
    let mut schema = json_schema_of::<Document>("DeclaREST metadata");
    // All operations have one type, but some keys and modes belong to one operation.
    let all = schema["$defs"]["OperationSection"].clone();
    for (operation, name, description) in [
        (OperationName::Create, "OperationSection", "One operation."),
        (OperationName::Get, "GetSection", "The operation that reads a resource."),
        (OperationName::Update, "UpdateSection", "The operation that updates a resource."),
        (OperationName::List, "ListSection", "The operation that lists a collection."),
        (OperationName::Compare, "CompareSection", "The comparison of the desired and the observed payload."),
    ] {
        let mut section = all.clone();
        section["description"] = description.into();
        if let Some(keys) = section["properties"].as_object_mut() {
            keys.retain(|key, _| operation.keys().contains(&key.as_str()));
            if let Some(mode) = keys.get_mut("mode") {
                *mode = json!({"description": mode["description"], "enum": operation.modes()});
            }
        }
        schema["$defs"][name] = section;
        let reference = format!("#/$defs/{name}");
        schema["$defs"]["OperationsFields"]["properties"][operation.key()]["$ref"] = reference.into();
    }
    if let Some(definitions) = schema["$defs"].as_object_mut() {
        definitions.remove("OperationMode");
    }
    schema
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{DocumentError, PaginationStyle};
    use super::*;
    use crate::payload::PayloadType;
    use crate::payload::fields::FieldError;

    /// Wraps a value in the document around an object of the schema.
    type Wrap<'w> = &'w dyn Fn(Json) -> Json;

    fn decode(document: &Json) -> Result<Document, DocumentError> {
        Document::decode(PayloadType::Json, document.to_string().as_bytes())
    }

    /// Calls `check` for every object with fixed keys.
    fn walk(root: &Json, schema: &Json, wrap: Wrap<'_>, check: &mut dyn FnMut(&Json, Wrap<'_>)) {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = root.pointer(reference.trim_start_matches('#')).unwrap();
            return walk(root, target, wrap, check);
        }
        for choice in schema["oneOf"].as_array().into_iter().flatten() {
            walk(root, choice, wrap, check);
        }
        if let Some(properties) = schema["properties"].as_object() {
            check(schema, wrap);
            for (key, below) in properties {
                walk(root, below, &|value| wrap(json!({key: value})), check);
            }
        } else if schema["additionalProperties"].is_object() {
            walk(root, &schema["additionalProperties"], &|value| wrap(json!({"any": value})), check);
        } else if schema["items"].is_object() {
            walk(root, &schema["items"], &|value| wrap(json!([value])), check);
        }
    }

    #[test]
    fn schema_and_decoder_have_the_same_keys() {
        let schema = json_schema();
        let mut objects = 0;
        walk(&schema, &schema, &|value| value, &mut |object, wrap| {
            objects += 1;
            let keys: BTreeSet<_> =
                object["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            let document = wrap(json!({"no such key": 1}));
            match decode(&document) {
                Err(DocumentError::Field(FieldError::UnknownKey { known, .. })) => {
                    assert_eq!(known.iter().copied().collect::<BTreeSet<_>>(), keys, "{document}");
                }
                other => panic!("{document}: {other:?}"),
            }
        });
        // Nine objects of the document, five of each operation except compare, which has no answer, the absence of get and
        // list, and the pagination of list.
        assert_eq!(objects, 9 + 5 * OperationName::ALL.len() - 1 + 3);
    }

    /// An empty object is an error of the decoder if the schema requires a key.
    #[test]
    fn schema_and_decoder_require_the_same_keys() {
        let schema = json_schema();
        walk(&schema, &schema, &|value| value, &mut |object, wrap| {
            let document = wrap(json!({}));
            let required = object["required"].as_array().is_some() || object["minProperties"] == 1;
            assert_eq!(decode(&document).is_err(), required, "{document}");
        });
    }

    #[test]
    fn styles_of_the_schema_decode() {
        let words = json_schema()["$defs"]["PaginationStyle"]["enum"].as_array().unwrap().clone();
        assert_eq!(words.len(), 6);
        for word in words {
            let list = |pagination: Json| json!({"operations": {"list": {"pagination": pagination}}});
            let all = json!({"pointer": "/a", "parameter": "b", "sizeParameter": "c", "size": 1, "start": 1,
                "items": "/d"});
            let style: PaginationStyle = serde_json::from_value(word.clone()).unwrap();
            let mut pagination = json!({"style": word});
            for key in style.keys() {
                pagination[*key] = all[*key].clone();
            }
            decode(&list(pagination.clone())).unwrap();
            let foreign = all.as_object().unwrap().keys().find(|key| !style.keys().contains(&key.as_str()));
            let foreign = foreign.unwrap();
            pagination[foreign] = all[foreign].clone();
            let error = decode(&list(pagination)).unwrap_err().to_string();
            assert!(
                error.contains(&format!("operations.list.pagination.{foreign}: is not allowed")),
                "{error}"
            );
        }
    }

    #[test]
    fn keywords_of_the_schema_decode() {
        let schema = json_schema();
        for (key, place) in [("format", "ResourceSection/properties/format"), ("defaults", "DefaultsMode")] {
            let words = schema.pointer(&format!("/$defs/{place}/enum")).unwrap().as_array().unwrap();
            assert!(words.len() > 2);
            for word in words {
                let value = if key == "defaults" { json!({"mode": word}) } else { word.clone() };
                decode(&json!({"resource": {key: value}})).unwrap();
            }
        }
    }
}
