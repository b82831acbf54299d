//! Tests of the grammar: text, placeholders, blocks, variables, pipes.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

const SHOP: &str = "
name: Rio
size: 3
ratio: 0.5
open: true
gone: null
empty: ''
none: []
tags: [a, b]
project.name: odd
a: {b: deep, c: {d: deeper}}
tills: [{uid: t1, on: true}, {uid: t2}]
len: field
trim: field
";

#[rstest]
#[case("plain }} text", "plain }} text")]
#[case("", "")]
#[case("a {{/name}} b", "a Rio b")]
#[case("{{name}}", "Rio")]
#[case("{{.name}}", "Rio")]
#[case("{{ /name }}", "Rio")]
#[case("{{/a/b}}", "deep")]
#[case("{{.a.b}}", "deep")]
#[case("{{.a.c.d}}", "deeper")]
#[case("{{$.a.b}}", "deep")]
#[case("{{/tags/1}}", "b")]
#[case("{{/project.name}}", "odd")]
#[case("{{json_pointer \"/a/b\"}}", "deep")]
#[case("{{json_pointer (print \"/a/\" \"b\")}}", "deep")]
#[case("{{/len}}{{/trim}}", "fieldfield")]
#[case("{{trim}}", "field")]
#[case("x  {{- /name -}}  y", "xRioy")]
#[case("x \n {{- /name}} y", "xRio y")]
#[case("x {{/name -}}\t\r\n y", "x Rioy")]
#[case("{{- /name -}}", "Rio")]
#[case("{{-3}}", "-3")]
#[case("{{\"}}\"}}", "}}")]
fn text_and_placeholders(#[case] template: &str, #[case] expected: &str) {
    assert_eq!(render(template, SHOP).unwrap(), expected);
}

#[rstest]
#[case("{{\"a\\\"b\\\\ \\t\\x41\\u00e9\\U0001F600\"}}", "a\"b\\ \tAé😀")]
#[case("{{`a\\n\"}}`}}", "a\\n\"}}")]
#[case("{{12}} {{-7}} {{+7}} {{1.5}} {{2.0}} {{1e3}} {{1.5e-1}}", "12 -7 7 1.5 2 1000 0.15")]
#[case("{{true}} {{false}}", "true false")]
#[case("{{/size}} {{/ratio}} {{/open}}", "3 0.5 true")]
#[case("{{/empty}}", "")]
fn literals_and_output_of_scalars(#[case] template: &str, #[case] expected: &str) {
    assert_eq!(render(template, SHOP).unwrap(), expected);
}

#[rstest]
#[case("1e21", "1000000000000000000000")]
#[case("-0.0", "0")]
#[case("1.0e-7", "0.0000001")]
#[case("9223372036854775807", "9223372036854775807")]
fn numbers_have_no_exponent(#[case] number: &str, #[case] expected: &str) {
    assert_eq!(render("{{/n}}", &format!("n: {number}")).unwrap(), expected);
}

#[rstest]
#[case("{{if .name}}y{{end}}", "y")]
#[case("{{if .gone}}y{{end}}", "")]
#[case("{{if .absent}}y{{else}}n{{end}}", "n")]
#[case("{{if /a/x/y}}y{{else}}n{{end}}", "n")]
#[case("{{if .empty}}1{{else if .none}}2{{else if .size}}3{{else}}4{{end}}", "3")]
#[case("{{if .empty}}1{{else if .none}}2{{else}}4{{end}}", "4")]
#[case("{{with .a}}{{.c.d}}-{{.name}}-{{/name}}-{{$.size}}{{end}}", "deeper-Rio-Rio-3")]
#[case("{{with .a}}{{print .b}}{{if .b}}!{{end}}{{- .name -}} {{end}}", "deep!Rio")]
#[case("{{with .none}}y{{else}}{{.name}}{{end}}", "Rio")]
#[case("{{range .tags}}<{{.}}>{{end}}", "<a><b>")]
#[case("{{range $v := .tags}}<{{$v}}>{{end}}", "<a><b>")]
#[case("{{range $k, $v := .tags}}{{$k}}={{$v}};{{end}}", "0=a;1=b;")]
#[case("{{range $k, $v := .a}}{{$k}};{{end}}", "b;c;")]
#[case("{{range .none}}y{{else}}none{{end}}", "none")]
#[case("{{range .absent}}y{{else}}none{{end}}", "none")]
#[case("{{range .tills}}{{print .uid}}{{if .on}}!{{end}} {{end}}", "t1! t2 ")]
#[case("{{range .tills}}{{.name}} {{end}}", "Rio Rio ")]
#[case("{{range $i, $t := .tills}}{{$t.uid}}{{end}}", "t1t2")]
#[case("{{range .tills}}{{size}}{{/size}}{{$.size}} {{end}}", "333 333 ")]
fn blocks(#[case] template: &str, #[case] expected: &str) {
    assert_eq!(render(template, SHOP).unwrap(), expected);
}

