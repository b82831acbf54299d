//! The JSON Schema of a metadata document.

use serde_json::{Map, Value as Json, json};

use super::{
    DefaultsMode, ExternalizedMode, Format, Numbered, OperationName, PaginationStyle, RenderBehavior,
    SaveBehavior,
};
use crate::payload::PayloadType;
use crate::payload::fields::Keyword;

/// The schema (draft 2020-12), for editors that complete and check while somebody types. It knows the keys
/// and kinds of values; templates, and rules between fields, only [`Document::decode`](super::Document) and
/// validation check.
pub fn json_schema() -> Json {
    let mut schema = object(
        "What a resource or collection is on the server.",
        &[],
        [("selector", selector()), ("resource", resource()), ("operations", operations())],
    );
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "DeclaREST metadata".into();
    schema["$defs"] = json!({
        "text": {"type": ["string", "number", "boolean"]},
        "pointer": {"type": "string", "pattern": "^/"},
        "pointers": {"type": "array", "items": {"$ref": "#/$defs/pointer"}},
        "operation": operation(),
        "listOperation": list_operation(),
        "step": step(),
    });
    schema
}

fn selector() -> Json {
    let descendants = boolean("Whether to govern everything below the collection; false when not set.");
    object("How far the metadata of a collection reaches.", &[], [("descendants", descendants)])
}

fn resource() -> Json {
    let formats = PayloadType::ALL.map(|known| Format::Concrete(known).name());
    let formats: Vec<_> = formats.into_iter().chain([Format::Any.name(), "binary", "txt", ""]).collect();
    object(
        "Who a resource is and what it holds.",
        &[],
        [
            ("id", text("Identity template of the remote id.")),
            ("alias", text("Identity template of the name in the repository.")),
            ("remoteCollectionPath", text("Template of the path of the collection on the server.")),
            ("format", json!({"description": "The format of payloads.", "enum": formats})),
            ("requiredAttributes", pointers("What a payload must have.")),
            ("secret", boolean("Whether the whole resource is a secret.")),
            ("secretAttributes", pointers("What of a payload is secret.")),
            (
                "externalizedAttributes",
                list("What of a payload is kept in files of its own.", &externalized()),
            ),
            ("defaults", defaults()),
        ],
    )
}

fn externalized() -> Json {
    object(
        "An attribute that is kept in a file of its own.",
        &["path", "file"],
        [
            ("path", json!({"description": "The attribute.", "$ref": "#/$defs/pointer"})),
            ("file", text("The file, next to the payload.")),
            ("template", text("What stands in the payload instead; has exactly one %s, for the file.")),
            ("mode", keyword::<ExternalizedMode>("How the attribute is read.")),
            ("saveBehavior", keyword::<SaveBehavior>("What saving does.")),
            ("renderBehavior", keyword::<RenderBehavior>("What reading does.")),
            ("enabled", boolean("Whether the entry counts; true when not set.")),
        ],
    )
}

fn defaults() -> Json {
    let source = json!({"type": ["object", "string"]});
    let mut value = source.clone();
    value["description"] = "The baseline: an object, or an include of a file.".into();
    object(
        "What payloads inherit.",
        &[],
        [
            ("mode", keyword::<DefaultsMode>("What happens to what is inherited; inherit when not set.")),
            ("useProfiles", list("The profiles to apply, in order.", &json!({"$ref": "#/$defs/text"}))),
            ("value", value),
            ("profiles", map("Alternatives to select from, by name.", &source)),
        ],
    )
}

fn operations() -> Json {
    let steps = list("Steps that precede those of every operation.", &json!({"$ref": "#/$defs/step"}));
    let defaults = object("What holds for all operations.", &[], [("transforms", steps)]);
    let named = OperationName::ALL.map(|name| {
        let kind = if name == OperationName::List { "listOperation" } else { "operation" };
        (name.key(), json!({"$ref": format!("#/$defs/{kind}")}))
    });
    object("What is sent to the server.", &[], std::iter::once(("defaults", defaults)).chain(named))
}

fn operation() -> Json {
    let header_map = map("Templates of header values.", &json!({"$ref": "#/$defs/text"}));
    let headers = json!({"oneOf": [header_map, {"type": "array", "items": header_map}]});
    let transforms = list("Steps on the payload.", &json!({"$ref": "#/$defs/step"}));
    object(
        "One operation.",
        &[],
        [
            ("method", text("Template of the HTTP method.")),
            (
                "path",
                text("Template of the path; relative to the remote collection if it starts with a dot."),
            ),
            ("query", map("Templates of query values.", &json!({"$ref": "#/$defs/text"}))),
            ("headers", headers),
            ("body", json!({"description": "What is sent instead of the payload, literally."})),
            ("transforms", transforms),
            ("validate", validate()),
        ],
    )
}

fn list_operation() -> Json {
    let mut schema = operation();
    schema["description"] = "The operation that lists a collection.".into();
    schema["properties"]["pagination"] = pagination();
    schema
}

