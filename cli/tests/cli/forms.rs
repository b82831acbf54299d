//! Servers that expect forms (`application/x-www-form-urlencoded`).

use serde_json::{Value, json};
use url::form_urlencoded;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

/// Stores the members of forms as texts. Rejects other bodies.
fn form_server(request: &Request, store: &mut Store) -> Answer {
    if !matches!(request.method.as_str(), "POST" | "PUT") {
        return request.rest(store, Ids::Stated("name"));
    }
    let Value::String(form) = &request.body else {
        return Answer::json(415, &json!({"error": "not a form"}));
    };
    let mut members = json!({});
    for (name, value) in form_urlencoded::parse(form.as_bytes()) {
        members[&*name] = json!(value);
    }
    let path = format!("/groups/{}", members["name"].as_str().unwrap_or_default());
    store.put(&path, members.clone());
    Answer::json(200, &members)
}

const METADATA: &str = "resource: {id: /name, alias: /name}
operations:
  create: {headers: {Content-Type: application/x-www-form-urlencoded}}
  update: {headers: {Content-Type: application/x-www-form-urlencoded}}
";

fn place(group: &Value) -> Place {
    let server = ApiServer::start(&["/groups"], form_server);
    let (file, group) = ("groups/ops/resource.json", group.to_string());
    Place::new(server, &[("groups/_/metadata.yaml", METADATA), (file, &group)])
}

#[test]
fn resources_are_created_and_updated_with_forms() {
    let place = place(&json!({"name": "ops", "note": "a & b"}));
    for note in ["a & b", "c=d"] {
        let group = json!({"name": "ops", "note": note});
        place.home.write("repo/groups/ops/resource.json", &group.to_string());
        let run = place.run(&["resource", "apply", "/", "-r"]);
        assert_eq!(run.code, 0, "{run}");
        assert_eq!(place.server.get("/groups/ops"), Some(group));
    }
    let run = place.run(&["plan", "/", "-r", "--exit-code"]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn an_openapi_document_may_require_forms() {
    let form = r#"{"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {
        "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}}}}"#;
    let paths =
        format!(r#"{{"/groups": {{"get": {{}}, "post": {form}}}, "/groups/{{name}}": {{"get": {{}}}}}}"#);
    let document = format!(r#"{{"openapi": "3.0.3", "paths": {paths}}}"#);
    let server = ApiServer::start(&["/groups"], form_server);
    let group = json!({"name": "ops", "size": "3"});
    let files = [("groups/ops/resource.json", &*group.to_string())];
    let place = Place::with_openapi(server, &document, &files);
    let run = place.run(&["resource", "metadata", "infer", "/groups/", "--apply"]);
    assert!(run.code == 0 && run.stdout.contains("requiredAttributes"), "{run}");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(place.server.get("/groups/ops"), Some(group), "{run}");
}

#[test]
fn nested_members_are_an_error_that_names_the_member() {
    let place = place(&json!({"name": "ops", "owner": {"id": 7}}));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    let message = "/groups/ops: cannot encode the payload as a form: a value of \"owner\" is an object";
    assert!(run.code == 2 && run.stderr.contains(message), "{run}");
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

/// The values of such members are not known as secrets.
#[test]
fn traces_do_not_show_values_with_the_names_of_secrets() {
    let place = place(&json!({"name": "ops", "password": "canary-value", "note": "shown"}));
    let run = place.run(&["resource", "apply", "/", "-r", "-vvv"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.contains("name=ops&note=shown&password=<redacted>"), "{run}");
    assert!(!run.stderr.contains("canary"), "{run}");
}
