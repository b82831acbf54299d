//! Tests of merging metadata documents.

use rstest::rstest;

use super::super::*;
use super::decode::{pointers, yaml};
use crate::payload::pointer::Pointer;
use crate::payload::{PayloadType, Value, decode};

fn fold(documents: &[&str]) -> Resolved {
    let mut layers = Layers::default();
    for text in documents {
        layers.push(&yaml(text), &|file| Err(format!("{file} does not exist").into())).unwrap();
    }
    layers.resolve().unwrap()
}

fn resource(layers: &[&str]) -> Resolved {
    let documents: Vec<_> = layers.iter().map(|layer| format!("resource: {layer}")).collect();
    fold(&documents.iter().map(String::as_str).collect::<Vec<_>>())
}

fn get(layers: &[&str]) -> ResolvedOperation {
    let documents: Vec<_> = layers.iter().map(|layer| format!("operations: {{get: {layer}}}")).collect();
    let documents: Vec<_> = documents.iter().map(String::as_str).collect();
    fold(&documents).operation(OperationName::Get).clone()
}

const BUNDLE_ROOT: &str =
    "operations: {defaults: {transforms: [{excludeAttributes: /etag}]}, get: {headers: {X-Trace: on}}}";

#[test]
fn four_layers() {
    let resolved = fold(&[
        BUNDLE_ROOT,
        "{resource: {id: /uid, alias: /name, secretAttributes: [/pin]},
          operations: {update: {method: PATCH}, get: {headers: {X-View: full}}}}",
        "operations: {defaults: {transforms: []}, get: {headers: {X-View: brief}}}",
        "{resource: {secretAttributes: []}, operations: {get: {query: {deep: \"1\"}}}}",
    ]);
    assert_eq!(resolved.id.as_deref(), Some("/uid"));
    assert_eq!(resolved.alias.as_deref(), Some("/name"));
    assert_eq!(resolved.secret_attributes, []);
    assert_eq!(resolved.steps(OperationName::Get).count(), 0);
    assert_eq!(resolved.operation(OperationName::Update).method.as_deref(), Some("PATCH"));
    let get = resolved.operation(OperationName::Get);
    assert_eq!(get.headers, [("X-Trace", "on"), ("X-View", "brief")].into_iter().collect());
    assert_eq!(get.query, [("deep".to_owned(), "1".to_owned())].into());
    assert!(OperationName::ALL.into_iter().all(|name| resolved.operation(name).path.is_none()));
    assert_eq!(resolved.remote_collection_path, None);
}

#[test]
fn only_the_root_applies_to_a_grandchild() {
    let resolved = fold(&[BUNDLE_ROOT]);
    let get = resolved.operation(OperationName::Get);
    assert_eq!(get.headers, [("X-Trace", "on")].into_iter().collect());
    assert_eq!(
        resolved.steps(OperationName::List).collect::<Vec<_>>(),
        [&Step::Exclude(pointers(&["/etag"]))]
    );
}

#[rstest]
#[case(&["{style: link}", "{style: next, pointer: /a}"], Some(Pagination::Next { pointer: Pointer::from_token("a") }))]
#[case(&["{style: next, pointer: /a}", "{style: none}"], Some(Pagination::Whole))]
#[case(&["{style: link}", "null"], Some(Pagination::Link))]
#[case(&["null"], None)]
fn a_pagination_is_replaced_as_a_whole(#[case] layers: &[&str], #[case] expected: Option<Pagination>) {
    let documents: Vec<_> =
        layers.iter().map(|layer| format!("operations: {{list: {{pagination: {layer}}}}}")).collect();
    let documents: Vec<_> = documents.iter().map(String::as_str).collect();
    assert_eq!(fold(&documents).operation(OperationName::List).pagination, expected);
}

#[test]
fn without_documents_the_result_is_empty() {
    assert_eq!(fold(&[]), Resolved::default());
}

