//! The JSON Schema of a metadata document.

use serde_json::{Map, Value as Json, json};

use super::{Format, Numbered, OperationName};
use crate::payload::PayloadType;

/// Returns the JSON Schema (draft 2020-12) for completion and checks in editors. It defines the keys and the types of
/// values. Only [`Document::decode`](super::Document) and validation check templates and combinations of fields.
pub fn json_schema() -> Json {
    let mut schema = object(
        "How a resource or collection is mapped to the server.",
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
    let descendants = boolean("Whether it applies to all descendants of the collection (default: false).");
    object("The resources that the metadata of a collection applies to.", &[], [("descendants", descendants)])
}

fn resource() -> Json {
    let formats = PayloadType::ALL.map(|known| Format::Concrete(known).name());
    let formats: Vec<_> = formats.into_iter().chain([Format::Any.name(), "binary", "txt", ""]).collect();
    object(
        "The identity and the payload of a resource.",
        &[],
        [
            (
                "id",
                text(
                    "Identity template of the remote id, the segment that addresses the resource on the server.",
                ),
            ),
            ("alias", text("Identity template of the alias, the name in the repository.")),
            ("remoteCollectionPath", text("Template of the path of the collection on the server.")),
            ("format", json!({"description": "The format of payloads.", "enum": formats})),
            ("requiredAttributes", pointers("Attributes that a payload must have.")),
            ("secret", boolean("Whether the whole resource is a secret.")),
            ("secretAttributes", pointers("Attributes that are secret.")),
            ("externalizedAttributes", list("Attributes that are kept in their own files.", &externalized())),
            ("defaults", defaults()),
        ],
    )
}

fn externalized() -> Json {
    object(
        "An attribute that is kept in its own file.",
        &["path", "file"],
        [
            ("path", json!({"description": "The attribute.", "$ref": "#/$defs/pointer"})),
            ("file", text("The file, next to the payload.")),
            ("template", text("The placeholder in the payload, with exactly one %s for the file.")),
            ("mode", keyword("How the attribute is read.", &["text"])),
            ("saveBehavior", keyword("How the attribute is handled on save.", &["externalize"])),
            ("renderBehavior", keyword("How the attribute is handled on read.", &["include"])),
            ("enabled", boolean("Whether the entry is enabled (default: true).")),
        ],
    )
}

fn defaults() -> Json {
    let source = json!({"type": ["object", "string"]});
    let mut value = source.clone();
    value["description"] = "The baseline: an object, or an include of a file.".into();
    object(
        "Default values of payloads.",
        &[],
        [
            (
                "mode",
                keyword(
                    "How inherited defaults are handled (default: inherit).",
                    &["inherit", "ignore", "replace"],
                ),
            ),
            ("useProfiles", list("The profiles to apply, in order.", &json!({"$ref": "#/$defs/text"}))),
            ("value", value),
            ("profiles", map("Named defaults that useProfiles selects.", &source)),
        ],
    )
}

fn operations() -> Json {
    let steps = list("Steps that run before the steps of each operation.", &json!({"$ref": "#/$defs/step"}));
    let defaults = object("Settings for all operations.", &[], [("transforms", steps)]);
    let named = OperationName::ALL.map(|name| {
        let kind = if name == OperationName::List { "listOperation" } else { "operation" };
        (name.key(), json!({"$ref": format!("#/$defs/{kind}")}))
    });
    object("The requests to the server.", &[], std::iter::once(("defaults", defaults)).chain(named))
}

fn operation() -> Json {
    let header_map = map("Templates of header values.", &json!({"$ref": "#/$defs/text"}));
    let headers = json!({"oneOf": [header_map, {"type": "array", "items": header_map}]});
    let transforms = list("Steps that transform the payload.", &json!({"$ref": "#/$defs/step"}));
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
            ("body", json!({"description": "The request body, sent literally instead of the payload."})),
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
        "How the pages after the first one are requested. By default, this is taken from the responses.",
        &["style"],
        [
            (
                "style",
                keyword(
                    "How the next page is found. none: the list has only one page.",
                    &["link", "next", "cursor", "offset", "page", "none"],
                ),
            ),
            (
                "pointer",
                pointer(
                    "The pointer of the URL (style next) or of the cursor of the next page in a response.",
                ),
            ),
            ("parameter", text("The query parameter for the cursor, the offset or the number of the page.")),
            ("sizeParameter", text("The query parameter for the size, unless the server has a fixed size.")),
            ("size", integer("The number of entries on a full page.", 1, Numbered::MAX_SIZE)),
            ("start", integer("The first offset (default 0) or page (default 1).", 0, u32::MAX)),
            ("items", pointer("The pointer of the entries in a response, if it is not a common list.")),
        ],
    )
}

