//! What a ResourceRepository reports, and where its mirror is.
use declarest_operator::controller::resource_repository::{DELIVERY_ID, RECEIVED_AT};
use declarest_operator::crd::ResourceRepository;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::git_http::GitHttp;
use crate::support::git_remote::{GitRemote, git as run_git};
use crate::support::world::{World, declarest, is_true, ready};

/// Polled at an interval that no test lives to see: what happens here happens for another reason.
fn spec(git: &GitRemote) -> Value {
    json!({"type": "git", "pollInterval": "1h", "git": {"url": git.file_url()}})
}

async fn create(world: &World, spec: &Value) {
    world.create(declarest("ResourceRepository", "repo", spec)).await;
}

fn remote() -> (GitRemote, String) {
    let git = GitRemote::new();
    git.write("shops/rio/resource.json", "{}");
    let revision = git.commit("first");
    git.push();
    (git, revision)
}

async fn create_claim(world: &World, name: &str) {
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .unwrap();
    world.api().create(&PostParams::default(), &claim).await.unwrap();
}

#[tokio::test]
async fn the_revision_of_the_branch_is_published() {
    let (world, (git, revision)) = (World::start().await, remote());
    create(&world, &spec(&git)).await;
    let object = world.fetched(&revision).await;
    let status = object.status.clone().unwrap();
    assert_eq!(status.observed_generation, object.metadata.generation);
    assert_eq!(status.last_fetched_generation, object.metadata.generation);
    assert!(status.last_fetched_time.is_some());
    let mirror = world.mirror("repo");
    assert_eq!(status.local_path.as_deref(), mirror.to_str());
    assert!(mirror.is_dir());
    assert_eq!(object.finalizers(), [] as [&str; 0]);
}

#[rstest]
#[case::fetch("--max-fetch-size=64Ki", "a fetch", "64 KiB")]
#[case::mirror("--max-mirror-size=256Ki", "its mirror", "256 KiB")]
#[tokio::test]
async fn a_repository_above_a_limit_fails_and_others_continue(
    #[case] flag: &str,
    #[case] what: &str,
    #[case] size: &str,
) {
    let world = World::start_with(&[flag]).await;
    let large = GitRemote::new();
    // Git cannot compress random bytes.
    let random = std::iter::repeat_with(|| fastrand::u8(..)).take(1 << 20).collect::<Vec<u8>>();
    large.write("shops/rio/resource.bin", random);
    large.commit("large");
    large.push();
    let http = GitHttp::start(large.root(), None);
    let of_http = json!({"type": "git", "git": {"url": http.url("desired.git")}});
    world.create(declarest("ResourceRepository", "large", &of_http)).await;
    let api = world.api::<ResourceRepository>();
    let failed = || async {
        let condition = ready(&api.get("large").await.ok()?.status?.conditions);
        (condition.reason == "FetchFailed").then_some(condition.message)
    };
    let message = world.eventually("the fetch fails", failed).await;
    let flag = flag.split_once('=').unwrap().0;
    assert!([flag, what, size].iter().all(|part| message.contains(part)), "{message}");
    let (git, revision) = remote();
    create(&world, &spec(&git)).await;
    world.fetched(&revision).await;
}

/// A commit object may be inflated to any size.
#[tokio::test]
async fn a_commit_that_is_too_large_is_not_used() {
    let (world, (git, first)) = (World::start().await, remote());
    create(&world, &spec(&git)).await;
    world.fetched(&first).await;
    let message = git.root().join("message");
    std::fs::write(&message, "x".repeat(2 << 20)).unwrap();
    run_git(&git.work_tree(), &["commit", "--quiet", "--allow-empty", "--file", message.to_str().unwrap()]);
    git.push();
    world.notify().await;
    let failed = |conditions: &[_]| ready(conditions).reason == "FetchFailed";
    let status =
        world.repository("the fetch fails", |status| failed(&status.conditions)).await.status.unwrap();
    assert_eq!(status.last_fetched_revision.as_deref(), Some(first.as_str()));
    let message = ready(&status.conditions).message;
    assert!(message.contains(&format!("commit {}", git.head())), "{message}");
    assert!(message.contains("limit of 1 MiB; rewrite the branch"), "{message}");
    git.reset_to(&first).write("shops/rio/resource.json", "[]");
    let repaired = git.commit("repaired");
    git.force_push();
    world.notify().await;
    world.fetched(&repaired).await;
}

