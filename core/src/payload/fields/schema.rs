//! JSON Schemas of documents.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Value as Json, json};

/// Returns the JSON Schema (draft 2020-12) of documents that [`Field::decode`](super::Field::decode) reads as a `T`.
pub fn json_schema_of<T: JsonSchema>(title: &str) -> Json {
    let generator = SchemaSettings::draft2020_12().with_transform(as_decoded).into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

/// Adapts a schema to the deserializer: a string may be another scalar of YAML. Null is not suggested in place of
/// absence, and defaults and the sizes of Rust's numbers are not part of the format.
fn as_decoded(schema: &mut Schema) {
    transform_subschemas(&mut as_decoded, schema);
    for key in ["default", "format"] {
        schema.remove(key);
    }
    if let Some(Json::Array(choices)) = schema.remove("anyOf") {
        match &choices[..] {
            [Json::Object(choice), null] if *null == json!({"type": "null"}) => {
                schema.ensure_object().extend(choice.clone());
            }
            _ => drop(schema.insert("anyOf".to_owned(), choices.into())),
        }
    }
    // The variants of an enum with their comments.
    let words = schema.get("oneOf").and_then(Json::as_array).and_then(|choices| {
        choices.iter().map(|choice| choice.get("const").cloned()).collect::<Option<Vec<_>>>()
    });
    if let Some(words) = words {
        schema.remove("oneOf");
        schema.insert("enum".to_owned(), words.into());
    }
    for key in ["type", "enum"] {
        if let Some(Json::Array(allowed)) = schema.get_mut(key) {
            allowed.retain(|allowed| allowed != "null" && !allowed.is_null());
        }
    }
    if let Some([single]) = schema.get("type").and_then(Json::as_array).map(Vec::as_slice) {
        let single = single.clone();
        schema.insert("type".to_owned(), single);
    }
    let is_text = schema.get("type") == Some(&"string".into());
    if is_text && ["const", "enum", "pattern"].map(|key| schema.get(key)) == [None; 3] {
        schema.insert("type".to_owned(), json!(["string", "number", "boolean"]));
    }
}
