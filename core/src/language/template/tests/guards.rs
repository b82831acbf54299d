//! Tests of the checks of values in paths, headers and jq, and of the limits of templates.

use rstest::rstest;

use super::*;

#[rstest]
#[case("./{{/x}}", "a/b", Some("./a/b"))]
#[case("../gone/{{/x}}", "7", Some("../gone/7"))]
#[case("/a/{{/x}}", "? # %", Some("/a/? # %"))]
#[case("/a/{{/x}}", "...", Some("/a/..."))]
#[case("/a/{{/x}}", ".b", Some("/a/.b"))]
#[case("/a/{{if /x}}{{/x}}{{end}}b", "", Some("/a/b"))]
#[case("./{{/x}}", "", None)]
#[case("./{{/x}}", "/", None)]
#[case("./{{/x}}", "//", None)]
#[case("./{{print /x}}", "", None)]
#[case("./{{/x}}", ".", None)]
#[case("./{{/x}}", "..", None)]
#[case("./{{/x}}", "a/../b", None)]
#[case("./{{/x}}", "a/.", None)]
#[case("./.{{/x}}", ".", None)]
#[case("./{{/x}}{{/x}}", ".", None)]
#[case("./{{/x}}", " ", None)]
#[case("./{{/x}}", "\u{a0}", None)]
#[case("./{{/x}}", ".. ", None)]
#[case("./{{/x}}", "a/.. ", None)]
#[case("./{{/x}}", "/ ", None)]
#[case("{{/x}}/b", " .", None)]
#[case("./{{/x}}", "a b", Some("./a b"))]
#[case("./{{/x}}", "a ", Some("./a "))]
#[case(" ./{{/x}}\n", "a ", Some("./a "))]
#[case("{{/x}}/b \n", " a", Some(" a/b"))]
#[case("\n/a\n{{if /y}}{{/x}}{{end}}\n", "b", Some("/a"))]
#[case("./{{/x}}./b", ".", None)]
fn values_in_paths(
    #[case] template: &str,
    #[case] value: &str,
    #[case] expected: Option<&str>,
    #[values(Kind::Path, Kind::RemoteCollectionPath)] kind: Kind,
) {
    let mut resource = Resource::new("{}");
    resource.payload = Some(Value::Object([("x".to_owned(), Value::from(value))].into()));
    match (resource.render(kind, template), expected) {
        (Ok(path), Some(expected)) => assert_eq!(path, expected),
        (Err(TemplateError::Unsafe { .. }), None) => {}
        (other, _) => panic!("{other:?}"),
    }
}

#[test]
fn paths_of_the_engine_may_be_the_root() {
    let resource = Resource::at("/rio", "{}");
    assert_eq!(resource.render(Kind::Path, "{{/logicalCollectionPath}}x").unwrap(), "/x");
    assert_eq!(resource.render(Kind::RemoteCollectionPath, "{{/remoteCollectionPath}}").unwrap(), "/");
}

#[rstest]
#[case("/kv{{/descendantCollectionPath}}")]
#[case("/kv{{descendantCollectionPath}}")]
#[case("/kv{{.descendantCollectionPath}}")]
fn only_descendants_may_be_empty(#[case] template: &str) {
    let list = Resource::list("/vaults").below("/vaults");
    assert_eq!(list.render(Kind::RemoteCollectionPath, template).unwrap(), "/kv");
    let mut other = Resource::new("{descendantCollectionPath: ''}");
    assert!(matches!(other.render(Kind::Path, template), Err(TemplateError::Unsafe { .. })));
    other.payload = None;
    assert!(matches!(other.render(Kind::Path, template), Err(TemplateError::Missing(_))));
}

#[rstest]
#[case("a\nb", false)]
#[case("a\r", false)]
#[case("a\tb; \"c\"", true)]
fn values_in_headers(#[case] value: &str, #[case] allowed: bool) {
    let mut resource = Resource::new("{}");
    resource.payload = Some(Value::Object([("x".to_owned(), Value::from(value))].into()));
    match resource.render(Kind::Header, "shop={{/x}}") {
        Ok(header) => assert_eq!((header, allowed), (format!("shop={value}"), true)),
        Err(error) => assert!(!allowed && matches!(error, TemplateError::Unsafe { .. }), "{error}"),
    }
    assert_eq!(resource.render(Kind::Query, "{{/x}}").unwrap(), value);
}

#[test]
fn headers_are_one_line_once_trimmed() {
    assert!(Template::parse("a\nb", Kind::Header).is_err());
    assert!(Template::parse("{{/a}}\n", Kind::Header).is_err());
    assert_eq!(Resource::new("a: x").render(Kind::Header, "{{/a -}}\n").unwrap(), "x");
}

