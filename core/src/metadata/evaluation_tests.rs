//! Tests of rendered requests, bodies and comparisons.

use std::sync::Arc;

use rstest::rstest;

use super::super::resolve::tests::{path, rules, tree, yaml};
use super::*;
use crate::error::{Categorized, Category};
use crate::metadata::openapi::OpenApi;
use crate::metadata::{Api, Metadata};
use crate::payload::PayloadType;

/// Renders `operation` on `target`, whose remote id is `remote_id`, with `document` as the metadata of its collection.
/// Returns method, path and query, or the error.
fn line(document: &str, operation: OperationName, target: &str, remote_id: &str, payload: &str) -> String {
    let target = path(target);
    let file = match operation {
        OperationName::List => format!("{}/_/metadata.yaml", target.relative()),
        _ => format!("{}/_/metadata.yaml", target.parent().unwrap().relative()),
    };
    let rules = rules(&[(&file, document)], target.as_str());
    let payload = yaml(payload);
    let identity = Identity { alias: target.name().to_owned(), remote_id: remote_id.to_owned() };
    let subject = Subject { path: &target, identity: &identity, payload: Some(&payload), descriptor: None };
    let evaluation = match operation {
        OperationName::List => rules.on_collection(&target),
        _ => rules.on_resource(subject),
    };
    match evaluation.and_then(|evaluation| evaluation.render(operation)) {
        Ok(rendered) => {
            let query: Vec<String> =
                rendered.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let mark = if query.is_empty() { "" } else { "?" };
            format!("{} {}{mark}{}", rendered.method, rendered.path, query.join("&"))
        }
        Err(error) => {
            assert_eq!(error.category(), Category::Validation);
            error.to_string()
        }
    }
}

#[rstest]
#[case(OperationName::Get, "/shops/rio", "GET /shops/17")]
#[case(OperationName::Create, "/shops/rio", "POST /shops")]
#[case(OperationName::Update, "/shops/rio", "PUT /shops/17")]
#[case(OperationName::Delete, "/shops/rio", "DELETE /shops/17")]
#[case(OperationName::Compare, "/shops/rio", "GET /shops/17")]
#[case(OperationName::List, "/shops", "GET /shops")]
#[case(OperationName::Get, "/rio", "GET /17")]
#[case(OperationName::Create, "/rio", "POST /")]
fn conventions(#[case] operation: OperationName, #[case] target: &str, #[case] expected: &str) {
    assert_eq!(line("", operation, target, "17", "{}"), expected);
}

#[rstest]
#[case("style: page, parameter: page, size: 5", "GET /shops?page=1&view=brief")]
#[case("style: offset, parameter: view, sizeParameter: max, size: 5", "GET /shops?max=5&view=0")]
#[case("style: offset, parameter: from, size: 5, start: 1", "GET /shops?from=1&view=brief")]
#[case("style: cursor, pointer: /next, parameter: after", "GET /shops?view=brief")]
fn a_list_requests_its_first_page(#[case] pagination: &str, #[case] expected: &str) {
    let document = format!("operations: {{list: {{query: {{view: brief}}, pagination: {{{pagination}}}}}}}");
    assert_eq!(line(&document, OperationName::List, "/shops", "", "{}"), expected);
}

const TILLS: &str = "resource: {remoteCollectionPath: \"/v2/{{/shop}}/tills\"}";

#[rstest]
#[case("./{{/id}}", "/v2/rio/tills/7")]
#[case("./import", "/v2/rio/tills/import")]
#[case("./", "/v2/rio/tills")]
#[case("../gone/{{/id}}", "/v2/rio/gone/7")]
#[case("/abs//x/", "/abs/x/")]
#[case("/abs/x//", "/abs/x/")]
#[case("./{{/id}}/", "/v2/rio/tills/7/")]
#[case("../", "/v2/rio")]
#[case("/", "/")]
#[case("bare/{{/id}}", "/bare/7")]
fn paths_relative_to_the_remote_collection(#[case] template: &str, #[case] expected: &str) {
    let document = format!("{TILLS}\noperations: {{get: {{path: \"{template}\"}}}}");
    let rendered = line(&document, OperationName::Get, "/shops/rio/tills/t1", "7", "{}");
    assert_eq!(rendered, format!("GET {expected}"));
}