fn pagination() -> Json {
    let pointer = |description: &str| json!({"description": description, "$ref": "#/$defs/pointer"});
    let integer = |description: &str, least: u32, most: u32| json!({"description": description, "type": "integer", "minimum": least, "maximum": most});
    object(
        "How the pages after the first one are asked for; seen from the answers when not set.",
        &["style"],
        [
            ("style", keyword::<PaginationStyle>("What leads to the next page; none: there is none.")),
            ("pointer", pointer("Where an answer has the URL (next) or the cursor of the next page.")),
            ("parameter", text("The query parameter of the cursor, the offset or the number of the page.")),
            ("sizeParameter", text("The query parameter of the size, unless the server has a fixed one.")),
            ("size", integer("How many entries a full page has.", 1, Numbered::MAX_SIZE)),
            ("start", integer("The first offset (0 when not set) or page (1 when not set).", 0, u32::MAX)),
            ("items", pointer("Where an answer has its entries, if it is no common list.")),
        ],
    )
}

fn step() -> Json {
    let mut schema = object(
        "One step of a transform pipeline.",
        &[],
        [
            ("selectAttributes", pointers_or_one("Keep only these parts.")),
            ("excludeAttributes", pointers_or_one("Drop these parts.")),
            ("jqExpression", text("Replace the payload by what this jq expression gives.")),
        ],
    );
    schema["minProperties"] = 1.into();
    schema
}

fn validate() -> Json {
    let assertion = object(
        "A condition.",
        &["jq"],
        [
            ("jq", text("A jq expression that must give true.")),
            ("message", text("What to tell whoever violates it.")),
        ],
    );
    object(
        "What a request body must satisfy.",
        &[],
        [
            ("requiredAttributes", pointers_or_one("What the body must have.")),
            ("schemaRef", text("openapi:request-body, or openapi:#/ and a place of the OpenAPI document.")),
            ("assertions", list("Conditions that the body must meet.", &assertion)),
        ],
    )
}

fn object<'k>(
    description: &str,
    required: &[&str],
    properties: impl IntoIterator<Item = (&'k str, Json)>,
) -> Json {
    let properties: Map<_, _> =
        properties.into_iter().map(|(key, schema)| (key.to_owned(), schema)).collect();
    let mut schema = json!({
        "description": description,
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Where a string is wanted YAML takes any scalar as its source text.
fn text(description: &str) -> Json {
    json!({"description": description, "$ref": "#/$defs/text"})
}

fn boolean(description: &str) -> Json {
    json!({"description": description, "type": "boolean"})
}

fn keyword<K: Keyword>(description: &str) -> Json {
    let words: Vec<_> = K::WORDS.iter().map(|(word, _)| *word).collect();
    json!({"description": description, "enum": words})
}

fn list(description: &str, items: &Json) -> Json {
    json!({"description": description, "type": "array", "items": items})
}

fn map(description: &str, values: &Json) -> Json {
    json!({"description": description, "type": "object", "additionalProperties": values})
}

fn pointers(description: &str) -> Json {
    json!({"description": description, "$ref": "#/$defs/pointers"})
}

fn pointers_or_one(description: &str) -> Json {
    let choices = json!([{"$ref": "#/$defs/pointer"}, {"$ref": "#/$defs/pointers"}]);
    json!({"description": description, "oneOf": choices})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{Document, DocumentError};
    use super::*;
    use crate::payload::fields::FieldError;

    /// Puts a value where an object of the schema stands.
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
    fn schema_and_decoder_know_the_same_keys() {
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
        // Eight of the document, four of each operation, and the pagination of list.
        assert_eq!(objects, 8 + 4 * OperationName::ALL.len() + 1);
    }

    /// The decoder names what is missing of an empty object.
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
        let keys = json_schema()["$defs"]["listOperation"]["properties"]["pagination"]["properties"].clone();
        let words = keys["style"]["enum"].as_array().unwrap().clone();
        assert_eq!(words.len(), 6);
        for word in words {
            let list = |pagination: Json| json!({"operations": {"list": {"pagination": pagination}}});
            let all = json!({"pointer": "/a", "parameter": "b", "sizeParameter": "c", "size": 1, "start": 1,
                "items": "/d"});
            let style = PaginationStyle::WORDS.iter().find(|(known, _)| word == *known).unwrap().1;
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
                error.contains(&format!("operations.list.pagination.{foreign}: means nothing")),
                "{error}"
            );
        }
    }

    #[test]
    fn keywords_of_the_schema_decode() {
        let schema = json_schema();
        let resource = "/properties/resource/properties";
        for (key, place) in [("format", "format"), ("defaults", "defaults/properties/mode")] {
            let words = schema.pointer(&format!("{resource}/{place}/enum")).unwrap().as_array().unwrap();
            assert!(words.len() > 2);
            for word in words {
                let value = if key == "defaults" { json!({"mode": word}) } else { word.clone() };
                decode(&json!({"resource": {key: value}})).unwrap();
            }
        }
    }
}
