//! A directory that is renamed in Git is another path to the same resource.

use serde_json::json;

use super::{Scene, assert_reports, reports, succeeded};
use crate::support::api_server::{Answer, ApiServer, Ids, Request, Store};

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

/// Organisations whose names are not case-sensitive. The server keeps their spelling.
fn in_any_case(request: &Request, store: &mut Store) -> Answer {
    let folded = Request { path: request.path.to_lowercase(), ..request.clone() };
    match request.method.as_str() {
        "PUT" if store.get(&folded.path).is_some() => {
            store.put(&folded.path, request.body.clone());
            Answer::json(200, &request.body)
        }
        "POST" => {
            let path = format!("/orgs/{}", request.body["id"].as_str().unwrap_or_default().to_lowercase());
            if store.get(&path).is_some() {
                return Answer::json(409, &json!({"error": "it exists"}));
            }
            store.put(&path, request.body.clone());
            Answer::json(201, &request.body)
        }
        _ => folded.rest(store, Ids::Stated("id")),
    }
}

const ORGANISATIONS: &[(&str, &str)] = &[
    ("orgs/Ana/resource.json", r#"{"id": "Ana", "plan": 1}"#),
    ("orgs/bo/resource.json", r#"{"id": "bo"}"#),
    ("orgs/cy/resource.json", r#"{"id": "cy"}"#),
];

#[tokio::test]
async fn a_name_in_another_case_may_be_the_same_resource() {
    let scene = Scene::synced(ApiServer::start(&["/orgs"], in_any_case), ORGANISATIONS).await;
    scene.git.remove("orgs/Ana").write("orgs/ana/resource.json", r#"{"id": "ana", "plan": 1}"#);
    scene.push().await;
    scene.converges(1).await;
    scene.deletes_nothing();
    assert_eq!(scene.server.get("/orgs/ana"), Some(json!({"id": "ana", "plan": 1})));
}

/// What is right: most servers have two resources then.
#[tokio::test]
async fn a_name_in_another_case_is_another_resource_if_the_server_has_both() {
    let scene = Scene::synced(ApiServer::rest(&["/orgs"], Ids::Stated("id")), ORGANISATIONS).await;
    scene.git.remove("orgs/Ana").write("orgs/ana/resource.json", r#"{"id": "ana", "plan": 1}"#);
    scene.push().await;
    scene.converges(1).await;
    scene.holds(&["/orgs/ana", "/orgs/bo", "/orgs/cy"]);
}

/// The server assigns the ids, so the name in the other case is not found, and cannot be created.
#[tokio::test]
async fn a_resource_is_not_deleted_if_its_name_in_another_case_cannot_be_created() {
    let server = ApiServer::start(&["/items"], |request, store| {
        let name = |item: &serde_json::Value| item["name"].as_str().map(str::to_lowercase);
        let exists = store.members("/items").iter().any(|item| name(item) == name(&request.body));
        if request.method == "POST" && exists {
            return Answer::json(409, &json!({"error": "it exists"}));
        }
        request.rest(store, Ids::Given)
    });
    server.put("/items/n1", json!({"id": "n1", "name": "Ana"}));
    let files = [
        GIVEN,
        ("items/Ana/resource.json", r#"{"name": "Ana"}"#),
        ("items/bo/resource.json", r#"{"name": "bo"}"#),
        ("items/cy/resource.json", r#"{"name": "cy"}"#),
    ];
    let scene = Scene::synced(server, &files).await;
    scene.git.remove("items/Ana").write("items/ana/resource.json", r#"{"name": "ana"}"#);
    let status = scene.push().await;
    scene.deletes_nothing();
    assert_reports(&status, "/items/Ana");
    assert_reports(&status, "/items/ana");
    // A person renames it.
    scene.server.put("/items/n1", json!({"id": "n1", "name": "ana"}));
    scene.converges(1).await;
    scene.deletes_nothing();
}
