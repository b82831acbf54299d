//! What may be deleted, and above all what may not.

use declarest_operator::crd::sync_policy::{RunKind, RunOutcome};
use declarest_operator::crd::{ManagedServer, ResourceRepository, SyncPolicy, SyncPolicyStatus};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::git_remote::{GitRemote, git};
use crate::support::rest_server::{Config, Matcher, RestServer};
use crate::support::world::{World, declarest, is_true};

pub struct Scene {
    pub world: World,
    pub git: GitRemote,
    pub server: RestServer,
}

impl Scene {
    pub async fn push(&self, message: &str) -> String {
        let revision = self.git.commit(message);
        self.git.push();
        self.world.notify().await;
        revision
    }

    /// Pushes a commit, and waits until it is applied.
    pub async fn applied(&self, message: &str) -> SyncPolicyStatus {
        let revision = self.push(message).await;
        self.world.applied(&revision).await
    }

    /// Waits until a run at `revision` has ended with `outcome`.
    pub async fn ended(&self, revision: &str, outcome: RunOutcome) {
        let ended = |status: &SyncPolicyStatus| {
            status.last_attempted_repo_revision.as_deref() == Some(revision)
                && status.last_run_outcome == Some(outcome)
        };
        self.world.policy(&format!("the run at {revision} ends"), ended).await;
    }

    /// Asks for a full run and waits for its end.
    pub async fn full_run(&self) -> SyncPolicyStatus {
        let before = self.world.policy("a status", |_| true).await.last_handled_sync_request;
        self.world.request_sync().await;
        let ended = |status: &SyncPolicyStatus| status.last_handled_sync_request != before;
        self.world.policy("the requested run ends", ended).await
    }

    /// What was deleted on the server so far, sorted.
    pub fn deleted(&self) -> Vec<String> {
        let writes = self.server.writes();
        let deleted = writes.iter().filter(|request| request.method == "DELETE");
        let mut paths: Vec<String> = deleted.map(|request| request.path.clone()).collect();
        paths.sort();
        paths
    }
}

pub async fn scene(files: &[(&str, &str)]) -> Scene {
    scene_with(files, json!({})).await
}

/// A scene with more of the policy's spec.
async fn scene_with(files: &[(&str, &str)], policy: Value) -> Scene {
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
    world.create_policy(policy).await;
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
    scene.applied("rename a to b").await;
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
    scene.server.put_by_hand("/items/a", json!({"id": "a", "owner": "another client"}));
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
    scene.applied("stop managing p itself").await;
    assert!(scene.server.get("/items/p/parts/x").is_some());
    scene.git.remove("items/p");
    scene.applied("and now all of it").await;
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
    scene.applied("dropped again").await;
    scene.world.request_sync().await;
    scene.world.finished("ManualRequest").await;
    assert!(scene.server.get("/items/odd").is_some());
}

