//! Tests of decoding metadata documents.

use rstest::rstest;

use super::super::*;
use crate::error::{Categorized, Category};
use crate::payload::PayloadType::{Json, Text, Yaml};
use crate::payload::Value;
use crate::payload::pointer::Pointer;

pub fn yaml(text: &str) -> Document {
    Document::decode(Yaml, text.as_bytes()).unwrap()
}

pub fn json(text: &str) -> Document {
    Document::decode(Json, text.as_bytes()).unwrap()
}

pub fn pointers(list: &[&str]) -> Vec<Pointer> {
    list.iter().map(|text| Pointer::parse(text).unwrap()).collect()
}

/// A document with all fields.
pub const FULL: &str = r#"
selector: {descendants: true}
resource:
  id: "{{/uid}}"
  alias: "{{lowercase /name}}"
  remoteCollectionPath: /v2/{{/shop}}/tills
  format: json
  requiredAttributes: [/name]
  secret: false
  secretAttributes: [/pin, /keys/0]
  externalizedAttributes: [{path: /hooks/*/run, file: run.sh}]
  defaults: {value: {tier: silver}}
operations:
  defaults: {transforms: [{excludeAttributes: /etag}], failed: {jq: .error}}
  create:
    method: POST
    path: ./import
    query: {mode: create}
    headers: {Accept: application/json, X-Shop: "{{/shop}}"}
    body: null
    transforms: [{jqExpression: "{till: .}"}]
    validate: {requiredAttributes: /name, schemaRef: openapi:request-body,
               assertions: [{jq: ".size > 0", message: size must be positive}]}
"#;

fn full_resource() -> ResourceSection {
    let path = Pointer::parse("/hooks/*/run").unwrap();
    let tier = DefaultsSource::Inline([("tier".to_owned(), Value::from("silver"))].into());
    ResourceSection {
        id: Some("{{/uid}}".to_owned()),
        alias: Some("{{lowercase /name}}".to_owned()),
        remote_collection_path: Some("/v2/{{/shop}}/tills".to_owned()),
        format: Some(Format::Concrete(Json)),
        required_attributes: Some(pointers(&["/name"])),
        secret: Some(false),
        secret_attributes: Some(pointers(&["/pin", "/keys/0"])),
        externalized_attributes: Some(vec![ExternalizedAttribute {
            path,
            file: "run.sh".to_owned(),
            template: None,
            mode: None,
            save_behavior: None,
            render_behavior: None,
            enabled: None,
        }]),
        defaults: Some(DefaultsSection { value: Some(tier), ..DefaultsSection::default() }),
        ..ResourceSection::default()
    }
}

#[test]
fn a_complete_document() {
    let create = OperationSection {
        method: Some("POST".to_owned()),
        path: Some("./import".to_owned()),
        query: Some([("mode".to_owned(), "create".to_owned())].into()),
        headers: Some([("Accept", "application/json"), ("X-Shop", "{{/shop}}")].into_iter().collect()),
        body: None,
        transforms: Some(vec![Step::Jq("{till: .}".to_owned())]),
        validate: Some(ValidateSection {
            required_attributes: Some(pointers(&["/name"])),
            schema_ref: Some(SchemaRef::RequestBody),
            assertions: Some(vec![Assertion {
                jq: ".size > 0".to_owned(),
                message: Some("size must be positive".to_owned()),
            }]),
        }),
        ..OperationSection::default()
    };
    let expected = Document {
        selector: Some(SelectorSection { descendants: Some(true) }),
        resource: Some(full_resource()),
        operations: Some(OperationsSection {
            defaults: Some(OperationDefaultsSection {
                transforms: Some(vec![Step::Exclude(pointers(&["/etag"]))]),
                failed: Some(FailedSection { jq: ".error".to_owned() }),
            }),
            operations: [(OperationName::Create, create)].into(),
        }),
    };
    let document = yaml(FULL);
    assert_eq!(document, expected);
    assert!(document.reaches_descendants());
}

#[rstest]
#[case("")]
#[case("# nothing\n")]
#[case("null")]
#[case("{}")]
fn an_empty_document_has_no_sections(#[case] text: &str) {
    assert_eq!(yaml(text), Document::default());
}

#[rstest]
#[case("")]
#[case(" \n")]
#[case("null")]
#[case("{}")]
fn an_empty_json_document_has_no_sections(#[case] text: &str) {
    assert_eq!(json(text), Document::default());
}

#[rstest]
#[case("resource: {ID: /id}", "line 1, column 12: unknown key \"ID\" in resource; did you mean \"id\"?")]
#[case(
    "selector: {}\nresources: {}",
    "line 2, column 1: unknown key \"resources\" in the document; did you mean \"resource\"?"
)]
#[case(
    "operations:\n  create:\n    methdo: PUT",
    "line 3, column 5: unknown key \"methdo\" in operations.create; did you mean \"method\"?"
)]
#[case(
    "operations: {get: {pagination: {style: link}}}",
    "line 1, column 20: unknown key \"pagination\" in operations.get; use method, path, query, headers, body, transforms, validate, failed, from, absent"
)]
#[case(
    "operations:\n  list:\n    pagination:\n      style: page\n      pagesize: 3",
    "line 5, column 7: unknown key \"pagesize\" in operations.list.pagination; use style, pointer, parameter, sizeParameter, size, start, items"
)]
#[case(
    "operations: {list: {pagination: {style: links}}}",
    "line 1, column 34: operations.list.pagination.style: \"links\" is not supported; use link or next or cursor or offset or page or none"
)]
#[case(
    "operations: {list: {pagination: {pointer: /next}}}",
    "line 1, column 21: operations.list.pagination: \"style\" is missing"
)]
#[case(
    "operations: {list: {pagination: {style: cursor, pointer: /next}}}",
    "line 1, column 21: operations.list.pagination: \"parameter\" is missing"
)]
#[case(
    "operations: {list: {pagination: {style: next, pointer: next}}}",
    "line 1, column 47: operations.list.pagination.pointer: JSON Pointer \"next\" must start with \"/\""
)]
#[case(
    "operations: {list: {pagination: {style: link, size: 3}}}",
    "line 1, column 47: operations.list.pagination.size: is not allowed with style: link; remove it, or choose another style"
)]
#[case(
    "operations: {list: {pagination: {style: page, parameter: p, size: 0}}}",
    "line 1, column 61: operations.list.pagination.size: must be from 1 to 1000000"
)]
#[case(
    "operations: {list: {pagination: {style: page, parameter: p, size: 1, start: -1}}}",
    "line 1, column 70: operations.list.pagination.start: must be from 0 to 4294967295"
)]
#[case(
    "operations: {patch: {}}",
    "line 1, column 14: unknown key \"patch\" in operations; use defaults, create, get, update, delete, list, compare"
)]
#[case(
    "operations: {defaults: {path: /a}}",
    "line 1, column 25: unknown key \"path\" in operations.defaults; use transforms, failed"
)]
#[case("resource: {zzz: 1, yyy: 2}", "line 1, column 12: unknown key \"zzz\" in resource")]
#[case(
    "operations: {get: {transforms: [{selectAttributes: /a}, {excludeAttribute: /b}]}}",
    "line 1, column 58: unknown key \"excludeAttribute\" in operations.get.transforms[1]; did you mean \"excludeAttributes\"?"
)]
#[case(
    "operations: {get: {validate: {schemaref: openapi:request-body}}}",
    "line 1, column 31: unknown key \"schemaref\" in operations.get.validate; did you mean \"schemaRef\"?"
)]
#[case(
    "operations: {get: {validate: {assertions: [{jq: ., msg: a}]}}}",
    "line 1, column 52: unknown key \"msg\" in operations.get.validate.assertions[0]; use jq, message"
)]
#[case(
    "resource: {externalizedAttributes: [{path: /a, file: a, savebehavior: externalize}]}",
    "line 1, column 57: unknown key \"savebehavior\" in resource.externalizedAttributes[0]; did you mean \"saveBehavior\"?"
)]
#[case(
    "resource: {defaults: {profile: {}}}",
    "line 1, column 23: unknown key \"profile\" in resource.defaults; did you mean \"profiles\"?"
)]
#[case(
    "selector: {Descendants: null}",
    "line 1, column 12: unknown key \"Descendants\" in selector; did you mean \"descendants\"?"
)]
#[case("resource: {1: a}", "line 1, column 12: unknown key \"1\" in resource")]
#[case(
    "resource: {id: /a}\nresource: {}",
    "cannot decode yaml, line 2, column 1: duplicate key \"resource\"; keep one of them"
)]
#[case(
    "resource: {}\n---\nresource: {}",
    "cannot decode yaml, line 2, column 1: a second document; there must be exactly one"
)]
#[case("[]", "line 1, column 1: the document: expected an object, found an array")]
#[case("resource: text", "line 1, column 1: resource: expected an object, found a string")]
#[case("resource:\n  id: [/a]", "line 2, column 3: resource.id: expected a string, found an array")]
#[case(
    "resource: {secret: \"true\"}",
    "line 1, column 12: resource.secret: expected true or false, found a string"
)]
#[case(
    "resource: {requiredAttributes: /a}",
    "line 1, column 12: resource.requiredAttributes: expected a list, found a string"
)]
#[case(
    "resource: {secretAttributes: /a}",
    "line 1, column 12: resource.secretAttributes: expected a list, found a string"
)]
#[case(
    "resource:\n  requiredAttributes:\n    - /a\n    - b",
    "line 4, column 7: resource.requiredAttributes[1]: JSON Pointer \"b\" must start with \"/\""
)]
#[case(
    "resource: {secretAttributes: [/a~2]}",
    "line 1, column 31: resource.secretAttributes[0]: JSON Pointer \"/a~2\" has a \"~\" that is not \"~0\" (tilde) or \"~1\" (slash)"
)]
#[case(
    "resource: {secretAttributes: ['']}",
    "line 1, column 31: resource.secretAttributes[0]: JSON Pointer \"\" must start with \"/\""
)]
#[case(
    "resource: {secretAttributes: [null]}",
    "line 1, column 31: resource.secretAttributes[0]: expected a string, found null"
)]
#[case(
    "resource: {format: toml}",
    "line 1, column 12: resource.format: \"toml\" is not supported; use json, yaml, ini, properties, xml, hcl, text, octet-stream or any"
)]
#[case(
    "resource: {defaults: {mode: drop}}",
    "line 1, column 23: resource.defaults.mode: \"drop\" is not supported; use inherit or ignore or replace"
)]
#[case(
    "resource: {defaults: {value: [1]}}",
    "line 1, column 23: resource.defaults.value: expected an object, found an array"
)]
#[case(
    "resource: {externalizedAttributes: [{file: a}]}",
    "line 1, column 37: resource.externalizedAttributes[0]: \"path\" is missing"
)]
#[case(
    "resource: {externalizedAttributes: [{path: /a}]}",
    "line 1, column 37: resource.externalizedAttributes[0]: \"file\" is missing"
)]
#[case(
    "resource: {externalizedAttributes: [{path: /a, file: a, mode: binary}]}",
    "line 1, column 57: resource.externalizedAttributes[0].mode: \"binary\" is not supported; use text"
)]
#[case(
    "operations: {get: {headers: {Accept: a, accept: b}}}",
    "line 1, column 41: operations.get.headers.accept: the header \"accept\" is duplicated; names are not case-sensitive"
)]
#[case(
    "operations: {get: {query: {a: [1]}}}",
    "line 1, column 28: operations.get.query.a: expected a string, found an array"
)]
#[case(
    "operations: {get: {body: {1: a}}}",
    "line 1, column 27: operations.get.body: an integer cannot be a key; put it in quotes"
)]
#[case(
    "operations: {get: {body: {a: .nan}}}",
    "line 1, column 27: operations.get.body: a number that is not finite as a 64-bit float"
)]
#[case(
    "operations: {get: {validate: {assertions: [{message: a}]}}}",
    "line 1, column 44: operations.get.validate.assertions[0]: \"jq\" is missing"
)]
#[case(
    "operations: {get: {validate: {schemaRef: 'openapi:/a'}}}",
    "line 1, column 31: operations.get.validate.schemaRef: \"openapi:/a\" is neither openapi:request-body nor openapi:#/<pointer>"
)]
#[case(
    "operations: {get: {validate: {schemaRef: 'openapi:#/a~'}}}",
    "line 1, column 31: operations.get.validate.schemaRef: JSON Pointer \"/a~\" has a \"~\" that is not \"~0\" (tilde) or \"~1\" (slash)"
)]
fn yaml_errors_name_their_position(#[case] text: &str, #[case] message: &str) {
    let error = Document::decode(Yaml, text.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert_eq!(error.category(), Category::Validation);
}

#[rstest]
#[case(
    "{\"resource\": {\n  \"iD\": \"/a\"}}",
    "line 2, column 3: unknown key \"iD\" in resource; did you mean \"id\"?"
)]
#[case(
    "{\"resource\": {},\n \"resource\": {}}",
    "cannot decode json, line 2, column 2: duplicate key \"resource\"; keep one of them"
)]
#[case(
    "{}\n{}",
    "cannot decode json, line 2, column 1: more text after the document; a file holds exactly one"
)]
#[case("{\"resource\": {\"id\": 5}}", "line 1, column 15: resource.id: expected a string, found an integer")]
#[case(
    "{\"operations\": {\"get\": {\"query\": {\"dry\": true}}}}",
    "line 1, column 35: operations.get.query.dry: expected a string, found a boolean"
)]
#[case(
    "{\"resource\": {\"requiredAttributes\": [\"/a\", \"b\"]}}",
    "line 1, column 44: resource.requiredAttributes[1]: JSON Pointer \"b\" must start with \"/\""
)]
fn json_errors_name_their_position(#[case] text: &str, #[case] message: &str) {
    assert_eq!(Document::decode(Json, text.as_bytes()).unwrap_err().to_string(), message);
}

