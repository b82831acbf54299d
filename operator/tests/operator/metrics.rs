//! The metrics that alerts use.

use std::time::Duration;

use declarest_operator::crd::{ManagedServer, SyncPolicyStatus};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::World;

pub const METRICS: &str = "--metrics-bind-address=127.0.0.1:0";

/// Returns all series.
pub async fn scrape(world: &World) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let address = world.listener("listening for metrics").await;
    let answer = client.get(format!("http://{address}/metrics")).send().await.unwrap();
    answer.text().await.unwrap()
}

/// Waits until a series has this value.
pub async fn series(world: &World, series: &str, wanted: impl Fn(f64) -> bool) {
    let look = async || {
        let text = scrape(world).await;
        let value =
            text.lines().find_map(|line| line.strip_prefix("declarest_operator_")?.strip_prefix(series));
        wanted(value?.trim().parse().ok()?).then_some(())
    };
    world.eventually(series, look).await;
}

fn last_success(status: &SyncPolicyStatus) -> f64 {
    let time = status.last_successful_sync_time.as_ref().unwrap();
    time.0.as_duration().as_secs_f64()
}

#[tokio::test]
async fn the_time_of_the_last_success_outlives_the_process_and_counts_empty_runs() {
    let git = GitRemote::new();
    git.write("items/i1/resource.json", r#"{"id": "i1"}"#);
    let first = git.commit("first");
    git.push();
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    let mut world = World::start_with(&[METRICS]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"source": {"path": "/items"}})).await;
    let at = last_success(&world.applied(&first).await);
    let namespace = &world.namespace;
    let gauge =
        format!(r#"syncpolicy_last_success_timestamp_seconds{{name="policy",namespace="{namespace}"}}"#);
    series(&world, &gauge, |value| value >= at && value < at + 1.0).await;

    world.kill();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    world.launch().await;
    series(&world, &gauge, |value| value >= at && value < at + 1.0).await;

    git.write("elsewhere/e1/resource.json", "{}");
    let second = git.commit("not in scope");
    git.push();
    world.notify().await;
    let later = last_success(&world.applied(&second).await);
    assert!(later > at);
    series(&world, &gauge, |value| value >= later && value < later + 1.0).await;
}

#[tokio::test]
async fn a_poll_that_fails_before_its_fetch_is_counted() {
    let world = World::start_with(&[METRICS]).await;
    let token = json!({"tokenRef": {"name": "absent", "key": "token"}});
    world.create_repository("https://git.example.test/desired.git", token).await;
    world.repository_reason("DependencyInvalid").await;
    let namespace = &world.namespace;
    let counter =
        format!(r#"resource_repository_poll_total{{name="repo",namespace="{namespace}",result="failure"}}"#);
    series(&world, &counter, |value| value >= 1.0).await;
}

#[tokio::test]
async fn each_controller_shows_the_length_of_its_queue() {
    let world = World::start_with(&[METRICS]).await;
    world.create_server(json!({"baseURL": "https://api.example.test"})).await;
    world.server_reason("Ready").await;
    for kind in ["ResourceRepository", "ManagedServer", "SecretStore", "SyncPolicy"] {
        series(&world, &format!(r#"workqueue_depth{{controller="{kind}"}}"#), |value| value == 0.0).await;
    }
}

/// An alert on this series would never resolve.
#[tokio::test]
async fn a_condition_that_is_removed_has_no_series() {
    let server = RestServer::start(Config::default()).unwrap();
    let world = World::start_with(&[METRICS]).await;
    world.create_server(json!({"baseURL": server.url(), "healthCheck": "/absent"})).await;
    let namespace = &world.namespace;
    let of_server =
        format!(r#"resource_condition{{kind="ManagedServer",name="server",namespace="{namespace}""#);
    let reachable = format!(r#"{of_server},status="False",type="Reachable"}}"#);
    series(&world, &reachable, |value| value > 0.0).await;
    world.patch::<ManagedServer>("server", json!({"spec": {"http": {"healthCheck": null}}})).await;
    let removed = || async { (!scrape(&world).await.contains(&reachable)).then_some(()) };
    world.eventually("the series is removed", removed).await;
    series(&world, &format!(r#"{of_server},status="True",type="Ready"}}"#), |value| value > 0.0).await;
}

/// Idle clients give their connections back after a few seconds.
#[tokio::test]
async fn idle_clients_do_not_keep_others_out() {
    let world = World::start_with(&[METRICS]).await;
    let address = world.listener("listening for metrics").await;
    let idle = join_all((0..64).map(|_| TcpStream::connect(&address))).await;
    assert!(idle.iter().all(Result::is_ok), "{idle:?}");
    let text = tokio::time::timeout(Duration::from_secs(30), scrape(&world)).await.unwrap();
    assert!(text.contains("declarest_operator_"), "{text}");
}

/// A world with a policy of one item.
async fn one_item(server: &RestServer, method: &str) -> (World, GitRemote) {
    let git = GitRemote::new();
    git.write("items/i1/resource.json", r#"{"id": "i1"}"#);
    git.write("items/_/metadata.yaml", format!("operations: {{get: {{method: {method}}}}}\n"));
    git.commit("first");
    git.push();
    let world = World::start_with(&[METRICS]).await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"source": {"path": "/items"}})).await;
    (world, git)
}

/// The author of a file chooses the method, and each value of a label is a series that stays.
#[tokio::test]
async fn unusual_methods_share_a_label() {
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    let (world, _git) = one_item(&server, r#""X{{/id}}""#).await;
    world.policy("a run ends", |status| status.resource_stats.is_some()).await;
    let text = scrape(&world).await;
    let of_requests = |label: &str| {
        text.lines().any(|line| {
            line.contains("managed_server_request_duration_seconds_count") && line.contains(label)
        })
    };
    assert!(server.log().iter().any(|request| request.method == "XI1"), "{:?}", server.log());
    assert!(of_requests(r#"method="other""#) && !text.contains("XI1"), "{text}");
}

/// The request ends after the server was deleted.
#[tokio::test]
async fn a_deleted_server_has_no_series() {
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    let held = server.hold(Matcher::any());
    let (world, _git) = one_item(&server, "GET").await;
    let sent = async || (server.open() > 0).then_some(());
    world.eventually("a request is sent", sent).await;
    world.delete::<ManagedServer>("server").await;
    let is_shown = |text: &str| {
        text.lines().any(|line| line.contains("_managed_server_") && line.contains("\"server\""))
    };
    let gone = async || (!is_shown(&scrape(&world).await)).then_some(());
    world.eventually("the series are removed", gone).await;
    drop(held);
    world.policy_reason("DependencyInvalid").await;
    let text = scrape(&world).await;
    assert!(!is_shown(&text), "{text}");
}
