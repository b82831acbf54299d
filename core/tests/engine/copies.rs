//! Two files that declare the same resource of the server.

use std::sync::Arc;

use declarest_core::path::LogicalPath;
use declarest_core::repository;
use declarest_core::sync::{self, Options, Report, Selection, Stop};
use rstest::rstest;
use serde_json::json;

use crate::commit::Commit;
use crate::rest_server::Config;
use crate::world::{World, failure};

/// A shop that was applied.
fn shops(server_ids: &[&str], metadata: &str) -> World {
    let server_ids = server_ids.iter().map(|&path| path.to_owned()).collect();
    let config = Config { collections: vec!["/shops".to_owned()], server_ids, ..Config::default() };
    let files = [
        ("shops/_/metadata.yaml", metadata),
        ("shops/rio/resource.json", r#"{"id":"w-1","name":"Rio","tier":"gold"}"#),
    ];
    let world = World::new(config, &files);
    world.server.put_by_hand("/shops/w-1", json!({"id": "w-1", "name": "Rio", "tier": "gold"}));
    world
}

/// A run over the changes since `former`: one changed file.
async fn run(world: &World, former: &World, path: &str) -> Report {
    let session = world.session();
    let former = Commit::numbered(former.session().tree, 1, Arc::default());
    let file = repository::resource_file(session.tree.as_ref(), &LogicalPath::parse(path).unwrap()).unwrap();
    let resources = file.into_iter().collect();
    let selection = Selection { resources, former: Some(former), ..Selection::default() };
    sync::run(&session, selection, &Options::default(), &Stop::default()).await
}

#[rstest]
#[case::alias(&["/shops"], "resource: {id: /id, alias: /name}", r#"{"name":"Rio","tier":"free"}"#)]
#[case::id(&[], "resource: {id: /id, alias: /id}", r#"{"id":"w-1","name":"Rio","tier":"free"}"#)]
#[tokio::test]
async fn a_copy_with_the_same_names_does_not_overwrite_the_original(
    #[case] server_ids: &[&str],
    #[case] metadata: &str,
    #[case] copy: &str,
    #[values(true, false)] is_new: bool,
) {
    let (world, former) = (shops(server_ids, metadata), shops(server_ids, metadata));
    if !is_new {
        former.declare("shops/river/resource.json", r#"{"id":"w-2","name":"River"}"#);
    }
    world.declare("shops/river/resource.json", copy);
    let (reason, message) = failure(&run(&world, &former, "/shops/river").await);
    assert_eq!(reason, "ConflictError", "{message}");
    assert!(message.contains("/shops/river") && message.contains("/shops/rio"), "{message}");
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// Without a revision that was applied, and while only this resource is retried.
#[tokio::test]
async fn a_copy_is_found_before_the_first_success() {
    let world = shops(&["/shops"], "resource: {id: /id, alias: /name}");
    world.declare("shops/river/resource.json", r#"{"name":"Rio","tier":"free"}"#);
    let session = world.session();
    let path = LogicalPath::parse("/shops/river").unwrap();
    let file = repository::resource_file(session.tree.as_ref(), &path).unwrap();
    let selection = Selection { resources: file.into_iter().collect(), ..Selection::default() };
    let report = sync::run(&session, selection, &Options::default(), &Stop::default()).await;
    assert_eq!(failure(&report).0, "ConflictError");
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// All of them fail, also those that are equal to the resource of the server.
#[rstest]
#[case::equal(r#"{"id":"w-1","name":"Rio","tier":"gold"}"#)]
#[case::different(r#"{"id":"w-1","name":"Rio","tier":"free"}"#)]
#[tokio::test]
async fn each_copy_names_another_one(#[case] copy: &str) {
    let world = shops(&["/shops"], "resource: {id: /id, alias: /name}");
    world.server.put_by_hand("/shops/w-2", json!({"id": "w-2", "name": "Lima"}));
    world.declare("shops/lima/resource.json", r#"{"id":"w-2","name":"Lima"}"#);
    for file in ["shops/b/resource.json", "shops/c/resource.json"] {
        world.declare(file, copy);
    }
    let report = world.sync().await;
    assert_eq!((report.stats.failed, report.stats.unchanged), (3, 1), "{report:?}");
    let mut messages: Vec<&str> = report.failures.iter().map(|failure| failure.message.as_str()).collect();
    messages.sort_unstable();
    for (message, path) in messages.iter().zip(["/shops/b", "/shops/c", "/shops/rio"]) {
        let (named, other) =
            message.split_once(" declares the same resource").unwrap().0.split_once(": ").unwrap();
        assert!(named == path && other != path && other.starts_with("/shops/"), "{message}");
    }
    assert_eq!(world.writes(), Vec::<String>::new());
}

/// The server gave the shop an id that is the name of another file.
#[tokio::test]
async fn an_id_like_the_name_of_another_file_is_not_a_copy() {
    let metadata = "resource: {id: /id, alias: /name}";
    let (world, former) = (shops(&["/shops"], metadata), shops(&["/shops"], metadata));
    world.server.put_by_hand("/shops/12", json!({"id": "12", "name": "new", "tier": "free"}));
    world.server.put_by_hand("/shops/w-5", json!({"id": "w-5", "name": "12"}));
    world.declare("shops/12/resource.json", r#"{"name":"12"}"#);
    world.declare("shops/broken/resource.json", "{");
    world.declare("shops/new/resource.json", r#"{"name":"new","tier":"gold"}"#);
    let report = run(&world, &former, "/shops/new").await;
    assert_eq!((report.stats.updated, report.stats.failed), (1, 0), "{report:?}");
    assert_eq!(world.writes(), ["PUT /shops/12 200"]);
}

#[tokio::test]
async fn a_changed_file_is_not_a_copy() {
    let metadata = "resource: {id: /id, alias: /name}";
    let (world, former) = (shops(&["/shops"], metadata), shops(&["/shops"], metadata));
    world.declare("shops/rio/resource.json", r#"{"id":"w-1","name":"Rio","tier":"free"}"#);
    assert_eq!(run(&world, &former, "/shops/rio").await.stats.updated, 1);
}
