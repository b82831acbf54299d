//! Tests of inferred metadata.

use insta::assert_snapshot;
use rstest::rstest;

use super::*;
use crate::path::LogicalPath;
use crate::payload::PayloadType;

const PETS: &[u8] = include_bytes!("../../../tests/fixtures/openapi/petstore-3.0.yaml");
const TILLS: &[u8] = include_bytes!("../../../tests/fixtures/openapi/tills-3.1.json");
const CLIENTS: &[u8] = include_bytes!("../../../tests/fixtures/openapi/clients-2.0.yaml");

/// Returns a document with paths in the form `GET,POST /a`, or `!POST` for one without a body.
pub(super) fn document(paths: &[&str]) -> OpenApi {
    let items = paths.iter().map(|path| {
        let (methods, path) = path.split_once(' ').unwrap();
        let methods = methods.split(',').map(|method| match method {
            "POST" => "post: {requestBody: {content: {application/json: {}}}}".to_owned(),
            method => format!("{}: {{}}", method.trim_start_matches('!').to_lowercase()),
        });
        format!("'{path}': {{{}}}", methods.collect::<Vec<_>>().join(", "))
    });
    OpenApi::parse(format!("paths: {{{}}}", items.collect::<Vec<_>>().join(", ")).as_bytes()).unwrap()
}

pub(super) fn yaml(document: &Document) -> String {
    let bytes = document.encode_yaml().unwrap();
    assert_eq!(&Document::decode(PayloadType::Yaml, &bytes).unwrap(), document);
    String::from_utf8(bytes).unwrap()
}

fn compact(target: &str, document: &[u8]) -> String {
    yaml(&infer(target, Some(&OpenApi::parse(document).unwrap())).unwrap())
}

/// Returns the complete inferred request of an operation as `METHOD path`.
fn request(target: &str, document: Option<&OpenApi>, name: OperationName) -> String {
    let inferred = infer_all(target, document).unwrap();
    let operation = &inferred.operations.unwrap().operations[&name];
    format!("{} {}", operation.method.as_deref().unwrap_or("-"), operation.path.as_deref().unwrap_or("-"))
}

fn remote_collection(target: &str, document: Option<&OpenApi>) -> String {
    infer_all(target, document).unwrap().resource.unwrap().remote_collection_path.unwrap()
}

