//! Commits that a policy reads in mode observe do not belong to it.

use std::fs;

use declarest_operator::crd::SyncPolicy;
use declarest_operator::crd::sync_policy::RunOutcome;
use serde_json::{Value, json};

use super::pruning::{Scene, scene};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::World;

#[tokio::test]
async fn what_was_only_observed_is_not_pruned() {
    let git = GitRemote::new();
    for name in ["a", "b", "c", "d"] {
        git.write(&format!("items/{name}/resource.json"), json!({"id": name}).to_string());
    }
    git.commit("first");
    git.push();
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let server = RestServer::start(config).unwrap();
    server.put_by_hand("/items/a", json!({"id": "a", "owner": "another client"}));
    server.put_by_hand("/items/b", json!({"id": "b", "owner": "another client"}));
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({"mode": "observe", "sync": {"prune": true}})).await;
    let scene = Scene { world, git, server };
    scene.ended(&scene.git.head(), RunOutcome::Succeeded).await;
    // Not of the policy: declared while it observed.
    scene.git.remove("items/a");
    let revision = scene.push("do not manage a").await;
    scene.ended(&revision, RunOutcome::Succeeded).await;
    scene.git.remove("items/b");
    let revision = scene.push("do not manage b").await;
    scene.ended(&revision, RunOutcome::Succeeded).await;
    let apply = json!({"spec": {"mode": "apply"}});
    scene.world.patch::<SyncPolicy>("policy", apply.clone()).await;
    scene.world.applied(&revision).await;
    // Of the policy: applied before it observes again.
    scene.world.patch::<SyncPolicy>("policy", json!({"spec": {"mode": "observe"}})).await;
    scene.git.remove("items/c").write("items/e/resource.json", r#"{"id": "e"}"#);
    let revision = scene.push("without c, with e").await;
    scene.ended(&revision, RunOutcome::Succeeded).await;
    scene.server.put_by_hand("/items/e", json!({"id": "e", "owner": "another client"}));
    scene.git.remove("items/e");
    let revision = scene.push("do not manage e").await;
    scene.ended(&revision, RunOutcome::Succeeded).await;
    scene.world.patch::<SyncPolicy>("policy", apply).await;
    scene.world.applied(&revision).await;
    scene.full_run().await;
    assert_eq!(scene.deleted(), ["/items/c"]);
}

/// The history is rewritten while the policy observes, and the mirror is lost, so that no applied commit is left.
#[tokio::test]
async fn a_commit_that_was_only_observed_does_not_replace_a_lost_base() {
    let files = ["a", "b", "c"].map(|name| (format!("items/{name}/resource.json"), json!({"id": name})));
    let files = files.map(|(file, payload)| (file, payload.to_string()));
    let mut scene = scene(&files.each_ref().map(|(file, payload)| (file.as_str(), payload.as_str()))).await;
    scene.world.patch::<SyncPolicy>("policy", json!({"spec": {"mode": "observe"}})).await;
    scene.world.policy("it observes", |status| status.last_run_observed).await;
    scene.world.kill();
    fs::remove_dir_all(scene.world.state().join("repos")).unwrap();
    scene.server.put_by_hand("/items/x", json!({"id": "x", "owner": "another client"}));
    scene.git.restart_history();
    scene.git.write("items/x/resource.json", r#"{"id": "x"}"#);
    let first = scene.git.commit("a new history, with x");
    scene.git.force_push();
    scene.git.collect_garbage();
    scene.world.launch().await;
    scene.ended(&first, RunOutcome::Succeeded).await;
    scene.git.remove("items/x");
    let revision = scene.push("do not manage x").await;
    scene.ended(&revision, RunOutcome::Succeeded).await;
    scene.world.patch::<SyncPolicy>("policy", json!({"spec": {"mode": "apply"}})).await;
    scene.world.applied(&revision).await;
    scene.full_run().await;
    assert!(scene.server.get("/items/x").is_some());
}

#[tokio::test]
async fn an_equal_resource_is_not_drift_although_runs_are_forced() {
    let scene = scene(&[("items/a/resource.json", r#"{"id": "a"}"#)]).await;
    let observe = json!({"spec": {"mode": "observe", "sync": {"prune": true, "force": true}}});
    scene.world.patch::<SyncPolicy>("policy", observe).await;
    let status = scene.world.policy("it observes", |status| {
        status.last_run_observed && status.last_run_outcome == Some(RunOutcome::Succeeded)
    });
    let status = status.await;
    assert_eq!(status.resource_stats.unwrap().drifted, 0, "{:?}", status.drifted_resources);
}
