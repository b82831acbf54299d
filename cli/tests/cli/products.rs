//! Metadata for the behaviour of real products: attributes that Git does not declare, patches, order, and members without
//! addresses.

use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::environment::Run;
use crate::safety::Place;

const DECLARED: &str = "operations:
  compare: {mode: declared, arrays: {/mappers: /name, /redirects: set}}
";

fn realm() -> Value {
    json!({"id": "rio", "tier": "free", "seats": 5, "otp": {"digits": 6, "period": 30},
        "mappers": [{"name": "email", "on": false, "rank": 1}, {"name": "groups", "on": true}],
        "redirects": ["/b", "/a"]})
}

/// A realm of which Git declares a part.
fn place(metadata: &str, declared: &Value) -> Place {
    let server = ApiServer::rest(&["/realms"], Ids::Stated("id"));
    server.put("/realms/rio", realm());
    let declared = declared.to_string();
    Place::new(server, &[("_/metadata.yaml", metadata), ("realms/rio/resource.json", &declared)])
}

fn differences(run: &Run) -> Vec<String> {
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    let shown = shown.as_array().unwrap().iter();
    shown
        .map(|entry| format!("{} {}", entry["Operation"].as_str().unwrap(), entry["Path"].as_str().unwrap()))
        .collect()
}

#[rstest]
#[case::a_part(json!({"id": "rio", "otp": {"digits": 6}}), &[])]
#[case::keyed_in_any_order(json!({"mappers": [{"name": "groups"}, {"name": "email", "rank": 1}]}), &[])]
#[case::keyed(json!({"mappers": [{"name": "email", "on": true}]}), &["replace /mappers/0/on"])]
#[case::keyed_and_missing(json!({"mappers": [{"name": "phone"}]}), &["replace /mappers/0"])]
#[case::set(json!({"redirects": ["/a", "/b"]}), &[])]
#[case::set_with_more(json!({"redirects": ["/a"]}), &["add /redirects/1"])]
#[case::absent(json!({"gone": null, "tier": "free"}), &[])]
#[case::different(json!({"tier": "gold", "gone": 1}), &["remove /gone", "replace /tier"])]
fn members_that_git_does_not_declare_are_not_drift(#[case] declared: Value, #[case] expected: &[&str]) {
    let place = place(DECLARED, &declared);
    let run = place.run(&["resource", "diff", "/realms/rio", "-o", "json"]);
    assert_eq!(differences(&run), expected, "{run}");
    let run = place.run(&["plan", "/", "-r", "-o", "json"]);
    assert_eq!(run.stdout.contains("\"step\": \"update\""), !expected.is_empty(), "{run}");
}

#[test]
fn names_from_the_path_are_not_drift() {
    let server = ApiServer::rest(&["/queues/eu"], Ids::Stated("name"));
    server.put("/queues/eu/q1", json!({"name": "q1", "durable": true}));
    let metadata = "resource: {id: /name, alias: /name, remoteCollectionPath: '/queues/{{/vhost}}'}
operations: {compare: {mode: declared}}
";
    let queue = r#"{"name": "q1", "vhost": "eu", "durable": true}"#;
    let files = [("queues/_/_/metadata.yaml", metadata), ("queues/eu/q1/resource.json", queue)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/queues/eu/q1"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

/// Stores the body of a PUT or PATCH, with its content type.
fn recording(request: &Request, store: &mut Store) -> Answer {
    if matches!(request.method.as_str(), "PUT" | "PATCH") {
        let content_type = request.headers["content-type"].to_str().unwrap();
        store.put("/sent", json!([request.method, content_type, request.body]));
        return Answer::empty(204);
    }
    request.rest(store, Ids::Stated("id"))
}

#[rstest]
#[case::replace("update: {}", json!(["PUT", "application/json",
    {"id": "rio", "tier": "gold", "otp": {"digits": 8}, "mappers": [{"name": "email", "on": true}]}]))]