/// White space at the ends of a name is a part of the address, that of the template is not.
#[rstest]
#[case("./{{/id}}\\n", "/v2/rio/tills/7 ")]
#[case(" ./{{/id}}/\\n", "/v2/rio/tills/7 /")]
#[case(" /x/{{/name}}\\n", "/x/ana ")]
#[case("{{/name}}/x\\n", "/ana /x")]
#[case(" ./import\\n", "/v2/rio/tills/import")]
fn white_space_at_the_ends_of_names(#[case] template: &str, #[case] expected: &str) {
    let document = format!("{TILLS}\noperations: {{get: {{path: \"{template}\"}}}}");
    let rendered = line(&document, OperationName::Get, "/shops/rio/tills/t1", "7 ", "{name: \"ana \"}");
    assert_eq!(rendered, format!("GET {expected}"));
    let document = TILLS.replace("tills\"", "tills\\n\"");
    assert_eq!(line(&document, OperationName::List, "/shops/rio/tills", "", "{}"), "GET /v2/rio/tills");
}

#[test]
fn the_remote_collection_derives_its_fields_from_the_path() {
    assert_eq!(line(TILLS, OperationName::List, "/shops/rio/tills", "", "{}"), "GET /v2/rio/tills");
    assert_eq!(line(TILLS, OperationName::Create, "/shops/rio/tills/t1", "7", "{}"), "POST /v2/rio/tills");
}

#[rstest]
#[case("/regions/eu/vaults/a/b/key", OperationName::Get, "GET /kv/eu/a/b/key")]
#[case("/regions/eu/vaults/a", OperationName::List, "GET /kv/eu/a")]
#[case("/regions/eu/vaults", OperationName::List, "GET /kv/eu")]
fn descendants(#[case] target: &str, #[case] operation: OperationName, #[case] expected: &str) {
    let document = "selector: {descendants: true}
resource: {remoteCollectionPath: \"/kv/{{/region}}{{/descendantCollectionPath}}\"}";
    let rules = rules(&[("regions/_/vaults/_/metadata.yaml", document)], target);
    let target = path(target);
    let identity = Identity { alias: target.name().to_owned(), remote_id: target.name().to_owned() };
    let subject = Subject { path: &target, identity: &identity, payload: None, descriptor: None };
    let evaluation = match operation {
        OperationName::List => rules.on_collection(&target),
        _ => rules.on_resource(subject),
    };
    let rendered = evaluation.unwrap().render(operation).unwrap();
    assert_eq!(format!("{} {}", rendered.method, rendered.path), expected);
}

#[rstest]
#[case("method: patch", "PATCH /shops/7")]
#[case("method: \"{{if .raw}}POST{{end}}\"", "PUT /shops/7")]
#[case("query: {b: \"{{/n}}\", a: x}", "PUT /shops/7?a=x&b=3")]
#[case("path: \"/x/{{/missing}}\"", "/shops/rio: operations.update.path (shops/_/metadata.yaml): ")]
#[case("query: {q: \"{{/missing}}\"}", "/shops/rio: operations.update.query.q (shops/_/metadata.yaml): ")]
#[case("headers: {X-A: \"{{/o}}\"}", "/shops/rio: operations.update.headers.x-a (shops/_/metadata.yaml): ")]
#[case(
    "path: ../../../x",
    "/shops/rio: operations.update.path (shops/_/metadata.yaml): \"../../../x\" leads above the root"
)]
#[case("path: \"./{{/empty}}\"", "/shops/rio: operations.update.path (shops/_/metadata.yaml): ")]
#[case("path: \"./{{/dots}}\"", "/shops/rio: operations.update.path (shops/_/metadata.yaml): ")]
#[case(
    "method: \"{{/spaced}}\"",
    "/shops/rio: operations.update.method (shops/_/metadata.yaml): \"A B\" is not an HTTP method"
)]
#[case(
    "method: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "/shops/rio: operations.update.method (shops/_/metadata.yaml): \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\" is not an HTTP method"
)]
fn updates(#[case] operation: &str, #[case] expected: &str) {
    let document = format!("operations: {{update: {{{operation}}}}}");
    let payload = "{n: 3, o: {}, empty: \"\", dots: \"..\", spaced: A B}";
    let rendered = line(&document, OperationName::Update, "/shops/rio", "7", payload);
    assert!(rendered.starts_with(expected), "{rendered}");
}

