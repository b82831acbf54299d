//! The inventory of a policy belongs to its status: neither a lost write of the status nor an old mirror changes what may
//! be deleted.

use std::fs;
use std::path::Path;
use std::process::Command;

use declarest_operator::crd::sync_policy::RunOutcome;
use declarest_operator::crd::{SyncPolicy, SyncPolicyStatus};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::pruning::{Scene, scene};
use crate::support::rest_server::Matcher;

const FILES: [(&str, &str); 3] = [
    ("items/a/resource.json", r#"{"id": "a"}"#),
    ("items/b/resource.json", r#"{"id": "b"}"#),
    ("items/c/resource.json", r#"{"id": "c"}"#),
];

/// A scene in which the operator was killed in the run of a commit that added `x`, and a later commit without `x` is
/// fetched.
async fn killed_after_a_create() -> (Scene, String) {
    let mut scene = scene(&FILES).await;
    let held = scene.server.hold(Matcher::new("PUT", "/items/c"));
    scene.git.write("items/x/resource.json", r#"{"id": "x"}"#);
    scene.git.write("items/c/resource.json", r#"{"id": "c", "size": 1}"#);
    scene.push("add x").await;
    let created = async || scene.server.get("/items/x");
    scene.world.eventually("x is created", created).await;
    scene.git.remove("items/x");
    let revision = scene.push("remove x").await;
    scene.world.fetched(&revision).await;
    scene.world.kill();
    drop(held);
    (scene, revision)
}

/// The run has ended, and the API server did not get the status of its end.
#[tokio::test]
async fn a_deletion_that_failed_before_the_status_was_lost_is_repeated() {
    let (mut scene, revision) = killed_after_a_create().await;
    // The run repeats it after its other writes.
    scene.server.fail(Matcher::method("DELETE"), 422, 2);
    let held = scene.server.hold(Matcher::method("DELETE"));
    scene.world.launch().await;
    let attempts =
        |status: &SyncPolicyStatus| status.last_attempted_repo_revision.as_deref() == Some(&*revision);
    let begun = scene.world.policy("the run begins", attempts).await;
    drop(held);
    scene.world.policy_reason("PartialFailure").await;
    let status = json!({"status": {
        "inventoryBaseRevision": begun.inventory_base_revision,
        "inventoryID": begun.inventory_id,
        "inventoryPending": null,
        "failedResources": null,
        "lastRunOutcome": "Failed",
        "nextSyncTime": null,
    }});
    let api = scene.world.api::<SyncPolicy>();
    api.patch_status("policy", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    scene.world.kill();
    assert!(scene.server.get("/items/x").is_some());
    scene.world.launch().await;
    scene.ended(&revision, RunOutcome::Succeeded).await;
    assert!(scene.server.get("/items/x").is_none());
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// The mirror is that of a replica that led before, or of a restored volume.
#[tokio::test]
async fn an_old_mirror_makes_no_resource_a_candidate() {
    let (mut scene, revision) = killed_after_a_create().await;
    let (mirrors, old) = (scene.world.state().join("repos"), scene.world.state().join("old"));
    copy(&mirrors, &old);
    scene.world.launch().await;
    scene.ended(&revision, RunOutcome::Succeeded).await;
    assert!(scene.server.get("/items/x").is_none());
    scene.server.put_by_hand("/items/x", json!({"id": "x", "owner": "another client"}));
    scene.full_run().await;
    scene.world.kill();
    fs::remove_dir_all(&mirrors).unwrap();
    fs::rename(&old, &mirrors).unwrap();
    scene.world.launch().await;
    scene.full_run().await;
    scene.full_run().await;
    assert!(scene.server.get("/items/x").is_some(), "the policy had deleted its own");
}
