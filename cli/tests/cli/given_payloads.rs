//! Payloads that a command gets, without metadata that states names: the id decides which resource they are.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{ApiServer, Ids};
use crate::safety::Place;

/// A server with two users and settings, all of which Git declares.
fn place() -> Place {
    let server = ApiServer::rest(&["/users"], Ids::Stated("id"));
    let users =
        [("ana", json!({"id": "ana", "role": "admin"})), ("bob", json!({"id": "bob", "role": "user"}))];
    let mut files = Vec::new();
    for (name, user) in &users {
        server.put(&format!("/users/{name}"), user.clone());
        files.push((format!("users/{name}/resource.json"), user.to_string()));
    }
    server.put("/settings", json!({"id": "settings", "theme": "dark"}));
    files.push(("users/eve/resource.json".to_owned(), json!({"id": "n5", "role": "admin"}).to_string()));
    let files: Vec<(&str, &str)> =
        files.iter().map(|(file, content)| (file.as_str(), content.as_str())).collect();
    Place::new(server, &files)
}

#[rstest]
fn a_payload_for_a_collection_is_a_member(
    #[values("/users", "/users/")] path: &str,
    #[values("apply", "create")] command: &str,
) {
    let place = place();
    let run = place.run(&["resource", command, path, "-f", r#"{"id": "settings", "role": "none"}"#]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["POST /users 201".to_owned()]), "{run}");
    assert_eq!(place.server.get("/settings"), Some(json!({"id": "settings", "theme": "dark"})));
    assert!(run.stderr.contains("/users/settings created"), "{run}");
}

#[rstest]
#[case::update("update", "/users/carl")]
#[case::apply("apply", "/users/carl")]
#[case::create("create", "/users/carl")]
#[case::another_declared_one("update", "/users/bob")]
#[case::no_collection("apply", "/settings")]
fn a_payload_of_another_resource_is_refused(#[case] command: &str, #[case] path: &str) {
    let place = place();
    let run = place.run(&["resource", command, path, "-f", r#"{"id": "ana", "role": "none"}"#]);
    assert_eq!((run.code, place.server.writes()), (2, Vec::new()), "{run}");
    let expected = r#"the payload is named "ana", which does not match path segment"#;
    assert!(run.stderr.contains(expected), "{run}");
}

/// The server assigned the id, and the file has the path of the name.
#[rstest]
#[case::the_name_is_a_usual_member(r#"{"id": "n6", "name": "carl"}"#, "/users/carl")]
#[case::the_file_has_this_id(r#"{"id": "n5", "role": "none"}"#, "/users/eve")]
#[case::a_number(r#"{"id": 17, "role": "none"}"#, "/users/dora")]
#[case::no_id(r#"{"role": "none"}"#, "/users/bob")]
fn an_id_may_differ_from_the_path(#[case] payload: &str, #[case] path: &str) {
    let place = place();
    place.server.put("/users/n5", json!({"id": "n5", "role": "user"}));
    place.server.put("/users/n6", json!({"id": "n6", "name": "carl", "role": "user"}));
    place.server.put("/users/17", json!({"id": 17, "role": "user"}));
    let run = place.run(&["resource", "apply", path, "-f", payload]);
    assert_eq!((run.code, place.server.writes().len()), (0, 1), "{run}");
}

/// The address of an update has the name, and the server replaces the whole resource.
#[rstest]
#[case::update(&["resource", "update", "/policies/n2", "-f", r#"{"rules": [5]}"#])]
#[case::apply(&["resource", "apply", "/policies/n2", "-f", r#"{"rules": [5]}"#])]
#[case::of_a_file(&["resource", "apply", "/policies/n2"])]
fn an_update_without_the_name_of_the_resource_is_refused(#[case] command: &[&str]) {
    let server = ApiServer::rest(&["/policies"], Ids::Stated("name"));
    let live = json!({"name": "n2", "rules": [1]});
    server.put("/policies/n2", live.clone());
    let files = [
        ("policies/_/metadata.yaml", "resource: {id: /name, alias: /name}\n"),
        ("policies/n2/resource.json", r#"{"rules": [5]}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(command);
    assert_eq!((run.code, place.server.get("/policies/n2")), (2, Some(live)), "{run}");
    assert!(run.stderr.contains("update requires /name in the payload"), "{run}");
}
