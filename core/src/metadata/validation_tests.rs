//! Tests of the validation of request bodies.

use http::Method;
use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};
use crate::metadata::document::{Document, Layers, OperationName};
use crate::payload::{PayloadType, decode};

/// Django REST framework describes the ids that the server assigns in this way.
const READ_ONLY: &[u8] =
    br#"{"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": {"/groups": {"post":
    {"requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"id":
    {"type": "integer", "readOnly": true}, "name": {"type": "string"}}, "required": ["id", "name"]}}}},
    "responses": {"201": {"description": ""}}}}}}"#;
const PETS: &[u8] = include_bytes!("../../tests/fixtures/openapi/petstore-3.0.yaml");
const TILLS: &[u8] = include_bytes!("../../tests/fixtures/openapi/tills-3.1.json");
const CLIENTS: &[u8] = include_bytes!("../../tests/fixtures/openapi/clients-2.0.yaml");

fn value(yaml: &str) -> Value {
    decode(PayloadType::Yaml, yaml.as_bytes()).unwrap()
}

/// The rules of a `validate` section.
fn rules(validate: &str) -> ResolvedValidation {
    let text = format!("operations: {{create: {{validate: {validate}}}}}");
    let document = Document::decode(PayloadType::Yaml, text.as_bytes()).unwrap();
    let mut layers = Layers::default();
    layers.push(&document, &|_| Err("no include".into())).unwrap();
    layers.resolve().unwrap().operation(OperationName::Create).validation.clone()
}

fn outcome(validation: Result<Validation, ValidationError>, body: &str, fields: &str) -> String {
    let Value::Object(fields) = value(fields) else { panic!("fields are an object") };
    match validation.and_then(|validation| validation.check(&value(body), &fields)) {
        Ok(()) => String::new(),
        Err(error) => {
            assert_eq!(error.category(), Category::Validation);
            error.to_string()
        }
    }
}

#[rstest]
#[case::nothing("{}", "1", "{}", "")]
#[case::required("{requiredAttributes: /name}", "{name: Rio}", "{}", "")]
#[case::required_null(
    "{requiredAttributes: /name}",
    "{name: null}",
    "{}",
    "the request body lacks required attributes: /name"
)]
#[case::all_missing(
    "{requiredAttributes: [/a, /b/c, /d]}",
    "{d: 1, b: {}}",
    "{}",
    "the request body lacks required attributes: /a, /b/c"
)]
#[case::required_of_the_path("{requiredAttributes: [/shop]}", "{}", "{shop: rio}", "")]
#[case::null_is_not_replaced(
    "{requiredAttributes: [/shop]}",
    "{shop: null}",
    "{shop: rio}",
    "the request body lacks required attributes: /shop"
)]
#[case::assertion("{assertions: [{jq: '.size > 0', message: size must be positive}]}", "{size: 1}", "{}", "")]
#[case::violated(
    "{assertions: [{jq: '.size > 0', message: size must be positive}]}",
    "{size: 0}",
    "{}",
    "the request body violates an assertion: size must be positive"
)]
#[case::without_message(
    "{assertions: [{jq: .open}]}",
    "{open: null}",
    "{}",
    "the request body violates an assertion: .open"
)]
#[case::blank_message(
    "{assertions: [{jq: .open, message: ' '}]}",
    "{open: false}",
    "{}",
    "the request body violates an assertion: .open"
)]
#[case::some_output("{assertions: [{jq: '.[]'}]}", "{a: false, b: 0}", "{}", "")]
#[case::no_output("{assertions: [{jq: '.[]'}]}", "{}", "{}", "the request body violates an assertion: .[]")]
#[case::second_assertion(
    "{assertions: [{jq: .a}, {jq: .b}]}",
    "{a: 1}",
    "{}",
    "the request body violates an assertion: .b"
)]
#[case::assertion_of_the_path("{assertions: [{jq: '.shop == \"rio\"'}]}", "{}", "{shop: rio}", "")]
#[case::failing_jq(
    "{assertions: [{jq: '.a + 1'}]}",
    "{a: hush}",
    "{}",
    "cannot evaluate the assertion .a + 1: jq failed: cannot calculate with a string and a number"
)]
#[case::bad_jq(
    "{assertions: [{jq: .a}, {jq: '.b |'}]}",
    "{}",
    "{}",
    "validate.assertions[1].jq: the jq expression is not valid at line 1, column 5: expected term"
)]
#[case::required_first(
    "{requiredAttributes: [/a], assertions: [{jq: 'false'}]}",
    "{}",
    "{}",
    "the request body lacks required attributes: /a"
)]
#[case::no_document(
    "{schemaRef: 'openapi:request-body'}",
    "{}",
    "{}",
    "validate.schemaRef openapi:request-body needs the OpenAPI document of the server; name it in managedServer.http.openapi of the context, or in spec.openapi of the ManagedServer"
)]
fn without_document(#[case] validate: &str, #[case] body: &str, #[case] fields: &str, #[case] message: &str) {
    assert_eq!(outcome(Validation::compile(&rules(validate), None, None), body, fields), message);
}

