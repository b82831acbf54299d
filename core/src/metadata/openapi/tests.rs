//! Tests of reading and looking up `OpenAPI` documents.

use std::sync::Arc;

use http::Method;
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::metadata::document::OperationName;

pub const PETS: &[u8] = include_bytes!("../../../tests/fixtures/openapi/petstore-3.0.yaml");
pub const TILLS: &[u8] = include_bytes!("../../../tests/fixtures/openapi/tills-3.1.json");
pub const CLIENTS: &[u8] = include_bytes!("../../../tests/fixtures/openapi/clients-2.0.yaml");

pub fn parse(bytes: impl AsRef<[u8]>) -> OpenApi {
    OpenApi::parse(bytes.as_ref()).unwrap()
}

/// Returns a document with these paths; each has a GET.
fn with_paths(paths: &[&str], more: &str) -> OpenApi {
    let paths: Vec<_> = paths.iter().map(|path| format!("\"{path}\": {{\"get\": {{}}}}")).collect();
    parse(format!("{{\"openapi\": \"3.0.0\", {more} \"paths\": {{{}}}}}", paths.join(", ")))
}

#[rstest]
#[case::json("{\"openapi\": \"3.0.0\", \"paths\": {\"/a\": {\"get\": {}}}}")]
#[case::yaml("openapi: 3.0.0\npaths: {/a: {get: {}}}")]
#[case::byte_order_mark("\u{feff}{\"paths\": {\"/a\": {\"get\": {}}}}")]
#[case::no_version("paths: {/a: {get: {}}}")]
#[case::wide_numbers("{\"x\": 18446744073709551615, \"y\": 1e400, \"paths\": {\"/a\": {\"get\": {}}}}")]
#[case::wide_numbers_in_yaml("x: 99999999999999999999\ny: .inf\n1: 2\npaths: {/a: {get: {}}}")]
#[case::equal_keys_in_json("{\"paths\": {}, \"paths\": {\"/a\": {\"get\": {}}}}")]
#[case::nonsense_elsewhere(
    "paths: {/a: {get: {responses: 7, requestBody: []}, put: 3}, /b: null, c: {}, x-d: 1}"
)]
fn reads(#[case] text: &str) {
    let document = parse(text);
    assert_eq!(document.path("/a", "").unwrap().operations().len(), 1, "{document:?}");
}

#[rstest]
#[case::nothing("", "the OpenAPI document is null, not an object")]
#[case::array("[1]", "the OpenAPI document is an array, not an object")]
#[case::text("hello", "the OpenAPI document is a string, not an object")]
#[case::login_page(
    r#"{"app": {"version": "4.30.0"}, "links": {}}"#,
    "this is not an OpenAPI document: it has none of the members openapi, swagger and paths"
)]
#[case::broken_yaml(
    "a: [",
    "the OpenAPI document is neither JSON nor YAML: cannot decode yaml, line 1, column 4"
)]
#[case::cut_json("{\"a\": {", "the OpenAPI document is neither JSON nor YAML: EOF while parsing")]
#[case::binary("\u{0}\u{1}", "the OpenAPI document is neither JSON nor YAML")]
fn rejects(#[case] text: &str, #[case] message: &str) {
    let error = OpenApi::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with(message), "{error}");
}

#[rstest]
#[case::exact("/pets", "/pets")]
#[case::variable("/pets/7", "/pets/{petId}")]
#[case::literal_beats_variable("/pets/mine", "/pets/mine")]
#[case::template_itself("/pets/{petId}", "/pets/{petId}")]
#[case::fewest_variables("/cats/7", "/{kind}/{petId}")]
#[case::trailing_slash("/pets/", "/pets")]
#[case::longer("/pets/7/photo", "/pets/{petId}/photo")]
#[case::server_path("/api/v1/pets/7", "/pets/{petId}")]
#[case::unknown("/pets/7/photo/x", "")]
#[case::root("/", "")]
fn finds_paths(#[case] request: &str, #[case] expected: &str) {
    let document = parse(PETS);
    assert_eq!(document.path(request, "").map_or("", PathItem::template), expected);
}