#[test]
fn metadata_is_yaml_or_json() {
    let error = Document::decode(Text, b"{}").unwrap_err();
    assert_eq!(error.to_string(), "a metadata document is yaml or json, not text");
}

#[rstest]
#[case("true", Some("true"))]
#[case("1.10", Some("1.10"))]
#[case("0x10", Some("0x10"))]
#[case("99999999999999999999", Some("99999999999999999999"))]
#[case(".nan", Some(".nan"))]
#[case("2026-01-02", Some("2026-01-02"))]
#[case("\"null\"", Some("null"))]
#[case("!!str null", Some("null"))]
#[case("''", Some(""))]
#[case("~", None)]
#[case("", None)]
fn yaml_scalars_are_strings_by_their_source(#[case] scalar: &str, #[case] expected: Option<&str>) {
    let document = yaml(&format!("operations: {{get: {{method: GET, query: {{dry: {scalar} }}}}}}"));
    let query = &document.operations.unwrap().operations[&OperationName::Get].query;
    assert_eq!(query.as_ref().and_then(|query| query.get("dry")).map(String::as_str), expected);
}

#[test]
fn keys_of_headers_and_queries_are_strings_by_their_source_too() {
    let document = yaml("operations: {get: {query: {1.0: a, true: b}}}");
    let query = document.operations.unwrap().operations[&OperationName::Get].query.clone().unwrap();
    assert_eq!(query.keys().collect::<Vec<_>>(), ["1.0", "true"]);
}

