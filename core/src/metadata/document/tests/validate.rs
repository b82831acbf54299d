//! Tests of the validation of metadata documents.

use rstest::rstest;

use super::super::*;
use super::decode::{FULL, yaml};
use crate::payload::pointer::Pointer;
use crate::repository::sidecar_file;

fn validated(text: &str, collection: bool) -> Result<(), String> {
    yaml(text).validate(collection).map_err(|error| error.to_string())
}

#[test]
fn a_complete_document_is_valid_for_a_collection() {
    assert_eq!(validated(FULL, true), Ok(()));
    let error = validated(FULL, false).unwrap_err();
    assert_eq!(error, "selector: only the metadata of a collection can have one");
}

#[rstest]
#[case(
    "resource: {id: '{{/uid}}', alias: '{{lowercase /name}}', remoteCollectionPath: '/v2/{{/shop}}'}",
    None
)]
#[case("operations: {get: {headers: {X-Size: '{{if .size}}{{.size}}{{else}}none{{end}}'}}}", None)]
#[case("operations: {get: {transforms: [{jqExpression: '{till: .}'}]}}", None)]
#[case("operations: {create: {validate: {assertions: [{jq: .size > 0}]}}}", None)]
#[case("resource: {id: '{{/uid'}", Some("resource.id: "))]
#[case("resource: {alias: '{{shout /name}}'}", Some("resource.alias: "))]
#[case("resource: {remoteCollectionPath: '/v2/{{if'}", Some("resource.remoteCollectionPath: "))]
#[case("operations: {get: {method: '{{'}}", Some("operations.get.method: "))]
#[case("operations: {get: {path: '/a/{{end}}'}}", Some("operations.get.path: "))]
#[case("operations: {get: {query: {a: '{{'}}}", Some("operations.get.query.a: "))]
#[case("operations: {get: {headers: {A: '{{if .size}}x'}}}", Some("operations.get.headers.A: "))]
#[case(
    "operations: {get: {transforms: [{jqExpression: '.a |'}]}}",
    Some("operations.get.transforms[0].jqExpression: ")
)]
#[case(
    "operations: {get: {transforms: [{jqExpression: '.a == {{if'}]}}",
    Some("operations.get.transforms[0].jqExpression: ")
)]
#[case(
    "operations: {create: {validate: {assertions: [{jq: .}, {jq: '.a >'}]}}}",
    Some("operations.create.validate.assertions[1].jq: ")
)]
#[case("operations: {compare: {path: '{{'}}", Some("operations.compare.path: "))]
#[case(
    "operations: {defaults: {transforms: [{selectAttributes: /a}, {jqExpression: '{{if'}]}}",
    Some("operations.defaults.transforms[1].jqExpression: ")
)]
fn every_language_is_checked(#[case] text: &str, #[case] field: Option<&str>) {
    let outcome = validated(text, true);
    match field {
        None => assert_eq!(outcome, Ok(())),
        Some(field) => assert!(outcome.clone().unwrap_err().starts_with(field), "{outcome:?}"),
    }
}

#[rstest]
#[case(
    "operations: {create: {validate: {assertions: [{jq: ' '}]}}}",
    "operations.create.validate.assertions[0].jq: is blank; write a jq expression that returns true"
)]
#[case(
    "operations: {list: {pagination: {style: cursor, pointer: /a, parameter: ' '}}}",
    "operations.list.pagination.parameter: is blank; name the query parameter"
)]
#[case(
    "operations: {list: {pagination: {style: page, parameter: a, sizeParameter: '', size: 1}}}",
    "operations.list.pagination.sizeParameter: is blank; name the query parameter"
)]
#[case(
    "operations: {list: {pagination: {style: offset, parameter: a, sizeParameter: a, size: 1}}}",
    "operations.list.pagination.sizeParameter: must differ from parameter"
)]
#[case(
    "resource: {secret: true, secretAttributes: [/a]}",
    "resource.secretAttributes: the whole resource is secret; remove these or \"secret: true\""
)]
#[case(
    "resource: {defaults: {useProfiles: [prod, -x]}}",
    "resource.defaults.useProfiles: \"-x\" is not a profile name; use letters, digits, \".\", \"_\" and \"-\", a letter or digit first"
)]
#[case(
    "resource: {defaults: {profiles: {a/b: {}}}}",
    "resource.defaults.profiles: \"a/b\" is not a profile name; use letters, digits, \".\", \"_\" and \"-\", a letter or digit first"
)]
fn invalid_documents(#[case] text: &str, #[case] message: &str) {
    assert_eq!(validated(text, true).unwrap_err(), message);
}

