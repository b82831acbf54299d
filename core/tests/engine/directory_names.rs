//! Resources whose directory has another name than their payload states, on servers where that name belongs to another
//! resource.

use declarest_core::sync::Failure;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::rest_server::Config;
use crate::world::{World, failure};

const BY_ID: &str = "resource: {id: /id, alias: /name}";
const BY_NAME: &str = "resource: {id: /name, alias: /name}";
const ADMINISTRATORS: &str = r#"{"name": "Administrators"}"#;

/// Like GitLab or Grafana: reads accept the id and the name.
fn by_either(request: &Request, store: &mut Store) -> Answer {
    let named = request.path.strip_prefix("/groups/").and_then(|name| {
        let group = store.members("/groups").into_iter().find(|group| group["name"] == name)?;
        group["id"].as_str().map(|id| format!("/groups/{id}"))
    });
    match named {
        Some(path) if store.get(&request.path).is_none() => {
            Request { path, ..request.clone() }.rest(store, Ids::Given)
        }
        _ => request.rest(store, Ids::Given),
    }
}

fn world(metadata: &str, groups: &[(&str, &str)]) -> World {
    let world = World::new(Config::default(), &[]);
    world.declare("groups/_/metadata.yaml", metadata);
    for (directory, payload) in groups {
        world.declare(&format!("groups/{directory}/resource.json"), payload);
    }
    world
}

fn group(id: &str, name: &str) -> Value {
    json!({"id": id, "name": name})
}

/// `admin` is of another client, and was never declared.
#[rstest]
#[case::ids(BY_ID, "77", Ids::Given)]
#[case::names(BY_NAME, "admin", Ids::Stated("name"))]
#[tokio::test]
async fn a_removed_file_does_not_delete_what_has_the_name_of_its_directory(
    #[case] metadata: &str,
    #[case] id: &str,
    #[case] ids: Ids,
    #[values(true, false)] exists: bool,
) {
    let server = ApiServer::rest(&["/groups"], ids);
    server.put(&format!("/groups/{id}"), group(id, "admin"));
    if exists {
        let own = if id == "77" { "5" } else { "Administrators" };
        server.put(&format!("/groups/{own}"), group(own, "Administrators"));
    }
    let world = world(metadata, &[("x", r#"{"name": "x"}"#)]);
    world.sync_on(server.url(), &[]).await;
    let kept: Vec<_> = server.paths().into_iter().filter(|path| !path.ends_with("/5")).collect();
    for deleted in [usize::from(exists), 0] {
        let report = world.sync_on(server.url(), &[("/groups/admin", ADMINISTRATORS)]).await;
        assert_eq!((report.stats.pruned, report.stats.failed), (deleted, 0), "{report:?}");
    }
    let kept = kept.into_iter().filter(|path| !path.ends_with("Administrators"));
    assert_eq!(server.paths(), kept.collect::<Vec<_>>());
}

/// Only the directory was renamed. The server reads by id or by name.
#[tokio::test]
async fn a_renamed_directory_does_not_overwrite_what_has_its_name() {
    let server = ApiServer::start(&["/groups"], by_either);
    server.put("/groups/1", group("1", "b"));
    server.put("/groups/2", group("2", "a"));
    let world = world(BY_ID, &[("b", r#"{"name": "a"}"#)]);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!(failure(&report).0, "ConflictError", "{report:?}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// Unless the payload has the new name of this resource.
#[tokio::test]
async fn a_new_name_in_the_payload_renames_what_has_the_name_of_the_directory() {
    let server = ApiServer::start(&["/groups"], by_either);
    server.put("/groups/1", group("1", "b"));
    let world = world(BY_ID, &[("b", r#"{"name": "a"}"#)]);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.updated, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(server.get("/groups/1"), Some(group("1", "a")));
}

/// The new file in the directory `admin` must not take over the resource of the other file.
#[rstest]
#[case::applied(true)]
#[case::new(false)]
#[tokio::test]
async fn the_name_of_a_directory_that_another_file_states_is_rejected(#[case] is_applied: bool) {
    let server = ApiServer::rest(&["/groups"], Ids::Given);
    if is_applied {
        server.put("/groups/1", group("1", "admin"));
    }
    let world = world(BY_ID, &[("admins", r#"{"name": "admin"}"#), ("admin", ADMINISTRATORS)]);
    let report = world.sync_on(server.url(), &[]).await;
    let is_twin = |failure: &Failure| failure.message.contains("declares the same resource");
    assert!(report.failures.len() == 2 && report.failures.iter().all(is_twin), "{report:?}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// The create gets the id that is the name of another group, which was read by it.
#[tokio::test]
async fn a_number_that_is_a_name_does_not_overwrite_what_gets_it_as_an_id() {
    let server = ApiServer::start(&["/groups"], |request, store| {
        if request.method != "POST" {
            return by_either(request, store);
        }
        let created = group("2", request.body["name"].as_str().unwrap());
        store.put("/groups/2", created.clone());
        Answer::json(201, &created)
    });
    server.put("/groups/1", json!({"id": "1", "name": "2", "size": 0}));
    let new = r#"{"name": "0new"}"#;
    let world = world(BY_ID, &[("0new", new), ("2", r#"{"name": "2", "size": 1}"#)]);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.updated), (1, 1), "{report:?}");
    assert_eq!(server.get("/groups/1"), Some(json!({"id": "1", "name": "2", "size": 1})));
    assert_eq!(server.get("/groups/2"), Some(group("2", "0new")));
}

/// The server accepts the deletion, and does not carry it out.
#[tokio::test]
async fn a_replacement_with_another_name_is_not_created_beside_what_it_replaces() {
    let server = ApiServer::start(&["/groups"], |request, store| {
        if request.method == "DELETE" { Answer::empty(202) } else { by_either(request, store) }
    });
    server.put("/groups/1", group("1", "a"));
    let metadata = "resource: {id: /id, alias: /name, replaceOn: [/name]}";
    let world = world(metadata, &[("a", r#"{"name": "b"}"#)]);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.stats.created, report.stats.failed), (0, 1), "{report:?}");
    assert_eq!(server.paths(), ["/groups/1"]);
}