#[test]
fn null_is_absent_everywhere() {
    let document = yaml(
        "selector: null
resource: {id: ~, format: null, requiredAttributes: null, secret: null, defaults: {value: null, profiles: {a: null}}}
operations:
  delete: null
  get: {query: {a: null}, headers: {A: null}, body: null, transforms: null, validate: {schemaRef: null}}
  list: {headers: [null, {A: null}]}",
    );
    let defaults = Some(DefaultsSection::default());
    assert_eq!(document.selector, None);
    assert_eq!(document.resource, Some(ResourceSection { defaults, ..ResourceSection::default() }));
    let validate = Some(ValidateSection::default());
    let get = OperationSection { validate, ..OperationSection::default() };
    let list = OperationSection::default();
    assert_eq!(
        document.operations.unwrap().operations,
        [(OperationName::Get, get), (OperationName::List, list)].into()
    );
}

#[test]
fn null_stays_inside_of_bodies_and_defaults() {
    let document = yaml("resource: {defaults: {value: {a: null}}}\noperations: {create: {body: {b: null}}}");
    let null = |key: &str| [(key.to_owned(), Value::Null)].into();
    let value = document.resource.unwrap().defaults.unwrap().value;
    assert_eq!(value, Some(DefaultsSource::Inline(null("a"))));
    let body = document.operations.unwrap().operations[&OperationName::Create].body.clone();
    assert_eq!(body, Some(Value::Object(null("b"))));
}

