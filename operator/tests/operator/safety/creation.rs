//! When something may be created, and that it is created once.

use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::{Scene, assert_reports, outcome, reports, succeeded};
use crate::support::api_server::{Answer, ApiServer, Ids};
use crate::support::git_remote::GitRemote;
use crate::support::world::World;

const NAMES: (&str, &str) = ("issues/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
const ZETA: (&str, &str) = ("issues/zeta/resource.json", r#"{"name": "zeta"}"#);

/// A gateway gives up, while the server behind it is still at work.
#[tokio::test]
async fn a_create_that_a_gateway_gave_up_on_is_not_sent_again() {
    let server = ApiServer::start(&["/issues"], |request, store| {
        if request.method == "POST" && store.mode == "slow" {
            return Answer::empty(504);
        }
        request.rest(store, Ids::Given)
    });
    server.mode("slow");
    let (scene, status) = Scene::start(server, &[NAMES, ZETA]).await;
    assert_eq!(scene.server.writes(), ["POST /issues 504"]);
    assert_reports(&status, "/issues/zeta");
    // At once, the server may still be at it.
    let status = scene.full_run().await;
    assert_eq!(scene.server.writes(), ["POST /issues 504"]);
    assert_reports(&status, "/issues/zeta");
    scene.server.put("/issues/n7", json!({"id": "n7", "name": "zeta"}));
    scene.server.mode("");
    // A run may wait longer before it looks; it never sends the create once more.
    let status = scene.full_run().await;
    assert!(succeeded(&status) || reports(&status, "/issues/zeta"), "{}", outcome(&status));
    assert_eq!(scene.server.writes(), ["POST /issues 504"]);
    scene.holds(&["/issues/n7"]);
}

const ANA: (&str, &str) = ("users/ana/resource.json", r#"{"username": "ana", "mail": "ana@example.test"}"#);

#[tokio::test]
async fn without_metadata_a_user_is_created_once_and_updated_by_its_id() {
    let scene = Scene::start(ApiServer::rest(&["/users"], Ids::Given), &[ANA]).await.0;
    scene.full_run().await;
    scene.converges(1).await;
    assert_eq!(scene.server.writes(), ["POST /users 201"]);
    scene.git.write(ANA.0, r#"{"username": "ana", "mail": "other@example.test"}"#);
    scene.push().await;
    scene.converges(1).await;
    assert_eq!(scene.server.writes(), ["POST /users 201", "PUT /users/n7 200"]);
    scene.holds(&["/users/n7"]);
}

/// The answer of a create says which id the server gave: in its body, or where it is.
#[rstest]
#[case::body(|answer| answer)]
#[case::location(Answer::without_body)]
#[tokio::test]
async fn the_id_in_the_answer_of_a_create_is_used_at_once(#[case] shown: fn(Answer) -> Answer) {
    let server = ApiServer::start(&["/users", "/users/*/keys"], move |request, store| {
        if request.is("POST", "/users") {
            return shown(request.create(store, Ids::Given));
        }
        request.rest(store, if request.segments().len() > 2 { Ids::Stated("id") } else { Ids::Given })
    });
    let key = ("users/ana/keys/k1/resource.json", r#"{"id": "k1"}"#);
    let scene = Scene::synced(server, &[ANA, key]).await;
    scene.holds(&["/users/n7", "/users/n7/keys/k1"]);
    scene.converges(1).await;
    assert_eq!(scene.server.writes(), ["POST /users 201", "POST /users/n7/keys 201"]);
}

const PERMISSIONS: &str = "operations: {create: {method: PUT, path: \"./{{/id}}\"}}\n";

/// Where a create is a PUT to the address that is read, that address says all.
#[rstest]
#[tokio::test]
async fn a_put_that_creates_needs_no_list(#[values(403, 404, 405, 406, 500)] list: u16) {
    let server = put_server(move || Answer::json(list, &json!({"error": "no such list"})));
    put_is_enough(server).await;
}

#[tokio::test]
async fn a_put_that_creates_needs_no_list_where_there_is_a_page_for_people() {
    put_is_enough(put_server(|| Answer::html(200))).await;
}

fn put_server(list: impl Fn() -> Answer + Send + Sync + 'static) -> ApiServer {
    ApiServer::start(&[], move |request, store| match request.method.as_str() {
        "GET" if request.path == "/permissions/v" => list(),
        "PUT" => {
            store.put(&request.path, request.body.clone());
            Answer::empty(201)
        }
        _ => request.rest(store, Ids::Given),
    })
}

async fn put_is_enough(server: ApiServer) {
    let permission = ("permissions/v/ana/resource.json", r#"{"configure": ".*"}"#);
    let (scene, _) =
        Scene::start(server, &[("permissions/_/_/metadata.yaml", PERMISSIONS), permission]).await;
    scene.converges(1).await;
    assert_eq!(scene.server.writes(), ["PUT /permissions/v/ana 201"]);
    assert_eq!(scene.server.get("/permissions/v/ana"), Some(json!({"configure": ".*"})));
}

/// More resources than one run has the time for.
#[tokio::test]
async fn a_scope_that_is_larger_than_a_run_gets_done_bit_by_bit() {
    const ITEMS: usize = 40;
    let server = ApiServer::start(&["/items"], |request, store| {
        let answer = if request.is("GET", "/items") {
            Answer::missing()
        } else {
            request.rest(store, Ids::Stated("id"))
        };
        answer.after(Duration::from_millis(50))
    });
    let git = GitRemote::new();
    for index in 0..ITEMS {
        git.write(&format!("items/i{index:02}/resource.json"), format!(r#"{{"id": "i{index:02}"}}"#));
    }
    git.commit("many");
    git.push();
    // To read all of them alone takes longer than a run may take.
    let world = World::start_with(&["--sync-timeout=1s"]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let throttling = json!({"maxConcurrentRequests": 1});
    world.create_server(json!({"baseURL": server.url(), "requestThrottling": throttling})).await;
    world.create_policy(json!({})).await;
    let ended = || world.log().matches("sync finished").count();
    // Two runs create some, although a busy machine may spend a run on reads.
    let (mut held, mut creating, mut runs) = (0, 0, 0);
    while creating < 2 {
        world.eventually("a run has ended", async || (ended() > runs).then_some(())).await;
        runs = ended();
        assert!(runs < 60 && held < ITEMS, "after {runs} runs, of which {creating} created some: {held}");
        let now = server.paths().len();
        creating += usize::from(now > held);
        held = now;
        world.request_sync().await;
    }
}
