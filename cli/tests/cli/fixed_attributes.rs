//! Attributes that an update cannot change, so that the resource is replaced.

use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

/// Queues whose arguments cannot be changed.
fn fixed_arguments(request: &Request, store: &mut Store) -> Answer {
    let old = store.get(&request.path).map(|queue| queue["arguments"].clone());
    if request.method == "PUT" && old.is_some_and(|old| old != request.body["arguments"]) {
        let reason = "inequivalent arg 'x-max-length' for queue 'q1'";
        return Answer::json(400, &json!({"error": "bad_request", "reason": reason}));
    }
    if request.method == "PUT" {
        store.put(&request.path, request.body.clone());
        return Answer::empty(201);
    }
    request.rest(store, Ids::Stated("name"))
}

fn queue_with_other_arguments(resource: &str) -> Place {
    let metadata = format!(
        "resource: {{id: /name, alias: /name{resource}}}\noperations: {{create: {{method: PUT, path: './{{{{/id}}}}'}}}}\n"
    );
    let files = [
        ("queues/_/metadata.yaml", metadata.as_str()),
        ("queues/q1/resource.json", r#"{"name": "q1", "arguments": {"max": 5}}"#),
    ];
    let place = Place::new(ApiServer::start(&["/queues"], fixed_arguments), &files);
    place.server.put("/queues/q1", json!({"name": "q1", "arguments": {"max": 9}}));
    place
}

#[test]
fn a_fixed_attribute_is_changed_by_a_replacement() {
    let place = queue_with_other_arguments(", replaceOn: [/arguments]");
    let run = place.run(&["plan", "/", "-r"]);
    insta::assert_snapshot!(run.stdout, @r"
    -/+ /queues/q1
        /arguments/max: 9 -> 5
    Plan: 1 to create, 0 to update, 1 to delete, 0 unchanged.
    ");
    let run = place.run(&["plan", "/", "-r", "-o", "json"]);
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let requests = json!(["DELETE /queues/q1", "PUT /queues/q1"]);
    assert_eq!(
        (&plan["actions"][0]["reason"], &plan["actions"][0]["requests"]),
        (&json!("replaced"), &requests)
    );
    let run = place.run(&["resource", "explain", "/queues/q1", "-o", "text"]);
    insta::assert_snapshot!(run.stdout, @r"
    replace /queues/q1/arguments/max
    replaced by DELETE /queues/q1 and PUT /queues/q1
    ");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    let writes = ["DELETE /queues/q1 204", "PUT /queues/q1 201"].map(String::from).to_vec();
    assert_eq!((run.code, place.server.writes()), (0, writes.clone()), "{run}");
    assert_eq!(place.server.get("/queues/q1"), Some(json!({"name": "q1", "arguments": {"max": 5}})));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!((run.code, place.server.writes()), (0, writes), "{run}");
}

#[test]
fn a_resource_that_cannot_be_created_is_not_deleted() {
    let metadata = "resource: {id: /name, alias: /name, replaceOn: [/arguments]}
operations: {create: {path: '/new/{{/region}}'}}
";
    let files = [
        ("queues/_/metadata.yaml", metadata),
        ("queues/q1/resource.json", r#"{"name": "q1", "arguments": {"max": 5}}"#),
    ];
    let place = Place::new(ApiServer::rest(&["/queues"], Ids::Stated("name")), &files);
    place.server.put("/queues/q1", json!({"name": "q1", "arguments": {"max": 9}}));
    for command in [&["plan", "/", "-r"][..], &["resource", "apply", "/", "-r"]] {
        let run = place.run(command);
        assert_ne!(run.code, 0, "{run}");
        assert_eq!(run.stderr.matches("operations.create.path").count(), 1, "{run}");
    }
    assert_eq!(place.server.writes(), Vec::<String>::new());
}

#[test]
fn a_refused_change_of_a_fixed_attribute_names_the_key_that_allows_it() {
    let place = queue_with_other_arguments("");
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("state it in resource.replaceOn"), "{run}");
    assert_eq!(place.server.writes(), ["PUT /queues/q1 400"]);
}

#[test]
fn other_differences_of_such_a_resource_are_updated() {
    let place = queue_with_other_arguments(", replaceOn: [/arguments]");
    place.server.put("/queues/q1", json!({"name": "q1", "arguments": {"max": 5}, "note": "x"}));
    let run = place.run(&["resource", "apply", "/", "-r"]);
    assert_eq!((run.code, place.server.writes()), (0, vec!["PUT /queues/q1 201".into()]), "{run}");
}
