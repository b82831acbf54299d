//! The record of write-only attributes is never ahead of the server.

use std::sync::Arc;
use std::time::Duration;

use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Options, Outcome, Report, Selection, Session, Stop, WrittenValues};
use serde_json::json;
use tempfile::TempDir;

use crate::rest_server::{Config, Matcher};
use crate::world::{World, failure, selected};

const METADATA: &str = "resource: {id: /id, alias: /name, writeOnlyAttributes: [/password]}";

/// A server with users, and a directory for the record.
fn users() -> (World, TempDir) {
    let config = Config { server_ids: vec!["/users".to_owned()], ..Config::default() };
    let world = World::new(config, &[("users/_/metadata.yaml", METADATA)]);
    (world, tempfile::tempdir().unwrap())
}

fn declare(world: &World, path: &str, password: &str) {
    let user = json!({"name": "ana", "password": password});
    world.declare(&format!("{path}/resource.json"), &user.to_string());
}

/// A run of a process that knows only the record.
async fn run(world: &World, record: &TempDir, candidates: &[&str]) -> Report {
    let written = Some(Arc::new(WrittenValues::open(record.path(), world.server.url())));
    let session = Session { written, ..world.session() };
    let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    let candidates: Vec<_> = candidates.iter().map(|path| (*path, r#"{"name":"ana"}"#)).collect();
    let selection = Selection { prune: selected(&candidates).prune, ..everything };
    sync::run(&session, selection, &Options::default(), &Stop::default()).await
}

/// Waits until as many writes have arrived.
async fn arrived(world: &World, writes: usize) {
    while world.server.writes().len() < writes {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn password(world: &World) -> String {
    world.server.get("/users/w-1").unwrap()["password"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_value_is_written_once() {
    let (world, record) = users();
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.created, 1);
    assert_eq!(run(&world, &record, &[]).await.stats.unchanged, 1);
    declare(&world, "users/ana", "v2");
    assert_eq!(run(&world, &record, &[]).await.stats.updated, 1);
    assert_eq!(password(&world), "v2");
    assert_eq!(run(&world, &record, &[]).await.stats.unchanged, 1);
}

/// The server sets the new value, and the answers are lost. Then Git has the old value again.
#[tokio::test]
async fn after_a_write_with_an_unknown_outcome_the_value_is_written_again() {
    let (world, record) = users();
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.created, 1);
    declare(&world, "users/ana", "v2");
    world.server.fail_after_effect(Matcher::method("PUT"), 502, 9);
    assert_eq!(run(&world, &record, &[]).await.stats.failed, 1);
    world.server.clear_failures();
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.updated, 1);
    assert_eq!(password(&world), "v1");
}

/// An update of another attribute is rejected, so it has not set the password. A new password needs a new user.
#[tokio::test]
async fn a_rejected_write_does_not_lose_the_record() {
    let (world, record) = users();
    let metadata = METADATA.replace("{id:", "{replaceOn: [/password], id:");
    world.declare("users/_/metadata.yaml", &metadata);
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.created, 1);
    world.declare("users/ana/resource.json", r#"{"name":"ana","password":"v1","tier":"gold"}"#);
    world.server.fail(Matcher::method("PUT"), 422, 1);
    assert_eq!(run(&world, &record, &[]).await.stats.failed, 1);
    declare(&world, "users/ana", "v2");
    let report = run(&world, &record, &[]).await;
    assert_eq!((report.stats.pruned, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.server.get("/users/w-2").unwrap()["password"], "v2");
}

/// The process is killed after the write, so it cannot save what it has written.
#[tokio::test]
async fn after_a_killed_run_the_value_is_written_again() {
    let (world, record) = users();
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.created, 1);
    declare(&world, "users/ana", "v2");
    let held = world.server.hold(Matcher::method("PUT"));
    {
        let run = run(&world, &record, &[]);
        tokio::pin!(run);
        tokio::select! {
            report = &mut run => panic!("{report:?}"),
            () = arrived(&world, 2) => {}
        }
    }
    drop(held);
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.updated, 1);
    assert_eq!(password(&world), "v1");
}

/// A commit renames the file and changes the value, and is reverted.
#[tokio::test]
async fn the_record_of_a_path_that_moved_is_not_used_again() {
    let (world, record) = users();
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.created, 1);
    world.remove("users/ana");
    declare(&world, "users/anna", "v2");
    let report = run(&world, &record, &["/users/ana"]).await;
    assert_eq!((report.stats.updated, report.stats.pruned, report.kept.len()), (1, 0, 1), "{report:?}");
    world.remove("users/anna");
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &["/users/anna"]).await.stats.updated, 1);
    assert_eq!(password(&world), "v1");
}

