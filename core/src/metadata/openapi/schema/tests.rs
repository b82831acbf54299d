//! Tests of schemas.

use rstest::rstest;

use super::*;
use crate::payload::{PayloadType, decode};

fn json(text: &str) -> Value {
    decode(PayloadType::Yaml, text.as_bytes()).unwrap()
}

/// Compiles the schema, which is at `/s` in a document of this version.
fn compile(version: &str, schema: &str, more: &str) -> Schema {
    let document = OpenApi::parse(format!("openapi: {version}\ns: {schema}\n{more}").as_bytes()).unwrap();
    Schema::compile(&document, &"/s".parse().unwrap()).unwrap()
}

fn outcome(schema: &Schema, value: &str) -> String {
    schema.check(&json(value)).map_or_else(|violation| violation.to_string(), |()| String::new())
}

#[rstest]
#[case::anything("{}", "[1]", "")]
#[case::ignored_keywords("{minLength: 9, pattern: x, format: date, maximum: 0}", "a", "")]
#[case::string("{type: string}", "1", "the whole body: expected a string, found an integer")]
#[case::integer("{type: integer}", "3", "")]
#[case::integral_float("{type: integer}", "3.0", "")]
#[case::large_integral_float("{type: integer}", "1e300", "")]
#[case::fraction("{type: integer}", "3.5", "the whole body: expected an integer, found a float")]
#[case::number("{type: number}", "3", "")]
#[case::number_float("{type: number}", "3.5", "")]
#[case::boolean("{type: boolean}", "'true'", "the whole body: expected a boolean, found a string")]
#[case::array("{type: array}", "{}", "the whole body: expected an array, found an object")]
#[case::object("{type: object}", "[]", "the whole body: expected an object, found an array")]
#[case::null("{type: 'null'}", "null", "")]
#[case::null_is_no_string("{type: string}", "null", "the whole body: expected a string, found null")]
#[case::nullable("{type: string, nullable: true}", "null", "")]
#[case::nullable_enum("{enum: [a], nullable: true}", "null", "")]
#[case::nullable_false(
    "{type: string, nullable: false}",
    "null",
    "the whole body: expected a string, found null"
)]
#[case::type_list("{type: [string, 'null']}", "null", "")]
#[case::type_list_mismatch(
    "{type: [string, 'null']}",
    "1",
    "the whole body: expected a string or null, found an integer"
)]
#[case::unknown_type("{type: file}", "1", "")]
#[case::enumeration("{enum: [a, 1]}", "a", "")]
#[case::enumeration_by_value("{enum: [1]}", "1.0", "")]
#[case::enumeration_mismatch(
    "{enum: [a, 1, null]}",
    "secret",
    "the whole body: expected one of \"a\", 1, null"
)]
#[case::long_enumeration(
    "{enum: [1, 2, 3, 4, 5, 6]}",
    "7",
    "the whole body: expected one of 1, 2, 3, 4, 5, …"
)]
#[case::required("{required: [a, b]}", "{a: null}", "the whole body: missing required property \"b\"")]
#[case::all_required("{required: [a, b]}", "{}", "the whole body: missing required property \"a\", \"b\"")]
#[case::required_of_the_server("{required: [a, b], properties: {b: {readOnly: true}}}", "{a: 1}", "")]
#[case::required_of_no_object("{required: [a]}", "1", "")]
#[case::nested(
    "{properties: {a/b: {items: {required: [c]}}}}",
    "{a/b: [{c: 1}, {}]}",
    "/a~1b/1: missing required property \"c\""
)]
#[case::property("{properties: {a: {type: string}}}", "{a: 1}", "/a: expected a string, found an integer")]
#[case::additional_by_default("{properties: {a: {}}}", "{b: 1}", "")]
#[case::additional_true("{additionalProperties: true}", "{b: 1}", "")]
#[case::additional_false(
    "{properties: {a: {}}, additionalProperties: false}",
    "{b: 1}",
    "/b: property \"b\" is not allowed; known are a"
)]
#[case::nothing_known("{additionalProperties: false}", "{b: 1}", "/b: property \"b\" is not allowed")]
#[case::additional_schema(
    "{properties: {a: {}}, additionalProperties: {type: string}}",
    "{a: 1, b: 1}",
    "/b: expected a string, found an integer"
)]
#[case::items("{items: {type: string}}", "[a, 1]", "/1: expected a string, found an integer")]
#[case::list_of_items("{items: [{type: string}]}", "[1]", "")]
#[case::all_of(
    "{allOf: [{required: [a]}, {required: [b]}]}",
    "{a: 1}",
    "the whole body: missing required property \"b\""
)]
#[case::any_of("{anyOf: [{type: string}, {type: integer}]}", "1", "")]
#[case::any_of_several("{anyOf: [{type: number}, {type: integer}]}", "1", "")]
#[case::any_of_none(
    "{anyOf: [{type: string}, {required: [a]}]}",
    "{}",
    "the whole body: matches none of the 2 schemas in anyOf (the whole body: expected a string, found an object; the whole body: missing required property \"a\")"
)]
#[case::one_of("{oneOf: [{type: string}, {type: integer}]}", "1", "")]
#[case::one_of_several(
    "{oneOf: [{}, {type: object}]}",
    "{}",
    "the whole body: matches 2 of the 2 schemas in oneOf, expected exactly one"
)]
#[case::a_number_of_several_types("{oneOf: [{type: number}, {type: integer}, {type: string}]}", "1", "")]
#[case::one_of_none(
    "{oneOf: [{type: string}]}",
    "1",
    "the whole body: matches none of the 1 schemas in oneOf (the whole body: expected a string, found an integer)"
)]
#[case::empty_alternatives("{anyOf: [], oneOf: [], allOf: []}", "1", "")]
#[case::reference("{$ref: '#/t'}", "{}", "the whole body: missing required property \"x\"")]
#[case::reference_to_reference("{$ref: '#/u'}", "{}", "the whole body: missing required property \"x\"")]
#[case::reference_below("{properties: {a: {$ref: '#/u'}}}", "{a: {}}", "/a: missing required property \"x\"")]
#[case::nullable_beside_reference("{properties: {a: {$ref: '#/u', nullable: true}}}", "{a: null}", "")]
#[case::unused_fault("{properties: {a: {$ref: 'other.yaml'}}}", "{b: 1}", "")]
#[case::fault("{properties: {a: {$ref: '#/nowhere'}}}", "{a: 1}", "/a: #/nowhere does not exist")]
#[case::fault_in_alternative(
    "{anyOf: [{$ref: '#/nowhere'}, {}]}",
    "1",
    "the whole body: #/nowhere does not exist"
)]
#[case::circle_of_references(
    "{allOf: [{$ref: '#/v'}]}",
    "1",
    "the whole body: $ref \"#/w\" is circular, or part of a chain of more than 96 references"
)]
#[case::circle("{$ref: '#/circle'}", "1", "the whole body: the schema has a circular reference")]
#[case::circle_by_alternatives(
    "{oneOf: [{$ref: '#/s'}]}",
    "1",
    "the whole body: the schema has a circular reference"
)]
#[case::recursion("{$ref: '#/tree'}", "{below: [{below: [{below: []}]}]}", "")]
#[case::recursion_mismatch(
    "{$ref: '#/tree'}",
    "{below: [{below: [1]}]}",
    "/below/0/below/0: expected an object, found an integer"
)]
fn keywords(#[case] schema: &str, #[case] value: &str, #[case] message: &str) {
    let more = "t: {required: [x]}\nu: {$ref: '#/t'}\nv: {$ref: '#/w'}\nw: {$ref: '#/v'}\n\
        circle: {allOf: [{anyOf: [{$ref: '#/circle'}]}]}\n\
        tree: {type: object, properties: {below: {items: {$ref: '#/tree'}}}}";
    assert_eq!(outcome(&compile("3.0.3", schema, more), value), message);
}

