//! Two files that reach one resource of the server by different ways.

use declarest_core::sync::{Options, Outcome, Report};
use rstest::rstest;
use serde_json::json;

use crate::api_server::{ApiServer, Ids, Request};
use crate::rest_server::Config;
use crate::world::World;

/// The messages of the failures, each of which names both files.
fn refused(report: &Report) -> Vec<(String, String)> {
    let failures = report.failures.iter();
    failures.map(|failure| (failure.path.to_string(), failure.message.clone())).collect()
}

/// Only one of the collections states its address.
fn groups_and_teams(members: usize, note: &str) -> World {
    let named = "resource: {id: /name, alias: /name}";
    let teams = "resource: {id: /name, alias: /name, remoteCollectionPath: /groups}";
    let world =
        World::new(Config::default(), &[("groups/_/metadata.yaml", named), ("teams/_/metadata.yaml", teams)]);
    for place in 0..members {
        let (group, team) = (format!("g{place}"), format!("t{place}"));
        world.declare(&format!("groups/{group}/resource.json"), &json!({"name": group}).to_string());
        world.declare(&format!("teams/{team}/resource.json"), &json!({"name": team}).to_string());
    }
    world.declare("groups/admin/resource.json", r#"{"name": "admin", "note": "a"}"#);
    world.declare("teams/admin/resource.json", &json!({"name": "admin", "note": note}).to_string());
    world
}

#[rstest]
#[tokio::test]
async fn files_of_two_collections_do_not_overwrite_each_other(#[values(0, 3)] others: usize) {
    let server = ApiServer::rest(&["/groups"], Ids::Stated("name"));
    server.put("/groups/admin", json!({"name": "admin", "note": "a"}));
    let world = groups_and_teams(others, "b");
    for _ in 0..2 {
        let report = world.sync_on(server.url(), &[]).await;
        let [(path, message)] = &refused(&report)[..] else { panic!("{report:?}") };
        assert!(
            path == "/teams/admin" && message.contains("/groups/admin declares the same resource"),
            "{message}"
        );
    }
    assert_eq!(server.count("PUT"), 0, "{:?}", server.writes());
}

/// Neither of them overwrites the other one.
#[tokio::test]
async fn two_equal_files_do_not_fail() {
    let server = ApiServer::rest(&["/groups"], Ids::Stated("name"));
    server.put("/groups/admin", json!({"name": "admin", "note": "a"}));
    let report = groups_and_teams(0, "a").sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.unchanged), (Outcome::Succeeded, 2), "{report:?}");
}

/// Each of them changes its own attributes.
#[rstest]
#[case::merge_patch("mode: merge-patch")]
#[case::method("method: PATCH")]
#[tokio::test]
async fn two_views_of_one_resource_do_not_fail(#[case] update: &str) {
    let server = ApiServer::rest(&["/groups"], Ids::Stated("name"));
    server.put("/groups/admin", json!({"name": "admin", "tier": "free", "note": "a"}));
    let names = "resource: {id: /name, alias: /name}";
    let metadata = format!("{names}\noperations: {{compare: {{mode: declared}}, update: {{{update}}}}}");
    let teams = metadata.replace("alias: /name}", "alias: /name, remoteCollectionPath: /groups}");
    let world = World::new(
        Config::default(),
        &[("groups/_/metadata.yaml", &metadata), ("teams/_/metadata.yaml", &teams)],
    );
    world.declare("groups/admin/resource.json", r#"{"name": "admin", "tier": "gold"}"#);
    world.declare("teams/admin/resource.json", r#"{"name": "admin", "note": "b"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.updated), (Outcome::Succeeded, 2), "{report:?}");
    assert_eq!(server.get("/groups/admin"), Some(json!({"name": "admin", "tier": "gold", "note": "b"})));
}

/// One file states its id, and the server finds the other one by its name.
#[tokio::test]
async fn an_id_and_a_name_of_one_resource_do_not_overwrite_each_other() {
    let server = ApiServer::rest(&["/groups"], Ids::Given);
    server.put("/groups/1", json!({"id": "1", "name": "admin", "note": "a"}));
    let world = World::new(Config::default(), &[]);
    world.declare("groups/1/resource.json", r#"{"id": "1", "name": "admin", "note": "a"}"#);
    world.declare("groups/admin/resource.json", r#"{"name": "admin", "note": "b"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.failed, server.count("PUT")), (1, 0), "{report:?}");
}

/// A server that ignores the case of names.
#[rstest]
#[case::without_metadata("")]
#[case::names("resource: {id: /name, alias: /name}")]
#[tokio::test]
async fn names_in_two_cases_do_not_overwrite_each_other(
    #[case] metadata: &str,
    #[values(0, 3)] others: usize,
) {
    let server = ApiServer::start(&["/users"], |request, store| {
        let known = store.paths().find(|path| path.eq_ignore_ascii_case(&request.path)).cloned();
        let path = known.unwrap_or_else(|| request.path.clone());
        let mut body = request.body.clone();
        if let (Some(name), Some(known)) = (body.get_mut("name"), store.get(&path)) {
            *name = known["name"].clone();
        }
        Request { path, body, ..request.clone() }.rest(store, Ids::Stated("name"))
    });
    server.put("/users/Bob", json!({"name": "Bob", "note": "a"}));
    let world = World::new(Config::default(), &[("users/_/metadata.yaml", metadata)]);
    for other in 0..others {
        world.declare(
            &format!("users/u{other}/resource.json"),
            &json!({"name": format!("u{other}")}).to_string(),
        );
    }
    world.declare("users/Bob/resource.json", r#"{"name": "Bob", "note": "a"}"#);
    world.declare("users/bob/resource.json", r#"{"name": "bob", "note": "b"}"#);
    for _ in 0..2 {
        let report = world.sync_with(server.url(), &[], &Options::default()).await;
        let [(path, message)] = &refused(&report)[..] else { panic!("{report:?}") };
        assert!(path == "/users/bob" && message.contains("/users/Bob declares"), "{message}");
    }
    assert_eq!(server.count("PUT"), 0, "{:?}", server.writes());
}
