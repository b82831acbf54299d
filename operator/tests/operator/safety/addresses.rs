//! Two paths of the repository may lead to one address on the server.

use super::{Scene, assert_reports};
use crate::support::api_server::{Answer, ApiServer, Ids};

const CLIENTS: &[&str] = &["/api/clients"];
const AT_CLIENTS: &str = "resource: {remoteCollectionPath: /api/clients}\n";
const WEB: &str = r#"{"id": "web"}"#;

#[tokio::test]
async fn what_another_collection_declares_at_the_same_address_is_kept() {
    let scene = Scene::synced(
        ApiServer::rest(CLIENTS, Ids::Stated("id")),
        &[
            ("apps/_/metadata.yaml", AT_CLIENTS),
            ("clients/_/metadata.yaml", AT_CLIENTS),
            ("apps/web/resource.json", WEB),
        ],
    )
    .await;
    // By another commit than the first: what both declare exists already.
    scene.git.write("clients/web/resource.json", WEB);
    scene.push().await;
    scene.git.remove("clients/web");
    for _ in 0..2 {
        scene.push().await;
        scene.deletes_nothing();
        scene.holds(&["/api/clients/web"]);
    }
    scene.full_run().await;
    scene.deletes_nothing();
    scene.holds(&["/api/clients/web"]);
}

#[tokio::test]
async fn what_cannot_be_observed_may_be_what_would_be_deleted() {
    let server = ApiServer::start(CLIENTS, |request, store| {
        if store.mode == "down" && request.query.contains_key("view") {
            return Answer::empty(500);
        }
        request.rest(store, Ids::Stated("id"))
    });
    let scene = Scene::synced(
        server,
        &[
            (
                "apps/_/metadata.yaml",
                "resource: {remoteCollectionPath: /api/clients}\noperations: {get: {query: {view: full}}}\n",
            ),
            ("clients/_/metadata.yaml", AT_CLIENTS),
            ("clients/web/resource.json", WEB),
            ("clients/other/resource.json", r#"{"id": "other"}"#),
        ],
    )
    .await;
    scene.server.mode("down");
    scene.git.remove("clients/web");
    scene.git.write("apps/web/resource.json", WEB);
    let status = scene.push().await;
    scene.deletes_nothing();
    scene.holds(&["/api/clients/other", "/api/clients/web"]);
    assert_reports(&status, "/apps/web");
    scene.server.mode("");
    scene.converges(2).await;
    scene.deletes_nothing();
    scene.holds(&["/api/clients/other", "/api/clients/web"]);
}

/// What is right: other addresses of the same collection are pruned.
#[tokio::test]
async fn what_only_one_collection_declares_at_an_address_is_pruned() {
    let scene = Scene::synced(
        ApiServer::rest(CLIENTS, Ids::Stated("id")),
        &[
            ("apps/_/metadata.yaml", AT_CLIENTS),
            ("clients/_/metadata.yaml", AT_CLIENTS),
            ("apps/web/resource.json", WEB),
            ("clients/old/resource.json", r#"{"id": "old"}"#),
        ],
    )
    .await;
    scene.git.remove("clients/old");
    scene.push().await;
    scene.converges(1).await;
    scene.holds(&["/api/clients/web"]);
}
