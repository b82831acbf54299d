//! Deletions that need approval.

use declarest_operator::crd::SyncPolicyStatus;
use declarest_operator::crd::sync_policy::RunKind;
use serde_json::json;

use super::pruning::{Scene, scene};
use crate::support::rest_server::Matcher;
use crate::support::world::ready;

fn file(index: usize) -> String {
    format!("items/i{index}/resource.json")
}

/// A scene of `count` resources of one kind.
async fn items(count: usize, metadata: &str) -> Scene {
    let files = (0..count).map(|index| (file(index), json!({"id": format!("i{index}"), "kind": 1})));
    let mut files: Vec<_> = files.map(|(file, payload)| (file, payload.to_string())).collect();
    files.push(("items/_/metadata.yaml".to_owned(), metadata.to_owned()));
    let files: Vec<_> = files.iter().map(|(file, text)| (&**file, &**text)).collect();
    scene(&files).await
}

/// The retry does not examine the deletions that the run before refused.
#[tokio::test]
async fn a_retry_does_not_approve_refused_deletions() {
    let scene = items(30, "{}").await;
    for index in 0..20 {
        scene.git.remove(&format!("items/i{index}"));
    }
    scene.git.write(&file(25), r#"{"id": "i25", "kind": 2}"#);
    scene.server.fail(Matcher::new("PUT", "/items/i25"), 422, 1);
    let revision = scene.push("remove 20, change one").await;
    let (status, message) = scene.world.policy_reason("PartialFailure").await;
    assert!(status.prune_refused);
    assert!(message.contains("/items/i25") && message.contains("; nothing was pruned: 20 "), "{message}");
    let retried = |status: &SyncPolicyStatus| {
        status.last_trigger.as_deref() == Some("Retry")
            && ready(&status.conditions).reason != "PartialFailure"
    };
    let status = scene.world.policy("the failed resource is retried", retried).await;
    let status = match ready(&status.conditions).reason.as_str() {
        "Reconciling" => scene.world.policy_reason("PruneRefused").await.0,
        _ => status,
    };
    assert_eq!(ready(&status.conditions).reason, "PruneRefused");
    assert!(status.prune_refused);
    assert_ne!(status.last_applied_repo_revision, Some(revision));
    assert_eq!(scene.server.get("/items/i25").unwrap()["kind"], 2);
    assert_eq!(scene.deleted(), [""; 0]);
}

/// The limit is a share of the resources that the policy owns, and not of those that changed.
#[tokio::test]
async fn replacements_of_changed_resources_are_a_share_of_all() {
    let scene = items(40, "resource: {replaceOn: [/kind]}\n").await;
    for index in 0..12 {
        scene.git.write(&file(index), json!({"id": format!("i{index}"), "kind": 2}).to_string());
    }
    let status = scene.applied("12 of 40 are of another kind").await;
    assert_eq!(status.last_sync_mode, Some(RunKind::Incremental));
    assert_eq!(scene.deleted().len(), 12);
}