#[rstest]
#[case("{id: /a, alias: /b, remoteCollectionPath: /c, format: yaml}", "{}")]
#[case(
    "{id: /x, alias: /x, remoteCollectionPath: /x, format: any}",
    "{id: /a, alias: /b, remoteCollectionPath: /c, format: yaml}"
)]
#[case(
    "{id: /a, alias: /b, remoteCollectionPath: /c, format: yaml}",
    "{id: '', alias: ' ', remoteCollectionPath: '', format: ''}"
)]
#[case(
    "{id: /a, alias: /b, remoteCollectionPath: /c, format: yaml}",
    "{id: null, alias: null, remoteCollectionPath: null, format: null}"
)]
fn a_blank_text_does_not_replace_a_text(#[case] lower: &str, #[case] upper: &str) {
    let resolved = resource(&[lower, upper]);
    assert_eq!(resolved.id.as_deref(), Some("/a"));
    assert_eq!(resolved.alias.as_deref(), Some("/b"));
    assert_eq!(resolved.remote_collection_path.as_deref(), Some("/c"));
    assert_eq!(resolved.format, Some(Format::Concrete(PayloadType::Yaml)));
}

#[rstest]
#[case(&["{secret: true}", "{}"], true)]
#[case(&["{secret: true}", "{secret: false}"], false)]
#[case(&["{secret: false}", "{secret: true}"], true)]
#[case(&["{secret: true}", "{secret: null}"], true)]
fn a_present_secret_replaces(#[case] layers: &[&str], #[case] secret: bool) {
    assert_eq!(resource(layers).secret, secret);
}

#[rstest]
#[case::whole_over_parts(&["{secretAttributes: [/pin]}", "{secret: true}"], true, &[])]
#[case::parts_over_whole(&["{secret: true}", "{secretAttributes: [/pin]}"], false, &["/pin"])]
#[case::no_parts_over_whole(&["{secret: true}", "{secretAttributes: []}"], true, &[])]
#[case::not_whole_keeps_parts(&["{secretAttributes: [/pin]}", "{secret: false}"], false, &["/pin"])]
#[case::explicitly_parts(&["{secret: true}", "{secret: false, secretAttributes: [/a]}"], false, &["/a"])]
#[case::dropped_for_good(&["{secretAttributes: [/pin]}", "{secret: true}", "{secret: false}"], false, &[])]
fn the_last_layer_decides_which_attributes_are_secret(
    #[case] layers: &[&str],
    #[case] secret: bool,
    #[case] attributes: &[&str],
) {
    let resolved = resource(layers);
    assert_eq!(resolved.secret, secret);
    assert_eq!(resolved.secret_attributes, pointers(attributes));
}

#[rstest]
#[case("null", 2)]
#[case("[]", 0)]
#[case("[/x]", 1)]
fn lists_are_replaced_as_a_whole(#[case] upper: &str, #[case] length: usize) {
    let entries = |list: &str| match list {
        "[/x]" => ["[{path: /x, file: x}]", "[{selectAttributes: /x}]", "[{jq: .x}]"],
        "null" => ["null"; 3],
        _ => ["[]"; 3],
    };
    let layer = |list: &str, [externalized, steps, assertions]: [&str; 3]| {
        format!(
            "resource: {{requiredAttributes: {list}, secretAttributes: {list}, externalizedAttributes: {externalized}}}
operations:
  defaults: {{transforms: {steps}}}
  create: {{transforms: {steps}, validate: {{requiredAttributes: {list}, assertions: {assertions}}}}}"
        )
    };
    let lower = layer(
        "[/a, /b]",
        [
            "[{path: /a, file: a}, {path: /b, file: b}]",
            "[{selectAttributes: /a}, {jqExpression: .b}]",
            "[{jq: .a}, {jq: .b}]",
        ],
    );
    let resolved = fold(&[&lower, &layer(upper, entries(upper))]);
    let create = resolved.operation(OperationName::Create);
    let lengths = [
        resolved.required_attributes.len(),
        resolved.secret_attributes.len(),
        resolved.externalized_attributes.len(),
        resolved.transforms.len(),
        create.transforms.len(),
        create.validation.required_attributes.len(),
        create.validation.assertions.len(),
    ];
    assert_eq!(lengths, [length; 7]);
}

#[rstest]
#[case("{a: '1', b: '2'}", "{b: '3', c: ''}", "{a: '1', b: '3', c: ''}")]
#[case("{a: '1'}", "{}", "{}")]
#[case("{a: '1'}", "null", "{a: '1'}")]
#[case("{a: '1'}", "{a: null}", "{a: '1'}")]
fn query_merges_by_key(#[case] lower: &str, #[case] upper: &str, #[case] expected: &str) {
    let query = |text: &str| format!("{{query: {text}}}");
    assert_eq!(get(&[&query(lower), &query(upper)]).query, get(&[&query(expected)]).query);
}

