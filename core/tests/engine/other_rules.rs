//! Resources whose own metadata describes another list than that of their collection.

use declarest_core::sync::Options;
use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::rest_server::Config;
use crate::world::{World, failure};

const IDS: &str = "resource: {id: /id, alias: /name}";

/// A server that assigns missing ids. It is at `/api`, too. Its list shows `bug` with the id 12.
fn labels() -> ApiServer {
    let server = ApiServer::start(&["/labels", "/api/labels"], |request, store| {
        if request.is("GET", "/labels") && store.mode == "empty" {
            return Answer::json(200, &json!([]));
        }
        let ids = if request.body["id"].is_string() { Ids::Stated("id") } else { Ids::Given };
        request.rest(store, ids)
    });
    for path in ["/labels/12", "/api/labels/12"] {
        server.put(path, json!({"id": "12", "name": "bug"}));
    }
    server
}

/// The list does not show the names that only the metadata of the resource takes from its entries, or it is not the
/// list of the resource.
#[rstest]
#[case::own("labels/bug/metadata.yaml")]
#[case::pattern("labels/b*/_/metadata.yaml")]
#[tokio::test]
async fn a_list_with_other_names_proves_no_absence(#[case] file: &str) {
    let server = labels();
    let world = World::new(Config::default(), &[(file, IDS)]);
    world.declare("labels/bug/resource.json", r#"{"name":"bug"}"#);
    for _ in 0..2 {
        let (reason, message) = failure(&world.sync_on(server.url(), &[]).await);
        let end = "state resource.alias for the whole collection; the place is labels/_/metadata.yaml";
        assert_eq!((reason, message.ends_with(end)), ("ValidationError", true), "{message}");
        assert_eq!(server.writes(), Vec::<String>::new());
    }
    world.declare("labels/_/metadata.yaml", IDS);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.unchanged, report.failures.len()), (1, 0), "{report:?}");
}

#[rstest]
#[case::path("resource: {remoteCollectionPath: /api/labels}", "resource.remoteCollectionPath")]
#[case::list("operations: {list: {path: /api/labels}}", "operations.list")]
#[case::transforms(
    "operations: {defaults: {transforms: [{excludeAttributes: /x}]}}",
    "operations.defaults.transforms"
)]
#[tokio::test]
async fn the_list_of_others_proves_no_absence(#[case] metadata: &str, #[case] field: &str) {
    let server = labels();
    server.mode("empty");
    let world = World::new(Config::default(), &[("labels/_/metadata.yaml", IDS)]);
    world.declare("labels/bug/metadata.yaml", metadata);
    world.declare("labels/bug/resource.json", r#"{"name":"bug"}"#);
    let (_, message) = failure(&world.sync_on(server.url(), &[]).await);
    assert!(message.contains(&format!("; state {field} for the whole collection")), "{message}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// In a first sync, and if the absence of another member proved the list, resources are not read by themselves.
#[rstest]
#[tokio::test]
async fn the_absence_of_others_proves_nothing(#[values(true, false)] first: bool) {
    let server = labels();
    let world = World::new(Config::default(), &[("labels/zeta/metadata.yaml", IDS)]);
    server.put("/labels/13", json!({"id": "13", "name": "zeta"}));
    for name in ["a", "b", "c", "d"] {
        world.declare(&format!("labels/{name}/resource.json"), &json!({"id": name}).to_string());
    }
    world.declare("labels/zeta/resource.json", r#"{"name":"zeta"}"#);
    let options = Options { first, ..Options::default() };
    let report = world.sync_with(server.url(), &[], &options).await;
    assert_eq!((failure(&report).0, report.stats.created), ("ValidationError", 4), "{report:?}");
    let names = server.all().into_values().filter(|label| label["name"] == "zeta").count();
    assert_eq!(names, 1, "{:?}", server.writes());
}

/// What does not change the list does not matter.
#[tokio::test]
async fn other_metadata_of_a_resource_leaves_the_list() {
    let server = labels();
    let world = World::new(Config::default(), &[("labels/_/metadata.yaml", IDS)]);
    let own = "resource: {id: /id, requiredAttributes: [/name]}\noperations: {update: {method: PATCH}}";
    for name in ["bug", "new"] {
        world.declare(&format!("labels/{name}/metadata.yaml"), own);
        world.declare(&format!("labels/{name}/resource.json"), &json!({"name": name}).to_string());
    }
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.unchanged), (1, 1), "{report:?}");
}
