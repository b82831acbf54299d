//! Tests of all functions.

use rstest::rstest;

use super::*;

const PAYLOAD: &str =
    "{n: 3, f: 3.0, h: 2.5, s: Rio, blank: '  ', z: 0, t: true, no: false, nul: null, l: [a, b, c],
    e: [], o: {k: v, x: 1}, eo: {}, 'q': 'a\"b', html: '<b>', contentType: text/plain}";

#[rstest]
#[case("eq .s \"Rio\"", "true")]
#[case("eq .s \"x\" \"Rio\"", "true")]
#[case("eq .s \"x\"", "false")]
#[case("eq .n 3.0", "true")]
#[case("eq .f 3", "true")]
#[case("eq .absent \"x\"", "false")]
#[case("eq .nul nil", "false")]
#[case("eq .absent .nul", "false")]
#[case("eq .t true", "true")]
#[case("eq .l .l", "true")]
#[case("eq .o .o", "true")]
#[case("ne .s \"x\"", "true")]
#[case("ne .absent .absent", "true")]
#[case("lt .n 4", "true")]
#[case("lt .h 3", "true")]
#[case("le .n 3.0", "true")]
#[case("gt .s \"Ria\"", "true")]
#[case("gt .n 2.5", "true")]
#[case("ge .n 4", "false")]
#[case("lt 9223372036854775806 9223372036854775807", "true")]
#[case("not .e", "true")]
#[case("not .s", "false")]
#[case("and .s .n", "3")]
#[case("and .z .absent.deeper", "0")]
#[case("or .z .s", "Rio")]
#[case("or .s .absent.deeper", "Rio")]
#[case("or .absent .no", "false")]
fn comparison_and_logic(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(render(&format!("{{{{{expression}}}}}"), PAYLOAD).unwrap(), expected);
}

#[rstest]
#[case(".absent")]
#[case(".nul")]
#[case(".no")]
#[case(".z")]
#[case("0.0")]
#[case("\"\"")]
#[case(".e")]
#[case(".eo")]
#[case("/o/absent/deeper")]
#[case("(index .o \"absent\")")]
fn false_values(#[case] operand: &str) {
    assert_eq!(render(&format!("{{{{if {operand}}}}}y{{{{else}}}}n{{{{end}}}}"), PAYLOAD).unwrap(), "n");
}

#[rstest]
#[case("index .o \"k\"", "v")]
#[case("index . \"o\" \"x\"", "1")]
#[case("index . \"contentType\"", "text/plain")]
#[case("index .l 2", "c")]
#[case("index .l .z", "a")]
#[case("index .s", "Rio")]
#[case("len .l", "3")]
#[case("len .o", "2")]
#[case("len \"é\"", "2")]
#[case("len .payload.o", "2")]
#[case("slice .s 1", "io")]
#[case("slice .s 0 2", "Ri")]
#[case("slice .s", "Rio")]
#[case("len (slice .l 1)", "2")]
#[case("index (slice .l 1 2) 0", "b")]
#[case("print .s .s .n .n .s", "RioRio3 3Rio")]
#[case("println .s 1", "Rio 1\n")]
#[case("printf \"%s|%d|%v|%q|%t|%%\" .s .n .h .q .t", "Rio|3|2.5|\"a\\\"b\"|true|%")]
#[case("printf \"%d\" .f", "3")]
#[case("printf \"%.2f|%.0f|%f|%.1f\" .h .h .h .n", "2.50|2|2.500000|3.0")]
#[case("urlquery \"a b&\" 1", "a+b%261")]
#[case("html .html", "&lt;b&gt;")]
#[case("js .q", "a\\\"b")]
fn access_and_text(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(render(&format!("{{{{{expression}}}}}"), PAYLOAD).unwrap(), expected);
}

#[rstest]
#[case("uppercase .s", "RIO")]
#[case("lowercase /s", "rio")]
#[case("to_uppercase .s", "RIO")]
#[case("to_lowercase .s", "rio")]
#[case("trim \" x \"", "x")]
#[case("substring .s 0 2", "Ri")]
#[case("substring .s 1", "io")]
#[case("substring \"aéb\" 1 1", "é")]
#[case("substring .s 3", "")]
#[case("default .absent .nul .blank .n", "3")]
#[case("default .z .n", "0")]
fn helpers_of_identity_templates(#[case] expression: &str, #[case] expected: &str) {
    assert_eq!(render(&format!("{{{{{expression}}}}}"), PAYLOAD).unwrap(), expected);
}

