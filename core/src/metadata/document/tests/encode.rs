//! Tests of encoding metadata documents.

use insta::assert_snapshot;
use proptest::prelude::*;
use rstest::rstest;

use super::super::*;
use super::decode::{FULL, yaml};
use crate::payload::PayloadType::Yaml;

fn written(document: &Document) -> String {
    String::from_utf8(document.encode_yaml().unwrap()).unwrap()
}

#[test]
fn a_complete_document() {
    assert_snapshot!(written(&yaml(FULL)), @r"
    operations:
        create:
            headers:
                Accept: application/json
                X-Shop: '{{/shop}}'
            method: POST
            path: ./import
            query:
                mode: create
            transforms:
                - jqExpression: '{till: .}'
            validate:
                assertions:
                    - jq: .size > 0
                      message: size must be positive
                requiredAttributes:
                    - /name
                schemaRef: openapi:request-body
        defaults:
            failed:
                jq: .error
            transforms:
                - excludeAttributes:
                    - /etag
    resource:
        alias: '{{lowercase /name}}'
        defaults:
            value:
                tier: silver
        externalizedAttributes:
            - file: run.sh
              path: /hooks/*/run
        format: json
        id: '{{/uid}}'
        remoteCollectionPath: /v2/{{/shop}}/tills
        requiredAttributes:
            - /name
        secret: false
        secretAttributes:
            - /pin
            - /keys/0
    selector:
        descendants: true
    ");
}

#[rstest]
#[case(FULL)]
#[case("{}")]
#[case("{selector: {}, resource: {}, operations: {defaults: {}, get: {}}}")]
#[case(
    "resource: {requiredAttributes: [], externalizedAttributes: [], defaults: {useProfiles: [], profiles: {}}}"
)]
#[case("operations: {get: {query: {}, headers: {}, transforms: [], validate: {assertions: []}}}")]
#[case(
    "operations: {get: {query: {dry: true, n: 010}, body: [1, {a: null}]}, compare: {transforms: [{selectAttributes: []}]}}"
)]
#[case(
    "resource: {format: any, secret: true, defaults: {mode: replace, value: '{{include defaults.yml}}', profiles: {p: '{{include defaults-p.json}}'}}}"
)]
#[case(
    "resource: {externalizedAttributes: [{path: /a~1b, file: ./x, template: '<%s>', mode: text, saveBehavior: externalize, renderBehavior: include, enabled: false}]}"
)]
#[case("operations: {create: {validate: {schemaRef: 'openapi:#/components/schemas/a~1b'}}}")]
#[case("operations: {list: {pagination: {style: none}}}")]
#[case("operations: {list: {pagination: {style: link}}}")]
#[case("operations: {list: {pagination: {style: next, pointer: /a~1b}}}")]
#[case("operations: {list: {pagination: {style: cursor, pointer: /a, parameter: b}}}")]
#[case("operations: {list: {pagination: {style: offset, parameter: a, size: 5}}}")]
#[case(
    "operations: {list: {pagination: {style: page, parameter: a, sizeParameter: b, size: 5, start: 0, items: /c}}}"
)]
fn a_written_document_is_read_as_the_same(#[case] text: &str) {
    let document = yaml(text);
    assert_eq!(yaml(&written(&document)), document);
}

#[rstest]
#[case("resource: null", "{}\n")]
#[case("resource: {id: null, secretAttributes: []}", "resource:\n    secretAttributes: []\n")]
#[case(
    "resource: {defaults: {value: ' {{include defaults.yaml}} '}}",
    "resource:\n    defaults:\n        value: '{{include defaults.yaml}}'\n"
)]
#[case(
    "operations: {get: {transforms: [{excludeAttributes: /a}]}}",
    "operations:\n    get:\n        transforms:\n            - excludeAttributes:\n                - /a\n"
)]
#[case(
    "operations: {list: {pagination: {style: page, parameter: a, size: 5, start: 1}}}",
    "operations:\n    list:\n        pagination:\n            parameter: a\n            size: 5\n            style: page\n"
)]
fn writing(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(written(&yaml(text)), expected);
}

#[test]
fn values_that_yaml_cannot_represent_are_an_error() {
    let mut document = yaml("operations: {create: {}}");
    let create = document.operations.as_mut().unwrap().operations.get_mut(&OperationName::Create);
    create.unwrap().body = Some(crate::payload::Value::Bytes(vec![0]));
    assert!(matches!(document.encode_yaml(), Err(DocumentError::Encode(_))));
}

proptest! {
    #[test]
    fn any_text_survives(id in "\\PC{0,12}", name in "[ -~]{1,8}", value in "[ -~\n\t]{0,12}") {
        let mut headers = Headers::default();
        headers.insert(&name, value.clone());
        let get = OperationSection {
            query: Some([(name, value)].into()),
            headers: Some(headers),
            ..OperationSection::default()
        };
        let document = Document {
            resource: Some(ResourceSection { id: Some(id), ..ResourceSection::default() }),
            operations: Some(OperationsSection {
                defaults: None,
                operations: [(OperationName::Get, get)].into(),
            }),
            ..Document::default()
        };
        let bytes = document.encode_yaml().unwrap();
        prop_assert_eq!(Document::decode(Yaml, &bytes).unwrap(), document);
    }
}
