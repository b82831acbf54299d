//! Deletions that the caller asks for, resets, and deletions that others depend on.

use declarest_core::sync::{Intent, Options, Outcome};
use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::rest_server::{Config, Matcher};
use crate::world::{World, failure, json as parsed};

/// The server does not show the zone of a record, and needs it to delete the record.
#[tokio::test]
async fn the_request_has_the_attributes_that_the_payload_states() {
    let metadata = "
resource: {id: /name, alias: /name}
operations:
  delete: {method: POST, path: /records/remove, body: {name: '{{/name}}', zone: '{{/zone}}'}}
";
    let server = ApiServer::start(&["/records"], |request, store| {
        if !request.is("POST", "/records/remove") {
            return request.rest(store, Ids::Stated("name"));
        }
        if request.body != json!({"name": "www", "zone": "a.example"}) {
            return Answer::json(422, &json!({"error": "unknown record"}));
        }
        store.remove("/records/www");
        Answer::empty(204)
    });
    server.put("/records/www", json!({"name": "www"}));
    let world = World::new(Config::default(), &[("records/_/metadata.yaml", metadata)]);
    world.declare("records/www/resource.json", r#"{"name":"www","zone":"a.example"}"#);
    let options = Options { intent: Intent::Delete, ..Options::default() };
    let report = world.sync_with(server.url(), &[], &options).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!(server.get("/records/www"), None);
}

/// The list that would show whether the shop exists is not available.
#[tokio::test]
async fn a_deletion_that_finds_nothing_is_no_success_without_proof() {
    let config = Config { server_ids: vec!["/shops".to_owned()], ..Config::default() };
    let files = [
        ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("shops/rio/resource.json", r#"{"name":"Rio"}"#),
    ];
    let world = World::new(config, &files);
    world.server.put_by_hand("/shops/w-9", parsed(r#"{"id":"w-9","name":"Rio"}"#));
    world.server.fail(Matcher::new("GET", "/shops"), 405, 9);
    let options = Options { intent: Intent::Delete, ..Options::default() };
    let report = world.sync_with(&world.server.url(), &[], &options).await;
    let (_, message) = failure(&report);
    assert!(message.contains("cannot determine whether /shops/rio exists"), "{message}");
    assert_eq!((report.stats.pruned, world.writes()), (0, Vec::new()));
}

/// The address of the update is wrong.
#[tokio::test]
async fn a_reset_that_is_not_found_is_not_done() {
    let config = Config { collections: vec!["/settings".to_owned()], ..Config::default() };
    let metadata = "
resource: {onRemove: {reset: {id: mail, on: false}}}
operations: {update: {path: '/setting/{{/id}}'}}
";
    let world = World::new(config, &[("settings/_/metadata.yaml", metadata)]);
    world.server.put_by_hand("/settings/mail", parsed(r#"{"id":"mail","on":true}"#));
    let report = world.prune_declared("/settings/mail", r#"{"id":"mail","on":true}"#).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (0, 1), "{report:?}");
    assert!(failure(&report).1.contains("/setting/mail"), "{report:?}");
}

/// A server that refuses each tag does not compare versions.
#[tokio::test]
async fn a_reset_does_not_need_a_declaration() {
    let config = Config { collections: vec!["/settings".to_owned()], etags: true, ..Config::default() };
    let metadata = "resource: {onRemove: {reset: {id: mail, on: false}}}";
    let world = World::new(config, &[("settings/_/metadata.yaml", metadata)]);
    world.server.put_by_hand("/settings/mail", parsed(r#"{"id":"mail","on":true}"#));
    world.server.fail(Matcher::method("PUT"), 412, 1);
    let report = world.prune_declared("/settings/mail", r#"{"id":"mail","on":true}"#).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.live("/settings/mail"), r#"{"id":"mail","on":false}"#);
}

/// The child may be the one that could not be created below the new name of its parent.
#[tokio::test]
async fn the_parent_of_a_child_that_is_not_deleted_is_not_deleted() {
    let config =
        Config { collections: vec!["/items".to_owned(), "/items/*/parts".to_owned()], ..Config::default() };
    let files =
        [("items/hq/resource.json", r#"{"id":"hq"}"#), ("items/hq/parts/c/resource.json", r#"{"id":"c"}"#)];
    let world = World::new(config, &files);
    world.server.put_by_hand("/items/main", parsed(r#"{"id":"main"}"#));
    world.server.put_by_hand("/items/main/parts/c", parsed(r#"{"id":"c"}"#));
    world.server.fail(Matcher::new("POST", "/items/hq/parts"), 400, 9);
    let candidates = [("/items/main", r#"{"id":"main"}"#), ("/items/main/parts/c", r#"{"id":"c"}"#)];
    let report = world.sync_on(&world.server.url(), &candidates).await;
    assert_eq!((report.stats.created, report.stats.pruned, report.stats.failed), (1, 0, 3), "{report:?}");
    assert_eq!(world.live("/items/main/parts/c"), r#"{"id":"c"}"#);
}

/// A zone and a record in it that were declared once.
const CLOSED: [(&str, &str); 2] =
    [("/zones/a", r#"{"id":"a"}"#), ("/records/www", r#"{"id":"www","zone":"a"}"#)];

/// A server that still has them, and another zone that is declared.
fn zones() -> World {
    let config =
        Config { collections: vec!["/zones".to_owned(), "/records".to_owned()], ..Config::default() };
    let files = [
        ("records/_/metadata.yaml", "resource: {dependsOn: ['/zones/{{/zone}}']}"),
        ("zones/b/resource.json", r#"{"id":"b"}"#),
    ];
    let world = World::new(config, &files);
    world.server.put_by_hand("/zones/b", parsed(r#"{"id":"b"}"#));
    world.server.put_by_hand("/zones/a", parsed(r#"{"id":"a"}"#));
    world.server.put_by_hand("/records/www", parsed(r#"{"id":"www","zone":"a"}"#));
    world
}

/// The read of the record fails, so nothing is decided about it.
#[tokio::test]
async fn a_resource_is_not_deleted_while_one_that_depends_on_it_cannot_be_read() {
    let world = zones();
    world.server.fail(Matcher::new("GET", "/records/www"), 500, 9);
    let report = world.sync_on(&world.server.url(), &CLOSED).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (0, 2), "{report:?}");
    world.server.clear_failures();
    assert_eq!(world.sync_on(&world.server.url(), &CLOSED).await.stats.pruned, 2);
}

/// The file that may declare the child cannot be read.
#[tokio::test]
async fn the_parent_of_a_child_that_may_be_declared_is_not_deleted() {
    let config =
        Config { collections: vec!["/items".to_owned(), "/items/*/parts".to_owned()], ..Config::default() };
    let files = [("items/hq/resource.json", r#"{"id":"hq"}"#), ("items/hq/parts/c/resource.json", "{")];
    let world = World::new(config, &files);
    world.server.put_by_hand("/items/hq", parsed(r#"{"id":"hq"}"#));
    world.server.put_by_hand("/items/main", parsed(r#"{"id":"main"}"#));
    world.server.put_by_hand("/items/main/parts/c", parsed(r#"{"id":"c"}"#));
    let candidates = [("/items/main", r#"{"id":"main"}"#), ("/items/main/parts/c", r#"{"id":"c"}"#)];
    let report = world.sync_on(&world.server.url(), &candidates).await;
    assert_eq!(report.stats.pruned, 0, "{report:?}");
    assert_eq!(world.live("/items/main/parts/c"), r#"{"id":"c"}"#);
}

/// Without the zone, the address of the record is unknown.
#[tokio::test]
async fn a_resource_is_not_deleted_before_those_that_depend_on_it() {
    let world = zones();
    world.server.fail(Matcher::new("DELETE", "/records/www"), 400, 1);
    let report = world.sync_on(&world.server.url(), &CLOSED).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (0, 2), "{report:?}");
    let why = "not deleted: /zones/a: /records/www, which depends on it, is not deleted";
    assert!(report.failures.iter().any(|failure| failure.message == why), "{report:?}");
    assert_eq!(world.sync_on(&world.server.url(), &CLOSED).await.stats.pruned, 2);
}

/// A declared alias refers to the record.
#[tokio::test]
async fn a_resource_is_not_deleted_while_one_that_depends_on_it_is_kept() {
    let world = zones();
    world.declare("zones/b/resource.json", r#"{"id":"b","www":"{{ref \"/records/www\" \"/id\"}}"}"#);
    let report = world.sync_on(&world.server.url(), &CLOSED).await;
    assert_eq!((report.stats.updated, report.stats.pruned, report.stats.failed), (1, 0, 2), "{report:?}");
    let messages = report.failures.iter().map(|failure| failure.message.as_str()).collect::<Vec<_>>();
    let expected = [
        "not deleted: /records/www: /zones/b refers to it; remove the reference first",
        "not deleted: /zones/a: /records/www, which depends on it, is not deleted",
    ];
    assert_eq!(messages, expected);
}

/// Unlike a deletion, a reset keeps what is below the resource.
#[tokio::test]
async fn a_parent_of_declared_resources_is_reset() {
    let files = [
        ("flags/_/metadata.yaml", "resource: {onRemove: {reset: {id: dark, on: false}}}"),
        ("flags/dark/rules/r1/resource.json", r#"{"id": "r1"}"#),
    ];
    let world = World::new(Config::default(), &files);
    world.server.put_by_hand("/flags/dark", parsed(r#"{"id": "dark", "on": true}"#));
    world.server.put_by_hand("/flags/dark/rules/r1", parsed(r#"{"id": "r1"}"#));
    let report = world.prune_declared("/flags/dark", r#"{"id":"dark","on":true}"#).await;
    assert_eq!((report.stats.pruned, report.kept.len()), (1, 0), "{report:?}");
    assert_eq!(world.live("/flags/dark"), r#"{"id":"dark","on":false}"#);
}

/// The server has rejected one of them only until the run wrote another resource. What waits for it is deleted after it.
#[tokio::test]
async fn a_rejected_deletion_is_sent_again_after_other_writes() {
    let world = zones();
    world.declare("records/new/resource.json", r#"{"id":"new","zone":"b"}"#);
    world.server.fail(Matcher::new("DELETE", "/records/www"), 409, 1);
    let report = world.sync_on(&world.server.url(), &CLOSED).await;
    assert_eq!((report.outcome, report.stats.pruned), (Outcome::Succeeded, 2), "{report:?}");
    assert_eq!(world.server.counts().of("DELETE", "/records/www"), 2);
}

/// Some servers delete children only together with their parent, such as the default profile of a project of LXD.
#[rstest]
#[case::fault(500)]
#[case::refusal(403)]
#[tokio::test]
async fn a_rejected_deletion_below_a_deleted_parent_is_done(#[case] status: u16) {
    let world = World::new(Config::default(), &[]);
    world.server.put_by_hand("/items/main", parsed(r#"{"id":"main"}"#));
    world.server.put_by_hand("/items/main/parts/c", parsed(r#"{"id":"c"}"#));
    world.server.fail(Matcher::new("DELETE", "/items/main/parts/c"), status, usize::MAX);
    let candidates = [("/items/main", r#"{"id":"main"}"#), ("/items/main/parts/c", r#"{"id":"c"}"#)];
    let options = Options { allow_empty: true, ..Options::default() };
    let report = world.sync_with(&world.server.url(), &candidates, &options).await;
    assert_eq!((report.outcome, report.stats.pruned), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(world.live("/items/main/parts/c"), "absent");
}
