//! Declared resources that cannot be compared with candidates for deletion.

use declarest_core::sync::Options;
use rstest::rstest;
use serde_json::json;

use crate::api_server::{ApiServer, Ids, Request};
use crate::rest_server::Config;
use crate::world::World;

const MODELS: &str = "resource: {remoteCollectionPath: /api/models}";
const BY_QUERY: &str = "operations: {get: {path: /experiments/get, query: {id: '{{/number}}'}}}";
const VIEW: &str = "operations: {get: {path: '/view/{{/number}}'}}";
const BESIDE: &str = "operations: {get: {path: '../api/models/{{/number}}'}}";

/// The file has no number, or cannot be decoded. It may be the candidate.
#[rstest]
#[case::other_path("experiments/_", BY_QUERY, "experiments/e1")]
#[case::same_collection("models/m2", BY_QUERY, "models/m2")]
#[case::beside_its_collection("featured/_", BESIDE, "featured/m1")]
#[case::metadata("featured/_", "resource: [", "featured/m1")]
#[case::another_read("api/models/_", VIEW, "api/models/m1")]
#[case::collection_with_the_same_name("a/models/_", "resource: {id: '{{/number}}x'}", "a/models/m1")]
#[tokio::test]
async fn prevents_deletions(
    #[case] place: &str,
    #[case] metadata: &str,
    #[case] broken: &str,
    #[values("{}", "{")] payload: &str,
) {
    let server = ApiServer::rest(&["/api/models"], Ids::Stated("id"));
    server.put("/api/models/m1", json!({"id": "m1"}));
    let (metadata_file, file) = (format!("{place}/metadata.yaml"), format!("{broken}/resource.json"));
    let files = [("models/_/metadata.yaml", MODELS), (&metadata_file, metadata), (&file, payload)];
    let world = World::new(Config::default(), &files);
    let options = Options { allow_empty: true, ..Options::default() };
    let report = world.sync_with(server.url(), &[("/models/m1", r#"{"id":"m1"}"#)], &options).await;
    assert_eq!(server.count("DELETE"), 0, "{report:?}");
    assert!(report.failures.iter().any(|it| it.message.contains("cannot be compared")), "{report:?}");
}

/// The id of the parent is in its content, so the collection of the broken file has another name on the server.
#[tokio::test]
async fn below_a_parent_with_an_id_it_may_be_a_resource_of_another_path() {
    let server = ApiServer::rest(&["/orgs", "/orgs/*"], Ids::Stated("id"));
    server.put("/orgs/7", json!({"id": "7", "name": "acme"}));
    server.put("/orgs/7/settings", json!({"id": "settings"}));
    let files = [
        ("orgs/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("cfg/_/metadata.yaml", "resource: {remoteCollectionPath: /orgs/7}"),
        ("orgs/acme/resource.json", r#"{"name": "acme"}"#),
        ("orgs/acme/settings/resource.json", "{"),
    ];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[("/cfg/settings", r#"{"id": "settings"}"#)]).await;
    assert_eq!(server.count("DELETE"), 0, "{report:?}");
}

/// The server shows one resource in two collections. The metadata of the declared one cannot be read.
#[tokio::test]
async fn a_twin_with_metadata_that_cannot_be_read_is_kept() {
    let server = ApiServer::start(&["/items", "/groups/*/items"], |request, store| {
        if request.method == "DELETE" {
            store.remove("/items/7");
        }
        request.rest(store, Ids::Stated("id"))
    });
    server.put("/items/7", json!({"id": "7"}));
    server.put("/groups/a/items/7", json!({"id": "7"}));
    let files = [("items/_/metadata.yaml", "resource: ["), ("items/7/resource.json", r#"{"id": "7"}"#)];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[("/groups/a/items/7", r#"{"id": "7"}"#)]).await;
    assert!(!report.failures.is_empty(), "{report:?}");
    assert!(report.stats.pruned == 0 || server.get("/items/7").is_none(), "{report:?}");
    let named = report.failures.iter().any(|failure| failure.path.as_str() == "/groups/a/items/7");
    assert!(named || server.count("DELETE") == 0, "{report:?}");
}

/// The address of its deletion is that of the candidate.
#[rstest]
#[tokio::test]
async fn a_resource_with_the_address_of_the_deletion_is_kept(
    #[values(r#"{"id": "m1"}"#, "{")] payload: &str,
) {
    let server = ApiServer::rest(&["/models", "/view"], Ids::Stated("id"));
    server.put("/models/m1", json!({"id": "m1"}));
    server.put("/view/m1", json!({"id": "m1", "seen": true}));
    let metadata = "operations: {get: {path: '/view/{{/id}}'}, update: {path: '/models/{{/id}}'}, delete: {path: '/models/{{/id}}'}}";
    let files = [("new/_/metadata.yaml", metadata), ("new/m1/resource.json", payload)];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[("/models/m1", r#"{"id": "m1"}"#)]).await;
    assert_eq!(server.count("DELETE"), 0, "{report:?}");
}

/// A commit renames the directory of a parent from its id to its name.
#[tokio::test]
async fn a_member_directly_below_a_renamed_parent_is_kept() {
    let server = ApiServer::rest(&["/orgs", "/orgs/*"], Ids::Stated("id"));
    server.put("/orgs/7", json!({"id": "7", "name": "acme"}));
    server.put("/orgs/7/settings", json!({"id": "settings"}));
    let files = [
        ("orgs/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("orgs/acme/resource.json", r#"{"name": "acme"}"#),
        ("orgs/acme/settings/resource.json", r#"{"id": "settings"}"#),
    ];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[("/orgs/7/settings", r#"{"id": "settings"}"#)]).await;
    assert_eq!(server.count("DELETE"), 0, "{report:?}");
}

/// Only the candidate has a slash at the end of its address.
#[tokio::test]
async fn a_slash_at_the_end_makes_no_other_resource() {
    let server = ApiServer::start(&["/api/models"], |request, store| {
        let path = request.path.trim_end_matches('/').to_owned();
        Request { path, ..request.clone() }.rest(store, Ids::Stated("id"))
    });
    server.put("/api/models/m1", json!({"id": "m1"}));
    let metadata =
        "operations: {get: {path: '/api/models/{{/id}}/'}, delete: {path: '/api/models/{{/id}}/'}}";
    let files = [("old/_/metadata.yaml", metadata), ("api/models/m1/resource.json", r#"{"id": "m1"}"#)];
    let world = World::new(Config::default(), &files);
    let report = world.sync_on(server.url(), &[("/old/m1", r#"{"id": "m1"}"#)]).await;
    assert_eq!(server.count("DELETE"), 0, "{report:?}");
}