#[rstest]
#[case("eq .s 1", "a string and an integer cannot be compared")]
#[case("ne .t .s", "a boolean and a string cannot be compared")]
#[case("lt .absent 1", "missing and an integer cannot be compared")]
#[case("gt .l .l", "an array and an array cannot be compared")]
#[case("eq . .", "an object and an object cannot be compared")]
#[case("index .l 3", "the index of this array must be an integer from 0 below 3")]
#[case("index .l -1", "the index of this array must be an integer from 0 below 3")]
#[case("index .l \"0\"", "the index of this array must be an integer from 0 below 3")]
#[case("index .o 1", "the key of an object is a string, not an integer")]
#[case("index .s 1", "a string has neither members nor elements")]
#[case("len .n", "a value that is an integer has no length")]
#[case("len .absent", "a value that is missing has no length")]
#[case("slice .s 2 1", "the bounds are outside of the value, or inside of a character")]
#[case("slice \"é\" 1", "the bounds are outside of the value, or inside of a character")]
#[case("slice .l 0 4", "the bounds are outside of the value, or inside of a character")]
#[case("slice .s \"1\"", "the bounds of a slice are integers from 0")]
#[case("slice .n", "a value that is an integer cannot be sliced")]
#[case("printf \"%d\" .s", "%d cannot format a string")]
#[case("printf \"%.2f\" .s", "%f cannot format a string")]
#[case("printf \"%t\" .n", "%t cannot format an integer")]
#[case("printf \"%q\" .n", "%q cannot format an integer")]
#[case("printf \"%s\"", "the format has 1 verb(s), but 0 operand(s) follow")]
#[case("printf .n", "the format is a string, not an integer")]
#[case("substring .s 4", "the substring is outside of the text")]
#[case("substring .s 1 3", "the substring is outside of the text")]
#[case("substring .s -1", "start and length of a substring are integers from 0")]
#[case(
    "json_pointer .s",
    "the operand is not a JSON Pointer, which starts with a slash and has ~ only as ~0 or ~1"
)]
#[case("json_pointer .n", "a JSON Pointer is a string, not an integer")]
#[case("payload_type .s", "the operand must be the root, written $")]
#[case(
    ".absent.deeper",
    "the parent of \"deeper\" is missing, not an object; use a pointer such as /a/deeper if it may be missing"
)]
fn invalid_operands(#[case] expression: &str, #[case] expected: &str) {
    match render(&format!("{{{{{expression}}}}}"), PAYLOAD) {
        Err(TemplateError::Evaluate { reason, .. }) => assert_eq!(reason, expected),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case("range .s}}{{end", "range requires an array or an object, not a string")]
#[case("range .n}}{{end", "range requires an array or an object, not an integer")]
fn range_requires_an_array_or_object(#[case] expression: &str, #[case] expected: &str) {
    match render(&format!("{{{{{expression}}}}}"), PAYLOAD) {
        Err(TemplateError::Evaluate { reason, .. }) => assert_eq!(reason, expected),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case("{{.absent}}", true, "")]
#[case("{{/o/absent}}", true, "")]
#[case("{{uppercase .absent}}", true, "")]
#[case("{{default .absent .blank}}", true, "")]
#[case("{{.nul}}", false, "null")]
#[case("{{.o}}", false, "an object")]
#[case("{{.l}}", false, "an array")]
#[case("{{.}}", false, "an object")]
#[case("{{.payload}}", false, "an object")]
#[case("{{print .l}}", false, "an array")]
fn only_scalars_are_written(#[case] template: &str, #[case] missing: bool, #[case] kind: &str) {
    match render(template, PAYLOAD) {
        Err(TemplateError::Missing(_)) => assert!(missing),
        Err(TemplateError::NotScalar { kind: found, .. }) => assert_eq!((missing, found), (false, kind)),
        other => panic!("{other:?}"),
    }
}

mod references {
    use super::*;
    use crate::language::reference::Reference;
    use crate::language::referred::{KnownValues, Recorder, ReferenceValues, Unread};
    use crate::payload::pointer::Pointer;

    fn render(text: &str, values: Option<&dyn ReferenceValues>) -> Result<String, String> {
        let resource = Resource::new("{}");
        let template = Template::parse(text, Kind::Query).unwrap();
        assert!(template.refers());
        template.render(&Scope { values, ..resource.scope() }).map_err(|error| error.to_string())
    }

    fn known(value: Value) -> KnownValues {
        let (path, pointer) = (LogicalPath::parse("/apps/till").unwrap(), Pointer::parse("/id").unwrap());
        let mut values = KnownValues::default();
        values.add(Reference { path, pointer }, value);
        values
    }

    #[test]
    fn values_of_other_resources_are_inserted() {
        let text = r#"a/{{ref "/apps/till" "/id"}}"#;
        assert_eq!(render(text, Some(&known(Value::from("u-7")))).unwrap(), "a/u-7");
        assert_eq!(render(text, Some(&known(Value::Int(7)))).unwrap(), "a/7");
        assert_eq!(render(text, Some(&Unread)).unwrap(), text);
        let error = render(text, Some(&known(Value::Array(Vec::new())))).unwrap_err();
        assert!(error.contains("an array"), "{error}");
        assert!(render(text, None).unwrap_err().contains("`ref` cannot be used here"));
        let other = render(r#"{{ref "/apps/pos" "/id"}}"#, Some(&known(Value::Int(7)))).unwrap_err();
        assert!(other.contains("was not read"), "{other}");
    }

    #[test]
    fn references_are_recorded() {
        let recorder = Recorder::default();
        let text = r#"{{ref (printf "/apps/%s" "till") "/id"}}{{ref "/apps/till" "/id"}}{{ref "/b" "/c"}}"#;
        render(text, Some(&recorder)).unwrap();
        let found: Vec<String> = recorder.into_references().iter().map(ToString::to_string).collect();
        assert_eq!(found, [r#"{{ref "/apps/till" "/id"}}"#, r#"{{ref "/b" "/c"}}"#]);
    }

    /// The name alone is that of a field, as before the function existed.
    #[test]
    fn ref_alone_is_a_field() {
        let template = Template::parse("{{ref}}", Kind::Query).unwrap();
        assert!(!template.refers());
        assert_eq!(template.pointers(), [Pointer::parse("/ref").unwrap()]);
    }
}