#[rstest]
#[case::ignored_in_3_0("3.0.3", "{$ref: '#/t', required: [y]}", "{x: 1}", "")]
#[case::counted_in_3_1(
    "3.1.0",
    "{$ref: '#/t', required: [y]}",
    "{x: 1}",
    "the whole body: missing required property \"y\""
)]
#[case::target_in_3_1(
    "3.1.0",
    "{$ref: '#/u', required: [y]}",
    "{y: 1, z: 1}",
    "the whole body: missing required property \"x\""
)]
#[case::chain_in_3_1("3.1.0", "{$ref: '#/u'}", "{x: 1}", "the whole body: missing required property \"z\"")]
#[case::no_version(
    "''",
    "{$ref: '#/t', required: [y]}",
    "{x: 1}",
    "the whole body: missing required property \"y\""
)]
#[case::never("3.1.0", "{properties: {a: false}}", "{a: 1}", "/a: no value is allowed here")]
#[case::always("3.1.0", "{properties: {a: true}}", "{a: 1}", "")]
fn versions(#[case] version: &str, #[case] schema: &str, #[case] value: &str, #[case] message: &str) {
    let more = "t: {required: [x]}\nu: {$ref: '#/t', required: [z]}";
    let schema = compile(version, schema, more);
    assert_eq!(outcome(&schema, value), message);
}

