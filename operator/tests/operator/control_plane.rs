//! An API server in trouble: the operator waits and then continues, and nothing is written twice.

#![allow(clippy::print_stderr, reason = "figures")]

use std::time::{Duration, Instant};

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::faulty_api::{FaultyApi, Trouble};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::World;

/// A policy in its desired state, behind a proxy to the API server.
struct Scene {
    world: World,
    api: FaultyApi,
    git: GitRemote,
    server: RestServer,
}

impl Scene {
    async fn start(arguments: &[&str]) -> Self {
        let git = GitRemote::new();
        for id in 0..3 {
            git.write(&format!("items/i{id}/resource.json"), format!(r#"{{"name": "i{id}", "size": 1}}"#));
        }
        git.write("items/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
        let revision = git.commit("items");
        git.push();
        let items = vec!["/items".to_owned()];
        let config = Config { collections: items.clone(), server_ids: items, ..Config::default() };
        let server = RestServer::start(config).unwrap();
        let (mut world, api) = World::start_behind(arguments).await;
        world.patience *= 3;
        world.create_repository(&git.file_url(), Value::Null).await;
        world.create_server(json!({"baseURL": server.url()})).await;
        world.create_policy(json!({"syncInterval": "10s"})).await;
        world.applied(&revision).await;
        Self { world, api, git, server }
    }

    /// Pushes a further item, and returns the revision.
    fn push(&self, name: &str) -> String {
        self.git.write(&format!("items/{name}/resource.json"), format!(r#"{{"name": "{name}", "size": 1}}"#));
        let revision = self.git.commit(name);
        self.git.push();
        revision
    }

    /// Waits until the revision is applied, and prints the figures of docs/reliability-tests.md.
    async fn is_applied(&self, revision: &str) {
        let started = Instant::now();
        self.world.notify().await;
        self.world.applied(revision).await;
        assert_eq!(self.server.duplicates(), []);
        eprintln!("applied after {:.1?}; {} requests failed", started.elapsed(), self.api.failed());
    }
}

#[rstest]
#[case::throttled(Trouble::Status(429))]
#[case::failing(Trouble::Status(500))]
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_fail_are_repeated(#[case] trouble: Trouble) {
    let scene = Scene::start(&[]).await;
    scene.api.set(trouble);
    let revision = scene.push("during");
    scene.is_applied(&revision).await;
    assert!(scene.api.failed() > 0);
    scene.api.set(Trouble::None);
    let revision = scene.push("after");
    scene.is_applied(&revision).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_end_are_started_again() {
    let scene = Scene::start(&[]).await;
    for round in 0..5 {
        scene.api.set(Trouble::None);
        let revision = scene.push(&format!("round-{round}"));
        scene.is_applied(&revision).await;
    }
}

#[rstest]
#[case::restart(Trouble::Restart)]
#[case::slow_store(Trouble::Silence)]
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_outlives_an_api_server_that_does_not_answer(#[case] trouble: Trouble) {
    let scene = Scene::start(&[]).await;
    scene.api.set(trouble);
    let revision = scene.push("during");
    scene.world.notify().await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    scene.api.set(Trouble::None);
    scene.is_applied(&revision).await;
}

/// The leader loses its Lease while a create is under way: it ends, and its successor creates nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_lost_in_a_run_ends_the_operator() {
    let mut scene = Scene::start(&["--leader-elect"]).await;
    let held = scene.server.hold(Matcher::new("POST", "/items"));
    let revision = scene.push("held");
    scene.world.notify().await;
    scene.world.eventually("the create is under way", async || (scene.server.open() > 0).then_some(())).await;
    scene.api.set(Trouble::Silence);
    assert!(!scene.world.ended().await.success(), "{}", scene.world.log_tail());
    drop(held);
    scene.api.set(Trouble::None);
    scene.world.launch().await;
    scene.is_applied(&revision).await;
}
