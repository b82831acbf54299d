//! Work that ends because it is no longer wanted has not failed.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use declarest_operator::crd::{ManagedServer, ResourceRepository, SyncPolicy};
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::{World, condition, is_true};

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_the_end_of_the_operator_cancels_has_not_failed() {
    // Connections wait in the queue of the system, and are never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/desired.git", silent.local_addr().unwrap());
    let mut world = World::start().await;
    world.create_repository(&url, Value::Null).await;
    let (_connection, _) = tokio::task::block_in_place(|| silent.accept().unwrap());
    assert!(tokio::task::block_in_place(|| world.terminate()).success());
    assert!(!world.log().contains("FetchFailed"), "{}", world.log_tail());
    assert!(!world.log().contains("reconcile failed"), "{}", world.log_tail());
}

/// The fetch would take five minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_from_a_silent_remote_is_shown_and_ends_when_the_url_is_corrected() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/desired.git", silent.local_addr().unwrap());
    let git = GitRemote::new();
    let revision = git.commit("first");
    git.push();
    let world = World::start().await;
    world.create_repository(&url, Value::Null).await;
    let repository =
        world.repository("the fetch is shown", |status| is_true(&status.conditions, "Reconciling")).await;
    let conditions = repository.status.unwrap().conditions;
    assert_eq!(condition(&conditions, "Reconciling").message, format!("fetching branch main of {url}"));
    world.patch::<ResourceRepository>("repo", json!({"spec": {"git": {"url": git.file_url()}}})).await;
    world.fetched(&revision).await;
    assert!(!world.log().contains("FetchFailed"), "{}", world.log_tail());
}

/// A policy whose first run takes a while, when that run has begun.
async fn running() -> (World, GitRemote, RestServer) {
    let git = GitRemote::new();
    for index in 0..60 {
        git.write(&format!("items/i{index}/resource.json"), format!(r#"{{"id": "i{index}"}}"#));
    }
    git.commit("items");
    git.push();
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    server.latency(Duration::from_millis(100));
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    let throttling = json!({"maxConcurrentRequests": 1});
    world.create_server(json!({"baseURL": server.url(), "requestThrottling": throttling})).await;
    world.create_policy(json!({})).await;
    let begun = || async { (server.writes().len() > 1).then_some(()) };
    world.eventually("the run writes", begun).await;
    (world, git, server)
}

#[tokio::test]
async fn a_run_that_a_change_of_its_policy_cancels_has_not_failed() {
    let (world, git, server) = running().await;
    world.patch::<SyncPolicy>("policy", json!({"spec": {"suspend": true}})).await;
    let (status, _) = world.policy_reason("Suspended").await;
    assert_eq!(status.consecutive_failures, 0);
    assert!(!is_true(&status.conditions, "Stalled"));
    let left = server.resources().len();
    assert!(left < 60, "the run ended by itself");
    assert!(!world.log().contains("ReconcileFailed"), "{}", world.log_tail());
    // It continues when it is wanted again.
    server.latency(Duration::ZERO);
    world.patch::<SyncPolicy>("policy", json!({"spec": {"suspend": false}})).await;
    world.applied(&git.head()).await;
    assert_eq!(server.resources().len(), 60);
}

/// How the server of a run changes.
enum Change {
    Address,
    Deletion,
}

#[rstest]
#[case::address(Change::Address)]
#[case::deletion(Change::Deletion)]
#[tokio::test]
async fn a_run_ends_if_its_server_is_changed_or_deleted(#[case] change: Change) {
    let (world, git, server) = running().await;
    let right =
        RestServer::start(Config { collections: vec!["/items".to_owned()], ..Config::default() }).unwrap();
    match change {
        Change::Address => {
            let address = json!({"spec": {"http": {"baseURL": right.url(), "requestThrottling": null}}});
            world.patch::<ManagedServer>("server", address).await;
            world.applied(&git.head()).await;
            assert_eq!(right.resources().len(), 60);
        }
        Change::Deletion => {
            world.delete::<ManagedServer>("server").await;
            let (status, _) = world.policy_reason("DependencyInvalid").await;
            assert_eq!(status.consecutive_failures, 0);
        }
    }
    assert!(server.resources().len() < 60, "the run ended by itself");
    assert!(!world.log().contains("ReconcileFailed"), "{}", world.log_tail());
}

/// The new policy has the name and the generation of the deleted one.
#[tokio::test]
async fn the_run_of_a_policy_that_is_deleted_and_created_again_ends() {
    let (world, _git, server) = running().await;
    let api = world.api::<SyncPolicy>();
    let SyncPolicy { mut spec, metadata, .. } = api.get("policy").await.unwrap();
    spec.suspend = true;
    let metadata = ObjectMeta { name: metadata.name, namespace: metadata.namespace, ..ObjectMeta::default() };
    api.delete("policy", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &SyncPolicy { metadata, spec, status: None }).await.unwrap();
    world.policy_reason("Suspended").await;
    assert!(server.resources().len() < 60, "the run ended by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_the_end_of_the_operator_cancels_has_not_failed() {
    let (mut world, git, server) = running().await;
    assert!(tokio::task::block_in_place(|| world.terminate()).success());
    assert!(!world.log().contains("ReconcileFailed"), "{}", world.log_tail());
    server.latency(Duration::ZERO);
    world.launch().await;
    let status = world.applied(&git.head()).await;
    assert_eq!((status.consecutive_failures, server.resources().len()), (0, 60));
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let (mut world, _git, server) = running().await;
    // A request in flight delays the end after the first signal.
    let _held = server.hold(Matcher::any());
    let in_flight = || async { (server.open() > 0).then_some(()) };
    world.eventually("a request is in flight", in_flight).await;
    world.signal("-TERM");
    let stopping =
        || async { world.log().contains("a second signal ends the process at once").then_some(()) };
    world.eventually("the first signal is handled", stopping).await;
    world.signal("-TERM");
    let started = Instant::now();
    assert_eq!(world.ended().await.code(), Some(1));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}