#[rstest]
#[case::without_base(&["/a"], "", "/a", "/v1", "/a")]
#[case::base_is_part_of_the_paths(&["/v1/a"], "", "/a", "/v1", "/v1/a")]
#[case::base_with_slash(&["/v1/a"], "", "/a", "/v1/", "/v1/a")]
#[case::without_base_first(&["/a", "/v1/a"], "", "/a", "/v1", "/a")]
#[case::prefix_in_request(&["/a"], "\"basePath\": \"/api\",", "/api/a", "", "/a")]
#[case::prefix_in_base_and_request(&["/a"], "\"basePath\": \"/gw/api\",", "/api/a", "/gw", "/a")]
#[case::prefix_in_request_behind_a_base(&["/a"], "\"basePath\": \"/api\",", "/api/a", "/gw", "/a")]
#[case::prefix_ends_at_a_slash(&["/a"], "\"basePath\": \"/ap\",", "/api/a", "", "")]
#[case::prefix_alone(&["/"], "\"basePath\": \"/api\",", "/api", "", "/")]
#[case::relative_server(&["/a"], "\"servers\": [{\"url\": \"/api/\"}],", "/api/a", "", "/a")]
#[case::absolute_server(&["/a"], "\"servers\": [{\"url\": \"https://h:1/x%20y?q#f\"}],", "/x y/a", "", "/a")]
#[case::server_without_scheme(&["/a"], "\"servers\": [{\"url\": \"//h/api\"}],", "/api/a", "", "/a")]
#[case::second_server(&["/a"], "\"servers\": [{\"url\": \"/\"}, {}, {\"url\": \"/b/c\"}],", "/b/c/a", "", "/a")]
#[case::longest_server(&["/a", "/v1/a"], "\"servers\": [{\"url\": \"/b\"}, {\"url\": \"/b/v1\"}],", "/b/v1/a", "", "/a")]
#[case::lexical(&["/{b}/x", "/{a}/x"], "", "/q/x", "", "/{a}/x")]
#[case::partial_variable_is_text(&["/a.{x}"], "", "/a.b", "", "")]
fn strips_bases(
    #[case] paths: &[&str],
    #[case] more: &str,
    #[case] request: &str,
    #[case] base: &str,
    #[case] expected: &str,
) {
    let document = with_paths(paths, more);
    assert_eq!(document.path(request, base).map_or("", PathItem::template), expected);
}

#[rstest]
#[case::all(&["/v1/a", "/v1/{b}", "/v1"], "", "/v1", &["/", "/a", "/{b}"])]
#[case::with_a_slash(&["/v1/a"], "", "/v1/", &["/a"])]
#[case::not_all(&["/v1/a", "/b"], "", "/v1", &["/b", "/v1/a"])]
#[case::only_the_start_of_a_name(&["/v10/a"], "", "/v1", &["/v10/a"])]
#[case::root(&["/a"], "", "/", &["/a"])]
#[case::relative_to_the_same_server(&["/v1/a"], "\"servers\": [{\"url\": \"/v1\"}],", "/v1", &["/v1/a"])]
#[case::part_of_the_server(&["/v1/a"], "\"servers\": [{\"url\": \"/api\"}],", "/api/v1", &["/a"])]
#[case::other_server(&["/v1/a"], "\"servers\": [{\"url\": \"/gw\"}],", "/v1", &["/a"])]
#[case::nothing(&[], "", "/v1", &[])]
fn paths_below_a_base_url(
    #[case] paths: &[&str],
    #[case] other: &str,
    #[case] base: &str,
    #[case] expected: &[&str],
) {
    let paths: Vec<String> = paths.iter().map(|path| format!("\"{path}\": {{\"get\": {{}}}}")).collect();
    let document = parse(format!("{{{other} \"paths\": {{{}}}}}", paths.join(",")));
    let below = Arc::new(document).below(base);
    let mut found: Vec<&str> = below.paths().map(PathItem::template).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert!(below.paths().all(|path| path.operation(&Method::GET).is_some()));
}