#[rstest]
#[case::fits(PETS, "POST /pets", "{name: Rex, kind: dog}", "{}", "")]
#[case::missing(PETS, "POST /pets", "{name: Rex}", "{}", "/: missing required property \"kind\"")]
#[case::patch(
    PETS,
    "PATCH /pets/7",
    "{name: Rex, kind: fish}",
    "{}",
    "/kind: expected one of \"cat\", \"dog\""
)]
#[case::nullable(PETS, "POST /pets", "{name: Rex, kind: dog, owner: null}", "{}", "")]
#[case::null_of_an_optional_property(PETS, "POST /pets", "{name: Rex, kind: dog, friends: null}", "{}", "")]
#[case::null_below(
    PETS,
    "POST /pets",
    "{name: Rex, kind: dog, friends: [{name: T, kind: cat, food: null}]}",
    "{}",
    ""
)]
#[case::null_of_a_required_property(
    PETS,
    "POST /pets",
    "{name: Rex, kind: null}",
    "{}",
    "/kind: expected a string, found null"
)]
#[case::recursive(
    PETS,
    "POST /pets",
    "{name: Rex, kind: dog, friends: [{name: Tom}]}",
    "{}",
    "/friends/0: missing required property \"kind\""
)]
#[case::one_of(
    PETS,
    "POST /pets",
    "{name: Rex, kind: dog, food: {brand: x, y: 1}}",
    "{}",
    "/food: matches none of the 2 schemas in oneOf (/food/y: property \"y\" is not allowed; known are brand; /food: expected a string, found an object)"
)]
#[case::no_schema(
    PETS,
    "PUT /pets/7/photo",
    "{}",
    "{}",
    "validate.schemaRef openapi:request-body: the OpenAPI document has no schema for the body of its PUT"
)]
#[case::unknown_path(
    PETS,
    "",
    "{}",
    "{}",
    "validate.schemaRef openapi:request-body: the OpenAPI document has no schema for this path"
)]
#[case::field_of_the_path(
    TILLS,
    "PUT /shops/rio/tills/t1",
    "{name: t1, size: null}",
    "{shopId: rio, region: eu}",
    ""
)]
#[case::field_of_the_path_with_another_type(READ_ONLY, "POST /groups", "{name: G1}", "{id: G1}", "")]
#[case::fault_beside_a_field_of_the_path(
    READ_ONLY,
    "POST /groups",
    "{name: 1}",
    "{id: G1}",
    "/name: expected a string, found an integer"
)]
#[case::field_below_an_explicit_one(
    TILLS,
    "PUT /shops/rio/tills/t1",
    "{name: t1, size: 1, shopId: 7}",
    "{shopId: rio}",
    "/shopId: expected a string, found an integer"
)]
#[case::additional(
    TILLS,
    "PUT /shops/rio/tills/t1",
    "{name: t1, size: 1, x: 1}",
    "{}",
    "/x: property \"x\" is not allowed; known are extra, gone, name, shopId, size, …"
)]
#[case::false_schema(
    TILLS,
    "PUT /shops/rio/tills/t1",
    "{name: t1, size: 1, gone: 1}",
    "{}",
    "/gone: no value is allowed here"
)]
#[case::sibling(
    TILLS,
    "POST /shops/rio/tills",
    "{name: t1, size: 1}",
    "{}",
    "/: missing required property \"uid\""
)]
#[case::swagger(CLIENTS, "POST /clients", "{}", "{}", "/: missing required property \"clientId\"")]
#[case::swagger_path_item(
    CLIENTS,
    "PUT /clients/1",
    "{clientId: 1}",
    "{}",
    "/clientId: expected a string, found an integer"
)]
fn request_bodies(
    #[case] document: &[u8],
    #[case] request: &str,
    #[case] body: &str,
    #[case] fields: &str,
    #[case] message: &str,
) {
    let document = OpenApi::parse(document).unwrap();
    let operation = request.split_once(' ').map(|(method, path)| {
        let method: Method = method.parse().unwrap();
        document.path(path, "").unwrap().require(&method).unwrap()
    });
    let validation =
        Validation::compile(&rules("{schemaRef: 'openapi:request-body'}"), Some(&document), operation);
    let found = outcome(validation, body, fields);
    let violation =
        found.strip_prefix("the request body does not match openapi:request-body: ").unwrap_or(&found);
    assert_eq!(violation.replacen("the whole body:", "/:", 1), message);
}

