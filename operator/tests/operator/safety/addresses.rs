//! Two paths of the repository may lead to one address on the server.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Scene, assert_reports, reports};
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

const ROLES: &str = "resource: {id: /name, alias: /name}
operations: {compare: {transforms: [{excludeAttributes: [/id]}]}}
";

/// Roles by name, each with an id that no address has, or that is the name of another role.
fn roles(id: &str) -> ApiServer {
    let server = ApiServer::rest(&["/roles"], Ids::Stated("name"));
    server.put("/roles/adm", json!({"name": "adm", "id": id}));
    server.put("/roles/ops", json!({"name": "ops", "id": "9d1c"}));
    server.put("/roles/keep", json!({"name": "keep", "id": "77ab"}));
    server
}

#[rstest]
#[tokio::test]
async fn a_resource_is_deleted_where_it_was_read(#[values("ops", "55670899")] id: &str) {
    let scene = Scene::synced(
        roles(id),
        &[
            ("roles/_/metadata.yaml", ROLES),
            ("roles/adm/resource.json", r#"{"name": "adm"}"#),
            ("roles/keep/resource.json", r#"{"name": "keep"}"#),
        ],
    )
    .await;
    scene.git.remove("roles/adm");
    let status = scene.push().await;
    assert!(scene.server.get("/roles/ops").is_some(), "{:?}", scene.server.writes());
    let gone = scene.server.get("/roles/adm").is_none();
    assert!(gone || reports(&status, "/roles/adm"), "it is still there: {:?}", scene.server.writes());
    scene.converges(1).await;
    scene.holds(&["/roles/keep", "/roles/ops"]);
}

const BY_ID: &str = "resource: {id: /id, alias: /name}\n";

/// Metadata may not know better; the member `id` of an answer is still not what was asked for.
#[rstest]
#[tokio::test]
async fn an_id_in_an_answer_does_not_redirect_a_deletion(#[values("", BY_ID)] metadata: &str) {
    let scene = Scene::start(
        roles("ops"),
        &[
            ("roles/_/metadata.yaml", metadata),
            ("roles/adm/resource.json", r#"{"name": "adm"}"#),
            ("roles/keep/resource.json", r#"{"name": "keep"}"#),
        ],
    )
    .await
    .0;
    scene.git.remove("roles/adm");
    let status = scene.push().await;
    assert!(scene.server.get("/roles/ops").is_some(), "{:?}", scene.server.writes());
    let gone = scene.server.get("/roles/adm").is_none();
    assert!(gone || reports(&status, "/roles/adm"), "it is still there: {:?}", scene.server.writes());
}

#[rstest]
#[case::named(ROLES)]
#[case::by_default("")]
#[case::by_an_id_that_is_not_the_address(BY_ID)]
#[tokio::test]
async fn a_resource_is_updated_where_it_was_read(#[case] metadata: &str) {
    let server = roles("ops");
    let ops = server.get("/roles/ops");
    let (scene, status) = Scene::start(
        server,
        &[("roles/_/metadata.yaml", metadata), ("roles/adm/resource.json", r#"{"name": "adm", "tier": 2}"#)],
    )
    .await;
    assert_eq!(scene.server.get("/roles/ops"), ops, "{:?}", scene.server.writes());
    let updated = scene.server.get("/roles/adm").unwrap()["tier"] == 2;
    assert!(updated || reports(&status, "/roles/adm"), "{:?}", scene.server.writes());
    assert!(scene.server.writes().iter().all(|write| write == "PUT /roles/adm 200"));
}

/// A server that answers a DELETE with 404 and keeps what it was about.
#[tokio::test]
async fn a_deletion_that_misses_is_not_a_success() {
    let server = ApiServer::start(&["/items"], |request, store| {
        if request.method == "DELETE" && store.mode.is_empty() {
            return Answer::missing();
        }
        request.rest(store, Ids::Stated("id"))
    });
    let files = [("items/a/resource.json", r#"{"id": "a"}"#), ("items/b/resource.json", r#"{"id": "b"}"#)];
    let scene = Scene::synced(server, &files).await;
    scene.git.remove("items/a");
    assert_reports(&scene.push().await, "/items/a");
    scene.server.mode("mended");
    scene.converges(2).await;
    scene.holds(&["/items/b"]);
}

/// Members that one request shows, and that have addresses of their own for everything else.
const SELECTED: &str = r#"
resource: {id: /name, alias: /name}
operations:
  get: {path: ., transforms: [{jqExpression: '.[] | select(.name == "{{/id}}")'}]}
  create: {method: PUT, path: "./{{/name}}"}
  update: {path: "./{{/name}}"}
  delete: {path: "./{{/name}}"}
"#;
/// Members that differ by a parameter of the query.
const ASKED_FOR: &str = r#"
resource: {id: /name, alias: /name}
operations:
  get: {path: /record, query: {name: "{{/id}}"}}
  create: {method: PUT, path: "./{{/name}}"}
  update: {path: "./{{/name}}"}
  delete: {path: "./{{/name}}"}
"#;

fn records() -> ApiServer {
    ApiServer::start(&["/records"], |request, store| match request.method.as_str() {
        "PUT" => {
            store.put(&request.path, request.body.clone());
            Answer::json(200, &request.body)
        }
        "GET" if request.path == "/record" => {
            let name = request.query.get("name").cloned().unwrap_or_default();
            let found = store.get(&format!("/records/{name}"));
            found.map_or_else(Answer::missing, |record| Answer::json(200, record))
        }
        _ => request.rest(store, Ids::Stated("name")),
    })
}

#[rstest]
#[tokio::test]
async fn members_that_are_read_from_one_path_are_pruned_each_by_itself(
    #[values(SELECTED, ASKED_FOR)] metadata: &str,
) {
    let record = |name: &str, ttl: u32| json!({"name": name, "ttl": ttl});
    let file = |name: &str| (format!("records/{name}/resource.json"), record(name, 60).to_string());
    let files: Vec<(String, String)> = ["www", "mail", "ftp"].into_iter().map(file).collect();
    let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    files.push(("records/_/metadata.yaml", metadata));
    let scene = Scene::synced(records(), &files).await;
    scene.server.put("/records/hand", record("hand", 5));
    scene.git.remove("records/mail");
    // Beside another one, which is read from the same path.
    scene.git.write("records/www/resource.json", record("www", 300).to_string());
    let status = scene.push().await;
    let held: Vec<(String, Value)> = scene.server.all().into_iter().collect();
    let expected = [("ftp", 60), ("hand", 5), ("www", 300)];
    assert_eq!(held, expected.map(|(name, ttl)| (format!("/records/{name}"), record(name, ttl))));
    assert_eq!(status.resource_stats.unwrap().pruned, 1);
    scene.converges(1).await;
}