#[tokio::test]
async fn what_was_broken_before_it_was_removed_is_pruned() {
    let scene = scene(&[
        ("items/a/resource.json", r#"{"id": "17"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    for file in ["items/a/resource.json", "items/a/resource.yaml", "items/a/resource.json"] {
        scene.git.write(file, "{not json");
        scene.git.write("items/b/resource.json", json!({"id": "b", "file": file}).to_string());
        let revision = scene.push("broken").await;
        scene.ended(&revision, RunOutcome::PartiallyFailed).await;
        scene.full_run().await;
    }
    scene.git.remove("items/a");
    let status = scene.applied("drop a").await;
    assert_eq!(scene.deleted(), ["/items/17"]);
    assert_eq!(status.resource_stats.unwrap().failed, 0);
}

#[tokio::test]
async fn a_broken_resource_that_is_removed_again_has_not_failed() {
    let scene = scene(&[("items/a/resource.json", r#"{"id": "a"}"#)]).await;
    scene.git.write("items/odd/resource.json", "{not json");
    scene.push("broken").await;
    let (status, _) = scene.world.policy_reason("PartialFailure").await;
    assert_eq!(status.resource_stats.unwrap().failed, 1);
    scene.git.remove("items/odd");
    let status = scene.applied("dropped again").await;
    assert_eq!(status.resource_stats.unwrap().failed, 0);
}

#[tokio::test]
async fn what_is_made_by_hand_stays_if_its_only_declaration_since_is_broken() {
    let scene = scene(&[
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    scene.git.remove("items/a");
    scene.applied("drop a").await;
    assert_eq!(scene.deleted(), ["/items/a"]);
    scene.server.put_by_hand("/items/a", json!({"id": "a", "owner": "another client"}));
    scene.git.write("items/a/resource.json", "{not json");
    scene.push("broken").await;
    scene.world.policy_reason("PartialFailure").await;
    scene.git.remove("items/a");
    scene.applied("drop a again").await;
    scene.full_run().await;
    assert!(scene.server.get("/items/a").is_some());
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
    scene.applied("hq is what main is").await;
    scene.git.remove("items/main");
    scene.applied("drop the old path").await;
    scene.world.request_sync().await;
    scene.world.finished("ManualRequest").await;
    assert!(scene.server.get("/items/main").is_some());
    assert!(scene.server.writes().iter().all(|request| request.method != "DELETE"));
}

/// A full run that found and did everything closes the books: what is made after it is not the policy's.
#[tokio::test]
async fn what_is_made_by_hand_after_everything_was_pruned_stays() {
    let scene = scene(&[
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    scene.git.remove("items/a");
    let revision = scene.push("drop a").await;
    scene.world.applied(&revision).await;
    scene.full_run().await;
    let status = scene.full_run().await;
    assert_eq!(status.inventory_base_revision.as_deref(), Some(&*revision));
    scene.server.put_by_hand("/items/a", json!({"id": "a"}));
    for _ in 0..2 {
        scene.full_run().await;
        assert!(scene.server.get("/items/a").is_some(), "made by hand after the policy deleted its own");
    }
    let pins = git(&scene.world.mirror("repo").join("git"), &["for-each-ref", "refs/declarest/pins/"]);
    assert!(!pins.contains("/seen/0"), "nothing older than the base is kept: {pins}");
}

/// What goes on while a resource is pruned and then created by hand.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    /// Another resource cannot be applied.
    AnUpdateFails,
    /// Another resource cannot be deleted.
    ADeletionFails,
    /// A parent is kept for its children.
    AParentIsKept,
    /// No full run takes place.
    OnlyAnIncrementalRun,
}

/// A resource that a run deleted no longer belongs to the policy, also if the run left others undone, and for a
/// new process.
#[rstest::rstest]
#[case(Meanwhile::AnUpdateFails, &["/items/a"])]
#[case(Meanwhile::ADeletionFails, &["/items/a", "/items/b"])]
#[case(Meanwhile::AParentIsKept, &["/items/a", "/items/p", "/items/p/parts/x"])]
#[case(Meanwhile::OnlyAnIncrementalRun, &["/items/a"])]
#[tokio::test]
async fn what_is_made_by_hand_stays_if_others_are_left_undone(
    #[case] meanwhile: Meanwhile,
    #[case] expected: &[&str],
) {
    let mut scene = scene(&[
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
        ("items/d/resource.json", r#"{"id": "d"}"#),
        ("items/p/resource.json", r#"{"id": "p"}"#),
        ("items/p/parts/x/resource.json", r#"{"id": "x"}"#),
    ])
    .await;
    scene.git.remove("items/a");
    match meanwhile {
        Meanwhile::AnUpdateFails => {
            scene.git.write("items/c/resource.json", r#"{"id": "c", "size": 1}"#);
            scene.server.fail(Matcher::new("PUT", "/items/c"), 422, usize::MAX);
        }
        Meanwhile::ADeletionFails => {
            scene.git.remove("items/b");
            scene.server.fail(Matcher::new("DELETE", "/items/b"), 422, usize::MAX);
        }
        Meanwhile::AParentIsKept => {
            scene.git.remove("items/p/resource.json");
        }
        Meanwhile::OnlyAnIncrementalRun => {}
    }
    let revision = scene.push("drop a").await;
    let ended = |status: &SyncPolicyStatus| {
        status.last_attempted_repo_revision.as_deref() == Some(&*revision)
            && status.resource_stats.is_some_and(|stats| stats.pruned == 1)
    };
    scene.world.policy("the run ends", ended).await;
    assert!(scene.server.get("/items/a").is_none());
    if !matches!(meanwhile, Meanwhile::OnlyAnIncrementalRun) {
        scene.full_run().await;
    }
    scene.server.put_by_hand("/items/a", json!({"id": "a"}));
    scene.full_run().await;
    scene.world.kill();
    scene.world.launch().await;
    scene.full_run().await;
    assert!(scene.server.get("/items/a").is_some(), "made by hand after the policy deleted its own");
    // What was left undone is still done later.
    scene.server.clear_failures();
    if matches!(meanwhile, Meanwhile::AParentIsKept) {
        scene.git.remove("items/p");
        scene.applied("drop p").await;
    }
    scene.full_run().await;
    assert!(scene.server.get("/items/a").is_some());
    let mut deleted = scene.deleted();
    deleted.dedup();
    assert_eq!(deleted, expected);
}

/// The commits of a push below its tip, and those of a branch that was merged, were never in force.
#[tokio::test]
async fn commits_that_were_never_attempted_own_nothing() {
    let scene = scene(&[
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    for id in ["vip", "side"] {
        scene.server.put_by_hand(&format!("/items/{id}"), json!({"id": id, "owner": "another team"}));
    }
    let work_tree = scene.git.work_tree();
    git(&work_tree, &["checkout", "--quiet", "-b", "side"]);
    scene.git.write("items/side/resource.json", r#"{"id": "side"}"#).commit("side: add");
    scene.git.remove("items/side").commit("side: remove");
    git(&work_tree, &["checkout", "--quiet", "main"]);
    scene.git.write("items/vip/resource.json", r#"{"id": "vip"}"#).commit("add vip");
    scene.git.remove("items/vip").commit("remove vip");
    git(&work_tree, &["merge", "--quiet", "--no-ff", "--message", "merge side", "side"]);
    scene.applied("one push").await;
    scene.full_run().await;
    let deleted: Vec<_> = scene.deleted();
    assert_eq!(deleted, [""; 0], "no revision that this policy attempted declared them");
}

/// What a revision in between declared is the policy's, because it was attempted, also after a restart.
#[tokio::test]
async fn what_an_attempted_revision_declared_is_pruned_once_pruning_is_on() {
    let mut scene = scene_with(
        &[("items/a/resource.json", r#"{"id": "a"}"#), ("items/b/resource.json", r#"{"id": "b"}"#)],
        json!({"sync": {"prune": false}}),
    )
    .await;
    for (id, removed) in [("x", None), ("y", Some("items/x")), ("z", Some("items/y"))] {
        scene.git.write(&format!("items/{id}/resource.json"), json!({"id": id}).to_string());
        if let Some(removed) = removed {
            scene.git.remove(removed);
        }
        scene.applied(id).await;
    }
    scene.world.kill();
    scene.world.launch().await;
    scene.world.patch::<SyncPolicy>("policy", json!({"spec": {"sync": {"prune": true}}})).await;
    scene.world.finished("SpecChanged").await;
    assert_eq!(scene.deleted(), ["/items/x", "/items/y"]);
}

/// A parent that is kept for the sake of its children is still to be deleted, so the inventory stays as it is.
#[tokio::test]
async fn a_parent_that_was_kept_for_its_children_is_pruned_after_them() {
    let scene = scene(&[
        ("items/p/resource.json", r#"{"id": "p"}"#),
        ("items/p/parts/x/resource.json", r#"{"id": "x"}"#),
        ("items/q/resource.json", r#"{"id": "q"}"#),
    ])
    .await;
    scene.git.remove("items/p/resource.json");
    scene.applied("stop managing p itself").await;
    scene.full_run().await;
    scene.git.remove("items/p");
    scene.applied("and now all of it").await;
    scene.full_run().await;
    assert_eq!(scene.deleted(), ["/items/p", "/items/p/parts/x"]);
}

/// Changes that give a policy another server, other resources of it, or another source of them.
#[derive(Clone, Copy, Debug)]
enum Move {
    BaseUrl,
    ServerRef,
    Branch,
    Scope,
}

/// What was removed on the old server never was the policy's on the new one.
#[rstest::rstest]
#[case(Move::BaseUrl)]
#[case(Move::ServerRef)]
#[case(Move::Branch)]
#[case(Move::Scope)]
#[tokio::test]
async fn the_inventory_does_not_move_along(#[case] what: Move) {
    let scope = if matches!(what, Move::Scope) { "/items/b" } else { "/" };
    let files = [
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ];
    let scene = scene_with(&files, json!({"source": {"path": scope}})).await;
    let other = RestServer::start(Config { collections: vec!["/items".to_owned()], ..Config::default() });
    let other = other.unwrap();
    let url = json!({"baseURL": other.url()});
    // All manifests are loaded before anything is patched: another load would undo the patch.
    scene.world.create(declarest("ManagedServer", "other", &json!({"http": url}))).await;
    scene.git.remove("items/a");
    scene.applied("drop a").await;
    let before = scene.deleted();
    for server in [&other, &scene.server] {
        server.put_by_hand("/items/a", json!({"id": "a", "owner": "another team"}));
    }
    match what {
        Move::BaseUrl => scene.world.patch::<ManagedServer>("server", json!({"spec": {"http": url}})).await,
        Move::ServerRef => {
            let spec = json!({"managedServerRef": {"name": "other"}});
            scene.world.patch::<SyncPolicy>("policy", json!({"spec": spec})).await;
        }
        Move::Branch => {
            git(&scene.git.work_tree(), &["push", "--quiet", "origin", "main:other"]);
            let spec = json!({"git": {"branch": "other"}});
            scene.world.patch::<ResourceRepository>("repo", json!({"spec": spec})).await;
        }
        Move::Scope => {
            let spec = json!({"source": {"path": "/"}});
            scene.world.patch::<SyncPolicy>("policy", json!({"spec": spec})).await;
        }
    }
    let moved = |status: &SyncPolicyStatus| {
        let trigger = status.last_trigger.as_deref();
        matches!(trigger, Some("SpecChanged" | "DependencyChanged"))
            && is_true(&status.conditions, "Ready")
            && !is_true(&status.conditions, "Reconciling")
    };
    scene.world.policy("a full run ends after the change", moved).await;
    scene.full_run().await;
    let deleted: Vec<_> = other.writes().into_iter().filter(|request| request.method == "DELETE").collect();
    assert!(deleted.is_empty(), "{deleted:?}");
    assert_eq!(scene.deleted(), before);
    assert!(scene.server.get("/items/a").is_some() && other.get("/items/a").is_some());
}

/// A base that an earlier version wrote says nothing about the server that it belongs to.
#[tokio::test]
async fn a_base_without_an_owner_is_started_again() {
    let mut scene = scene(&[
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("items/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    scene.git.remove("items/a");
    let revision = scene.push("drop a").await;
    scene.world.applied(&revision).await;
    scene.server.put_by_hand("/items/a", json!({"id": "a"}));
    let status = json!({"status": {"inventoryOwner": null}});
    let api = scene.world.api::<SyncPolicy>();
    api.patch_status("policy", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    scene.world.kill();
    scene.world.launch().await;
    let status = scene.full_run().await;
    assert_eq!(status.inventory_base_revision.as_deref(), Some(&*revision));
    assert!(scene.server.get("/items/a").is_some());
}

/// What takes the place of a directory.
#[derive(Clone, Copy, Debug)]
enum InPlace {
    Link,
    Submodule,
    File,
}

/// A directory that can no longer be followed hides its resources. It does not remove them.
#[rstest::rstest]
#[case(InPlace::Link)]
#[case(InPlace::Submodule)]
#[case(InPlace::File)]
#[tokio::test]
async fn a_directory_of_another_kind_is_not_absence(#[case] kind: InPlace) {
    let scene = scene(&[
        ("items/a/resource.json", r#"{"id": "a"}"#),
        ("items/b/resource.json", r#"{"id": "b"}"#),
        ("shops/c/resource.json", r#"{"id": "c"}"#),
    ])
    .await;
    let work_tree = scene.git.work_tree();
    scene.git.remove("items");
    match kind {
        InPlace::Link => std::os::unix::fs::symlink("elsewhere", work_tree.join("items")).unwrap(),
        InPlace::File => std::fs::write(work_tree.join("items"), "elsewhere").unwrap(),
        InPlace::Submodule => {
            std::fs::create_dir(work_tree.join("items")).unwrap();
            git(&work_tree, &["rm", "-r", "--quiet", "--cached", "items"]);
            let link = format!("160000,{},items", scene.git.head());
            git(&work_tree, &["update-index", "--add", "--cacheinfo", &link]);
        }
    }
    scene.push("items moves elsewhere").await;
    let (status, message) = scene.world.policy_reason("PartialFailure").await;
    assert_eq!(status.failed_resources[0].path, "/items", "{message}");
    assert!(message.contains("\"/items\" is now a "), "{message}");
    assert!(message.contains("restore the previous file, or remove"), "{message}");
    // The next change concerns something else.
    scene.git.write("shops/d/resource.json", r#"{"id": "d"}"#);
    scene.push("add d").await;
    let added = |_: &_| scene.server.get("/shops/d").is_some();
    scene.world.policy("d is added", added).await;
    let (status, _) = scene.world.policy_reason("PartialFailure").await;
    assert_eq!(status.failed_resources.len(), 1);
    assert_eq!(scene.deleted(), [""; 0]);
    // Nothing in its place is a removal.
    if matches!(kind, InPlace::Submodule) {
        git(&work_tree, &["rm", "--quiet", "--cached", "items"]);
    }
    scene.git.remove("items");
    scene.applied("remove items").await;
    assert_eq!(scene.deleted(), ["/items/a", "/items/b"]);
}

/// A commit that was applied to another server declares nothing that may be deleted here, also if the first run here
/// fails.
#[tokio::test]
async fn what_was_applied_to_another_server_is_not_pruned() {
    let scene = scene(&[
        ("items/old/resource.json", r#"{"id": "old"}"#),
        ("items/rio/resource.json", r#"{"id": "rio"}"#),
    ])
    .await;
    let config = Config { collections: vec!["/items".to_owned()], ..Config::default() };
    let production = RestServer::start(config).unwrap();
    production.put_by_hand("/items/old", json!({"id": "old", "owner": "another client"}));
    production.fail(Matcher::method("POST"), 422, 99);
    let spec = json!({"http": {"baseURL": production.url()}});
    scene.world.create(declarest("ManagedServer", "production", &spec)).await;
    scene.world.patch::<SyncPolicy>("policy", json!({"spec": {"suspend": true}})).await;
    scene.world.policy_reason("Suspended").await;
    scene.git.remove("items/old");
    let revision = scene.push("drop old").await;
    scene
        .world
        .eventually("the commit is fetched", || async {
            let repository = scene.world.api::<ResourceRepository>().get("repo").await.ok()?;
            (repository.status?.last_fetched_revision? == revision).then_some(())
        })
        .await;
    let other = json!({"spec": {"managedServerRef": {"name": "production"}, "suspend": false}});
    scene.world.patch::<SyncPolicy>("policy", other).await;
    scene.world.policy_reason("PartialFailure").await;
    scene.world.request_sync().await;
    let handled = |status: &SyncPolicyStatus| status.last_handled_sync_request.is_some();
    scene.world.policy("the requested run has ended", handled).await;
    let deleted = production.writes().into_iter().filter(|request| request.method == "DELETE").count();
    assert_eq!((deleted, production.get("/items/old").is_some()), (0, true));
}