#[rstest]
#[case("{}")]
#[case("resource: {id: '', alias: ' '}")]
#[case("resource: {secret: true, secretAttributes: []}")]
#[case("resource: {secret: false, secretAttributes: [/a]}")]
#[case("resource: {defaults: {useProfiles: [9.a_B-c]}}")]
#[case("operations: {get: {body: '{{!}}'}}")]
fn valid_documents(#[case] text: &str) {
    assert_eq!(validated(text, false), Ok(()));
}

#[test]
fn templates_in_jq_are_not_compiled() {
    let text = "operations: {get: {transforms: [{jqExpression: .a}, {jqExpression: '.{{/b}}'}]}}";
    assert_eq!(validated(text, false), Ok(()));
}

#[rstest]
#[case("resource: {format: FORMAT, id: /a}", Some("resource.id"))]
#[case("resource: {format: FORMAT, alias: /a}", Some("resource.alias"))]
#[case("resource: {format: FORMAT, defaults: {value: {}}}", Some("resource.defaults"))]
#[case("resource: {format: FORMAT, requiredAttributes: [/a]}", Some("resource.requiredAttributes"))]
#[case("resource: {format: FORMAT, secretAttributes: [/a]}", Some("resource.secretAttributes"))]
#[case(
    "resource: {format: FORMAT, externalizedAttributes: [{path: /a, file: a}]}",
    Some("resource.externalizedAttributes")
)]
#[case(
    "{resource: {format: FORMAT}, operations: {defaults: {transforms: [{selectAttributes: []}]}}}",
    Some("operations.defaults.transforms")
)]
#[case(
    "{resource: {format: FORMAT}, operations: {get: {transforms: [{selectAttributes: []}]}}}",
    Some("operations.get.transforms")
)]
#[case(
    "{resource: {format: FORMAT}, operations: {create: {validate: {assertions: [{jq: .}]}}}}",
    Some("operations.create.validate")
)]
#[case(
    "{resource: {format: FORMAT, secret: true, requiredAttributes: [], secretAttributes: [], externalizedAttributes: []}, operations: {get: {path: /a, transforms: []}, list: {transforms: [{selectAttributes: []}]}}}",
    None
)]
fn unstructured_payloads_have_no_attributes(
    #[case] text: &str,
    #[case] field: Option<&str>,
    #[values("xml", "hcl", "text", "octet-stream", "binary")] format: &str,
) {
    let expected = field.map_or(Ok(()), |field| {
        let format = format.replace("binary", "octet-stream");
        Err(format!(
            "{field}: payloads of the format {format} have no attributes; remove this, or the format"
        ))
    });
    assert_eq!(validated(&text.replace("FORMAT", format), false), expected);
    for structured in ["json", "yaml", "ini", "properties", "any"] {
        assert_eq!(validated(&text.replace("FORMAT", structured), false), Ok(()));
    }
}

#[rstest]
#[case("run.sh", Ok("run.sh"))]
#[case(" ./scripts//x/../run.sh ", Ok("scripts/run.sh"))]
#[case("resources.txt", Ok("resources.txt"))]
#[case("", Err("is empty"))]
#[case("/run.sh", Err("is absolute; write it relative to the payload"))]
#[case("a/../../run.sh", Err("leaves the directory of the payload"))]
#[case("a/..", Err("is not the name of a file"))]
#[case("Resource.sh", Err("is named like a payload or a defaults file"))]
#[case("s/DEFAULTS-x.sh", Err("is named like a payload or a defaults file"))]
#[case("Metadata.json", Err("is named like a metadata document"))]
#[case("a/.Git/hooks/run.sh", Err("has the segment \".git\", which belongs to Git"))]
#[case("_/run.sh", Err("has the segment \"_\", which is reserved"))]
fn sidecar_files(#[case] file: &str, #[case] expected: Result<&str, &'static str>) {
    assert_eq!(sidecar_file(file), expected.map(str::to_owned));
    let document = format!("resource: {{externalizedAttributes: [{{path: /a, file: '{file}'}}]}}");
    let expected =
        expected.map_err(|reason| format!("resource.externalizedAttributes[0].file: \"{file}\" {reason}"));
    assert_eq!(validated(&document, false), expected.map(|_| ()));
}

