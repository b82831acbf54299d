//! `kill -9` in the middle of the first full sync, and operators at the same time.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
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