/// The headers and body of an update of `/shops/rio`: `accept|content type|other headers|body`.
fn sent(document: &str, extension: Option<&str>, payload: &Value) -> String {
    let target = path("/shops/rio");
    let rules = rules(&[("shops/_/metadata.yaml", document)], "/shops/rio");
    let identity = Identity { alias: "rio".to_owned(), remote_id: "7".to_owned() };
    let descriptor = extension.map(Descriptor::from_extension);
    let subject = Subject {
        path: &target,
        identity: &identity,
        payload: Some(payload),
        descriptor: descriptor.as_ref(),
    };
    let evaluation = rules.on_resource(subject).unwrap();
    let rendered = evaluation.render(OperationName::Update).unwrap();
    let headers: Vec<String> =
        rendered.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    match evaluation.body(OperationName::Update, &rendered, payload) {
        Ok(Some(body)) => {
            let bytes = String::from_utf8_lossy(&body.bytes).replace(['\n', ' '], "");
            format!("{}|{}|{}|{bytes}", rendered.accept, body.media_type, headers.join(","))
        }
        Ok(None) => format!("{}||{}|", rendered.accept, headers.join(",")),
        Err(error) => error.to_string(),
    }
}

#[rstest]
#[case::json("", Some("json"), "{a: 1}", "application/json|application/json||{\"a\":1}")]
#[case::yaml_travels_as_json("", Some("yaml"), "{a: 1}", "application/json|application/json||{\"a\":1}")]
#[case::concrete_format(
    "resource: {format: yaml}",
    Some("yaml"),
    "{a: 1}",
    "application/yaml|application/yaml||a:1"
)]
#[case::text("", Some("xml"), "<a/>", "application/xml|application/xml||<a/>")]
#[case::header_decides(
    "operations: {update: {headers: {content-type: application/yaml, Accept: text/plain, X-Shop: \"{{/a}}\"}}}",
    Some("json"),
    "{a: 1}",
    "text/plain|application/yaml|x-shop: 1|a:1"
)]
#[case::blank_header_is_left_out(
    "operations: {update: {headers: {X-A: \"{{if .b}}1{{end}}\"}}}",
    Some("json"),
    "{a: 1}",
    "application/json|application/json||{\"a\":1}"
)]
#[case::conditional_on_the_payload_type(
    "operations: {update: {headers: {Content-Type: '{{if eq (payload_type .) \"octet-stream\"}}application/octet-stream{{else}}application/pgp-keys{{end}}'}, transforms: [{jqExpression: .content}]}}",
    Some("json"),
    "{type: public, content: \"A\\\"B\"}",
    "application/json|application/pgp-keys||A\"B"
)]
#[case::text_under_a_structured_type_is_quoted(
    "operations: {update: {transforms: [{jqExpression: .a}]}}",
    Some("json"),
    "{a: x}",
    "application/json|application/json||\"x\""
)]
#[case::stated_body(
    "operations: {update: {body: {do: \"{{/a}}\"}}}",
    Some("json"),
    "{a: x}",
    "application/json|application/json||{\"do\":\"x\"}"
)]
#[case::shared_steps_come_first(
    "operations: {defaults: {transforms: [{excludeAttributes: /a}]}, update: {transforms: [{jqExpression: \"{b, a}\"}]}}",
    Some("json"),
    "{a: 1, b: 2}",
    "application/json|application/json||{\"a\":null,\"b\":2}"
)]
#[case::null_sends_no_body(
    "operations: {update: {transforms: [{jqExpression: \"null\"}]}}",
    Some("json"),
    "{a: 1}",
    "application/json|||"
)]
#[case::templates_in_jq_are_escaped(
    "operations: {update: {transforms: [{jqExpression: '{a: \"{{/a}}\"}'}]}}",
    Some("json"),
    "{a: 'q\"\\(1)'}",
    "application/json|application/json||{\"a\":\"q\\\"\\\\(1)\"}"
)]
#[case::required(
    "resource: {requiredAttributes: [/a, /n], id: /uid, alias: \"{{/x}}-{{/n}}\"}",
    Some("json"),
    "{a: null, n: 1}",
    "/shops/rio: update requires /a, /x, /uid in the payload; add the missing attributes"
)]
#[case::unknown_type_keeps_the_format(
    "operations: {update: {headers: {Content-Type: application/x-shop}}}",
    Some("json"),
    "{a: 1}",
    "application/json|application/x-shop||{\"a\":1}"
)]
#[case::suffix_and_parameters(
    "operations: {update: {headers: {Content-Type: \"application/merge-patch+json; charset=utf-8\"}}}",
    Some("yaml"),
    "{a: 1}",
    "application/json|application/merge-patch+json; charset=utf-8||{\"a\":1}"
)]
#[case::text_under_an_xml_suffix(
    "operations: {update: {headers: {Content-Type: application/soap+xml}}}",
    Some("xml"),
    "<a/>",
    "application/xml|application/soap+xml||<a/>"
)]
#[case::text_needs_a_string(
    "operations: {update: {headers: {Content-Type: text/plain}}}",
    Some("json"),
    "{a: 1}",
    "/shops/rio: cannot encode the payload as text/plain: cannot encode as text, the whole document: a text payload needs a string, not an object"
)]
#[case::binary_needs_bytes(
    "operations: {update: {headers: {Content-Type: application/octet-stream}}}",
    Some("json"),
    "{a: 1}",
    "/shops/rio: cannot encode the payload as application/octet-stream: cannot encode as octet-stream, the whole document: a binary payload needs bytes, not an object"
)]
#[case::binary_is_the_text(
    "operations: {update: {headers: {Content-Type: application/octet-stream}}}",
    Some("txt"),
    "hello",
    "text/plain|application/octet-stream||hello"
)]
#[case::nothing_is_required_of_text(
    "resource: {requiredAttributes: [/a], alias: \"{{/x}}\"}",
    Some("xml"),
    "<a/>",
    "application/xml|application/xml||<a/>"
)]
#[case::what_is_sent_is_validated(
    "operations: {update: {transforms: [{excludeAttributes: /a}], validate: {requiredAttributes: /a}}}",
    Some("json"),
    "{a: 1}",
    "/shops/rio: operations.update: the request body lacks required attributes: /a"
)]
#[case::what_a_transform_adds_is_there(
    "operations: {update: {transforms: [{jqExpression: .b = 2}], validate: {requiredAttributes: /b}}}",
    Some("json"),
    "{a: 1}",
    "application/json|application/json||{\"a\":1,\"b\":2}"
)]
#[case::text_cannot_be_validated(
    "operations: {update: {validate: {requiredAttributes: /a}}}",
    Some("xml"),
    "<a/>",
    "/shops/rio: operations.update: validate requires a structured request body, but this one is text or bytes"
)]
#[case::the_payload_goes_before_what_is_sent(
    "resource: {requiredAttributes: [/a]}\noperations: {update: {validate: {requiredAttributes: /b}}}",
    Some("json"),
    "{c: 1}",
    "/shops/rio: update requires /a in the payload; add the missing attributes"
)]
fn bodies(
    #[case] document: &str,
    #[case] extension: Option<&str>,
    #[case] payload: &str,
    #[case] expected: &str,
) {
    assert_eq!(sent(document, extension, &yaml(payload)), expected);
}