/// The create was not executed, and another client created a user with the same name and another password.
#[tokio::test]
async fn a_user_that_is_found_instead_of_created_gets_the_value() {
    let (world, record) = users();
    declare(&world, "users/ana", "v1");
    let held = world.server.hold(Matcher::method("POST"));
    let run = run(&world, &record, &[]);
    tokio::pin!(run);
    tokio::select! {
        report = &mut run => panic!("{report:?}"),
        () = arrived(&world, 1) => {}
    }
    world.server.put_by_hand("/users/w-1", json!({"id": "w-1", "name": "ana", "password": "theirs"}));
    world.server.cut(Matcher::method("POST"), 1);
    drop(held);
    assert_eq!(run.await.stats.failed, 0);
    assert_eq!(password(&world), "v1");
}

/// The update cannot set passwords. The new one must not count as written.
#[tokio::test]
async fn a_value_that_the_update_does_not_contain_is_not_recorded() {
    let (world, record) = users();
    let update = "\noperations: {update: {method: PATCH, transforms: [{excludeAttributes: [/password]}]}}";
    world.declare("users/_/metadata.yaml", &(METADATA.to_owned() + update));
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.created, 1);
    declare(&world, "users/ana", "v2");
    let report = run(&world, &record, &[]).await;
    assert!(failure(&report).1.contains("differs only at /password"), "{report:?}");
    // The update of another attribute does not set it either.
    world.declare("users/ana/resource.json", r#"{"name":"ana","password":"v2","tier":"gold"}"#);
    assert_eq!(run(&world, &record, &[]).await.stats.updated, 1);
    let report = run(&world, &record, &[]).await;
    assert!(failure(&report).1.contains("differs only at /password"), "{report:?}");
    assert_eq!(password(&world), "v1");
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.outcome, Outcome::Succeeded);
}

#[tokio::test]
async fn a_part_that_the_update_does_not_contain_is_not_recorded() {
    let (world, record) = users();
    let metadata = METADATA.replace("/password", "/auth/password");
    let update = "\noperations: {update: {transforms: [{excludeAttributes: [/auth/password]}]}}";
    world.declare("users/_/metadata.yaml", &(metadata + update));
    let declare = |user: &str, password: &str| {
        let payload = json!({"name": "ana", "auth": {"user": user, "password": password}});
        world.declare("users/ana/resource.json", &payload.to_string());
    };
    declare("a", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.created, 1);
    declare("b", "v2");
    assert_eq!(run(&world, &record, &[]).await.stats.updated, 1);
    let report = run(&world, &record, &[]).await;
    assert!(failure(&report).1.contains("differs only at /auth/password"), "{report:?}");
}

/// No run has written the password of a user that exists, so it may be the declared one.
#[tokio::test]
async fn a_found_user_may_have_the_value_that_the_update_does_not_contain() {
    let (world, record) = users();
    let update = "\noperations: {update: {transforms: [{excludeAttributes: [/password]}]}}";
    world.declare("users/_/metadata.yaml", &(METADATA.to_owned() + update));
    world.server.put_by_hand("/users/w-1", json!({"id": "w-1", "name": "ana"}));
    declare(&world, "users/ana", "v1");
    assert_eq!(run(&world, &record, &[]).await.stats.updated, 1);
    assert_eq!(run(&world, &record, &[]).await.stats.unchanged, 1);
    declare(&world, "users/ana", "v2");
    let report = run(&world, &record, &[]).await;
    assert!(failure(&report).1.contains("differs only at /password"), "{report:?}");
}