#[rstest]
#[case(". == \"{{/x}}\"", "a\"b\\(c)", ". == \"a\\\"b\\\\(c)\"")]
#[case("\"{{/x}}\" + \"{{/x}}\"", "\"", "\"\\\"\" + \"\\\"\"")]
#[case(".{{/x}}", "a\"b", ".a\"b")]
#[case("\"\\(.{{/x}})\"", "k", "\"\\(.k)\"")]
#[case("\"\\(\"{{/x}}\")\"", "\"", "\"\\(\"\\\"\")\"")]
#[case("# \"\n{{/x}}", "\"a\"", "# \"\n\"a\"")]
#[case("{{/x}} == \"{{/x}}\"", "\"", "\" == \"\"\"")]
#[case("\"{{if /x}}{{/x}}{{end}}\"", "a\nb", "\"a\\nb\"")]
fn values_in_jq(#[case] template: &str, #[case] value: &str, #[case] expected: &str) {
    let mut resource = Resource::new("{}");
    resource.payload = Some(Value::Object([("x".to_owned(), Value::from(value))].into()));
    match resource.render(Kind::Jq, template) {
        Ok(jq) => assert_eq!(jq, expected),
        Err(error) => assert!(expected.is_empty(), "{error}"),
    }
}

#[test]
fn a_backslash_of_the_template_cannot_start_an_interpolation() {
    let result = Resource::new("x: '(env)'").render(Kind::Jq, "\"\\{{/x}}\"");
    assert!(matches!(result, Err(TemplateError::Unsafe { .. })), "{result:?}");
}

#[test]
fn output_is_bounded() {
    let payload = format!("x: {}", "y".repeat(1 << 19));
    let resource = Resource::new(&payload);
    assert_eq!(resource.render(Kind::Query, "{{/x}}{{/x}}").unwrap().len(), MAX_OUTPUT);
    let result = resource.render(Kind::Query, "{{/x}}{{/x}}.");
    assert!(matches!(result, Err(TemplateError::Limit { .. })));
}

#[rstest]
#[case(format!("{{{{$x := /x}}}}{}", "{{$x := print $x $x}}".repeat(40)))]
#[case(format!("{}{}", "{{range /l}}".repeat(20), "{{end}}".repeat(20)))]
fn work_is_bounded(#[case] template: String) {
    let result = Resource::new("{x: abc, l: [1, 2, 3, 4]}").render(Kind::Query, &template);
    assert!(matches!(result, Err(TemplateError::Limit { .. })), "{result:?}");
}

#[rstest]
#[case("{{if 1}}", "{{end}}")]
#[case("{{range .}}", "{{end}}")]
#[case("{{if 1}}{{else}}{{with 1}}", "{{end}}{{end}}")]
fn nesting_of_blocks_is_bounded(#[case] open: &str, #[case] close: &str) {
    let per_level = open.matches("{{").count() - open.matches("else").count();
    let nested = |levels: usize| Template::parse(&(open.repeat(levels) + &close.repeat(levels)), Kind::Query);
    assert!(nested(MAX_NESTING / per_level).is_ok());
    assert!(matches!(nested(MAX_NESTING / per_level + 1), Err(TemplateError::Limit { .. })));
    assert!(matches!(nested(1_000), Err(TemplateError::Limit { .. })));
}

#[test]
fn nesting_of_parentheses_is_bounded() {
    let nested = |levels: usize| {
        Template::parse(&format!("{{{{{}1{}}}}}", "(".repeat(levels), ")".repeat(levels)), Kind::Query)
    };
    assert!(nested(MAX_NESTING).is_ok());
    assert!(matches!(nested(MAX_NESTING + 1), Err(TemplateError::Limit { .. })));
}

#[rstest]
#[case(Kind::Path, "./{{/s}}", "a/../canary")]
#[case(Kind::Header, "{{/s}}", "canary\n")]
#[case(Kind::Jq, "\"\\{{/s}}\"", "canary")]
#[case(Kind::Query, "{{eq /s 1}}", "canary")]
#[case(Kind::Query, "{{index /s 1}}", "canary")]
#[case(Kind::Query, "{{json_pointer /s}}", "canary")]
#[case(Kind::Query, "{{printf /s 1 2}}", "canary %d")]
#[case(Kind::Query, "{{printf /s}}", "canary %x")]
#[case(Kind::Query, "{{/s/deeper}}", "canary")]
#[case(Kind::Query, "{{.s.deeper}}", "canary")]
#[case(Kind::Query, "{{index . /s}}", "canary")]
fn errors_never_show_a_value(#[case] kind: Kind, #[case] template: &str, #[case] secret: &str) {
    let mut resource = Resource::new("{}");
    resource.payload = Some(Value::Object([("s".to_owned(), Value::from(secret))].into()));
    let error = resource.render(kind, template).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
}

#[test]
fn compared_texts_count_as_work() {
    let payload = format!("x: {}", "y".repeat(1 << 19));
    let resource = Resource::new(&payload);
    let template = format!("{{{{eq /x{}}}}}", " /x".repeat(300));
    let error = resource.render(Kind::Query, &template).unwrap_err().to_string();
    assert!(error.contains("rendering takes more than"), "{error}");
}