#[test]
fn empty_lists_and_maps_are_present() {
    let document = yaml(
        "resource: {requiredAttributes: [], secretAttributes: [], externalizedAttributes: [], defaults: {useProfiles: []}}
operations: {get: {query: {}, headers: {}, transforms: [], validate: {requiredAttributes: [], assertions: []}}, list: {headers: []}}",
    );
    let resource = document.resource.unwrap();
    assert_eq!(resource.required_attributes, Some(vec![]));
    assert_eq!(resource.secret_attributes, Some(vec![]));
    assert_eq!(resource.externalized_attributes, Some(vec![]));
    assert_eq!(resource.defaults.unwrap().use_profiles, Some(vec![]));
    let operations = document.operations.unwrap().operations;
    let get = &operations[&OperationName::Get];
    assert_eq!(get.query, Some([].into()));
    assert_eq!(get.headers, Some(Headers::default()));
    assert_eq!(operations[&OperationName::List].headers, Some(Headers::default()));
    assert_eq!(get.transforms, Some(vec![]));
    let validate =
        ValidateSection { required_attributes: Some(vec![]), schema_ref: None, assertions: Some(vec![]) };
    assert_eq!(get.validate, Some(validate));
}

#[rstest]
#[case("{Accept: a, X-B: '1'}", &[("Accept", "a"), ("X-B", "1")])]
#[case("[{Accept: a, X-B: 1}, {accept: b}]", &[("accept", "b"), ("X-B", "1")])]
fn headers_are_a_map_or_a_list_of_maps(#[case] headers: &str, #[case] expected: &[(&str, &str)]) {
    let document = yaml(&format!("operations: {{get: {{headers: {headers}}}}}"));
    let headers = document.operations.unwrap().operations[&OperationName::Get].headers.clone().unwrap();
    assert_eq!(headers.iter().collect::<Vec<_>>(), expected);
    assert_eq!(headers.get("ACCEPT"), Some(expected[0].1));
}