#[rstest]
#[case::components(
    "openapi:#/components/schemas/Named",
    "{}",
    "the request body does not match openapi:#/components/schemas/Named: the whole body: missing required property \"name\""
)]
#[case::missing(
    "openapi:#/components/schemas/None",
    "{}",
    "validate.schemaRef: the OpenAPI document has no schema at #/components/schemas/None: #/components/schemas/None does not exist"
)]
#[case::escaped(
    "openapi:#/paths/~1pets/get/responses/200/content/application~1json/schema",
    "{}",
    "the request body does not match openapi:#/paths/~1pets/get/responses/200/content/application~1json/schema: the whole body: expected an array, found an object"
)]
fn schemas_by_pointer(#[case] reference: &str, #[case] body: &str, #[case] message: &str) {
    let document = OpenApi::parse(PETS).unwrap();
    let rules = rules(&format!("{{schemaRef: '{reference}'}}"));
    assert_eq!(outcome(Validation::compile(&rules, Some(&document), None), body, "{}"), message);
}

#[test]
fn definitions_of_swagger_have_both_names() {
    let document = OpenApi::parse(CLIENTS).unwrap();
    for reference in ["openapi:#/definitions/Client", "openapi:#/components/schemas/Client"] {
        let rules = rules(&format!("{{schemaRef: '{reference}'}}"));
        let found = outcome(Validation::compile(&rules, Some(&document), None), "{}", "{}");
        assert!(found.ends_with("missing required property \"clientId\""), "{found}");
    }
}

#[test]
fn bytes_cannot_be_validated() {
    let validation = Validation::compile(&rules("{requiredAttributes: /a}"), None, None).unwrap();
    let error = validation.check(&Value::Bytes(vec![1]), &Object::new()).unwrap_err();
    assert!(matches!(error, ValidationError::Unstructured), "{error}");
}

#[test]
fn messages_do_not_contain_values() {
    let document = OpenApi::parse(PETS).unwrap();
    let operation = document.path("/pets", "").unwrap().require(&Method::POST).unwrap();
    let rules = rules("{schemaRef: 'openapi:request-body'}");
    let validation = Validation::compile(&rules, Some(&document), Some(operation)).unwrap();
    for body in ["{name: 1, kind: hush}", "{name: Rex, kind: hush}", "{name: Rex, kind: dog, food: [hush]}"] {
        let error = validation.check(&value(body), &Object::new()).unwrap_err().to_string();
        assert!(!error.contains("hush"), "{error}");
    }
}
