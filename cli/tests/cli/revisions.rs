//! Servers that require the present revision in the query of a write, such as `CouchDB`.

use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::safety::Place;

/// A server that gives each document a new revision with each write, and accepts only writes with the present one.
fn documents() -> ApiServer {
    let server = ApiServer::start(&["/docs"], |request: &Request, store: &mut Store| {
        if !matches!(request.method.as_str(), "PUT" | "DELETE") {
            return request.rest(store, Ids::Stated("id"));
        }
        let revision = store.get(&request.path).map(|document| document["rev"].clone());
        if revision.as_ref().and_then(|revision| revision.as_str())
            != request.query.get("rev").map(String::as_str)
        {
            return Answer::json(409, &json!({"error": "conflict"}));
        }
        let answer = request.rest(store, Ids::Stated("id"));
        if let Some(document) = store.get(&request.path).cloned() {
            let number: u32 = revision.unwrap().as_str().unwrap().parse().unwrap();
            let rev = (number + 1).to_string();
            store.put(&request.path, json!({"id": document["id"], "v": document["v"], "rev": rev}));
        }
        answer
    });
    server.put("/docs/d1", json!({"id": "d1", "v": 1, "rev": "1"}));
    server
}

/// The first update makes the revision of the file old.
#[test]
fn the_present_revision_is_sent_although_the_file_has_an_old_one() {
    let metadata = "operations:\n  update: {query: {rev: '{{$observed.rev}}'}}\n  delete: {query: {rev: \
                    '{{$observed.rev}}'}}\n  compare: {transforms: [{excludeAttributes: [/rev]}]}\n";
    let place = Place::new(documents(), &[("docs/_/metadata.yaml", metadata)]);
    let file = "repo/docs/d1/resource.json";
    let run = place.run(&["import", "/docs"]);
    assert!(run.code == 0 && place.home.read(file).contains("\"rev\": \"1\""), "{run}");
    for v in [2, 3] {
        place.home.write(file, &json!({"id": "d1", "rev": "1", "v": v}).to_string());
        let run = place.run(&["resource", "apply", "/docs", "-r"]);
        assert_eq!(run.code, 0, "{run}");
    }
    assert_eq!(place.server.get("/docs/d1").unwrap(), json!({"id": "d1", "rev": "3", "v": 3}));
    let run = place.run(&["resource", "delete", "/docs/d1", "--yes"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(place.server.writes(), ["PUT /docs/d1 200", "PUT /docs/d1 200", "DELETE /docs/d1 204"]);
}

/// The body of an update is printed without a request.
#[test]
fn the_body_is_printed_without_present_values() {
    let metadata = "operations: {update: {query: {rev: '{{$observed.rev}}'}}}\n";
    let place = Place::new(documents(), &[("docs/_/metadata.yaml", metadata)]);
    place.home.write("d1.json", r#"{"id": "d1", "v": 2}"#);
    let run = place.run(&["resource", "template", "/docs/d1", "--payload", "d1.json"]);
    assert!(run.code == 0 && run.stdout.contains("\"v\": 2"), "{run}");
    let run = place.run(&["resource", "describe", "/docs/d1", "-o", "text"]);
    assert!(run.code == 0 && run.stdout.contains("update  PUT    /docs/d1"), "{run}");
}

/// The content of the resource is not known when it is created or read.
#[test]
fn a_create_has_no_present_value() {
    let metadata = "operations: {create: {query: {rev: '{{$observed.rev}}'}}}\n";
    let files = [("docs/_/metadata.yaml", metadata), ("docs/d2/resource.json", r#"{"id": "d2"}"#)];
    let place = Place::new(documents(), &files);
    let run = place.run(&["resource", "apply", "/docs/d2"]);
    assert!(run.code == 2 && run.stderr.contains("operations.create.query.rev"), "{run}");
    assert_eq!(place.server.writes(), [""; 0]);
}