#[rstest]
#[case("{selectAttributes: /a}", Some(Step::Select(pointers(&["/a"]))))]
#[case("{selectAttributes: []}", Some(Step::Select(vec![])))]
#[case("{excludeAttributes: [/a, /b]}", Some(Step::Exclude(pointers(&["/a", "/b"]))))]
#[case("{jqExpression: .a}", Some(Step::Jq(".a".to_owned())))]
#[case("{jqExpression: .a, selectAttributes: null}", Some(Step::Jq(".a".to_owned())))]
#[case("{jqExpression: ' ', selectAttributes: [/a]}", Some(Step::Select(pointers(&["/a"]))))]
#[case("{jqExpression: .a, selectAttributes: []}", None)]
#[case("{selectAttributes: /a, excludeAttributes: /b}", None)]
#[case("{jqExpression: ' '}", None)]
#[case("{}", None)]
fn a_step_has_exactly_one_kind(#[case] step: &str, #[case] expected: Option<Step>) {
    let text = format!("operations: {{get: {{transforms: [{step}]}}}}");
    match (Document::decode(Yaml, text.as_bytes()), expected) {
        (Ok(document), Some(expected)) => {
            let operations = document.operations.unwrap().operations;
            assert_eq!(operations[&OperationName::Get].transforms, Some(vec![expected]));
        }
        (Err(error), None) => assert_eq!(
            error.to_string(),
            "line 1, column 33: operations.get.transforms[0]: \
             a step has exactly one of selectAttributes, excludeAttributes and jqExpression"
        ),
        (result, expected) => panic!("{result:?}, expected {expected:?}"),
    }
}

#[rstest]
#[case("any", Some(Format::Any))]
#[case("binary", Some(Format::Concrete(crate::payload::PayloadType::OctetStream)))]
#[case("octet-stream", Some(Format::Concrete(crate::payload::PayloadType::OctetStream)))]
#[case("hcl", Some(Format::Concrete(crate::payload::PayloadType::Hcl)))]
#[case("''", None)]
fn formats(#[case] name: &str, #[case] expected: Option<Format>) {
    assert_eq!(yaml(&format!("resource: {{format: {name}}}")).resource.unwrap().format, expected);
}

#[test]
fn anchors_and_merge_keys_work() {
    let document = yaml(
        "operations:
  get: &read {method: POST, query: {a: b}}
  list: {<<: *read, path: /list}",
    );
    let list = &document.operations.unwrap().operations[&OperationName::List];
    assert_eq!(list.method.as_deref(), Some("POST"));
    assert_eq!(list.path.as_deref(), Some("/list"));
}