fn step() -> Json {
    let mut schema = object(
        "One step of a transform pipeline.",
        &[],
        [
            ("selectAttributes", pointers_or_one("Keep only these attributes.")),
            ("excludeAttributes", pointers_or_one("Remove these attributes.")),
            ("jqExpression", text("Replace the payload with the result of this jq expression.")),
        ],
    );
    schema["minProperties"] = 1.into();
    schema
}

fn validate() -> Json {
    let assertion = object(
        "A condition on the request body.",
        &["jq"],
        [
            ("jq", text("A jq expression that must return true.")),
            ("message", text("The error message if the condition is false.")),
        ],
    );
    object(
        "The validation of a request body.",
        &[],
        [
            ("requiredAttributes", pointers_or_one("Attributes that the body must have.")),
            (
                "schemaRef",
                text(
                    "The schema of the body: openapi:request-body, or openapi:# and a JSON Pointer into the OpenAPI document.",
                ),
            ),
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

/// If a string is expected, YAML accepts any scalar as its source text.
fn text(description: &str) -> Json {
    json!({"description": description, "$ref": "#/$defs/text"})
}

fn boolean(description: &str) -> Json {
    json!({"description": description, "type": "boolean"})
}

fn keyword(description: &str, words: &[&str]) -> Json {
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

    use serde::de::{DeserializeOwned, Deserializer, Error, Visitor, value};
    use serde::forward_to_deserialize_any;

    use super::super::{
        DefaultsMode, Document, DocumentError, ExternalizedMode, PaginationStyle, RenderBehavior,
        SaveBehavior,
    };
    use super::*;
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
        // Eight objects of the document, four of each operation, and the pagination of list.
        assert_eq!(objects, 8 + 4 * OperationName::ALL.len() + 1);
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
        let keys = json_schema()["$defs"]["listOperation"]["properties"]["pagination"]["properties"].clone();
        let words = keys["style"]["enum"].as_array().unwrap().clone();
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

    /// Returns the names of the variants of `T`.
    fn words_of<T: DeserializeOwned>() -> Vec<&'static str> {
        struct Names<'n>(&'n mut Vec<&'static str>);

        impl<'de> Deserializer<'de> for Names<'_> {
            type Error = value::Error;

            fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
                Err(Error::custom("not an enum"))
            }

            fn deserialize_enum<V: Visitor<'de>>(
                self,
                _: &'static str,
                variants: &'static [&'static str],
                _: V,
            ) -> Result<V::Value, value::Error> {
                self.0.extend(variants);
                Err(Error::custom("only the names are needed"))
            }

            forward_to_deserialize_any! {
                bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
                unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
            }
        }

        let mut words = Vec::new();
        T::deserialize(Names(&mut words)).map(drop).unwrap_err();
        words
    }

    #[test]
    fn schema_and_types_have_the_same_words() {
        let schema = json_schema();
        let words = |place: &str| schema.pointer(&format!("{place}/enum")).unwrap().clone();
        let resource = "/properties/resource/properties";
        let externalized = format!("{resource}/externalizedAttributes/items/properties");
        let defaults = format!("{resource}/defaults/properties");
        assert_eq!(words(&format!("{externalized}/mode")), json!(words_of::<ExternalizedMode>()));
        assert_eq!(words(&format!("{externalized}/saveBehavior")), json!(words_of::<SaveBehavior>()));
        assert_eq!(words(&format!("{externalized}/renderBehavior")), json!(words_of::<RenderBehavior>()));
        assert_eq!(words(&format!("{defaults}/mode")), json!(words_of::<DefaultsMode>()));
        let style = "/$defs/listOperation/properties/pagination/properties/style";
        assert_eq!(words(style), json!(words_of::<PaginationStyle>()));
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
