//! Creates whose answer has the id of something else, such as the task that creates the resource.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::safety::Place;

const BY_ID: &str = "resource: {id: /id, alias: /name}\n";

/// Returns the answer to the create of the resource at a path.
type Answering = fn(&str) -> Answer;

/// Shops with tills. `answer` gets the path of the created resource.
fn place(answer: Answering) -> Place {
    let server = ApiServer::start(&["/shops", "/shops/*/tills"], move |request, store| {
        let done = request.rest(store, Ids::Given);
        if request.method != "POST" {
            return done;
        }
        let created = store.members(&request.path).pop().unwrap_or_default();
        answer(&format!("{}/{}", request.path, created["id"].as_str().unwrap_or_default()))
    });
    server.put("/shops/n1", json!({"id": "n1", "name": "ava", "tier": "free"}));
    let files = [
        ("shops/_/metadata.yaml", BY_ID),
        ("shops/_/tills/_/metadata.yaml", BY_ID),
        ("shops/rio/resource.json", r#"{"name": "rio", "tier": "gold"}"#),
        ("shops/rio/tills/t1/resource.json", r#"{"name": "t1"}"#),
    ];
    Place::new(server, &files)
}

#[rstest]
#[case::location_of_a_task(|_: &str| Answer::empty(202).header("location", "/tasks/n1"))]
#[case::task(|_: &str| Answer::json(202, &json!({"id": "n1", "state": "pending"})))]
#[case::event(|_: &str| Answer::json(201, &json!({"id": "n1", "event": "created"})))]
#[case::event_with_an_id_of_nothing(|_: &str| Answer::json(201, &json!({"id": "e1", "event": "created"})))]
#[case::location_of_the_resource(|path: &str| Answer::empty(202).header("location", path))]
#[case::nothing(|_: &str| Answer::empty(202))]
fn the_resource_with_the_id_of_a_task_is_not_overwritten(#[case] answer: Answering) {
    let place = place(answer);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.get("/shops/n1"), Some(json!({"id": "n1", "name": "ava", "tier": "free"})));
    assert_eq!(place.server.paths(), ["/shops/n1", "/shops/n7", "/shops/n7/tills/n8"]);
}

/// The server ignores an attribute that names the resource, so no later run would find it.
#[test]
fn a_create_whose_result_cannot_be_found_fails() {
    let server = ApiServer::start(&["/shops"], |request, store| {
        if request.method == "POST" {
            store.put("/shops/n1", json!({"id": "n1", "tier": request.body["tier"]}));
            return Answer::empty(204);
        }
        request.rest(store, Ids::Given)
    });
    let files =
        [("shops/_/metadata.yaml", BY_ID), ("shops/rio/resource.json", r#"{"name": "rio", "tier": "gold"}"#)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("cannot determine whether /shops/rio exists"), "{run}");
    assert_eq!(place.server.writes(), ["POST /shops 204"]);
}

/// The server answers 200 and the reason of the failure to everything, like servers of remote procedures.
#[rstest]
#[case::apply("apply")]
#[case::create("create")]
fn a_create_that_the_server_does_not_show_fails(#[case] command: &str) {
    let server = ApiServer::start(&["/shops"], |request, store| match request.method.as_str() {
        "POST" => Answer::json(200, &json!([{"result": 1, "text": "no such subnet"}])),
        _ => request.rest(store, Ids::Given),
    });
    let metadata = "resource: {id: /name, alias: /name}\n";
    let files = [("shops/_/metadata.yaml", metadata), ("shops/rio/resource.json", r#"{"name": "rio"}"#)];
    let place = Place::new(server, &files);
    let run = place.run(&["resource", command, "/shops/rio"]);
    let reason = "the server answered 200 to the create, but does not show the resource";
    assert!(run.code == 2 && run.stderr.contains(reason), "{run}");
}