#[rstest]
#[case("/pets", OperationName::Create, Some(Method::POST))]
#[case("/pets", OperationName::List, Some(Method::GET))]
#[case("/pets", OperationName::Update, Some(Method::POST))]
#[case("/pets", OperationName::Delete, None)]
#[case("/pets/1", OperationName::Update, Some(Method::PATCH))]
#[case("/pets/1", OperationName::Create, None)]
#[case("/pets/1", OperationName::Delete, Some(Method::DELETE))]
#[case("/pets/1", OperationName::Compare, Some(Method::GET))]
#[case("/pets/1/photo", OperationName::Update, Some(Method::PUT))]
#[case("/pets/1/photo", OperationName::Create, Some(Method::PUT))]
fn default_methods(#[case] path: &str, #[case] name: OperationName, #[case] expected: Option<Method>) {
    let document = parse(PETS);
    assert_eq!(document.path(path, "").unwrap().default_method(name), expected.as_ref());
}

#[rstest]
#[case::action("{}", None)]
#[case::query("{parameters: [{in: query, name: force}]}", None)]
#[case::form("{parameters: [{in: formData, name: size}]}", Some(Method::POST))]
#[case::shared_form("{parameters: [{$ref: '#/parameters/size'}]}", Some(Method::POST))]
#[case::body("{parameters: [{in: body, name: save, schema: {}}]}", Some(Method::POST))]
fn a_post_without_a_body_is_no_update(#[case] post: &str, #[case] expected: Option<Method>) {
    let shared = "parameters: {size: {in: formData, name: size}}";
    let document =
        parse(format!("swagger: '2.0'\n{shared}\npaths: {{'/saves/{{id}}': {{get: {{}}, post: {post}}}}}"));
    let path = document.path("/saves/1", "").unwrap();
    assert_eq!(path.default_method(OperationName::Update), expected.as_ref());
}

#[test]
fn a_method_that_the_path_does_not_have_is_an_error() {
    let document = parse(PETS);
    let error = document.path("/pets/7", "").unwrap().require(&Method::PUT).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the OpenAPI document has no PUT for /pets/{petId}; it has GET, DELETE, PATCH"
    );
    let empty = parse("paths: {/a: {}}");
    let error = empty.path("/a", "").unwrap().require(&Method::GET).unwrap_err();
    assert_eq!(error.to_string(), "the OpenAPI document has no GET for /a; it has no methods");
}

#[rstest]
#[case::one(PETS, "GET /pets", None, "", "application/json")]
#[case::json_before_xml(PETS, "POST /pets", None, "application/json", "application/json")]
#[case::format(PETS, "POST /pets", Some(PayloadType::Xml), "application/xml", "application/json")]
#[case::response_by_reference(PETS, "GET /pets/1", None, "", "application/json")]
#[case::first_status_with_content(
    PETS,
    "PATCH /pets/1",
    None,
    "application/json",
    "application/problem+json"
)]
#[case::no_content(PETS, "DELETE /pets/1", None, "", "")]
#[case::range(PETS, "GET /pets/mine", None, "", "")]
#[case::structured_suffix(PETS, "PUT /pets/1/photo", None, "application/vnd.photo+json", "")]
#[case::other_format(PETS, "PUT /pets/1/photo", Some(PayloadType::Yaml), "application/yaml", "")]
#[case::no_such_format(PETS, "PUT /pets/1/photo", Some(PayloadType::Ini), "application/vnd.photo+json", "")]
#[case::path_item_by_reference(TILLS, "POST /shops", None, "", "application/json")]
#[case::document_types(CLIENTS, "POST /clients", None, "application/json", "application/json")]
#[case::document_types_by_format(
    CLIENTS,
    "POST /clients",
    Some(PayloadType::Xml),
    "application/xml",
    "application/xml"
)]
#[case::operation_types(CLIENTS, "GET /clients", None, "application/vnd.client+json", "application/yaml")]
#[case::path_item_types(CLIENTS, "PUT /clients/1", None, "application/vnd.client+json", "")]
#[case::form_data_is_not_converted(CLIENTS, "POST /forms", None, "", "")]
#[case::existing_parts_are_kept(CLIENTS, "POST /converted", None, "text/plain", "text/csv")]
fn media_types(
    #[case] document: &[u8],
    #[case] operation: &str,
    #[case] format: Option<PayloadType>,
    #[case] request: &str,
    #[case] response: &str,
) {
    let document = parse(document);
    let (method, path) = operation.split_once(' ').unwrap();
    let operation = document.path(path, "").unwrap().require(&method.parse().unwrap()).unwrap();
    // A GET sends no body, even if the path item states one.
    if method != "GET" {
        assert_eq!(operation.request_media_type(format).unwrap_or_default(), request);
    }
    assert_eq!(operation.response_media_type(format).unwrap_or_default(), response);
}