#[case::merge("update: {mode: merge}", json!(["PUT", "application/json",
    {"id": "rio", "tier": "gold", "seats": 5, "otp": {"digits": 8, "period": 30},
     "mappers": [{"name": "email", "on": true, "rank": 1}, {"name": "groups", "on": true}],
     "redirects": ["/b", "/a"]}]))]
#[case::merge_patch("update: {mode: merge-patch}", json!(["PATCH", "application/merge-patch+json",
    {"tier": "gold", "otp": {"digits": 8},
     "mappers": [{"name": "email", "on": true, "rank": 1}, {"name": "groups", "on": true}]}]))]
#[case::json_patch("update: {mode: json-patch}", json!(["PATCH", "application/json-patch+json", [
    {"op": "replace", "path": "/mappers", "value":
        [{"name": "email", "on": true, "rank": 1}, {"name": "groups", "on": true}]},
    {"op": "replace", "path": "/otp/digits", "value": 8},
    {"op": "replace", "path": "/tier", "value": "gold"}]]))]
#[case::observed("update: {transforms: [{jqExpression: '{tier, seats: $observed.seats}'}]}",
    json!(["PUT", "application/json", {"tier": "gold", "seats": 5}]))]
fn the_mode_of_an_update_determines_its_body(#[case] update: &str, #[case] expected: Value) {
    let declared = json!({"id": "rio", "tier": "gold", "otp": {"digits": 8},
        "mappers": [{"name": "email", "on": true}]});
    let server = ApiServer::start(&["/realms"], recording);
    server.put("/realms/rio", realm());
    let metadata = format!("{DECLARED}  {update}\n");
    let files = [("_/metadata.yaml", metadata.as_str()), ("realms/rio/resource.json", &declared.to_string())];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/realms/rio"]);
    assert_eq!(place.server.get("/sent"), Some(expected), "{run}");
}