#[rstest]
#[case::missing("/x", "the OpenAPI document has no schema at #/x: #/x does not exist")]
#[case::text(
    "/openapi",
    "the OpenAPI document has no schema at #/openapi: #/openapi is a string, not a schema"
)]
#[case::foreign(
    "/f",
    "the OpenAPI document has no schema at #/f: $ref \"x.yaml\" refers to another document; only references that start with \"#\" are supported"
)]
fn places_without_schema(#[case] at: &str, #[case] message: &str) {
    let document = OpenApi::parse(b"openapi: 3.0.0\nf: {$ref: x.yaml}").unwrap();
    let error = Schema::compile(&document, &at.parse().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), message);
}

/// Returns `{below: {below: …}}` with this number of levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |value, _| Value::Object([("below".to_owned(), value)].into()))
}

#[rstest]
#[case(95, "")]
#[case(96, "schemas are nested deeper than 96 levels")]
fn depth_is_bounded(#[case] levels: usize, #[case] message: &str) {
    let schema = compile("3.0.0", "{properties: {below: {$ref: '#/s'}}}", "");
    let reason = schema.check(&nested(levels)).map_or_else(|violation| violation.reason, |()| String::new());
    assert_eq!(reason, message);
}

#[test]
fn alternatives_that_multiply_end() {
    let schema = compile(
        "3.0.0",
        "{oneOf: [{properties: {below: {$ref: '#/s'}}}, {properties: {below: {$ref: '#/s'}, x: {}}}]}",
        "",
    );
    let reason = schema.check(&nested(40)).unwrap_err().reason;
    assert_eq!(reason, "the schema has too many alternatives to check");
}

#[test]
fn a_deep_schema_compiles_without_deep_recursion() {
    let links: Vec<_> =
        (0..10_000).map(|at| format!("\"{at}\":{{\"allOf\":[{{\"$ref\":\"#/c/{}\"}}]}}", at + 1)).collect();
    let document =
        OpenApi::parse(format!("{{\"paths\":{{}},\"c\":{{{}}}}}", links.join(",")).as_bytes()).unwrap();
    let schema = Schema::compile(&document, &"/c/0".parse().unwrap()).unwrap();
    let reason = schema.check(&Value::Null).unwrap_err().reason;
    assert_eq!(reason, "schemas are nested deeper than 96 levels");
}

#[rstest]
#[case::named("{properties: {shop: {}}}", "{a: 1}", "{a: 1, shop: rio}")]
#[case::named_by_all_of("{allOf: [{$ref: '#/t'}]}", "{}", "{shop: rio}")]
#[case::named_below_only("{properties: {a: {properties: {shop: {}}}}}", "{}", "")]
#[case::named_by_an_alternative("{anyOf: [{properties: {shop: {}}}]}", "{}", "")]
#[case::present("{properties: {shop: {}}}", "{shop: null}", "")]
#[case::no_object("{properties: {shop: {}}}", "[]", "")]
fn completes_with_fields_of_the_path(#[case] schema: &str, #[case] body: &str, #[case] expected: &str) {
    let schema = compile("3.0.0", schema, "t: {properties: {shop: {}}}");
    let fields =
        Object::from([("shop".to_owned(), Value::from("rio")), ("region".to_owned(), Value::from("eu"))]);
    let expected = (!expected.is_empty()).then(|| json(expected));
    assert_eq!(schema.complete(&json(body), &fields), expected);
}