#[rstest]
#[case("{{$x := .name}}{{$x}}-{{$x}}", "Rio-Rio")]
#[case("{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "21")]
#[case("{{$x := 1}}{{$x := 2}}{{$x}}", "2")]
#[case("{{$a := .a}}{{$a.c.d}}", "deeper")]
#[case("{{$x := 1}}{{range .tags}}{{$x}}{{.}}{{end}}", "1a1b")]
#[case("{{$p := .}}{{with .a}}{{$p.name}}{{end}}", "Rio")]
#[case("{{$k := 9}}{{range $k, $v := .tags}}{{$k}}{{end}}{{$k}}", "019")]
#[case("{{$x := 1}}{{$x = 2}}{{$x}}", "2")]
#[case("{{$x := 1}}{{if true}}{{$x = 2}}{{end}}{{$x}}", "2")]
#[case("{{$last := \"\"}}{{range .tags}}{{$last = .}}{{end}}{{$last}}", "b")]
#[case("{{with $a := .a}}{{$a.b}}{{print .b}}{{end}}", "deepdeep")]
#[case("{{with $a := .none}}y{{else}}n{{end}}", "n")]
#[case("{{if $n := .name}}{{$n}}{{end}}", "Rio")]
#[case("{{if $n := .none}}y{{else if $m := .name}}{{$m}}{{end}}", "Rio")]
#[case("{{$x := 1}}{{with $x := .name}}{{$x}}{{end}}{{$x}}", "Rio1")]
fn variables(#[case] template: &str, #[case] expected: &str) {
    assert_eq!(render(template, SHOP).unwrap(), expected);
}

#[rstest]
#[case("{{.name | printf \"%s!\"}}", "Rio!")]
#[case("{{.name | lowercase | printf \"%s-%s\" \"x\"}}", "x-rio")]
#[case("{{(print .name \"!\")}}", "Rio!")]
#[case("{{print (print 1 2) (len (print \"abc\"))}}", "1 23")]
#[case("{{(index .tills 1).uid}}", "t2")]
#[case("{{if and (eq .name \"Rio\") (gt .size 2)}}y{{end}}", "y")]
#[case("{{if (eq .name \"Rio\") | not}}y{{else}}n{{end}}", "n")]
#[case("{{printf \"%s\"\n  .name}}", "Rio")]
fn pipes_and_parentheses(#[case] template: &str, #[case] expected: &str) {
    assert_eq!(render(template, SHOP).unwrap(), expected);
}

#[test]
fn templates_without_actions_are_static() {
    let template = |text| Template::parse(text, Kind::Path).unwrap();
    assert_eq!(template("/a/b").static_text(), Some("/a/b"));
    assert_eq!(template("").static_text(), Some(""));
    assert!(template("/a/}}").is_static());
    assert!(!template("/a/{{/b}}").is_static());
    assert!(!template("{{\"constant\"}}").is_static());
}

#[rstest]
#[case("/a", "")]
#[case("{{/a}}{{b}}{{.c.d}}{{$.e}}", "/a /b /c/d /e")]
#[case("{{/a}}{{if .a}}{{print (len /b)}}{{end}}", "/a /b")]
#[case("{{json_pointer \"/x y\"}}{{index . \"k\" \"l\"}}{{index $ \"m\" 0 \"n\"}}", "/x y /k/l /m")]
#[case("{{with .a}}{{.b}}{{$.c}}{{/d}}{{else}}{{.e}}{{end}}", "/a /b /c /d /e")]
#[case("{{range .a}}{{print .b}}{{end}}{{$x := /c}}{{$x.d}}{{print .}}", "/a /c")]
fn pointers_are_collected(#[case] template: &str, #[case] expected: &str) {
    let template = Template::parse(template, Kind::Query).unwrap();
    let pointers: Vec<String> = template.pointers().iter().map(ToString::to_string).collect();
    assert_eq!(pointers.join(" "), expected);
}

/// Parts of templates that make it likely to reach deep parts of the grammar.
const FRAGMENTS: [&str; 36] = [
    "{{", "}}", "{{- ", " -}}", "if ", "else ", "else", "with ", "range ", "end", "$k", ", ", "$v", " := ",
    "/a", "/b/0", ".a", ".b.c", ".", "$", "(", ")", " | ", "\"s\"", "`r`", "1", "-2.5", "true", "nil", "eq ",
    "index ", "printf ", "\"%s %d\" ", "é", "name", "\n",
];

proptest! {
    #[test]
    fn parsing_never_panics(text in any::<String>()) {
        let _ = Template::parse(&text, Kind::Header);
    }

    #[test]
    fn rendering_never_panics(
        parts in prop::collection::vec(prop::sample::select(&FRAGMENTS[..]), 0..24),
        action in any::<bool>(),
    ) {
        let text = if action { format!("{{{{{}}}}}", parts.concat()) } else { parts.concat() };
        let resource = Resource::new("{a: {b: [1, x]}, b: [{c: 2}], name: é}");
        for kind in [Kind::Path, Kind::Jq] {
            match Template::parse(&text, kind) {
                Ok(template) => drop(template.render(&resource.scope())),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn text_without_braces_is_rendered_unchanged(text in any::<String>().prop_filter("plain", |text| !text.contains("{{"))) {
        let template = Template::parse(&text, Kind::Query).unwrap();
        prop_assert_eq!(template.static_text(), Some(&*text));
        prop_assert_eq!(template.render(&Resource::new("{}").scope()).unwrap(), text);
    }
}
