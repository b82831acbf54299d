//! Tests of syntax errors and their messages.

use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};

fn refusal(template: &str) -> String {
    Template::parse(template, Kind::Query).unwrap_err().to_string()
}

#[test]
fn messages_name_expression_column_and_correction() {
    let templates = [
        "/a/{{include f.sh}}",
        "{{secret .}}",
        "x {{../shop}}",
        "{{define \"x\"}}",
        "{{template}}",
        "{{block \"x\" .}}",
        "{{call .f}}",
        "{{upper .id}}",
        "{{if id}}{{end}}",
        "{{my-field}}",
        "{{.a.my-field}}",
        "{{len}}",
        "{{range .a}}{{break}}{{end}}",
        "{{/* note */}}",
        "{{}}",
        "{{/id",
        "{{\"a}}",
        "{{'a'}}",
        "{{$x = 1}}",
        "{{$x}}",
        "{{$ := 1}}",
        "{{if .a}}",
        "{{end}}",
        "{{else}}",
        "{{if .a}}{{else}}{{else}}{{end}}",
        "é\nb {{/a/~x}}",
    ];
    let messages: Vec<String> = templates.into_iter().map(refusal).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    cannot parse {{include f.sh}} (line 1, column 6): `include` is available in payloads and defaults, not in requests; include the file there and refer to the field, such as {{/script}}
    cannot parse {{secret .}} (line 1, column 3): `secret` is available in payloads, not in requests; put the placeholder into a payload field and refer to that field, such as {{/password}}
    cannot parse {{../shop}} (line 1, column 5): `../` is reserved for ancestors and not available; for a name from the path, use the field derived from it, such as {{/shop}}
    cannot parse {{define "x"}} (line 1, column 3): `define` is not available: write the text where it is used; for a field with this name, write /define
    cannot parse {{template}} (line 1, column 3): `template` is not available: write the text where it is used; for a field with this name, write /template
    cannot parse {{block "x" .}} (line 1, column 3): `block` is not available: write the text where it is used; for a field with this name, write /block
    cannot parse {{call .f}} (line 1, column 3): `call` is not available: values are not functions; for a field with this name, write /call
    cannot parse {{upper .id}} (line 1, column 3): unknown function `upper`; for a field with this name, write /upper
    cannot parse {{if id}} (line 1, column 6): unknown function `id`; for a field with this name, write /id
    cannot parse {{my-field}} (line 1, column 5): names consist of letters, digits and _; write this field as /my-field
    cannot parse {{.a.my-field}} (line 1, column 8): names consist of letters, digits and _; write this field as /a/my-field
    cannot parse {{len}} (line 1, column 3): `len` requires 1 operand; for a field with this name, write /len
    cannot parse {{break}} (line 1, column 15): `break` is not available: use {{if}} inside of the range
    cannot parse {{/* note */}} (line 1, column 3): comments are not available in templates; remove it
    cannot parse {{}} (line 1, column 1): it is empty; write the pointer of a field, such as {{/id}}
    cannot parse {{/id (line 1, column 6): it is not closed; add }} where it ends
    cannot parse {{"a}} (line 1, column 3): the string is not closed
    cannot parse {{'a'}} (line 1, column 3): write strings in double quotes or backquotes
    cannot parse {{$x = 1}} (line 1, column 3): the variable $x is not set; set it before with {{$x := …}}
    cannot parse {{$x}} (line 1, column 3): the variable $x is not set; set it before with {{$x := …}}
    cannot parse {{$ := 1}} (line 1, column 3): $ is the root and cannot be set; give the variable a name
    cannot parse {{if .a}} (line 1, column 1): its {{end}} is missing
    cannot parse {{end}} (line 1, column 1): this end has no block
    cannot parse {{else}} (line 1, column 1): this else is not in a block
    cannot parse {{else}} (line 1, column 18): the block already has a last else
    cannot parse {{/a/~x}} (line 2, column 5): JSON Pointer "/a/~x" has a "~" that is not "~0" (tilde) or "~1" (slash)
    "#);
}

#[rstest]
#[case("{{(1}}")]
#[case("{{1)}}")]
#[case("{{()}}")]
#[case("{{|}}")]
#[case("{{1 |}}")]
#[case("{{1 | 2}}")]
#[case("{{1 | .a}}")]
#[case("{{/a /b}}")]
#[case("{{/a b}}")]
#[case("{{.a 1}}")]
#[case("{{eq 1}}")]
#[case("{{ne 1 2 3}}")]
#[case("{{not}}")]
#[case("{{1 | not 2}}")]
#[case("{{print len 1}}")]
#[case("{{print name}}")]
#[case("{{printf \"%x\" 1}}")]
#[case("{{printf \"%5d\" 1}}")]
#[case("{{printf \"%.100f\" 1}}")]
#[case("{{$x = 1}}")]
#[case("{{with $x := 1}}{{end}}{{$x}}")]
#[case("{{printf \"%\"}}")]
#[case("{{json_pointer \"a\"}}")]
#[case("{{if}}{{end}}")]
#[case("{{with}}{{end}}")]
#[case("{{range}}{{end}}")]
#[case("{{if 1}}{{end 1}}")]
#[case("{{if 1}}{{else 1}}{{end}}")]
#[case("{{with 1}}{{else if 1}}{{end}}")]
#[case("{{range $a $b := .x}}{{end}}")]
#[case("{{range $a, := .x}}{{end}}")]
#[case("{{range $a, $b, $c := .x}}{{end}}")]
#[case("{{range $a := .x}}{{end}}{{$a}}")]
#[case("{{if 1}}{{$x := 1}}{{end}}{{$x}}")]
#[case("{{$x := $x}}")]
#[case("{{$x := }}")]
#[case("{{.a.}}")]
#[case("{{.5}}")]
#[case("{{1x}}")]
#[case("{{1e}}")]
#[case("{{1e999}}")]
#[case("{{9223372036854775808}}")]
#[case("{{0x10}}")]
#[case("{{\"\\q\"}}")]
#[case("{{\"\\u12\"}}")]
#[case("{{\"\\ud800\"}}")]
#[case("{{\"\\x+f\"}}")]
#[case("{{`a}}")]
#[case("{{a.b}}")]
#[case("{{@}}")]
#[case("{{:}}")]
#[case("{{,}}")]
#[case("{{nil | print | unknown}}")]
#[case("{{print (nope 1)}}")]
#[case("{{if 1}}{{print (call 1)}}{{end}}")]
fn rejected(#[case] template: &str) {
    let error = Template::parse(template, Kind::Query).unwrap_err();
    assert!(matches!(error, TemplateError::Syntax { .. }), "{error:?}");
    assert_eq!(error.category(), Category::Validation);
}

#[rstest]
#[case("{{include}}{{secret}}{{null}}{{name_2}}{{_x}}")]
#[case("{{range $_, $v := .x}}{{end}}")]
#[case("{{/*}}")]
#[case("{{/}}")]
#[case("{{not(eq 1 2)}}")]
fn accepted(#[case] template: &str) {
    Template::parse(template, Kind::Query).unwrap();
}

#[test]
fn long_expressions_are_shortened() {
    let message = refusal(&format!("{{{{print {} nope}}}}", "/abc ".repeat(100)));
    assert!(message.chars().count() < 200 && message.contains('…'), "{message}");
}

#[test]
fn render_errors_name_the_action() {
    let message = |template: &str, payload: &str| render(template, payload).unwrap_err().to_string();
    let messages = [
        message("a\n  b {{/absent}}", "{}"),
        message("{{/a}}", "a: [1]"),
        message("{{eq .a \"x\"}}", "a: 1"),
        Resource::new("id: ''").render(Kind::Path, "./{{/id}}").unwrap_err().to_string(),
        Resource::new("id: '..'").render(Kind::Path, "./{{/id}}").unwrap_err().to_string(),
        Resource::new("x: \"a\\nb\"").render(Kind::Header, "{{/x}}").unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    {{/absent}} (line 2, column 5) has no value: neither the payload nor the path has a field with this name
    {{/a}} (line 1, column 1) is an array; only strings, numbers and booleans can become part of a request
    cannot evaluate {{eq .a "x"}} (line 1, column 1): an integer and a string cannot be compared
    {{/id}} (line 1, column 3) cannot be used here: it is empty, which would address the collection
    {{/id}} (line 1, column 3) cannot be used here: it makes a "." or ".." segment, which changes the address
    {{/x}} (line 1, column 1) cannot be used here: a line break in it would start another header
    "#);
}