#[tokio::test]
async fn a_delivery_fetches_at_once_and_is_acknowledged() {
    let (world, (git, first)) = (World::start().await, remote());
    create(&world, &spec(&git)).await;
    world.fetched(&first).await;
    git.write("shops/rio/resource.json", "[]");
    let second = git.commit("second");
    git.push();
    let delivery = json!({DELIVERY_ID: "delivery-7", RECEIVED_AT: "2026-01-31T12:00:00.5Z"});
    world.patch::<ResourceRepository>("repo", json!({"metadata": {"annotations": delivery}})).await;
    let webhook = world.fetched(&second).await.status.unwrap().webhook.unwrap();
    assert_eq!(webhook.last_delivery_id.as_deref(), Some("delivery-7"));
    let expected = format!("{second} (was {first})");
    world
        .eventually("an event reports the change", || async {
            let events = world.api::<Event>().list(&ListParams::default()).await.ok()?;
            let mut changes =
                events.items.iter().filter(|event| event.reason.as_deref() == Some("RevisionChanged"));
            changes.any(|event| event.note.as_ref() == Some(&expected)).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_writes_nothing_and_keeps_the_mirror() {
    let (mut world, (git, revision)) = (World::start().await, remote());
    create(&world, &spec(&git)).await;
    let before = world.fetched(&revision).await;
    assert!(tokio::task::block_in_place(|| world.terminate()).success());

    // Nothing may be fetched, so that nothing can be: the remote is gone.
    std::fs::remove_dir_all(git.bare()).unwrap();
    world.launch().await;
    // A second object shows that the controller has been through both.
    let (other, _) = remote();
    world.create(declarest("ResourceRepository", "witness", &spec(&other))).await;
    let api = world.api::<ResourceRepository>();
    world
        .eventually("the witness is ready", || async {
            is_true(&api.get("witness").await.ok()?.status?.conditions, "Ready").then_some(())
        })
        .await;
    let after = api.get("repo").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
}

#[tokio::test]
async fn a_failed_fetch_keeps_what_is_known_and_a_new_url_is_honoured() {
    let (world, (git, revision)) = (World::start().await, remote());
    create(&world, &spec(&git)).await;
    let before = world.fetched(&revision).await.status.unwrap();

    std::fs::remove_dir_all(git.bare()).unwrap();
    world.notify().await;
    let failed = |conditions: &[_]| ready(conditions).reason == "FetchFailed";
    let after =
        world.repository("the fetch fails", |status| failed(&status.conditions)).await.status.unwrap();
    assert_eq!(after.last_fetched_revision, before.last_fetched_revision);
    assert_eq!(after.last_fetched_time, before.last_fetched_time);
    assert_eq!(after.local_path, before.local_path);
    assert_eq!(ready(&after.conditions).status, "False");

    let moved = GitRemote::new();
    moved.write("elsewhere/resource.json", "{}");
    let elsewhere = moved.commit("elsewhere");
    moved.push();
    world.patch::<ResourceRepository>("repo", json!({"spec": {"git": {"url": moved.file_url()}}})).await;
    world.fetched(&elsewhere).await;
}

#[tokio::test]
async fn directories_go_with_their_objects() {
    let (mut world, (git, revision)) = (World::start().await, remote());
    // What went while no operator ran is found at the start.
    world.kill();
    let orphan = world.mirror("gone");
    std::fs::create_dir_all(&orphan).unwrap();
    world.launch().await;
    create(&world, &spec(&git)).await;
    world.fetched(&revision).await;
    assert!(!orphan.exists());
    let mirror = world.mirror("repo");
    assert!(mirror.exists());
    world.delete::<ResourceRepository>("repo").await;
    world.removed(&mirror).await;
}

#[tokio::test]
async fn a_claim_is_created_once_and_belongs_to_the_object() {
    let (world, (git, revision)) = (World::start().await, remote());
    let mut spec = spec(&git);
    spec["storage"] = json!({"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": "1Gi"}}});
    create(&world, &spec).await;
    let object = world.fetched(&revision).await;
    let claim = world.api::<PersistentVolumeClaim>().get("repo-repo").await.unwrap();
    assert_eq!(claim.labels()["declarest.io/resource-repo"], "repo");
    let owner = &claim.owner_references()[0];
    assert_eq!((owner.controller, Some(&owner.uid)), (Some(true), object.metadata.uid.as_ref()));
    let message = ready(&object.status.unwrap().conditions).message;
    assert!(message.contains("PersistentVolumeClaim repo-repo is not mounted"), "{message}");
    assert!(!message.contains("spec.storage.pvc"), "{message}");
    // The claim does not follow another size.
    let larger = json!({"spec": {"storage": {"pvc": {"requests": {"storage": "2Gi"}}}}});
    world.patch::<ResourceRepository>("repo", larger).await;
    let remark = "spec.storage.pvc differs from PersistentVolumeClaim repo-repo in requests.storage; ";
    let remarked = || async {
        let object = world.api::<ResourceRepository>().get("repo").await.ok()?;
        ready(&object.status?.conditions).message.contains(remark).then_some(())
    };
    world.eventually("the difference is shown", remarked).await;
}

#[tokio::test]
async fn a_mounted_claim_holds_the_mirror() {
    let (world, (git, revision)) = (World::start().await, remote());
    let namespace = &world.namespace;
    let mounted = world.state().join("volumes").join(namespace).join("data");
    std::fs::create_dir_all(&mounted).unwrap();
    let mut spec = spec(&git);
    spec["storage"] = json!({"existingPVC": {"name": "data"}});
    create(&world, &spec).await;
    let message = world.repository_reason("DependencyInvalid").await;
    assert_eq!(
        message,
        format!("spec.storage.existingPVC: PersistentVolumeClaim {namespace}/data does not exist")
    );
    create_claim(&world, "data").await;
    let object = world.fetched(&revision).await;
    let place = mounted.join("resourcerepositories").join(namespace).join("repo");
    assert_eq!(object.status.unwrap().local_path.as_deref(), place.to_str());
}

#[tokio::test]
async fn the_claim_of_another_object_is_not_taken() {
    let (world, (git, _)) = (World::start().await, remote());
    create_claim(&world, "repo-repo").await;
    let mut spec = spec(&git);
    spec["storage"] = json!({"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": "1Gi"}}});
    create(&world, &spec).await;
    let message = world.repository_reason("DependencyInvalid").await;
    assert!(message.contains("/repo-repo exists and has another owner"), "{message}");
}