#[rstest]
#[case::lexical(&["text/b", "text/a"], None, "text/a")]
#[case::json_first(&["application/a+json", "application/json", "a/a"], None, "application/json")]
#[case::json_with_parameter(&["application/json; charset=utf-8", "a/a"], None, "application/json; charset=utf-8")]
#[case::format_beats_json(&["application/json", "text/yaml", "application/yaml"], Some(PayloadType::Yaml), "application/yaml")]
#[case::ranges_last(&["*/*", "x/y"], None, "x/y")]
#[case::no_header(&["a/b\\r\\nX: y", "nonsense"], None, "")]
fn preference(#[case] names: &[&str], #[case] format: Option<PayloadType>, #[case] expected: &str) {
    let content: Vec<_> = names.iter().map(|name| format!("\"{name}\": {{}}")).collect();
    let document = parse(format!(
        "{{\"paths\": {{\"/a\": {{\"put\": {{\"requestBody\": {{\"content\": {{{}}}}}}}}}}}}}",
        content.join(", ")
    ));
    let operation = document.path("/a", "").unwrap().require(&Method::PUT).unwrap();
    assert_eq!(operation.request_media_type(format).unwrap_or_default(), expected);
}

#[rstest]
#[case(&["404", "default", "202", "201", "200"], "200")]
#[case(&["404", "default", "202", "201"], "201")]
#[case(&["404", "default", "202"], "202")]
#[case(&["404", "default"], "default")]
#[case(&["404", "203", "2XX"], "203")]
fn status_order(#[case] statuses: &[&str], #[case] expected: &str) {
    let answers: Vec<_> =
        statuses.iter().map(|status| format!("'{status}': {{content: {{x/{status}: {{}}}}}}")).collect();
    let document =
        parse(format!("paths: {{/a: {{get: {{responses: {{'100': {{}}, {}}}}}}}}}", answers.join(", ")));
    let operation = document.path("/a", "").unwrap().require(&Method::GET).unwrap();
    assert_eq!(operation.response_media_type(None), Some(format!("x/{expected}").as_str()));
}

#[rstest]
#[case("'2'", true)]
#[case("'2.0'", true)]
#[case("'2.1'", true)]
#[case("2", true)]
#[case("2.0", true)]
#[case("2.9", true)]
#[case("'20'", false)]
#[case("3", false)]
#[case("1.2", false)]
fn versions_of_swagger(#[case] version: &str, #[case] converted: bool) {
    let document = parse(format!(
        "swagger: {version}\npaths: {{/a: {{get: {{responses: {{200: {{schema: {{type: object}}}}}}}}}}}}"
    ));
    let operation = document.path("/a", "").unwrap().require(&Method::GET).unwrap();
    assert_eq!(operation.response_media_type(None).is_some(), converted);
}

