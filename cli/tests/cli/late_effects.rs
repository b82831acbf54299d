//! Servers that complete a write, or show its result, later than they answer it.

use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::safety::Place;

/// The server confirms a deletion, and shows the resource until the test removes it.
#[test]
fn a_replacement_waits_for_a_slow_deletion() {
    let server = ApiServer::start(&["/hosts"], |request, store| match request.method.as_str() {
        "DELETE" => Answer::empty(202),
        _ => request.rest(store, Ids::Stated("id")),
    });
    server.put("/hosts/web", json!({"id": "web", "kind": "old"}));
    let files = [
        ("hosts/_/metadata.yaml", "resource: {replaceOn: [/kind]}\n"),
        ("hosts/web/resource.json", r#"{"id": "web", "kind": "new"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    let message = "/hosts/web: deleted in order to create it again, but not created yet: the server still shows it; a later run creates it";
    assert!(run.stderr.contains(message), "{run}");
    assert_eq!(place.server.writes(), ["DELETE /hosts/web 202"]);

    place.server.remove("/hosts/web");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/hosts/web"), Some(json!({"id": "web", "kind": "new"})));
}

/// The list lags behind, and a later update sets an attribute of the created resource.
#[test]
fn a_resource_that_no_list_shows_yet_is_created_once_in_a_run() {
    let server = ApiServer::start(&["/shops"], |request, store| {
        if request.is("GET", "/shops") && store.mode != "current" {
            return Answer::json(200, &json!([]));
        }
        request.rest(store, Ids::Given)
    });
    let files = [
        ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name, deferredAttributes: [/main]}\n"),
        ("shops/rio/resource.json", r#"{"name": "rio", "main": "t1"}"#),
    ];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("the server does not show the result of an earlier create"), "{run}");
    assert_eq!(place.server.writes(), ["POST /shops 201"]);

    place.server.mode("current");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.all()["/shops/n7"]["main"], "t1");
    assert_eq!(place.server.paths(), ["/shops/n7"]);
}
