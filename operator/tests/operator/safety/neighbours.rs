//! Two repositories whose metadata maps their paths to one collection of a server.

use declarest_operator::crd::SyncPolicy;
use serde_json::{Value, json};

use crate::support::api_server::{ApiServer, Ids};
use crate::support::git_remote::GitRemote;
use crate::support::world::{World, condition, declarest};

/// A repository with items below `team`.
fn team(team: &str, items: &[&str]) -> GitRemote {
    let git = GitRemote::new();
    git.write(&format!("{team}/_/metadata.yaml"), "resource: {remoteCollectionPath: /items}\n");
    for item in items {
        git.write(&format!("{team}/{item}/resource.json"), json!({"id": item}).to_string());
    }
    git.commit("items");
    git.push();
    git
}

#[tokio::test]
async fn a_resource_that_moves_to_the_repository_of_another_policy_stays() {
    let (blue, green) = (team("blue", &["x", "y", "z"]), team("green", &["x"]));
    let server = ApiServer::rest(&["/items"], Ids::Stated("id"));
    let world = World::start().await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_repository(&blue.file_url(), Value::Null).await;
    world.create_policy(json!({"source": {"path": "/blue"}})).await;
    world.applied(&blue.head()).await;

    let spec = json!({"type": "git", "git": {"url": green.file_url()}});
    world.create(declarest("ResourceRepository", "green", &spec)).await;
    let spec = json!({
        "resourceRepositoryRef": {"name": "green"}, "managedServerRef": {"name": "server"},
        "source": {"path": "/green"}, "sync": {"prune": true}, "syncInterval": "1h",
    });
    world.create(declarest("SyncPolicy", "green", &spec)).await;
    let policies = world.api::<SyncPolicy>();
    let is_ready = async || {
        let status = policies.get("green").await.ok()?.status?;
        (condition(&status.conditions, "Ready").reason == "Ready").then_some(())
    };
    world.eventually("the other policy is ready", &is_ready).await;

    blue.remove("blue/x");
    blue.remove("blue/y");
    blue.commit("move x to the other team, and remove y");
    blue.push();
    world.notify().await;
    world.applied(&blue.head()).await;
    assert_eq!(server.paths(), ["/items/x", "/items/z"]);
    assert!(
        world.log().contains("SyncPolicy \\\"green\\\" declares the same resource at /green/x"),
        "{}",
        world.log_tail()
    );
}
