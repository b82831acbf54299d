//! Nothing to do means nothing is done.

use std::time::Duration;

use declarest_operator::crd::{ManagedServer, ResourceRepository, SyncPolicy};
use futures::StreamExt as _;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::{Value, json};

use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{Object, World, is_true};

/// Long enough for every reaction of a write upon a write to show.
const WATCHED: Duration = Duration::from_secs(4);

async fn version<K: Object>(world: &World, name: &str) -> String {
    world.api::<K>().get(name).await.unwrap().resource_version().unwrap()
}

async fn versions(world: &World) -> [String; 3] {
    [
        version::<ResourceRepository>(world, "repo").await,
        version::<ManagedServer>(world, "server").await,
        version::<SyncPolicy>(world, "policy").await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_world_is_left_in_peace() {
    let (mut world, git) = (World::start().await, GitRemote::new());
    git.write("shops/rio/resource.yaml", "id: rio\n").write("shops/rio/tills/t1/resource.yaml", "id: t1\n");
    git.commit("shops");
    git.push();
    let http = GitHttp::start(git.root(), None);
    let server = RestServer::start(Config { upsert: true, ..Config::default() }).unwrap();
    world.create_repository(&http.url("desired.git"), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    // The last status writes are still on their way through watches.
    let mut before = versions(&world).await;
    let unchanged = loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        match versions(&world).await {
            now if now == before => break now,
            now => before = now,
        }
    };
    let (before, fetches) = (unchanged, http.requests());
    server.reset_counts();
    tokio::time::sleep(WATCHED).await;
    assert_eq!(versions(&world).await, before, "something was written to Kubernetes");
    assert_eq!(http.requests(), fetches, "something was fetched");
    assert_eq!(server.counts().total(), 0, "{:?}", server.log());

    // A restart finds the world settled, too: nothing is due before the next interval.
    let exit = tokio::task::block_in_place(|| world.terminate());
    assert!(exit.success());
    world.launch().await;
    tokio::time::sleep(WATCHED).await;
    assert_eq!(server.counts().total(), 0, "{:?}", server.log());
}

/// How each write of the policy's status left it: the trigger, and whether a run was in progress.
async fn status_writes(world: &World, until: impl Fn(&[(String, bool)]) -> bool) -> Vec<(String, bool)> {
    let policies = world.api::<SyncPolicy>();
    let events = policies.watch(&WatchParams::default().timeout(120), "0").await.unwrap();
    let mut events = std::pin::pin!(events);
    let mut writes = Vec::new();
    while !until(&writes) {
        if let WatchEvent::Added(policy) | WatchEvent::Modified(policy) =
            events.next().await.unwrap().unwrap()
            && let Some(status) = policy.status
            // A new object has a status of the definition.
            && let Some(trigger) = status.last_trigger
        {
            writes.push((trigger, is_true(&status.conditions, "Reconciling")));
        }
    }
    writes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_writes_twice_and_a_check_that_finds_nothing_once() {
    let (world, git) = (World::start().await, GitRemote::new());
    git.write("shops/rio/resource.yaml", "id: rio\n");
    git.commit("shops");
    git.push();
    let server = RestServer::start(Config { upsert: true, ..Config::default() }).unwrap();
    let writes = status_writes(&world, |writes| writes.len() == 6);
    let create = async {
        world.create_repository(&git.file_url(), Value::Null).await;
        world.create_server(json!({"baseURL": server.url()})).await;
        world.fetched(&git.head()).await;
        world.server_reason("Ready").await;
        world.create_policy(json!({"syncInterval": "10s"})).await;
    };
    let (writes, ()) = tokio::join!(writes, create);
    let expected = [("InitialSync", true), ("InitialSync", false), ("DriftDue", true), ("DriftDue", false)];
    let again = [("DriftDue", false), ("DriftDue", false)];
    let expected = expected.into_iter().chain(again).map(|(trigger, runs)| (trigger.to_owned(), runs));
    assert_eq!(writes, expected.collect::<Vec<_>>());
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap();
    let of_policy = events.items.iter().filter(|event| {
        event.regarding.as_ref().is_some_and(|object| object.kind.as_deref() == Some("SyncPolicy"))
    });
    let reasons: Vec<_> = of_policy.filter_map(|event| event.reason.as_deref()).collect();
    assert_eq!(reasons, ["SyncSucceeded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_a_settled_scope_asks_once_for_each_collection() {
    let (world, git) = (World::start().await, GitRemote::new());
    for index in 0..20 {
        let body = json!({"id": format!("i{index}"), "size": index}).to_string();
        git.write(&format!("c{}/i{index}/resource.json", index % 2), body);
    }
    git.commit("all");
    git.push();
    let collections = vec!["/c0".to_owned(), "/c1".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"syncInterval": "10s"})).await;
    world.applied(&git.head()).await;
    // The first check proves what the lists show; the next ones rely on it.
    world.finished("DriftDue").await;
    server.reset_counts();
    world.eventually("a second check", async || (server.counts().total() >= 2).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.counts().iter().collect::<Vec<_>>(), [("GET", "/c0", 1), ("GET", "/c1", 1)]);

    server.put_by_hand("/c1/i7", json!({"id": "i7", "size": 0}));
    world
        .eventually("the drift to be corrected", async || {
            server.get("/c1/i7").filter(|found| found["size"] == 7)
        })
        .await;
}