#[rstest]
#[case::request(PETS, "POST /pets", true, &["kind", "name"], &["age", "food", "friends", "kind", "name", "owner", "tags"])]
#[case::response(PETS, "GET /pets/1", false, &["id", "kind", "name"], &["age", "food", "friends", "id", "kind", "name", "owner", "tags"])]
#[case::items(PETS, "GET /pets", false, &[], &["age", "food", "friends", "id", "kind", "name", "owner", "tags"])]
#[case::swagger_by_parameter(CLIENTS, "POST /clients", true, &["clientId"], &["clientId", "id", "secret"])]
#[case::swagger_by_path_item(CLIENTS, "PUT /clients/1", true, &["clientId"], &["clientId", "id", "secret"])]
#[case::swagger_response(CLIENTS, "GET /clients/1", false, &["clientId"], &["clientId", "id", "secret"])]
#[case::siblings(TILLS, "POST /shops/1/tills", true, &["name", "size", "uid"], &["extra", "gone", "name", "shopId", "size", "uid"])]
fn attributes(
    #[case] document: &[u8],
    #[case] operation: &str,
    #[case] request: bool,
    #[case] required: &[&str],
    #[case] properties: &[&str],
) {
    let document = parse(document);
    let (method, path) = operation.split_once(' ').unwrap();
    let operation = document.path(path, "").unwrap().require(&method.parse().unwrap()).unwrap();
    let schema = if request { operation.request_schema() } else { operation.response_schema() }.unwrap();
    assert_eq!(document.required_properties(schema).into_iter().collect::<Vec<_>>(), required);
    assert_eq!(document.properties(schema).into_iter().collect::<Vec<_>>(), properties);
}

#[test]
fn definitions_of_swagger_are_components() {
    let document = parse(CLIENTS);
    for place in ["/definitions/Client", "/components/schemas/Client", "/components/responses/Client/schema"]
    {
        let names =
            document.properties(&reference::follow(&document.root, place.parse().unwrap()).unwrap().at);
        assert!(names.contains("clientId"), "{place}");
    }
}

#[rstest]
#[case::circle(
    "{a: {$ref: '#/a'}}",
    "/a",
    "$ref \"#/a\" is circular, or part of a chain of more than 96 references"
)]
#[case::foreign(
    "{a: {$ref: 'b.yaml#/c'}}",
    "/a",
    "$ref \"b.yaml#/c\" refers to another document; only references that start with \"#\" are supported"
)]
#[case::missing("{a: {$ref: '#/b'}}", "/a", "#/b does not exist")]
#[case::malformed("{a: {$ref: '#b'}}", "/a", "$ref \"#b\" is not a JSON Pointer")]
#[case::encoded("{a: {$ref: '#/b%20c~1d'}, b c/d: {}}", "/a", "")]
fn references(#[case] text: &str, #[case] at: &str, #[case] message: &str) {
    let document = parse(text.replacen('{', "{paths: {}, ", 1));
    let followed = reference::follow(&document.root, at.parse().unwrap());
    assert_eq!(followed.map_or_else(|error| error.to_string(), |_| String::new()), message);
}

#[test]
fn a_long_chain_of_references_ends() {
    let links: Vec<_> = (0..20_000).map(|at| format!("\"{at}\":{{\"$ref\":\"#/c/{}\"}}", at + 1)).collect();
    let text = format!(
        "{{\"c\":{{{}}},\"paths\":{{\"/a\":{{\"put\":{{\"requestBody\":{{\"$ref\":\"#/c/0\"}}}}}}}}}}",
        links.join(",")
    );
    let document = parse(text);
    assert!(document.path("/a", "").unwrap().require(&Method::PUT).unwrap().request().is_empty());
    assert!(document.properties(&"/c/0".parse().unwrap()).is_empty());
}

#[test]
fn shared_parts_are_not_copied_for_each_user() {
    let types: Vec<_> = (0..1000).map(|at| format!("\"t/{at}\"")).collect();
    let paths: Vec<_> = (0..1000)
        .map(|at| format!("\"/{at}\":{{\"post\":{{\"parameters\":[{{\"$ref\":\"#/parameters/b\"}}]}}}}"))
        .collect();
    let text = format!(
        "{{\"swagger\":\"2.0\",\"consumes\":[{}],\"parameters\":{{\"b\":{{\"in\":\"body\",\"schema\":{{\"enum\":[\"{}\"]}}}}}},\"paths\":{{{}}}}}",
        types.join(","),
        "x".repeat(1 << 20),
        paths.join(",")
    );
    let document = parse(text);
    assert_eq!(
        document.path("/7", "").unwrap().require(&Method::POST).unwrap().request().len(),
        operation::MAX_MEDIA_TYPES
    );
}