const API: &str = "paths:
  /shops:
    post:
      requestBody: {content: {application/yaml: {}, application/vnd.shop+json: {}}}
      responses: {'201': {content: {application/problem+json: {}}}}
  '/shops/{id}':
    get: {responses: {'200': {content: {application/hal+json: {}, application/xml: {}}}}}
    patch:
      requestBody: {content: {application/merge-patch+json: {}, application/yaml: {}, application/xml: {}}}
      responses: {default: {content: {text/plain: {}}}}
";

#[rstest]
#[case::create("", "json", OperationName::Create, "POST application/problem+json|application/vnd.shop+json")]
#[case::update("", "json", OperationName::Update, "PATCH text/plain|application/merge-patch+json")]
#[case::get("", "json", OperationName::Get, "GET application/hal+json|application/json")]
#[case::concrete_format(
    "resource: {format: yaml}",
    "yaml",
    OperationName::Create,
    "POST application/problem+json|application/yaml"
)]
#[case::text("", "xml", OperationName::Get, "GET application/xml|application/xml")]
#[case::metadata_has_the_last_word(
    "operations: {update: {method: patch, headers: {accept: application/json, Content-Type: application/xml}}}",
    "json",
    OperationName::Update,
    "PATCH application/json|application/xml"
)]
#[case::unknown_path(
    "operations: {update: {path: ./a/b}}",
    "json",
    OperationName::Update,
    "PUT application/json|application/json"
)]
#[case::unknown_method(
    "operations: {update: {method: PUT}}",
    "json",
    OperationName::Update,
    "/shops/rio: update: the OpenAPI document has no PUT for /shops/{id}; it has GET, PATCH; metadata states the method; add it to the document that http.openapi names"
)]
#[case::no_method(
    "",
    "json",
    OperationName::Delete,
    "/shops/rio: delete: the OpenAPI document has no DELETE for /shops/{id}; it has GET, PATCH; set operations.delete.method or path"
)]
#[case::comparing_sends_nothing(
    "operations: {compare: {method: PUT}}",
    "json",
    OperationName::Compare,
    "PUT application/json|application/json"
)]
fn openapi_defines_methods_and_media_types(
    #[case] document: &str,
    #[case] extension: &str,
    #[case] operation: OperationName,
    #[case] expected: &str,
) {
    let (_root, tree) = tree(&[("shops/_/metadata.yaml", document)]);
    let api = Api::new(Arc::new(OpenApi::parse(API.as_bytes()).unwrap()), "/");
    let target = path("/shops/rio");
    let rules = Metadata::new(tree).with_api(Arc::new(api)).rules(&target).unwrap();
    let (payload, descriptor) = (yaml("{a: 1}"), Descriptor::from_extension(extension));
    let identity = Identity { alias: "rio".to_owned(), remote_id: "7".to_owned() };
    let subject = Subject {
        path: &target,
        identity: &identity,
        payload: Some(&payload),
        descriptor: Some(&descriptor),
    };
    let rendered = match rules.on_resource(subject).unwrap().render(operation) {
        Ok(rendered) => format!("{} {}|{}", rendered.method, rendered.accept, rendered.content_type),
        Err(error) => {
            assert_eq!(error.category(), Category::Validation);
            error.to_string()
        }
    };
    assert_eq!(rendered, expected);
}

