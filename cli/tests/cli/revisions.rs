//! Servers that require the present revision in the query of a write, such as `CouchDB`.

use rstest::rstest;
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
#[rstest]
#[case::excluded("{excludeAttributes: [/rev]}")]
#[case::jq("{jqExpression: 'del(.rev)'}")]
fn the_present_revision_is_sent_although_the_file_has_an_old_one(#[case] step: &str) {
    let metadata = format!(
        "operations:\n  update: {{query: {{rev: '{{{{/rev}}}}'}}}}\n  delete: {{query: {{rev: '{{{{/rev}}}}'}}}}\n  \
         compare: {{transforms: [{step}]}}\n"
    );
    let place = Place::new(documents(), &[("docs/_/metadata.yaml", &metadata)]);
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
    let writes = [
        "PUT /docs/d1 200", "PUT /docs/d1 409", "PUT /docs/d1 200", "DELETE /docs/d1 409",
        "DELETE /docs/d1 204",
    ];
    assert_eq!(place.server.writes(), writes);
}

/// The server shows the project by its id, and another project has this id as its name.
#[rstest]
#[case::in_the_path("get: {path: '/projects/{{/project}}/labels/{{/name}}'}", "")]
#[case::in_the_query("get: {path: '/labels/{{/name}}', query: {project: '{{/project}}'}}", "?project=acme")]
#[case::only_in_the_query_of_writes("get: {path: '/labels/{{/name}}'}", "?project=acme")]
fn members_that_are_not_compared_address_writes_as_the_file_states_them(
    #[case] get: &str,
    #[case] query: &str,
) {
    let (path, parameter) = match query {
        "" => ("/projects/{{/project}}/labels/{{/name}}", ""),
        _ => ("/labels/{{/name}}", "query: {project: '{{/project}}'}"),
    };
    let server = ApiServer::start(&["/labels"], |request: &Request, _: &mut Store| {
        let label = json!({"name": "bug", "project": "3", "color": "red"});
        match (request.method.as_str(), request.path.ends_with("/bug")) {
            ("GET" | "PUT", true) => Answer::json(200, &label),
            ("DELETE", true) => Answer::empty(204),
            _ => Answer::json(200, &json!([label])),
        }
    });
    let metadata = format!(
        "resource: {{id: /name, alias: /name}}\noperations:\n  list: {{path: /labels}}\n  {get}\n  update: {{path: \
         '{path}', {parameter}}}\n  delete: {{path: '{path}', {parameter}}}\n  compare: {{transforms: \
         [{{excludeAttributes: [/project]}}]}}\n"
    );
    let file = r#"{"name": "bug", "project": "acme", "color": "blue"}"#;
    let place =
        Place::new(server, &[("labels/_/metadata.yaml", &metadata), ("labels/bug/resource.json", file)]);
    _ = place.run(&["resource", "apply", "/labels/bug"]);
    _ = place.run(&["resource", "delete", "/labels/bug", "--yes"]);
    let log = place.server.log();
    let writes: Vec<&Request> = log.iter().filter(|request| request.is_write()).collect();
    assert!(writes.len() == 2, "{writes:?}");
    for write in writes {
        let project = write.query.get("project").map_or(write.path.as_str(), String::as_str);
        assert!(project.contains("acme"), "{write:?}");
    }
}
