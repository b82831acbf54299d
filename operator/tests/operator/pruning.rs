//! What may be deleted, and above all what may not.

use declarest_operator::crd::sync_policy::RunKind;
use serde_json::{Value, json};

use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::World;

struct Scene {
    world: World,
    git: GitRemote,
    server: RestServer,
}

impl Scene {
    async fn push(&self, message: &str) -> String {
        let revision = self.git.commit(message);
        self.git.push();
        self.world.notify().await;
        revision
    }
}

async fn scene(files: &[(&str, &str)]) -> Scene {
    let git = GitRemote::new();
    for (path, content) in files {
        git.write(path, content);
    }
    git.commit("first");
    git.push();
    let collections = vec!["/items".to_owned(), "/items/*/parts".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    Scene { world, git, server }
}

#[tokio::test]
async fn a_directory_that_is_renamed_keeps_its_resource() {
    let scene = scene(&[
        ("items/a/resource.json", r#"{"id": "17"}"#),
        ("items/other/resource.json", r#"{"id": "other"}"#),
        ("items/third/resource.json", r#"{"id": "third"}"#),
    ])
    .await;
    scene.git.remove("items/a").write("items/b/resource.json", r#"{"id": "17"}"#);
    let revision = scene.push("rename a to b").await;
    scene.world.applied(&revision).await;
    assert!(scene.server.get("/items/17").is_some());
    // The old path stays a part of history; a full run must not take it for a reason to delete either.
    scene.world.request_sync().await;
    scene.world.finished("ManualRequest").await;
    assert!(scene.server.get("/items/17").is_some());
    assert!(scene.server.writes().iter().all(|request| request.method != "DELETE"));
}

#[tokio::test]
async fn a_deletion_that_is_retried_still_knows_the_resource_by_its_id() {
    let scene = scene(&[
        ("items/a/resource.json", r#"{"id": "17"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    scene.server.put_by_hand("/items/a", json!({"id": "a", "owner": "somebody else"}));
    scene.server.fail(Matcher::method("DELETE"), 422, 1);
    scene.git.remove("items/a");
    let revision = scene.push("drop a").await;
    let (status, _) = scene.world.policy_reason("PartialFailure").await;
    assert_eq!(status.failed_resources[0].operation, "prune");
    scene.world.applied(&revision).await;
    assert!(scene.server.get("/items/17").is_none());
    assert!(scene.server.get("/items/a").is_some(), "it was never declared");
}

#[tokio::test]
async fn a_parent_of_declared_children_is_not_pruned() {
    let scene = scene(&[
        ("items/p/resource.json", r#"{"id": "p"}"#),
        ("items/p/parts/x/resource.json", r#"{"id": "x"}"#),
        ("items/q/resource.json", r#"{"id": "q"}"#),
    ])
    .await;
    scene.git.remove("items/p/resource.json");
    let revision = scene.push("stop managing p itself").await;
    scene.world.applied(&revision).await;
    assert!(scene.server.get("/items/p/parts/x").is_some());
    scene.git.remove("items/p");
    let revision = scene.push("and now all of it").await;
    scene.world.applied(&revision).await;
    scene.world.request_sync().await;
    let status = scene.world.finished("ManualRequest").await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Full));
    assert!(scene.server.get("/items/p").is_none());
    assert!(scene.server.get("/items/q").is_some());
}

#[tokio::test]
async fn what_was_only_ever_broken_deletes_nothing() {
    let scene = scene(&[("items/a/resource.json", r#"{"id": "a"}"#)]).await;
    scene.server.put_by_hand("/items/odd", json!({"id": "odd"}));
    scene.git.write("items/odd/resource.json", "{not json");
    scene.push("broken").await;
    scene.world.policy_reason("PartialFailure").await;
    scene.git.remove("items/odd");
    let revision = scene.push("dropped again").await;
    scene.world.applied(&revision).await;
    scene.world.request_sync().await;
    scene.world.finished("ManualRequest").await;
    assert!(scene.server.get("/items/odd").is_some());
}

/// The path that stays was declared before, and has another name than the resource.
#[tokio::test]
async fn a_rename_in_two_commits_keeps_its_resource() {
    let scene = scene(&[
        ("items/main/resource.json", r#"{"id": "main"}"#),
        ("items/other/resource.json", r#"{"id": "other"}"#),
        ("items/third/resource.json", r#"{"id": "third"}"#),
    ])
    .await;
    scene.git.write("items/hq/resource.json", r#"{"id": "main"}"#);
    let revision = scene.push("hq is what main is").await;
    scene.world.applied(&revision).await;
    scene.git.remove("items/main");
    let revision = scene.push("drop the old path").await;
    scene.world.applied(&revision).await;
    scene.world.request_sync().await;
    scene.world.finished("ManualRequest").await;
    assert!(scene.server.get("/items/main").is_some());
    assert!(scene.server.writes().iter().all(|request| request.method != "DELETE"));
}

#[tokio::test]
async fn what_was_pruned_and_is_made_again_by_hand_goes_again() {
    let scene = scene(&[
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    scene.git.remove("items/a");
    let revision = scene.push("drop a").await;
    scene.world.applied(&revision).await;
    for _ in 0..3 {
        scene.server.put_by_hand("/items/a", json!({"id": "a"}));
        scene.world.request_sync().await;
        let gone = |_: &_| scene.server.get("/items/a").is_none();
        scene.world.policy("what is not declared is gone again", gone).await;
        scene.world.finished("ManualRequest").await;
    }
}