#[test]
fn fields_of_the_path_are_validated_but_not_sent() {
    let document = "resource: {remoteCollectionPath: '/shops/{{/shop}}/tills'}
operations: {create: {validate: {requiredAttributes: [/shop, /a]}}}";
    let target = path("/shops/rio/tills/t1");
    let rules = rules(&[("shops/_/tills/_/metadata.yaml", document)], target.as_str());
    let payload = yaml("{a: 1}");
    let identity = Identity { alias: "t1".to_owned(), remote_id: "t1".to_owned() };
    let subject = Subject { path: &target, identity: &identity, payload: Some(&payload), descriptor: None };
    let evaluation = rules.on_resource(subject).unwrap();
    let rendered = evaluation.render(OperationName::Create).unwrap();
    let body = evaluation.body(OperationName::Create, &rendered, &payload).unwrap().unwrap();
    assert_eq!(String::from_utf8(body.bytes).unwrap().replace(['\n', ' '], ""), "{\"a\":1}");
}

#[test]
fn bytes_are_sent_unchanged() {
    let document =
        "operations: {update: {headers: {Accept: application/json}, transforms: [{jqExpression: .a}]}}";
    let sent = sent(document, Some("key"), &Value::Bytes(b"raw".to_vec()));
    assert_eq!(sent, "application/json|application/octet-stream||raw");
}

#[test]
fn a_create_may_lack_an_id_that_the_server_assigns() {
    let rules = rules(&[("shops/_/metadata.yaml", "resource: {id: /uid, alias: /name}")], "/shops/rio");
    let missing = |operation| rules.missing_in(&yaml("{name: Rio}"), operation);
    assert_eq!(missing(OperationName::Create), Vec::<String>::new());
    assert_eq!(missing(OperationName::Update), ["/uid"]);
}

