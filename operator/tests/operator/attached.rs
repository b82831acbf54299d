//! Candidates for deletion to which a declared resource still refers on the server.

use declarest_operator::crd::sync_policy::RunOutcome;
use serde_json::{Value, json};

use crate::support::api_server::{Answer, ApiServer, Ids};
use crate::support::git_remote::GitRemote;
use crate::support::world::World;

/// The server deletes an item with those below it, and ignores that an update moves one out.
#[tokio::test]
async fn a_parent_is_kept_while_the_server_shows_the_reference_to_it() {
    let server = ApiServer::start(&["/items"], |request, store| {
        if request.is("PUT", "/items/sub") {
            return Answer::json(200, store.get(&request.path).unwrap_or(&Value::Null));
        }
        if request.is("DELETE", "/items/top") {
            store.remove("/items/sub");
        }
        request.rest(store, Ids::Stated("id"))
    });
    let git = GitRemote::new();
    let sub = |parent: &str| json!({"id": "sub", "parent": parent}).to_string();
    git.write("items/top/resource.json", r#"{"id": "top"}"#)
        .write("items/old/resource.json", r#"{"id": "old"}"#)
        .write("items/sub/resource.json", sub(r#"{{ref "/items/top" "/id"}}"#))
        .commit("first");
    git.push();
    let world = World::start().await;
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&git.head()).await;
    git.remove("items/top").remove("items/old").write("items/sub/resource.json", sub("none"));
    let revision = git.commit("without top");
    git.push();
    world.notify().await;
    let status = world
        .policy("the run ends", |status| {
            status.last_attempted_repo_revision.as_deref() == Some(&*revision)
                && status.last_run_outcome == Some(RunOutcome::PartiallyFailed)
        })
        .await;
    let failed: Vec<_> =
        status.failed_resources.iter().map(|failed| (&*failed.path, &*failed.message)).collect();
    let [(path, message)] = failed[..] else { panic!("{failed:?}") };
    assert!(path == "/items/top" && message.contains("/items/sub, which referred to it"), "{failed:?}");
    assert_eq!(server.paths(), ["/items/sub", "/items/top"]);
}