#[rstest]
#[case(
    "{path: /a, file: a}, {path: /a, file: b}",
    Some("[1].path: /a is externalized twice; keep one entry")
)]
#[case(
    "{path: /a, file: a}, {path: /b, file: ./a}",
    Some("[1].file: \"./a\" is used twice; give each attribute its own file")
)]
#[case("{path: /a, file: a}, {path: /a, file: a, enabled: false}", None)]
#[case(
    "{path: /a, file: a, template: '%s %s'}",
    Some("[0].template: must have exactly one %s, for the file")
)]
#[case("{path: /a, file: a, template: '<%s>'}", None)]
fn externalized_entries(#[case] entries: &str, #[case] problem: Option<&str>) {
    let document = format!("resource: {{externalizedAttributes: [{entries}]}}");
    let expected = problem.map_or(Ok(()), |problem| Err(format!("resource.externalizedAttributes{problem}")));
    assert_eq!(validated(&document, false), expected);
}

#[test]
fn a_pointer_to_the_whole_payload_is_invalid() {
    let mut document = Document::default();
    let lists =
        ResourceSection { required_attributes: Some(vec![Pointer::default()]), ..ResourceSection::default() };
    document.resource = Some(lists);
    assert_eq!(
        document.validate(true).unwrap_err().to_string(),
        "resource.requiredAttributes[0]: a JSON Pointer must start with \"/\""
    );
}

#[test]
fn a_pagination_with_invalid_values_is_rejected() {
    let stated = |name: OperationName, pagination| {
        let section = OperationSection { pagination: Some(pagination), ..OperationSection::default() };
        let operations = OperationsSection { defaults: None, operations: [(name, section)].into() };
        let document = Document { operations: Some(operations), ..Document::default() };
        document.validate(true).unwrap_err().to_string()
    };
    let root = Pagination::Next { pointer: Pointer::default() };
    assert_eq!(
        stated(OperationName::List, root),
        "operations.list.pagination.pointer: a JSON Pointer must start with \"/\""
    );
    assert_eq!(
        stated(OperationName::Get, Pagination::Link),
        "operations.get.pagination: only list has pages; remove it"
    );
}

#[rstest]
#[case("{path: /a, file: open.sh}", "{{include open-0.sh}}")]
#[case("{path: /a, file: open.sh, template: '<%s>'}", "<open-0.sh>")]
fn placeholders(#[case] entry: &str, #[case] expected: &str) {
    let document = yaml(&format!("resource: {{externalizedAttributes: [{entry}]}}"));
    let entries = document.resource.unwrap().externalized_attributes.unwrap();
    assert_eq!(entries[0].placeholder("open-0.sh"), expected);
}

#[rstest]
#[case(
    "{create: {query: {rev: '{{$observed.rev}}'}}}",
    "operations.create.query.rev: only update and delete have $observed"
)]
#[case(
    "{get: {headers: {If-Match: '{{$observed.rev}}'}}}",
    "operations.get.headers.If-Match: only update and delete have $observed"
)]
#[case(
    "{list: {body: {revs: ['{{if $observed}}1{{end}}']}}}",
    "operations.list.body: only update and delete have $observed"
)]
#[case(
    "{delete: {path: './{{$observed.slug}}'}}",
    "operations.delete.path: cannot parse {{$observed.slug}} (line 1, column 5): $observed can only be used in the query, the headers and the body"
)]
#[case(
    "{update: {transforms: [{jqExpression: '.rev = {{$observed.rev}}'}]}}",
    "operations.update.transforms[0].jqExpression: cannot parse {{$observed.rev}} (line 1, column 10): write $observed outside of {{ }}, as a variable of jq"
)]
fn present_values_have_their_places(#[case] operations: &str, #[case] expected: &str) {
    let error = yaml(&format!("operations: {operations}")).validate(true).unwrap_err();
    assert_eq!(error.to_string(), expected);
}