#[rstest]
#[case("{X-A: '1', X-B: '2'}", "{x-b: '3'}", "{X-A: '1', x-b: '3'}")]
#[case("{X-A: '1', ACCEPT: a, content-type: b}", "{}", "{ACCEPT: a, content-type: b}")]
#[case("{X-A: '1', Accept: a}", "[]", "{Accept: a}")]
#[case("{X-A: '1', Accept: a}", "{X-A: null}", "{X-A: '1', Accept: a}")]
#[case("{Accept: a, Content-Type: b}", "{accept: '', Content-Type: c}", "{Accept: a, Content-Type: c}")]
#[case("{X-A: '1'}", "{X-A: ''}", "{X-A: ''}")]
#[case("{X-A: '1'}", "null", "{X-A: '1'}")]
fn headers_merge_by_name(#[case] lower: &str, #[case] upper: &str, #[case] expected: &str) {
    let headers = |text: &str| format!("{{headers: {text}}}");
    assert_eq!(get(&[&headers(lower), &headers(upper)]).headers, get(&[&headers(expected)]).headers);
}

#[rstest]
#[case("{a: 1, b: 2}", "{b: 3}", "{b: 3}")]
#[case("{a: 1}", "null", "{a: 1}")]
#[case("{a: 1}", "[]", "[]")]
#[case("{a: 1}", "false", "false")]
fn a_body_is_replaced_as_a_whole(#[case] lower: &str, #[case] upper: &str, #[case] expected: &str) {
    let body = |text: &str| format!("{{body: {text}}}");
    let expected: Value = decode(PayloadType::Yaml, expected.as_bytes()).unwrap();
    assert_eq!(get(&[&body(lower), &body(upper)]).body, Some(expected));
}

#[test]
fn operations_and_validations_merge_field_by_field() {
    let merged = get(&[
        "{method: POST, path: /a, validate: {requiredAttributes: [/a], schemaRef: 'openapi:request-body'}}",
        "{path: /b, validate: {schemaRef: 'openapi:#/c', assertions: [{jq: .}]}}",
        "{method: '', path: null, validate: {schemaRef: ''}}",
    ]);
    assert_eq!(merged.method.as_deref(), Some("POST"));
    assert_eq!(merged.path.as_deref(), Some("/b"));
    assert_eq!(merged.validation.required_attributes, pointers(&["/a"]));
    assert_eq!(merged.validation.schema_ref, Some(SchemaRef::At(pointers(&["/c"])[0].clone())));
    assert_eq!(merged.validation.assertions.len(), 1);
}

#[test]
fn shared_steps_precede_own_ones() {
    let resolved = fold(&[
        "operations: {defaults: {transforms: [{jqExpression: .a}]}}",
        "operations: {get: {transforms: [{jqExpression: .b}]}}",
    ]);
    let steps = |name| resolved.steps(name).cloned().collect::<Vec<_>>();
    let jq = |text: &str| Step::Jq(text.to_owned());
    assert_eq!(steps(OperationName::Get), [jq(".a"), jq(".b")]);
    assert_eq!(steps(OperationName::Compare), [jq(".a")]);
}

#[rstest]
#[case("{tier: gold}", "{name: Rio}", Ok("{tier: gold, name: Rio}"))]
#[case("{tier: gold}", "{tier: null}", Ok("{tier: null}"))]
#[case("{tier: gold}", "null", Ok("{tier: gold}"))]
#[case(
    "{tier: gold}",
    "[1]",
    Err(
        "resource.defaults: apply to objects only, but the payload is an array; set mode: ignore in the metadata of the resource"
    )
)]
#[case("{}", "[1]", Ok("[1]"))]
#[case("{}", "null", Ok("null"))]
fn payloads_inherit_defaults(
    #[case] defaults: &str,
    #[case] stored: &str,
    #[case] expected: Result<&str, &str>,
) {
    let value = |text: &str| decode(PayloadType::Yaml, text.as_bytes()).unwrap();
    let resolved = resource(&[&format!("{{defaults: {{value: {defaults}}}}}")]);
    let inherited = resolved.with_defaults(value(stored)).map_err(|error| error.to_string());
    assert_eq!(inherited, expected.map(value).map_err(str::to_owned));
}
