//! Tests of the checks of embedded languages.

use rstest::rstest;

use super::check;
use crate::metadata::document::Document;
use crate::payload::PayloadType;

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
    "operations: {create: {validate: {assertions: [{jq: '.a >'}]}}}",
    Some("operations.create.validate.assertions[0].jq: ")
)]
fn every_language_is_checked(#[case] text: &str, #[case] field: Option<&str>) {
    let document = Document::decode(PayloadType::Yaml, text.as_bytes()).unwrap();
    let outcome = check(&document, true).map_err(|error| error.to_string());
    match field {
        None => assert_eq!(outcome, Ok(())),
        Some(field) => assert!(outcome.clone().unwrap_err().starts_with(field), "{outcome:?}"),
    }
}
