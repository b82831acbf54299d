//! The JSON Schema of a catalogue.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use serde_json::{Value as Json, json};

use super::model::Catalogue;
use super::section::{Rule, rules};

/// Returns the schema (draft 2020-12), which is derived from the types of the decoder. Only the decoder checks formats
/// of single values and references.
pub fn schema() -> Json {
    let generator = SchemaSettings::draft2020_12().with_transform(as_decoded).into_generator();
    let mut schema = generator.into_root_schema_for::<Catalogue>();
    schema.insert("title".to_owned(), "Contexts of the declarest command line".into());
    if let Some(Json::Object(definitions)) = schema.get_mut("$defs") {
        for (section, definition) in definitions {
            let rules: Vec<_> = rules(section).iter().map(Rule::schema).collect();
            if !rules.is_empty() {
                definition["allOf"] = rules.into();
            }
        }
    }
    schema.to_value()
}

/// Adapts a schema to the decoder: a string may be another scalar of YAML. Null is not suggested in place of absence,
/// and the sizes of Rust's numbers are not part of the format.
fn as_decoded(schema: &mut Schema) {
    transform_subschemas(&mut as_decoded, schema);
    schema.remove("format");
    if let Some(Json::Array(choices)) = schema.remove("anyOf") {
        match &choices[..] {
            [Json::Object(choice), null] if *null == json!({"type": "null"}) => {
                schema.ensure_object().extend(choice.clone());
            }
            _ => drop(schema.insert("anyOf".to_owned(), choices.into())),
        }
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
    if is_text && schema.get("enum").is_none() && schema.get("pattern").is_none() {
        schema.insert("type".to_owned(), json!(["string", "number", "boolean"]));
    }
}

#[cfg(test)]
mod tests {
    use declarest_core::payload::{PayloadType, decode};
    use rstest::rstest;

    use super::super::decode_catalogue;
    use super::*;

    fn fits(yaml: &str) -> bool {
        let document = decode(PayloadType::Yaml, yaml.as_bytes()).unwrap().to_json().unwrap();
        jsonschema::validator_for(&schema()).unwrap().is_valid(&document)
    }

    #[test]
    fn a_catalogue_with_every_field_fits() {
        let full = include_str!("../../tests/cli/full.yaml");
        assert!(fits(full));
        decode_catalogue("full.yaml", PayloadType::Yaml, full.as_bytes()).unwrap();
    }

    /// Documents that the schema and the decoder both reject.
    #[rstest]
    #[case("current: dev")]
    #[case("contexts: {}")]
    #[case("contexts: [{name: a}]")]
    #[case("contexts: [{repository: {filesystem: {baseDir: /r}}}]")]
    #[case("contexts: [{name: a, repository: {}}]")]
    #[case("contexts: [{name: a, repository: {filesystem: {baseDir: /r}, git: {local: {baseDir: /r}}}}]")]
    #[case(
        "contexts: [{name: a, repository: {filesystem: {baseDir: /r}}, metadata: {baseDir: a, bundle: b}}]"
    )]
    #[case(
        "contexts: [{name: a, managedServer: {http: {url: x, auth: {customHeaders: [{header: a, value: b}]}}}}]"
    )]
    #[case("credentials: [{name: a, username: u, password: {prompt: false}}]")]
    #[case("credentials: [{name: a, username: u, password: {prompt: true, other: 1}}]")]
    fn schema_and_decoder_reject_the_same(#[case] yaml: &str) {
        assert!(!fits(yaml));
        assert!(decode_catalogue("x", PayloadType::Yaml, yaml.as_bytes()).is_err());
    }
}
