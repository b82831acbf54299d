//! A directory that is renamed in Git is another path to the same resource.

use serde_json::json;

use super::{Scene, reports, succeeded};
use crate::support::api_server::{ApiServer, Ids};

const COLLECTIONS: &[&str] = &["/items", "/items/*/parts"];
/// Names are the user's, ids the server's.
const GIVEN: (&str, &str) = ("items/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");

#[tokio::test]
async fn a_renamed_parent_keeps_its_children() {
    let server = ApiServer::rest(COLLECTIONS, Ids::Stated("id"));
    let scene = Scene::synced(
        server,
        &[
            ("items/main/resource.json", r#"{"id": "main"}"#),
            ("items/main/parts/x/resource.json", r#"{"id": "x"}"#),
            ("items/other/resource.json", r#"{"id": "other"}"#),
        ],
    )
    .await;
    let before = scene.server.all();
    scene.server.clear_log();
    scene.git.remove("items/main");
    scene.git.write("items/hq/resource.json", r#"{"id": "main"}"#);
    scene.git.write("items/hq/parts/x/resource.json", r#"{"id": "x"}"#);
    let mut status = scene.push().await;
    for _ in 0..2 {
        scene.deletes_nothing();
        assert_eq!(scene.server.all(), before);
        let settled = succeeded(&status) && scene.server.writes().is_empty();
        assert!(settled || reports(&status, "/items/hq/parts/x"), "{:?}", scene.server.writes());
        status = scene.full_run().await;
    }
}

/// The ids are the server's, and the resource gets another name.
#[tokio::test]
async fn a_parent_with_another_name_keeps_its_children() {
    let server = ApiServer::start(COLLECTIONS, |request, store| {
        let ids = if request.segments().len() > 2 { Ids::Stated("id") } else { Ids::Given };
        request.rest(store, ids)
    });
    server.put("/items/n1", json!({"id": "n1", "name": "main"}));
    server.put("/items/n1/parts/x", json!({"id": "x"}));
    let scene = Scene::synced(
        server,
        &[
            GIVEN,
            ("items/main/resource.json", r#"{"id": "n1", "name": "main"}"#),
            ("items/main/parts/x/resource.json", r#"{"id": "x"}"#),
            ("items/other/resource.json", r#"{"name": "other"}"#),
        ],
    )
    .await;
    scene.git.remove("items/main");
    scene.git.write("items/hq/resource.json", r#"{"id": "n1", "name": "hq"}"#);
    scene.git.write("items/hq/parts/x/resource.json", r#"{"id": "x"}"#);
    let mut status = scene.push().await;
    for _ in 0..3 {
        scene.deletes_nothing();
        scene.holds(&["/items/n1", "/items/n1/parts/x", "/items/n7"]);
        status = scene.full_run().await;
    }
    let renamed = scene.server.get("/items/n1").unwrap()["name"] == "hq";
    assert!(succeeded(&status) == renamed, "{status:#?}");
}

/// What is right: without a rename both go, the child first.
#[tokio::test]
async fn a_parent_with_an_id_of_the_server_is_pruned_with_its_children() {
    let server = ApiServer::start(COLLECTIONS, |request, store| {
        let ids = if request.segments().len() > 2 { Ids::Stated("id") } else { Ids::Given };
        request.rest(store, ids)
    });
    let scene = Scene::start(
        server,
        &[
            GIVEN,
            ("items/main/resource.json", r#"{"name": "main"}"#),
            ("items/main/parts/x/resource.json", r#"{"id": "x"}"#),
            ("items/other/resource.json", r#"{"name": "other"}"#),
        ],
    )
    .await
    .0;
    scene.converges(2).await;
    assert_eq!(scene.server.paths().len(), 3);
    let id = scene.server.paths().iter().find(|path| path.ends_with("/parts/x")).unwrap().clone();
    scene.server.clear_log();
    scene.git.remove("items/main");
    scene.push().await;
    scene.converges(1).await;
    let parent = id.strip_suffix("/parts/x").unwrap();
    assert_eq!(scene.server.writes(), [format!("DELETE {id} 204"), format!("DELETE {parent} 204")]);
    assert_eq!(scene.server.paths().len(), 1);
}