#[rstest]
#[case::path("{path: '/q/{{/nope}}'}", "operations.compare.path")]
#[case::query("{query: {q: '{{/nope}}'}}", "operations.compare.query.q")]
fn a_faulty_template_of_compare_fails_a_comparison(#[case] compare: &str, #[case] field: &str) {
    let document = format!("operations: {{compare: {compare}}}");
    let (rules, at) = (rules(&[("shops/_/metadata.yaml", &document)], "/shops/rio"), path("/shops/rio"));
    let desired = yaml("{a: 1}");
    let identity = rules.identify(&at, &desired).unwrap();
    let subject = Subject { path: &at, identity: &identity, payload: Some(&desired), descriptor: None };
    let error = rules.on_resource(subject).unwrap().compare(&yaml("{a: 1}")).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains(field), "{error}");
}

/// Returns the differences of two JSON payloads with the metadata `document`.
fn compared(document: &str, desired: &str, observed: &str) -> Vec<String> {
    let target = path("/shops/rio");
    let rules = rules(&[("shops/_/metadata.yaml", document)], "/shops/rio");
    let desired = yaml(desired);
    let identity = rules.identify(&target, &desired).unwrap();
    let descriptor = Descriptor::of(PayloadType::Json);
    let subject = Subject {
        path: &target,
        identity: &identity,
        payload: Some(&desired),
        descriptor: Some(&descriptor),
    };
    let found = rules.on_resource(subject).unwrap().compare(&yaml(observed));
    found.unwrap().iter().map(|difference| format!("{:?} {}", difference.change, difference.path)).collect()
}

#[rstest]
#[case("", "{a: 1}", "{a: 1, b: 2}", &["Add /b"])]
#[case("operations: {compare: {transforms: [{excludeAttributes: /b}]}}", "{a: 1}", "{a: 1, b: 2}", &[])]
#[case("operations: {defaults: {transforms: [{selectAttributes: /a}]}}", "{a: 1, c: 1}", "{a: 1, b: 2}", &[])]
#[case("operations: {compare: {transforms: [{jqExpression: \"del(.{{/drop}})\"}]}}", "{drop: b}", "{drop: b, b: 2}", &[])]
#[case::a_given_id_is_identity("", "{a: 1}", "{a: 1, id: 9}", &[])]
#[case::a_declared_id_counts("", "{id: 1}", "{id: 9}", &["Replace /id"])]
#[case::wherever_metadata_puts_it("resource: {id: /uid}", "{a: 1}", "{a: 1, uid: 9, id: 3}", &["Add /id"])]
#[case::below_a_member("resource: {id: /meta/uid}", "{a: 1}", "{a: 1, meta: {uid: 9}}", &[])]
#[case::below_a_declared_member("resource: {id: /meta/uid}", "{meta: {}}", "{meta: {uid: 9}}", &[])]
#[case::beside_others("resource: {id: /meta/uid}", "{a: 1}", "{a: 1, meta: {uid: 9, b: 1}}", &["Add /meta"])]
fn comparisons(
    #[case] document: &str,
    #[case] desired: &str,
    #[case] observed: &str,
    #[case] expected: &[&str],
) {
    assert_eq!(compared(document, desired, observed), expected);
}

#[test]
fn a_whole_secret_is_compared_by_its_description() {
    let document = "resource: {secret: true}
operations: {compare: {transforms: [{selectAttributes: [/name, /contentType]}]}}";
    let target = path("/shops/rio");
    let rules = rules(&[("shops/_/metadata.yaml", document)], "/shops/rio");
    let payload = Value::Bytes(b"k".to_vec());
    let identity = Identity { alias: "rio".to_owned(), remote_id: "rio".to_owned() };
    let descriptor = Descriptor::from_extension("key");
    let subject = Subject {
        path: &target,
        identity: &identity,
        payload: Some(&payload),
        descriptor: Some(&descriptor),
    };
    let compare =
        |observed: &str| rules.on_resource(subject).unwrap().compare(&yaml(observed)).unwrap().len();
    assert_eq!(compare("{name: rio, contentType: application/octet-stream, size: 3}"), 0);
    assert_eq!(compare("{name: rio, contentType: text/plain}"), 1);
}