#[test]
fn long_names_do_not_multiply() {
    let long = "x".repeat(5000);
    let document = parse(format!(
        "{{\"servers\": [{{\"url\": \"/{}\", \"variables\": {{\"v\": {{\"default\": \"{long}\"}}}}}}],
          \"{long}\": {{\"content\": {{\"a/b\": {{}}}}}},
          \"paths\": {{
            \"/{long}\": {{\"get\": {{}}}},
            \"/a\": {{\"put\": {{\"requestBody\": {{\"content\": {{\"a/{long}\": {{}}, \"a/b\": {{}}}}}}}}}},
            \"/b\": {{\"put\": {{\"requestBody\": {{\"$ref\": \"#/{long}\"}}}}}}
          }}}}",
        "{v}".repeat(1000),
    ));
    assert!(document.prefixes.is_empty());
    assert_eq!(document.paths().map(PathItem::template).collect::<Vec<_>>(), ["/a", "/b"]);
    let names = |path| {
        let operation = document.path(path, "").unwrap().require(&Method::PUT).unwrap();
        operation.request().iter().map(|media| media.name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(names("/a"), ["a/b"]);
    assert!(names("/b").is_empty());
}

/// Calls all functions of a document.
fn exercise(bytes: &[u8]) {
    let Ok(document) = OpenApi::parse(bytes) else { return };
    for item in document.paths() {
        for operation in item.operations() {
            let media = operation.request().iter().chain(operation.response());
            for schema in media.filter_map(|media| media.schema.as_ref()) {
                let _ = (document.required_properties(schema), document.properties(schema));
                if let Ok(schema) = schema::Schema::compile(&document, schema) {
                    let _ = schema.check(&Value::Object(Object::new()));
                }
            }
        }
    }
}

/// Returns documents that consist of the keywords that the parser reads.
fn documents() -> impl Strategy<Value = serde_json::Value> {
    const WORDS: [&str; 22] = [
        "paths", "/a", "/a/{b}", "get", "put", "post", "requestBody", "responses", "200", "default",
        "content", "application/json", "schema", "$ref", "allOf", "items", "properties", "swagger",
        "parameters", "in", "definitions", "required",
    ];
    let leaf = prop_oneof![
        Just(serde_json::json!(null)),
        Just(serde_json::json!("#/paths/~1a")),
        Just(serde_json::json!("#/paths")),
        Just(serde_json::json!("2.0")),
        Just(serde_json::json!("body")),
        Just(serde_json::json!(true)),
    ];
    leaf.prop_recursive(8, 64, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::Array),
            prop::collection::vec((prop::sample::select(&WORDS[..]), inner), 0..6).prop_map(|members| {
                let members = members.into_iter().map(|(key, member)| (key.to_owned(), member));
                serde_json::Value::Object(members.collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        exercise(&bytes);
    }

    #[test]
    fn any_text_is_read_or_rejected(text in "[\\[\\]{}:,\"'#&*!|>\\-a-z0-9 \n$/~]{0,120}") {
        exercise(text.as_bytes());
    }

    #[test]
    fn any_document_is_read(paths in documents(), rest in documents(), swagger in any::<bool>()) {
        let version = if swagger { "swagger" } else { "openapi" };
        let document = serde_json::json!({version: "2.0", "paths": {"/a": paths, "/b": {"put": {"requestBody": rest}}}});
        exercise(document.to_string().as_bytes());
    }
}

/// Each path has the operations of all others. Their number must not count for each of them.
#[test]
fn many_paths_that_differ_only_in_variables_are_read_in_linear_time() {
    let paths: Vec<String> =
        (0..20_000).map(|number| format!(r##""/{{v{number}}}": {{"$ref": "#/x"}}"##)).collect();
    let methods = ["get", "put", "post", "delete", "patch", "head", "options", "trace"];
    let item: Vec<String> = methods.iter().map(|method| format!(r#""{method}": {{}}"#)).collect();
    let document =
        format!(r#"{{"openapi": "3.0.0", "x": {{{}}}, "paths": {{{}}}}}"#, item.join(","), paths.join(","));
    let operations = parse(document).paths().map(|item| item.operations().len()).max();
    assert_eq!(operations, Some(methods.len()));
}
