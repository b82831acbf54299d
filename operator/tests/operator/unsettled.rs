//! A server that does not keep what it is sent is reported, and no longer written.

use declarest_operator::crd::sync_policy::RunOutcome;
use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, ready};

/// Asks for a full run and waits for its end; returns the number of writes until then.
async fn run(world: &World, server: &RestServer) -> usize {
    let before = world.policy("there is a policy", |_| true).await.last_handled_sync_request;
    world.request_sync().await;
    world
        .policy("the request is handled", |status| {
            status.last_handled_sync_request != before
                && status.last_run_outcome.is_some_and(|outcome| outcome != RunOutcome::Failed)
        })
        .await;
    server.counts().method("PUT")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_converges_is_left_alone_until_something_changes() {
    let (mut world, git) = (World::start().await, GitRemote::new());
    git.write("items/a/resource.json", r#"{"id": "a", "version": 0}"#);
    git.write("items/b/resource.json", r#"{"id": "b"}"#);
    git.write("items/_/metadata.yaml", "operations: {compare: {transforms: []}}\n");
    git.commit("items");
    git.push();
    let server = RestServer::start(Config {
        collections: vec!["/items".to_owned()],
        versioned: vec!["/items".to_owned()],
        ..Config::default()
    })
    .unwrap();
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"syncInterval": "1h", "source": {"path": "/items/a"}})).await;
    world.applied(&git.head()).await;

    // The create itself was completed by an update, since its answer showed another version.
    for writes in 2..=4 {
        assert_eq!(run(&world, &server).await, writes);
        if writes == 3 {
            let (status, message) = world.policy_reason("NeverConverges").await;
            assert!(message.contains("at /version after each of 2 updates; if the server"), "{message}");
            assert_eq!(status.resource_stats.map(|stats| (stats.updated, stats.failed)), Some((0, 1)));
        }
    }
    let (status, message) = world.policy_reason("NeverConverges").await;
    assert!(
        message.starts_with("1 resource does not converge: /items/a: differs again at /version"),
        "{message}"
    );
    let [entry] = &status.unsettled_resources[..] else { panic!("{status:?}") };
    assert_eq!((entry.path.as_str(), entry.writes), ("/items/a", 3));
    assert!(entry.message.contains("operations.compare.transforms in items/_/metadata.yaml"), "{entry:?}");
    assert_eq!(status.failed_resources, [], "there is nothing to retry soon");
    assert_eq!(ready(&status.conditions).status, "False");

    let exit = tokio::task::block_in_place(|| world.terminate());
    assert!(exit.success());
    world.launch().await;
    assert_eq!(run(&world, &server).await, 4, "a new process knows of it");
    world.policy_reason("NeverConverges").await;

    let rule = "operations: {compare: {transforms: [{excludeAttributes: [/version]}]}}\n";
    git.write("items/_/metadata.yaml", rule);
    let revision = git.commit("the server counts versions itself");
    git.push();
    world.notify().await;
    let status = world.applied(&revision).await;
    assert_eq!(status.unsettled_resources, []);
    assert_eq!(server.counts().method("PUT"), 4);
}

/// The run of the commit has nothing to read, and the server keeps the resource.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_is_no_longer_declared_is_not_reported() {
    let (world, git) = (World::start().await, GitRemote::new());
    git.write("items/a/resource.json", r#"{"id": "a", "version": 0}"#);
    git.write("shops/rio/resource.json", r#"{"id": "rio"}"#);
    git.commit("items and shops");
    git.push();
    let server = RestServer::start(Config {
        collections: vec!["/items".to_owned(), "/shops".to_owned()],
        versioned: vec!["/items".to_owned()],
        ..Config::default()
    })
    .unwrap();
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world
        .create_policy(json!({"syncInterval": "1h", "source": {"path": "/"}, "sync": {"prune": false}}))
        .await;
    world.applied(&git.head()).await;
    for _ in 0..2 {
        run(&world, &server).await;
    }
    world.policy_reason("NeverConverges").await;

    git.remove("items/a");
    let revision = git.commit("the item is not declared");
    git.push();
    world.notify().await;
    let status = world.applied(&revision).await;
    assert_eq!((status.unsettled_resources, ready(&status.conditions).status.as_str()), (vec![], "True"));
    assert!(server.get("/items/a").is_some());
}