#[test]
fn conventions_are_omitted() {
    assert_snapshot!(compact("/shops/", TILLS), @"
    resource:
        alias: '{{/name}}'
        id: '{{/id}}'
    ");
}

/// It may be an action, such as a restart or a restoration.
#[test]
fn a_post_without_a_body_is_no_update() {
    let update = |item: &str| {
        let document = document(&["GET,POST /saves", item]);
        request("/saves/", Some(&document), OperationName::Update)
    };
    assert_eq!(update("GET,!POST,DELETE /saves/{id}"), "PUT /saves/{{/id}}");
    assert_eq!(update("GET,POST,DELETE /saves/{id}"), "POST /saves/{{/id}}");
    let actions = document(&["GET /saves", "GET,!POST,DELETE /saves/{id}"]);
    assert_eq!(request("/saves/", Some(&actions), OperationName::Create), "POST /saves");
}

#[test]
fn a_resource_may_be_created_at_its_own_address() {
    let document = document(&["GET /keys", "GET,POST,DELETE /keys/{name}"]);
    assert_snapshot!(yaml(&infer("/keys/", Some(&document)).unwrap()), @"
    operations:
        create:
            method: POST
            path: ./{{/id}}
        update:
            method: POST
    resource:
        alias: '{{/name}}'
        id: '{{/name}}'
    ");
    let create = |target| request(target, Some(&document), OperationName::Create);
    assert_eq!(create("/keys/"), "POST /keys/{{/name}}");
}

#[test]
fn a_resource_may_be_created_at_a_path_below_the_collection() {
    let users = document(&["GET /users", "POST /users/create", "GET,PUT,DELETE /users/{id}"]);
    assert_snapshot!(yaml(&infer("/users/", Some(&users)).unwrap()), @"
    operations:
        create:
            path: ./create
    resource:
        alias: '{{/id}}'
        id: '{{/id}}'
    ");
    let create = |document| request("/users/", Some(document), OperationName::Create);
    assert_eq!(create(&users), "POST /users/create");
    let with_slash = document(&["GET /users/", "POST /users/create/", "GET,PUT /users/{id}/"]);
    assert_eq!(create(&with_slash), "POST /users/create/");
    let with_both = document(&["GET,POST /users", "POST /users/create", "GET,PUT /users/{id}"]);
    assert_eq!(create(&with_both), "POST /users");
    let query = "paths: {/users: {get: {}, post: {responses: {'200': {content: {application/json: {schema: {type: array, \
                 items: {properties: {id: {}}}}}}}}}}, /users/create: {post: {}}, '/users/{id}': {get: {}}}";
    let query = OpenApi::parse(query.as_bytes()).unwrap();
    assert_eq!(create(&query), "POST /users/create");
    let named_create = document(&["GET /users", "GET,POST,PUT /users/{id}"]);
    assert_eq!(create(&named_create), "PUT /users/{{/id}}");
    assert!(
        collections(&document(&["GET /users", "POST /users/create", "GET /users/{id}"])).contains("/users")
    );
}

#[rstest]
#[case::required("{id: {readOnly: true}, name: {}, slug: {}}", "[slug]", "id", "slug")]
#[case::not_required("{slug: {}, name: {}}", "[]", "id", "name")]
#[case::the_client_states_the_id("{id: {}, name: {}}", "[id, name]", "id", "id")]
#[case::another_name("{shop_name: {}, color: {}}", "[]", "id", "shop_name")]
#[case::other_names("{shop_name: {}, file_name: {}}", "[]", "id", "id")]
#[case::no_name("{color: {}}", "[]", "id", "id")]
#[case::not_described("{}", "[]", "id", "id")]
fn a_create_cannot_state_an_id_that_the_server_assigns(
    #[case] properties: &str,
    #[case] required: &str,
    #[case] id: &str,
    #[case] alias: &str,
) {
    let schema = |schema: String| format!("{{content: {{application/json: {{schema: {schema}}}}}}}");
    let body = schema(format!("{{properties: {properties}, required: {required}}}"));
    let answer = "{properties: {id: {}, name: {}, slug: {}, shop_name: {}, file_name: {}}}";
    let answer = schema(answer.to_owned());
    let paths = format!(
        "{{/shops: {{post: {{requestBody: {body}}}}}, '/shops/{{id}}': {{get: {{responses: {{'200': {answer}}}}}}}}}"
    );
    let document = OpenApi::parse(format!("paths: {paths}").as_bytes()).unwrap();
    let resource = infer_all("/shops/", Some(&document)).unwrap().resource.unwrap();
    let template = |name| Some(format!("{{{{/{name}}}}}"));
    assert_eq!((resource.id, resource.alias), (template(id), template(alias)));
}

#[test]
fn slashes_at_the_end_come_from_the_document() {
    let document = document(&["GET,POST /api/sites/", "GET,PUT,DELETE /api/sites/{id}/"]);
    assert_snapshot!(yaml(&infer("/api/sites/", Some(&document)).unwrap()), @"
    operations:
        create:
            path: ../sites/
        delete:
            path: ./{{/id}}/
        get:
            path: ./{{/id}}/
        list:
            path: ../sites/
        update:
            path: ./{{/id}}/
    resource:
        alias: '{{/id}}'
        id: '{{/id}}'
    ");
    assert_eq!(request("/api/sites/", Some(&document), OperationName::List), "GET /api/sites/");
    assert_eq!(request("/api/sites/", Some(&document), OperationName::Update), "PUT /api/sites/{{/id}}/");
}

#[test]
fn validation_comes_from_the_document() {
    assert_snapshot!(compact("/pets", PETS), @"
    operations:
        create:
            validate:
                requiredAttributes:
                    - /kind
                    - /name
                schemaRef: openapi:request-body
        update:
            validate:
                requiredAttributes:
                    - /kind
                    - /name
                schemaRef: openapi:request-body
    resource:
        alias: '{{/name}}'
        id: '{{/id}}'
    ");
}

#[test]
fn secrets_of_clients_are_inferred() {
    assert_snapshot!(compact("/clients/", CLIENTS), @"
    operations:
        create:
            validate:
                requiredAttributes:
                    - /clientId
                schemaRef: openapi:request-body
        update:
            validate:
                requiredAttributes:
                    - /clientId
                schemaRef: openapi:request-body
    resource:
        alias: '{{/clientId}}'
        id: '{{/id}}'
        secretAttributes:
            - /secret
    ");
}

#[test]
fn everything_that_is_inferred() {
    let document = OpenApi::parse(TILLS).unwrap();
    assert_snapshot!(yaml(&infer_all("/shops/_/tills/_", Some(&document)).unwrap()), @"
    operations:
        compare:
            path: /shops/{{/shopId}}/tills/{{/name}}
        create:
            method: POST
            path: /shops/{{/shopId}}/tills
            validate:
                requiredAttributes:
                    - /name
                    - /size
                    - /uid
                schemaRef: openapi:request-body
        delete:
            method: DELETE
            path: /shops/{{/shopId}}/tills/{{/name}}
        get:
            method: GET
            path: /shops/{{/shopId}}/tills/{{/name}}
        list:
            method: GET
            path: /shops/{{/shopId}}/tills
        update:
            method: PUT
            path: /shops/{{/shopId}}/tills/{{/name}}
            validate:
                requiredAttributes:
                    - /name
                    - /size
                schemaRef: openapi:request-body
    resource:
        alias: '{{/name}}'
        format: json
        id: '{{/name}}'
        remoteCollectionPath: /shops/{{/shopId}}/tills
    ");
}

#[test]
fn everything_without_a_document() {
    assert_snapshot!(yaml(&infer_all("/shops/rio", None).unwrap()), @"
    operations:
        compare:
            path: /shops/rio
        create:
            method: POST
            path: /shops/rio
        delete:
            method: DELETE
            path: /shops/rio
        get:
            method: GET
            path: /shops/rio
        list:
            method: GET
            path: /shops
        update:
            method: PUT
            path: /shops/rio
    resource:
        remoteCollectionPath: /shops
    ");
}

#[rstest]
#[case::slash("/shops/", None, true)]
#[case::wildcard("/shops/_", None, true)]
#[case::inner_wildcard("/shops/_/tills", None, true)]
#[case::glob("/shops/r*", None, true)]
#[case::root("/", None, true)]
#[case::plain("/shops", None, false)]
#[case::described("/shops", Some(&["GET /shops", "GET /shops/{shopId}"][..]), true)]
#[case::described_by_post("/shops", Some(&["POST /shops", "DELETE /shops/{shopId}"][..]), true)]
#[case::other_method("/shops", Some(&["PUT /shops", "GET /shops/{shopId}"][..]), false)]
#[case::no_child("/shops", Some(&["GET /shops"][..]), false)]
#[case::literal_child("/shops", Some(&["GET /shops", "GET /shops/all"][..]), false)]
#[case::odd_variable("/shops", Some(&["GET /shops", "GET /shops/{shop-id}"][..]), false)]
#[case::child_with_post_only("/shops", Some(&["GET /shops", "POST /shops/{shopId}"][..]), false)]
#[case::other_path("/shops", Some(&["GET /{kind}", "GET /{kind}/{id}"][..]), false)]
fn targets(#[case] target: &str, #[case] paths: Option<&[&str]>, #[case] expected: bool) {
    let document = paths.map(document);
    assert_eq!(Target::parse(target, document.as_ref()).unwrap().is_collection, expected);
}

#[rstest]
#[case::relative("shops")]
#[case::traversal("/a/../b")]
#[case::blank(" ")]
#[case::pattern("/a[")]
fn bad_targets(#[case] target: &str) {
    assert_eq!(infer(target, None).unwrap_err().category(), Category::Validation);
}

#[rstest]
#[case::item_list("/shops/rio", OperationName::List, "GET /shops")]
#[case::item_create("/shops/rio", OperationName::Create, "POST /shops/rio")]
#[case::item_get("/shops/rio", OperationName::Get, "GET /shops/rio")]
#[case::item_update("/shops/rio", OperationName::Update, "PUT /shops/rio")]
#[case::item_delete("/shops/rio", OperationName::Delete, "DELETE /shops/rio")]
#[case::item_compare("/shops/rio", OperationName::Compare, "- /shops/rio")]
#[case::list("/shops/", OperationName::List, "GET /shops")]
#[case::create("/shops/", OperationName::Create, "POST /shops")]
#[case::get("/shops/", OperationName::Get, "GET /shops/{{/shop}}")]
#[case::update("/clients/", OperationName::Update, "PUT /clients/{{/id}}")]
#[case::wildcard("/shops/_/tills/", OperationName::List, "GET /shops/{{/shop}}/tills")]
#[case::repeated("/api-keys/_/_/x/", OperationName::List, "GET /api-keys/{{/key}}/{{/key2}}/x")]
#[case::repeated_again("/as/_/_/_/x/", OperationName::List, "GET /as/{{/a}}/{{/a2}}/{{/a3}}/x")]
#[case::no_name_before("/_/shops/", OperationName::List, "GET /{{/segment1}}/shops")]
#[case::glob("/cities/r*/shops/", OperationName::List, "GET /cities/{{/city}}/shops")]
#[case::root("/", OperationName::Get, "GET /{{/id}}")]
fn without_document(#[case] target: &str, #[case] name: OperationName, #[case] expected: &str) {
    assert_eq!(request(target, None, name), expected);
}

#[rstest]
#[case::list("/shops/", OperationName::List, "GET /shops")]
#[case::create("/shops/", OperationName::Create, "POST /shops")]
#[case::get("/shops/", OperationName::Get, "GET /shops/{{/shopId}}")]
#[case::compare("/shops/", OperationName::Compare, "- /shops/{{/shopId}}")]
#[case::patch("/shops/", OperationName::Update, "PATCH /shops/{{/shopId}}")]
#[case::not_described("/shops/", OperationName::Delete, "DELETE /shops/{{/id}}")]
#[case::odd_variable("/shops/rio/tills/", OperationName::Get, "GET /shops/{{/shopId}}/tills/{{/id}}")]
#[case::put_before_patch("/shops/rio/tills/", OperationName::Update, "PUT /shops/{{/shopId}}/tills/{{/id}}")]
#[case::item("/shops/rio", OperationName::Get, "GET /shops/{{/shopId}}")]
#[case::item_list("/shops/rio", OperationName::List, "GET /shops")]
#[case::item_create("/shops/rio", OperationName::Create, "POST /shops")]
#[case::item_with_odd_variable(
    "/shops/rio/tills/t1",
    OperationName::Get,
    "GET /shops/{{/shopId}}/tills/{{/id}}"
)]
#[case::odd_variable_by_wildcard("/odd/_/x/", OperationName::List, "GET /odd/{{/odd}}/x")]
fn with_document(#[case] target: &str, #[case] name: OperationName, #[case] expected: &str) {
    let document = document(&[
        "GET,POST /shops",
        "GET,PATCH /shops/{shopId}",
        "GET /shops/{shopId}/tills",
        "GET,PUT,PATCH /shops/{shopId}/tills/{till-id}",
        "GET /odd/{o-d}/x",
    ]);
    assert_eq!(request(target, Some(&document), name), expected);
}

#[rstest]
#[case::equal_literals("/shops/rio/", &["GET /shops/rio", "GET /shops/{a}"], "/shops/rio")]
#[case::literal_and_variable("/shops/rio/", &["GET /shops/{a}", "GET /{a}/{b}"], "/shops/{{/a}}")]
#[case::wildcard_prefers_variables("/shops/_/x/", &["GET /shops/all/x", "GET /shops/{a}/x"], "/shops/{{/a}}/x")]
#[case::wildcard_takes_literals("/shops/_/x/", &["GET /shops/all/x"], "/shops/all/x")]
#[case::glob_fits("/shops/r*/x/", &["GET /shops/rio/x"], "/shops/rio/x")]
#[case::glob_does_not_fit("/shops/r*/x/", &["GET /shops/ava/x"], "/shops/{{/shop}}/x")]
#[case::mismatch("/shops/rio/", &["GET /shops/ava"], "/shops/rio")]
#[case::other_length("/shops/", &["GET /shops/{a}"], "/shops")]
#[case::lexical("/shops/rio/", &["GET /shops/{b}", "GET /shops/{a}"], "/shops/{{/a}}")]
#[case::sum("/a/b/c/", &["GET /{x}/b/{z}", "GET /a/b/{z}", "GET /{x}/b/c"], "/a/b/{{/z}}")]
fn best_paths(#[case] target: &str, #[case] paths: &[&str], #[case] expected: &str) {
    assert_eq!(remote_collection(target, Some(&document(paths))), expected);
}

#[rstest]
#[case::logical("/shops/", &["GET /shops"], None)]
#[case::variable_for_a_name("/shops/rio/", &["GET /shops/{a}"], None)]
#[case::variable_for_a_wildcard("/shops/_/x/", &["GET /shops/{a}/x"], None)]
#[case::name_for_a_wildcard("/shops/_/x/", &["GET /shops/all/x"], Some("/shops/all/x"))]
fn remote_collections_that_the_path_does_not_determine_are_kept(
    #[case] target: &str,
    #[case] paths: &[&str],
    #[case] expected: Option<&str>,
) {
    let resource = infer(target, Some(&document(paths))).unwrap().resource.unwrap();
    assert_eq!(resource.remote_collection_path.as_deref(), expected);
}

#[rstest]
#[case::nothing("", "", None, true)]
#[case::json("application/json: {}", "application/json: {}", Some("json"), true)]
#[case::json_preferred(
    "text/plain: {}, application/xml: {}, application/x+json: {}",
    "application/json: {}",
    Some("json"),
    true
)]
#[case::yaml_before_xml("text/yaml: {}, application/xml: {}", "", Some("yaml"), false)]
#[case::xml_before_text("text/plain: {}, text/xml: {}", "", Some("xml"), false)]
#[case::text_before_binary("text/plain: {}, application/octet-stream: {}", "", Some("text"), false)]
#[case::binary_before_unknown("image/png: {}, application/octet-stream: {}", "", Some("octet-stream"), false)]
#[case::unknown("image/png: {}", "", None, true)]
#[case::binary_string("image/png: {schema: {type: string, format: binary}}", "", Some("octet-stream"), false)]
#[case::several("application/json: {}", "text/plain: {}", Some("any"), true)]
fn formats(
    #[case] request: &str,
    #[case] response: &str,
    #[case] expected: Option<&str>,
    #[case] implied: bool,
) {
    let text = format!(
        "paths: {{/shops: {{post: {{requestBody: {{content: {{{request}}}}}}}}}, \
         '/shops/{{id}}': {{get: {{responses: {{200: {{content: {{{response}}}}}}}}}}}}}"
    );
    let document = OpenApi::parse(text.as_bytes()).unwrap();
    let format = |inferred: Document| inferred.resource.unwrap_or_default().format.map(Format::name);
    assert_eq!(format(infer_all("/shops/", Some(&document)).unwrap()), expected);
    assert_eq!(format(infer("/shops/", Some(&document)).unwrap()), expected.filter(|_| !implied));
}

#[test]
fn payloads_without_attributes_have_no_identity_attributes() {
    let document = OpenApi::parse(
        b"paths: {/secrets: {post: {requestBody: {content: {text/plain: {schema: {required: [a]}}}}}}}",
    )
    .unwrap();
    assert_eq!(yaml(&infer("/secrets/", Some(&document)).unwrap()), "resource:\n    format: text\n");
}

#[rstest]
#[case("/realms/r/clients/", true)]
#[case("/Clients/", true)]
#[case("/client-secrets/", true)]
#[case("/credentials/", true)]
#[case("/clients/_/roles/", false)]
#[case("/clients/c1", false)]
fn secret_attributes(#[case] target: &str, #[case] expected: bool) {
    let resource = infer(target, None).unwrap().resource.unwrap_or_default();
    assert_eq!(resource.secret_attributes.is_some(), expected);
}

#[rstest]
#[case::no_attributes("{}", &["/secret"])]
#[case::the_secret("{id: {}, secret: {}}", &["/secret"])]
#[case::another_name("{id: {}, client_secret: {}}", &["/client_secret"])]
#[case::none("{id: {}, name: {}}", &[])]
fn the_document_names_the_secrets(#[case] properties: &str, #[case] expected: &[&str]) {
    let schema = format!("{{content: {{application/json: {{schema: {{properties: {properties}}}}}}}}}");
    let paths = format!("{{/clients: {{}}, '/clients/{{id}}': {{get: {{responses: {{'200': {schema}}}}}}}}}");
    let document = OpenApi::parse(format!("paths: {paths}").as_bytes()).unwrap();
    let resource = infer("/clients/", Some(&document)).unwrap().resource.unwrap_or_default();
    let attributes = resource.secret_attributes.unwrap_or_default();
    assert_eq!(attributes.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
}

#[rstest]
#[case::list_and_create(&["GET,POST /shops"], "/shops", true)]
#[case::list_and_get_below(&["GET /shops", "GET /shops/{shopId}"], "/shops", true)]
#[case::list_and_get_below_odd(&["GET /shops", "GET /shops/{shop-id}"], "/shops", true)]
#[case::list_and_paths_below_members(&["GET /shops", "POST /shops/{id}/tills"], "/shops", true)]
#[case::paths_below_a_name(&["GET /shops", "POST /shops/open/tills"], "/shops", false)]
#[case::list_only(&["GET /status"], "/status", false)]
#[case::create_only(&["POST /jobs", "GET /jobs/{id}"], "/jobs", false)]
#[case::resource(&["GET,PUT /shops/{shopId}", "GET /shops/{shopId}/{part}"], "/shops/rio", false)]
#[case::resource_with_post(&["GET,PUT,POST /shops/{shopId}"], "/shops/rio", true)]
#[case::resource_by_text_is_a_collection(&["GET,DELETE /shops", "GET /shops/{shopId}"], "/shops", true)]
#[case::nested(&["GET,POST /shops/{shopId}/tills"], "/shops/rio/tills", true)]
#[case::sibling_of_a_resource(&["GET /shops/{id}", "GET /shops/name/{name}"], "/shops/name", false)]
#[case::unknown(&["GET,POST /shops"], "/tills", false)]
fn hints(#[case] paths: &[&str], #[case] path: &str, #[case] expected: bool) {
    assert_eq!(is_collection(&document(paths), &LogicalPath::parse(path).unwrap()), expected);
}

#[rstest]
#[case("/", &["admin", "shops"])]
#[case("/shops", &["all"])]
#[case("/shops/rio", &["staff", "tills"])]
#[case("/shops/all", &[])]
#[case("/shops/rio/tills", &[])]
#[case("/admin", &[])]
#[case("/none", &[])]
fn names_below(#[case] path: &str, #[case] expected: &[&str]) {
    let document = document(&[
        "GET /shops",
        "GET /shops/{shopId}",
        "GET /shops/all",
        "GET /shops/{shopId}/tills/{t}",
        "GET /shops/{id}/staff",
        "GET /admin",
    ]);
    let found = children(&document, &LogicalPath::parse(path).unwrap());
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn conventions_are_all_that_can_be_overridden() {
    let document = conventions("/regions/_/shops/").unwrap().encode_yaml().unwrap();
    insta::assert_snapshot!(String::from_utf8(document).unwrap(), @r"
    operations:
        compare:
            path: ./{{/id}}
        create:
            method: POST
            path: .
        defaults:
            transforms: []
        delete:
            method: DELETE
            path: ./{{/id}}
        get:
            method: GET
            path: ./{{/id}}
        list:
            method: GET
            path: .
        update:
            method: PUT
            path: ./{{/id}}
    resource:
        alias: /id
        externalizedAttributes: []
        id: /id
        remoteCollectionPath: /regions/{{/region}}/shops
        requiredAttributes: []
        secret: false
        secretAttributes: []
    ");
}

#[test]
fn conventions_of_a_resource_have_the_collection_that_holds_it() {
    let resource = conventions("/shops/rio").unwrap().resource.unwrap();
    assert_eq!(resource.remote_collection_path.as_deref(), Some("/shops"));
}
