//! Tests of identity templates.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::payload::{Object, PayloadType, Value, decode};

fn json(text: &str) -> Value {
    decode(PayloadType::Json, text.as_bytes()).unwrap()
}

fn template(text: &str) -> IdentityTemplate {
    IdentityTemplate::parse(text).unwrap()
}

#[rstest]
#[case("/name", r#"{"name": " Rio "}"#, "Rio")]
#[case("{{/name}}-{{/v}}", r#"{"name": "pos", "v": 2}"#, "pos-2")]
#[case("{{default /ext code}}", r#"{"code": "K9"}"#, "K9")]
#[case("{{substring name 0 2}}", r#"{"name": "Rio"}"#, "Ri")]
#[case::pointer_in_braces("{{ /name }}", r#"{"name": "Rio"}"#, "Rio")]
#[case::name("{{name}}", r#"{"name": "Rio"}"#, "Rio")]
#[case::dotted_name("{{.name}}", r#"{"name": "Rio"}"#, "Rio")]
#[case::deep("/a/b~1c/0", r#"{"a": {"b/c": ["x"]}}"#, "x")]
#[case::odd_key("{{/project.name}}", r#"{"project.name": "x"}"#, "x")]
#[case::quote_in_a_key("{{/it's}}", r#"{"it's": "x"}"#, "x")]
#[case::constant("  blue ", "{}", "blue")]
#[case::quoted("{{\"a }} \\\" b\"}}", "{}", "a }} \" b")]
#[case::single_quoted("{{'a \\' b'}}", "{}", "a ' b")]
#[case::uppercase("{{uppercase name}}", r#"{"name": "rio é"}"#, "RIO É")]
#[case::to_uppercase("{{to_uppercase name}}", r#"{"name": "rio"}"#, "RIO")]
#[case::lowercase("{{lowercase /name}}", r#"{"name": "RIO"}"#, "rio")]
#[case::to_lowercase("{{to_lowercase /name}}", r#"{"name": "RIO"}"#, "rio")]
#[case::trim("{{trim \" a \"}}.", "{}", "a.")]
#[case::substring_to_the_end("{{substring name 1}}", r#"{"name": "Rio"}"#, "io")]
#[case::substring_counts_code_points("{{substring name 1 2}}", r#"{"name": "ñéß"}"#, "éß")]
#[case::substring_empty("x{{substring name 3}}", r#"{"name": "Rio"}"#, "x")]
#[case::substring_bound_from_payload("{{substring name n}}", r#"{"name": "Rio", "n": 2}"#, "o")]
#[case::default_skips_blank("{{default /a .b \"c\"}}", r#"{"a": null, "b": "  "}"#, "c")]
#[case::default_of_three("{{default a b c}}", r#"{"c": 7}"#, "7")]
#[case::boolean("{{/on}}", r#"{"on": true}"#, "true")]
#[case::float("{{/x}}", r#"{"x": 2.50}"#, "2.5")]
fn evaluates(#[case] text: &str, #[case] payload: &str, #[case] expected: &str) {
    assert_eq!(template(text).evaluate(&json(payload)).as_deref(), Ok(expected));
}

#[rstest]
#[case("{{/name}}-{{/v}}", r#"{"name": "pos"}"#, "/v has no value in the payload")]
#[case("/name", r#"{"name": null}"#, "/name has no value in the payload")]
#[case("/name", r#"{"name": "  "}"#, "/name has no value in the payload")]
#[case("/name", r#"{"name": ["x"]}"#, "/name is an array; only text")]
#[case("{{default a b}}", "{}", "default /a /b has no value")]
#[case("{{default a \"x\"}}", r#"{"a": {}}"#, "/a is an object")]
#[case(
    "{{substring name 4}}",
    r#"{"name": "Rio"}"#,
    "substring /name 4 is out of range of a text of 3 characters"
)]
#[case("{{substring name 1 3}}", r#"{"name": "Rio"}"#, "out of range")]
#[case("{{substring name -1}}", r#"{"name": "Rio"}"#, "out of range")]
#[case("{{uppercase name}}", "{}", "/name has no value")]
#[case("{{\" \"}}", "{}", "renders a blank name")]
fn rejects_payloads(#[case] text: &str, #[case] payload: &str, #[case] expected: &str) {
    let error = template(text).evaluate(&json(payload)).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[rstest]
#[case("", "column 1: it is blank")]
#[case("a-{{name", "column 3: \"{{\" is not closed")]
#[case("{{}}", "column 3: the braces are empty")]
#[case("{{/a /b}}", "column 6: only one value is expected")]
#[case("{{shout name}}", "column 3: unknown helper \"shout\"; known are uppercase")]
#[case("{{trim}}", "column 3: trim takes one value, not 0")]
#[case("{{lowercase a b}}", "lowercase takes one value, not 2")]
#[case("{{substring name}}", "substring takes a value, a start and optionally a length, not 1")]
#[case("{{substring name 0 1 2}}", "not 4")]
#[case("{{default a}}", "default takes at least two values, not 1")]
#[case("{{client-id}}", "write such a key as a pointer: /client-id")]
#[case("{{trim (trim a)}}", "is neither a name nor a pointer")]
#[case("{{5}}", "a number alone is not a value of the payload")]
#[case("{{\"a}}", "column 1: \"{{\" is not closed")]
#[case("{{\"a\"b}}", "column 6: white space is expected")]
#[case("/a~2", "\"~\" that is not")]
#[case("é{{/a~}}", "column 4: JSON Pointer")]
fn rejects_templates(#[case] text: &str, #[case] expected: &str) {
    let error = IdentityTemplate::parse(text).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[rstest]
#[case("/name", Some("/name"))]
#[case("{{name}}", Some("/name"))]
#[case(" {{ .name }} ", Some("/name"))]
#[case("{{name}}x", None)]
#[case("{{trim name}}", None)]
#[case("{{/a}}{{/b}}", None)]
#[case("name", None)]
#[case("{{\"name\"}}", None)]
fn simple_templates(#[case] text: &str, #[case] simple: Option<&str>) {
    assert_eq!(template(text).simple().map(ToString::to_string).as_deref(), simple);
}

#[test]
fn pointers_come_in_the_order_of_the_text() {
    let template = template("{{/b}}-{{default a \"x\" /c/d}}-{{substring e 0 n}}");
    let pointers: Vec<String> = template.pointers().map(ToString::to_string).collect();
    assert_eq!(pointers, ["/b", "/a", "/c/d", "/e", "/n"]);
}

proptest! {
    #[test]
    fn parsing_never_panics(text in "[ {}/~\"'\\\\a-zé0-9.-]{0,24}") {
        if let Ok(template) = IdentityTemplate::parse(&text) {
            prop_assert_eq!(template.source(), text);
            let _ = template.evaluate(&Value::Object(Object::new()));
        }
    }

    #[test]
    fn a_bare_pointer_gives_the_value(name in "[a-z][a-z0-9 ]{0,8}[a-z]") {
        let payload = Value::Object([("name".to_owned(), Value::from(name.as_str()))].into());
        prop_assert_eq!(template("/name").evaluate(&payload), Ok(name));
    }
}
