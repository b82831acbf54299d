//! `kill -9` in the middle of the first full sync, and operators at the same time.

use std::process::Command;
use std::time::Duration;

use declarest_operator::crd::SyncPolicyStatus;
use declarest_operator::crd::sync_policy::RunOutcome;
use serde_json::{Value, json};

use super::pruning::{Scene, scene};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::World;

const KILLS: u64 = 20;
const RESOURCES: usize = 120;

#[tokio::test(flavor = "multi_thread")]
async fn killed_twenty_times_it_converges_without_duplicates_or_losses() {
    let git = GitRemote::new();
    for index in 0..RESOURCES / 2 {
        git.write(&format!("shops/s{index}/resource.json"), format!(r#"{{"id": "s{index}"}}"#));
        git.write(&format!("orders/o{index}/resource.json"), format!(r#"{{"name": "o{index}"}}"#));
    }
    // A kill may leave any number of entries, also one that could be the size of a page.
    git.write("orders/_/metadata.yaml", "operations: {list: {pagination: {style: none}}}\n");
    git.commit("all");
    git.push();
    let server = RestServer::start(Config {
        collections: vec!["/shops".to_owned(), "/orders".to_owned()],
        server_ids: vec!["/orders".to_owned()],
        ..Config::default()
    })
    .unwrap();
    // Slow enough that kills hit creations, and not only the time before or after them.
    server.latency(Duration::from_millis(25));
    let mut world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world
        .create_server(json!({"baseURL": server.url(), "requestThrottling": {"maxConcurrentRequests": 4}}))
        .await;
    world.create_policy(json!({})).await;
    let mut interrupted = 0;
    for kill in 0..KILLS {
        let (before, requests) = (server.resources().len(), server.counts().total());
        // Waits for work to begin, then hits a point that differs each time.
        world
            .eventually("the operator works on the server", || async {
                (server.counts().total() > requests || before == RESOURCES).then_some(())
            })
            .await;
        // 613 is prime to 900, so the points spread over the whole run without repeating.
        tokio::time::sleep(Duration::from_millis(613 * (kill + 1) % 900)).await;
        world.kill();
        let created = server.resources().len();
        if created > before && created < RESOURCES {
            interrupted += 1;
        }
        world.launch().await;
    }
    let status = world.applied(&git.head()).await;
    assert_eq!(status.resource_stats.unwrap().failed, 0);
    assert!(interrupted > 0, "no kill hit the middle of the creations");
    assert_eq!(server.duplicates(), []);
    let resources = server.resources();
    assert_eq!(resources.len(), RESOURCES, "something was lost or created twice");
    let creations = server
        .writes()
        .iter()
        .filter(|request| request.method == "POST" && request.status == Some(201))
        .count();
    assert!(creations <= RESOURCES, "{creations} creations");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_directory_has_one_operator() {
    let mut world = World::cold(&[], []);
    world.launch().await;
    let mut second = Command::new(env!("CARGO_BIN_EXE_declarest-operator"));
    second.arg("standalone").arg("--manifests").arg(world.state().with_file_name("manifests"));
    second.arg("--state-dir").arg(world.state());
    let output = tokio::task::spawn_blocking(move || second.output().unwrap()).await.unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{log}");
    let expected = format!("cannot lock {}: another operator uses it; ", world.state().display());
    assert!(log.contains(&expected), "{log}");
    // A crash does not leave the lock.
    world.kill();
    world.launch().await;
}

/// A force-push leads back to the applied commit after a run that was aborted, and the run that corrects it is killed.
#[tokio::test]
async fn a_killed_run_that_corrects_an_aborted_one_is_repeated() {
    let file = |index: usize| format!("items/i{index}/resource.json");
    let payload = |index: usize, size: usize| json!({"id": format!("i{index}"), "size": size}).to_string();
    let files: Vec<_> = (0..9).map(|index| (file(index), payload(index, 0))).collect();
    let files: Vec<_> = files.iter().map(|(file, payload)| (&**file, &**payload)).collect();
    let mut scene = scene(&files).await;
    let applied = scene.git.head();
    let sizes = |scene: &Scene| -> Vec<Value> {
        (0..9).map(|index| scene.server.get(&format!("/items/i{index}")).unwrap()["size"].clone()).collect()
    };
    // The first run is aborted.
    let held = scene.server.hold(Matcher::new("PUT", "/items/i8"));
    for index in 0..9 {
        scene.git.write(&file(index), payload(index, 1));
    }
    scene.push("other sizes").await;
    let written = async || (sizes(&scene).iter().filter(|size| **size == 1).count() == 8).then_some(());
    scene.world.eventually("the others are written", written).await;
    scene.git.reset_to(&applied);
    scene.git.force_push();
    scene.world.notify().await;
    scene.world.fetched(&applied).await;
    scene.world.kill();
    drop(held);
    // The run that corrects it is killed before its first write.
    let held = scene.server.hold(Matcher::method("PUT"));
    scene.world.launch().await;
    let begun = |status: &SyncPolicyStatus| status.last_attempted_repo_revision.as_ref() == Some(&applied);
    scene.world.policy("the run at the applied commit begins", begun).await;
    let writes = async || (scene.server.open() > 0).then_some(());
    scene.world.eventually("it writes", writes).await;
    scene.world.kill();
    drop(held);
    scene.world.launch().await;
    scene.ended(&applied, RunOutcome::Succeeded).await;
    assert_eq!(sizes(&scene), [0; 9]);
}

/// A new process does not know yet which resources refer to others.
#[tokio::test]
async fn a_referenced_resource_is_not_deleted_after_a_restart() {
    let reference = r#"{"id": "y", "of": "{{ref \"/items/x\" \"/size\"}}"}"#;
    let mut scene = scene(&[
        ("items/x/resource.json", r#"{"id": "x", "size": 3}"#),
        ("items/y/resource.json", reference),
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    scene.world.kill();
    scene.world.launch().await;
    scene.git.remove("items/x");
    scene.push("remove x").await;
    let (_, message) = scene.world.policy_reason("PartialFailure").await;
    assert!(message.contains("/items/y refers to it; remove the reference first"), "{message}");
    assert!(scene.server.get("/items/x").is_some());
}