#[rstest]
#[case::merge_patch("merge-patch", json!({"tier": "gold"}))]
#[case::json_patch("json-patch", json!([{"op": "replace", "path": "/tier", "value": "gold"}]))]
fn a_patch_lacks_what_the_comparison_ignores(#[case] mode: &str, #[case] expected: Value) {
    let server = ApiServer::start(&["/realms"], recording);
    server.put("/realms/rio", json!({"id": "rio", "tier": "free"}));
    let metadata = format!("operations: {{compare: {{mode: declared}}, update: {{mode: {mode}}}}}");
    let declared = r#"{"id": "rio", "alias": "rio", "tier": "gold", "gone": null}"#;
    let files = [("_/metadata.yaml", metadata.as_str()), ("realms/rio/resource.json", declared)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/realms/rio"]);
    assert_eq!(place.server.get("/sent").map(|sent| sent[2].clone()), Some(expected), "{run}");
}

/// The server has the entries in another order than the file.
#[rstest]
#[case::merge_patch("merge-patch")]
#[case::json_patch("json-patch")]
fn a_write_only_attribute_of_an_entry_is_set_in_this_entry(#[case] mode: &str) {
    let server = ApiServer::start(&["/realms"], recording);
    server.put(
        "/realms/rio",
        json!({"id": "rio", "tier": "free", "users": [{"name": "alice"}, {"name": "bob"}]}),
    );
    let metadata = format!(
        "resource: {{writeOnlyAttributes: [/users/0/password]}}\noperations: {{compare: {{mode: declared, arrays: \
         {{/users: /name}}}}, update: {{mode: {mode}}}}}"
    );
    let declared = r#"{"id": "rio", "tier": "gold", "users": [{"name": "bob", "password": "s3cret"}]}"#;
    let files = [("_/metadata.yaml", metadata.as_str()), ("realms/rio/resource.json", declared)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/realms/rio"]);
    let users = json!([{"name": "alice"}, {"name": "bob", "password": "s3cret"}]);
    let sent = place.server.get("/sent").unwrap_or_default()[2].clone();
    let sent_users = if mode == "merge-patch" { &sent["users"] } else { &sent[1]["value"] };
    assert_eq!(*sent_users, users, "{sent}: {run}");
}

/// The `OpenAPI` document has no POST, and a PUT of the collection that replaces it.
#[test]
fn a_create_is_not_a_put_of_the_collection() {
    let server = ApiServer::start(&["/shops"], |request, store| request.rest(store, Ids::Stated("id")));
    server.put("/shops/a", json!({"id": "a"}));
    let openapi = "openapi: 3.0.0
paths:
  /shops: {get: {responses: {}}, put: {responses: {}}}
  /shops/{id}: {get: {responses: {}}, put: {responses: {}}, delete: {responses: {}}}";
    let place = Place::with_openapi(server, openapi, &[("shops/c/resource.json", r#"{"id": "c"}"#)]);
    let run = place.run(&["resource", "apply", "/shops/c"]);
    let puts = place
        .server
        .writes()
        .into_iter()
        .filter(|write| write.starts_with("PUT /shops ") || write == "PUT /shops");
    assert_eq!(puts.count(), 0, "{run}");
}

#[test]
fn an_entry_of_a_keyed_array_without_its_key_is_an_error() {
    let server = ApiServer::start(&["/realms"], recording);
    let mappers = json!({"id": "rio", "mappers": [{"name": "a"}, {"on": true}]});
    server.put("/realms/rio", mappers.clone());
    let metadata = format!("{DECLARED}  update: {{mode: merge}}\n");
    let files = [("_/metadata.yaml", metadata.as_str()), ("realms/rio/resource.json", &mappers.to_string())];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/realms/rio"]);
    assert_eq!(run.code, 2, "{run}");
    let reason =
        "operations.compare.arrays (_/metadata.yaml): \"/mappers/1\" lacks the attribute that is the key";
    assert!(run.stderr.contains(reason), "{run}");
    assert_eq!(place.server.get("/sent"), None, "{run}");
}

/// White space around an address is ignored, so such a value would address the collection.
#[rstest]
#[case(" ")]
#[case(".. ")]
#[case("/ ")]
fn a_delete_of_a_blank_name_does_not_reach_the_collection(#[case] code: &str) {
    let server = ApiServer::start(&["/realms"], recording);
    let declared = json!({"id": "rio", "code": code});
    server.put("/realms/rio", declared.clone());
    let metadata = "operations: {delete: {path: './{{/code}}'}}";
    let files = [("realms/_/metadata.yaml", metadata), ("realms/rio/resource.json", &declared.to_string())];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "delete", "/realms/rio", "-y"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(
        run.stderr.contains("cannot be used here: it makes a segment")
            || run.stderr.contains("it makes a \".\" or \"..\""),
        "{run}"
    );
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

#[test]
fn without_a_mode_of_compare_a_patch_removes_what_git_does_not_declare() {
    let server = ApiServer::start(&["/realms"], recording);
    server.put("/realms/rio", json!({"id": "rio", "tier": "free", "seats": 5}));
    let metadata = "operations: {update: {mode: merge-patch}}";
    let files = [("_/metadata.yaml", metadata), ("realms/rio/resource.json", r#"{"tier": "gold"}"#)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/realms/rio"]);
    let sent = json!(["PATCH", "application/merge-patch+json", {"tier": "gold", "seats": null}]);
    assert_eq!(place.server.get("/sent"), Some(sent), "{run}");
}

#[rstest]
#[case::template("body: {sets: [{name: '{{/name}}.', change: DELETE}]}")]
#[case::transforms("transforms: [{jqExpression: '{sets: [{name: (.name + \".\"), change: \"DELETE\"}]}'}]")]
fn the_body_of_a_delete_sees_the_declaration(#[case] delete: &str) {
    let server = ApiServer::start(&["/records"], recording);
    server.put("/records/www", json!({"name": "www"}));
    let metadata = format!(
        "resource: {{id: /name, alias: /name}}\noperations:\n  delete: {{method: PATCH, path: ., {delete}}}\n"
    );
    let files =
        [("records/_/metadata.yaml", metadata.as_str()), ("records/www/resource.json", r#"{"name": "www"}"#)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "delete", "/records/www", "-y", "--source", "managed-server"]);
    let sent = json!(["PATCH", "application/json", {"sets": [{"name": "www.", "change": "DELETE"}]}]);
    assert_eq!(place.server.get("/sent"), Some(sent), "{run}");
}

#[test]
fn render_shows_the_modes() {
    let place =
        place(&format!("{DECLARED}  update: {{mode: merge}}\n"), &json!({"id": "rio", "tier": "gold"}));
    let run = place.run(&["resource", "metadata", "render", "/realms/rio", "update", "-o", "yaml"]);
    assert!(run.stdout.contains("mode: merge"), "{run}");
    let run = place.run(&["resource", "metadata", "render", "/realms/rio", "compare", "-o", "yaml"]);
    assert!(run.stdout.contains("mode: declared") && run.stdout.contains("/redirects: set"), "{run}");
    let wrong = self::place("operations: {update: {mode: declared}}", &json!({}));
    let run = wrong.run(&["resource", "diff", "/realms/rio"]);
    assert!(
        run.stderr
            .contains("\"declared\" is not supported; use replace or merge or merge-patch or json-patch"),
        "{run}"
    );
}

/// A message broker: a queue needs its virtual host, which is only deleted without queues.
fn broker(request: &Request, store: &mut Store) -> Answer {
    let host = request.body["host"].as_str().map(|host| format!("/hosts/{host}"));
    if request.method == "POST" && host.is_some_and(|host| store.get(&host).is_none()) {
        return Answer::json(404, &json!({"reason": "host_not_found"}));
    }
    if request.method == "DELETE"
        && request.path.starts_with("/hosts/")
        && !store.members("/brokers").is_empty()
    {
        return Answer::json(409, &json!({"reason": "not_empty"}));
    }
    request.rest(store, Ids::Stated("name"))
}

const HOSTS: &str = "resource: {id: /name, alias: /name}\n";

fn queues(metadata: &str) -> Place {
    let files = [
        ("_/metadata.yaml", HOSTS),
        ("brokers/_/metadata.yaml", metadata),
        ("brokers/q1/resource.json", r#"{"name": "q1", "host": "eu"}"#),
        ("hosts/eu/resource.json", r#"{"name": "eu"}"#),
    ];
    Place::new(ApiServer::start(&["/brokers", "/hosts"], broker), &files)
}

#[rstest]
#[case::resource("/hosts/{{/host}}")]
#[case::collection("/hosts")]
fn dependencies_are_written_first_and_deleted_last(#[case] on: &str) {
    let place = queues(&format!("resource: {{dependsOn: ['{on}']}}\n"));
    let run = place.run(&["resource", "metadata", "resolve", "/brokers/q1"]);
    assert!(run.stdout.contains("dependsOn"), "{run}");
    let run = place.run(&["plan", "/", "-r", "-o", "json"]);
    assert!(run.stdout.contains("dependsOn"), "{run}");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(
        (run.code, place.server.writes()),
        (0, vec!["POST /hosts 201".into(), "POST /brokers 201".into()]),
        "{run}"
    );
    let run = place.run(&["resource", "delete", "/", "-r", "-y", "--source", "managed-server"]);
    assert_eq!((run.code, place.server.paths()), (0, Vec::new()), "{run} {:?}", place.server.writes());
}

#[test]
fn what_lacks_another_resource_is_tried_again_in_the_same_run() {
    let place = queues("resource: {}\n");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(
        (run.code, place.server.paths()),
        (0, vec!["/brokers/q1".into(), "/hosts/eu".into()]),
        "{run}"
    );
}

#[test]
fn a_rejected_resource_is_not_tried_again_without_other_writes() {
    let place = queues("resource: {}\n");
    place.server.put("/hosts/eu", json!({"name": "eu"}));
    place.home.write("repo/brokers/q1/resource.json", r#"{"name": "q1", "host": "us"}"#);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), ["POST /brokers 404"]);
}

#[test]
fn a_cycle_of_dependencies_is_named() {
    let place = queues("resource: {dependsOn: [/hosts]}\n");
    place.home.write("repo/hosts/_/metadata.yaml", "resource: {dependsOn: [/brokers]}\n");
    let named = ["/brokers/q1 -> /hosts/eu -> /brokers/q1", "/hosts/eu -> /brokers/q1 -> /hosts/eu"];
    for command in [&["plan", "/"][..], &["resource", "apply", "/", "-r"]] {
        let run = place.run(command);
        assert_eq!(run.code, 2, "{run}");
        assert!(named.iter().any(|cycle| run.stderr.contains(cycle)), "{run}");
        assert!(run.stderr.contains("2 of 2 resources failed"), "{run}");
    }
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

/// A realm refers to a flow below it.
fn flows(request: &Request, store: &mut Store) -> Answer {
    let flow = request.body["browserFlow"].as_str().map(|flow| format!("/realms/acme/flows/{flow}"));
    match flow {
        Some(flow) if store.get(&flow).is_none() => Answer::json(500, &json!({"error": "no such flow"})),
        _ => request.rest(store, Ids::Stated("name")),
    }
}

#[test]
fn a_deferred_attribute_is_set_after_the_children() {
    let metadata = "resource: {id: /name, alias: /name, deferredAttributes: [/browserFlow]}\n";
    let files = [
        ("_/metadata.yaml", HOSTS),
        ("realms/_/metadata.yaml", metadata),
        ("realms/acme/resource.json", r#"{"name": "acme", "browserFlow": "strict"}"#),
        ("realms/acme/flows/strict/resource.json", r#"{"name": "strict"}"#),
    ];
    let place = Place::new(ApiServer::start(&["/realms", "/realms/*/flows"], flows), &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    let writes = ["POST /realms 201", "POST /realms/acme/flows 201", "PUT /realms/acme 200"];
    assert_eq!((run.code, place.server.writes()), (0, writes.map(String::from).to_vec()), "{run}");
    assert_eq!(place.server.get("/realms/acme"), Some(json!({"name": "acme", "browserFlow": "strict"})));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!((run.code, place.server.writes().len()), (0, 3), "{run}");
}

/// A singleton has neither POST nor DELETE.
fn profile(request: &Request, store: &mut Store) -> Answer {
    match request.method.as_str() {
        "GET" | "PUT" if request.path == "/realms/profile" => request.rest(store, Ids::Stated("none")),
        _ => Answer::json(405, &json!({"error": "method not allowed"})),
    }
}

/// All collections have an id and a slug; settings have neither.
#[test]
fn a_singleton_needs_no_inherited_names() {
    let server = ApiServer::start(&[], profile);
    server.put("/realms/profile", json!({"policy": "free"}));
    let files = [
        ("_/metadata.yaml", "resource: {id: /id, alias: /slug}"),
        ("realms/profile/metadata.yaml", "resource: {singleton: true}"),
        ("realms/profile/resource.json", r#"{"policy": "strict"}"#),
    ];
    let place = Place::new(server, &files);
    let checked = place.run(&["validate"]);
    assert!(!checked.to_string().contains("requires"), "{checked}");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["PUT /realms/profile 200".to_owned()]), "{run}");
}

/// The server assigns the id, which is the only name that metadata states.
#[test]
fn an_id_of_the_server_is_not_asked_for() {
    let metadata = "resource: {id: '{{/ace_id}}', alias: '{{/ace_id}}'}";
    let files = [("acl/_/metadata.yaml", metadata), ("acl/one/resource.json", r#"{"role": "r1"}"#)];
    let run =
        Place::new(ApiServer::rest(&["/acl"], Ids::Given), &files).run(&["resource", "apply", "/", "-r"]);
    let advice = "state another attribute in resource.alias if the server assigns the id";
    assert!(run.code == 2 && run.stderr.contains(advice), "{run}");
}

#[test]
fn a_singleton_is_only_updated() {
    let server = ApiServer::start(&[], profile);
    server.put("/realms/profile", json!({"policy": "free"}));
    let files = [
        ("realms/profile/metadata.yaml", "resource: {singleton: true, onRemove: {reset: {policy: free}}}\n"),
        ("realms/profile/resource.json", r#"{"policy": "strict"}"#),
    ];
    let place = Place::new(server, &files);
    for _ in 0..2 {
        let run = place.run(&["resource", "apply", "/realms/profile"]);
        assert_eq!(run.code, 0, "{run}");
    }
    assert_eq!(place.server.writes(), ["PUT /realms/profile 200"]);
    // The second deletion finds the resource as it must be.
    for _ in 0..2 {
        let run = place.run(&["resource", "delete", "/realms/profile", "-y", "--source", "managed-server"]);
        assert_eq!(
            (run.code, place.server.get("/realms/profile")),
            (0, Some(json!({"policy": "free"}))),
            "{run}"
        );
    }
    assert_eq!(place.server.writes().len(), 2);
}

/// The `id` in the settings of a realm is not their address, and that of another resource.
#[test]
fn a_member_of_a_singleton_is_not_its_address() {
    let server = ApiServer::rest(&["/realms/r"], Ids::Stated("none"));
    server.put("/realms/r/settings", json!({"id": 8, "mail": "a"}));
    server.put("/realms/r/8", json!({"id": 8, "mail": "of another"}));
    let place = Place::new(server, &[("realms/r/settings/metadata.yaml", "resource: {singleton: true}\n")]);
    let run = place.run(&["resource", "save", "/realms/r/settings"]);
    assert_eq!(run.code, 0, "{run}");
    let file = "repo/realms/r/settings/resource.json";
    place.home.write(file, &place.home.read(file).replace("\"a\"", "\"b\""));
    let run = place.run(&["resource", "apply", "/realms/r/settings"]);
    assert_eq!(
        (run.code, place.server.writes()),
        (0, vec!["PUT /realms/r/settings 200".to_owned()]),
        "{run}"
    );
    assert_eq!(place.server.get("/realms/r/8").unwrap()["mail"], "of another");
}

/// The `OpenAPI` document of the server has a GET for the settings, as for a collection.
#[test]
fn a_singleton_is_saved_although_the_document_describes_a_collection() {
    let server = ApiServer::rest(&[], Ids::Stated("none"));
    server.put("/settings", json!({"enabled": false}));
    let api =
        "openapi: 3.1.0\npaths: {/settings: {get: {responses: {'200': {description: ok}}}, post: {}}}\n";
    let files = [("settings/metadata.yaml", "resource: {singleton: true}\n")];
    let place = Place::with_openapi(server, api, &files);
    let run = place.run(&["import", "/settings"]);
    assert!(run.code == 0 && place.has("settings/resource.json"), "{run}");
}

/// The list has names that are encoded, so the read of one of them finds nothing.
#[test]
fn a_listed_member_that_does_not_exist_is_named() {
    let server = ApiServer::start(&[], |request: &Request, store: &mut Store| match request.path.as_str() {
        "/docs" => Answer::json(200, &json!(["a", "b"])),
        _ => request.rest(store, Ids::Stated("none")),
    });
    server.put("/docs/a", json!({"v": 1}));
    let place = Place::new(server, &[("docs/_/metadata.yaml", "operations: {list: {mode: names}}\n")]);
    let run = place.run(&["import", "/docs"]);
    assert!(run.code == 0 && run.stdout.contains("1 saved"), "{run}");
    assert!(
        run.stderr.contains("/docs/b: a list shows it, but the server answers that it does not exist"),
        "{run}"
    );
}

/// The server repeats the present value of a secret attribute in its answer to a refused update.
#[test]
fn the_present_value_of_a_secret_is_not_printed() {
    let server =
        ApiServer::start(&["/items"], |request: &Request, store: &mut Store| match request.method.as_str() {
            "PUT" => Answer::json(422, &json!({"error": "value canary-old cannot become canary-new"})),
            _ => request.rest(store, Ids::Stated("id")),
        });
    server.put("/items/x", json!({"id": "x", "pw": "canary-old"}));
    let files = [
        ("items/_/metadata.yaml", "resource: {secretAttributes: [/pw]}\n"),
        ("items/x/resource.json", r#"{"id": "x", "pw": "canary-new"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/items/x", "-v=3"]);
    assert!(run.code == 2 && !format!("{}{}", run.stdout, run.stderr).contains("canary"), "{run}");
}

/// The server never returns a password.
fn users(request: &Request, store: &mut Store) -> Answer {
    match (request.method.as_str(), store.get(&request.path)) {
        ("GET", Some(user)) => Answer::json(200, &json!({"name": user["name"]})),
        _ => request.rest(store, Ids::Stated("name")),
    }
}

#[test]
fn a_write_only_attribute_is_written_when_it_changes() {
    let metadata = "resource: {id: /name, alias: /name, writeOnlyAttributes: [/password]}\n";
    let files = [
        ("users/_/metadata.yaml", metadata),
        ("users/ana/resource.json", r#"{"name": "ana", "password": "canary-1"}"#),
    ];
    let place = Place::new(ApiServer::start(&["/users"], users), &files);
    let apply = || {
        let run = place.run(&["resource", "apply", "/users/ana"]);
        assert_eq!(run.code, 0, "{run}");
        place.server.writes().len()
    };
    assert_eq!((apply(), apply()), (1, 1));
    place.home.write("repo/users/ana/resource.json", r#"{"name": "ana", "password": "canary-2"}"#);
    let run = place.run(&["plan", "/users/ana"]);
    assert!(run.stdout.contains("/password") && !run.stdout.contains("canary"), "{run}");
    assert_eq!((apply(), apply()), (2, 2));
    assert_eq!(place.server.get("/users/ana").unwrap()["password"], "canary-2");
    let record = place.home.path(".declarest/state/written.json");
    assert!(!std::fs::read_to_string(&record).unwrap().contains("canary"));
    std::fs::remove_file(record).unwrap();
    assert_eq!((apply(), apply()), (3, 3));
}

/// A create takes long enough that commands which start at the same time overlap.
fn slow_users(request: &Request, store: &mut Store) -> Answer {
    if request.method == "POST" {
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    users(request, store)
}

#[test]
fn commands_at_once_keep_the_records_of_each_other() {
    let metadata = "resource: {id: /name, alias: /name, writeOnlyAttributes: [/password]}\n";
    let names = ["ana", "bob", "eva"];
    let place = Place::new(ApiServer::start(&["/users"], slow_users), &[("users/_/metadata.yaml", metadata)]);
    for name in names {
        let user = json!({"name": name, "password": "1"}).to_string();
        place.home.write(&format!("repo/users/{name}/resource.json"), &user);
    }
    let apply = |path: &str| {
        let run = place.run(&["resource", "apply", path]);
        assert_eq!(run.code, 0, "{run}");
    };
    apply("/users/eva");
    std::thread::scope(|scope| {
        scope.spawn(|| apply("/users/ana"));
        scope.spawn(|| apply("/users/bob"));
    });
    apply("/users");
    assert_eq!(place.server.writes().len(), names.len());
}

/// The server does not show the password, so the file keeps it.
#[test]
fn a_write_only_secret_in_plain_text_goes_to_the_store() {
    let server = ApiServer::start(&["/sources"], |request, store| request.rest(store, Ids::Stated("id")));
    server.put("/sources/pg", json!({"id": "pg", "size": 2}));
    let metadata = "resource: {writeOnlyAttributes: [/secure], secretAttributes: [/secure/password]}";
    let declared = r#"{"id": "pg", "secure": {"password": "hunter2", "mode": "x"}}"#;
    let files = [("sources/_/metadata.yaml", metadata), ("sources/pg/resource.json", declared)];
    let place = Place::new(server, &files);
    for _ in 0..2 {
        let run = place.run(&["resource", "save", "/sources/pg", "--force"]);
        assert_eq!(run.code, 0, "{run}");
        let saved = place.home.read("repo/sources/pg/resource.json");
        assert!(!saved.contains("hunter2") && saved.contains("{{secret .}}"), "{saved}");
        assert!(saved.contains("\"mode\": \"x\"") && saved.contains("\"size\": 2"), "{saved}");
    }
    let read = place.run(&["secret", "get", "/sources/pg", "/secure/password"]);
    assert_eq!(read.stdout.trim(), "hunter2", "{read}");
}
