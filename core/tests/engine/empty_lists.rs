//! Servers that answer 404 instead of an empty list.

use declarest_core::sync::Outcome;
use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::rest_server::Config;
use crate::world::{World, failure};

const BY_ID: &str = "resource: {id: /id, alias: /name}\n";

/// Projects with tasks, as those of Label Studio.
fn projects() -> ApiServer {
    let answer = |request: &Request, store: &mut Store| {
        let is_list = request.path.ends_with("/tasks") && request.method == "GET";
        if is_list && store.members(&request.path).is_empty() {
            return Answer::json(404, &json!({"detail": "Not found."}));
        }
        request.rest(store, Ids::Given)
    };
    ApiServer::start(&["/projects", "/projects/*/tasks"], answer)
}

fn world(list: &str) -> World {
    let tasks = format!("{BY_ID}operations: {{list: {list}}}\n");
    World::new(
        Config::default(),
        &[
            ("projects/_/metadata.yaml", BY_ID),
            ("projects/_/tasks/_/metadata.yaml", &tasks),
            ("projects/maps/resource.json", r#"{"name":"maps"}"#),
            ("projects/maps/tasks/draw/resource.json", r#"{"name":"draw"}"#),
        ],
    )
}

/// An earlier run was interrupted after it had created the project.
#[rstest]
#[case::status("{absent: {status: [404]}}")]
#[case::condition("{absent: {status: [404], jq: '.detail == \"Not found.\"'}}")]
#[tokio::test]
async fn the_list_of_an_existing_parent_may_be_empty(#[case] list: &str) {
    let server = projects();
    server.put("/projects/p1", json!({"id": "p1", "name": "maps"}));
    let world = world(list);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.created), (Outcome::Succeeded, 1), "{report:?}");
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.unchanged), (Outcome::Succeeded, 2), "{report:?}");
    assert_eq!(server.writes(), ["POST /projects/p1/tasks 201"]);
}

#[rstest]
#[case::not_stated("{}")]
#[case::another_answer("{absent: {status: [404], jq: '.detail == \"empty\"'}}")]
#[tokio::test]
async fn another_answer_proves_nothing(#[case] list: &str) {
    let server = projects();
    server.put("/projects/p1", json!({"id": "p1", "name": "maps"}));
    let (_, message) = failure(&world(list).sync_on(server.url(), &[]).await);
    assert!(message.contains("its collection cannot be listed (HTTP 404)"), "{message}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// The server does not show the project, so the answer may be about the project.
#[tokio::test]
async fn the_parent_must_exist() {
    let server = projects();
    server.put("/projects/p1", json!({"id": "p1", "name": "atlas"}));
    let world = world("{absent: {status: [404]}}");
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.created), (Outcome::Succeeded, 2), "{report:?}");
    assert_eq!(server.writes().len(), 2);
}

/// The server answers 400 to the read of a name that it does not have, as Parse Server does.
#[rstest]
#[case::not_stated("", 0)]
#[case::stated("operations: {get: {absent: {status: [400]}}}\n", 1)]
#[tokio::test]
async fn a_refused_read_of_an_absent_resource_names_the_metadata(
    #[case] operations: &str,
    #[case] created: usize,
) {
    let server = ApiServer::start(&["/functions"], |request, store| {
        if request.method == "GET" && request.segments().len() == 2 && store.get(&request.path).is_none() {
            return Answer::json(400, &json!({"error": "no such function"}));
        }
        request.rest(store, Ids::Stated("name"))
    });
    let metadata = format!("resource: {{id: /name, alias: /name}}\n{operations}");
    let world = World::new(Config::default(), &[("functions/_/metadata.yaml", &metadata)]);
    world.declare("functions/f1/resource.json", r#"{"name":"f1"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, server.writes().len()), (created, created), "{report:?}");
    let advice = "state operations.get.absent: {status: [400]} in functions/_/metadata.yaml";
    let advises = report.failures.iter().any(|failure| failure.message.contains(advice));
    assert_eq!(advises, created == 0, "{report:?}");
}
