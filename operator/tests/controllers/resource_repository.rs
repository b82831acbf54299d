use declarest_operator::controller::frame::FINALIZER;
use declarest_operator::controller::resource_repository::{DELIVERY_ID, RECEIVED_AT};
use declarest_operator::crd::ResourceRepository;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};

use crate::world::{Origin, World, ready};

fn spec(origin: &Origin) -> Value {
    // An interval that no test lives to see: what happens here happens for another reason.
    json!({"type": "git", "pollInterval": "1h", "git": {"url": origin.url()}})
}

fn revision(object: &ResourceRepository) -> Option<&str> {
    object.status.as_ref()?.last_fetched_revision.as_deref()
}

#[tokio::test]
async fn publishes_the_revision_of_the_branch() {
    let world = World::start();
    let origin = Origin::new();
    let commit = origin.commit("resource.json", "{}");
    world.create::<ResourceRepository>("r", spec(&origin)).await;

    let object: ResourceRepository = world.until_reason("r", "Ready").await;
    let status = object.status.clone().unwrap();
    assert_eq!(status.last_fetched_revision.as_deref(), Some(commit.as_str()));
    assert_eq!(status.observed_generation, object.metadata.generation);
    assert_eq!(status.last_fetched_generation, object.metadata.generation);
    assert!(status.last_fetched_time.is_some());
    let mirror = world.state.path().join("repos/resourcerepositories/default/r");
    assert_eq!(status.local_path.as_deref(), mirror.to_str());
    assert!(mirror.is_dir());
    assert!(object.finalizers().iter().any(|finalizer| finalizer == FINALIZER));
}

#[tokio::test]
async fn a_delivery_fetches_at_once_and_is_acknowledged() {
    let world = World::start();
    let origin = Origin::new();
    let first = origin.commit("a.json", "1");
    world.create::<ResourceRepository>("r", spec(&origin)).await;
    world.until("r", |object| revision(object) == Some(&first)).await;

    let second = origin.commit("a.json", "2");
    world.annotate::<ResourceRepository>("r", DELIVERY_ID, "delivery-7").await;
    world.annotate::<ResourceRepository>("r", RECEIVED_AT, "2026-01-31T12:00:00.5Z").await;
    let object = world.until("r", |object| revision(object) == Some(&second)).await;

    let webhook = object.status.unwrap().webhook.unwrap();
    assert_eq!(webhook.last_delivery_id.as_deref(), Some("delivery-7"));
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap();
    let notes: Vec<String> = events
        .items
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some("RevisionChanged"))
        .filter_map(|event| event.note)
        .collect();
    assert!(notes.contains(&format!("{second} (was {first})")), "{notes:?}");
}

#[tokio::test]
async fn a_restart_writes_nothing_and_keeps_the_mirror() {
    let mut world = World::start();
    let origin = Origin::new();
    let commit = origin.commit("a.json", "1");
    world.create::<ResourceRepository>("settled", spec(&origin)).await;
    let before: ResourceRepository = world.until_reason("settled", "Ready").await;
    world.stop().await;

    // Nothing may be fetched, so that nothing can be: the repository is gone.
    std::fs::remove_dir_all(origin.path()).unwrap();
    world.run();
    // A second object shows that the controller has been through both.
    let other = Origin::new();
    other.commit("a.json", "1");
    world.create::<ResourceRepository>("witness", spec(&other)).await;
    world.until_reason::<ResourceRepository>("witness", "Ready").await;

    let after = world.api::<ResourceRepository>().get("settled").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
    assert_eq!(revision(&after), Some(commit.as_str()));
}

#[tokio::test]
async fn a_failed_fetch_keeps_what_is_known_and_a_new_url_is_honoured() {
    let world = World::start();
    let origin = Origin::new();
    let commit = origin.commit("a.json", "1");
    world.create::<ResourceRepository>("r", spec(&origin)).await;
    let fetched = world.until("r", |object| revision(object) == Some(&commit)).await;

    std::fs::remove_dir_all(origin.path()).unwrap();
    world.annotate::<ResourceRepository>("r", RECEIVED_AT, "2026-01-31T12:00:00Z").await;
    let failed: ResourceRepository = world.until_reason("r", "FetchFailed").await;
    let (before, after) = (fetched.status.unwrap(), failed.status.clone().unwrap());
    assert_eq!(after.last_fetched_revision, before.last_fetched_revision);
    assert_eq!(after.last_fetched_time, before.last_fetched_time);
    assert_eq!(after.local_path, before.local_path);
    assert_eq!(ready(&failed).unwrap().status, "False");

    let moved = Origin::new();
    let elsewhere = moved.commit("b.json", "1");
    let patch = json!({"spec": {"git": {"url": moved.url()}}});
    world
        .api::<ResourceRepository>()
        .patch("r", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(patch))
        .await
        .unwrap();
    world.until("r", |object| revision(object) == Some(&elsewhere)).await;
}

#[tokio::test]
async fn deleting_the_object_removes_its_mirror() {
    let world = World::start();
    let origin = Origin::new();
    origin.commit("a.json", "1");
    world.create::<ResourceRepository>("r", spec(&origin)).await;
    world.until_reason::<ResourceRepository>("r", "Ready").await;
    world.delete::<ResourceRepository>("r").await;
    world.until_gone::<ResourceRepository>("r").await;
    assert!(!world.state.path().join("repos/resourcerepositories/default/r").exists());
}

#[tokio::test]
async fn orphaned_directories_are_swept_at_the_start() {
    let mut world = World::idle(declarest_operator::crd::all());
    let orphan = world.state.path().join("repos/resourcerepositories/default/gone");
    std::fs::create_dir_all(&orphan).unwrap();
    let origin = Origin::new();
    origin.commit("a.json", "1");
    world.create::<ResourceRepository>("r", spec(&origin)).await;
    world.run();
    world.until_reason::<ResourceRepository>("r", "Ready").await;
    assert!(!orphan.exists());
}

#[tokio::test]
async fn a_claim_is_created_once_and_belongs_to_the_object() {
    let world = World::start();
    let origin = Origin::new();
    origin.commit("a.json", "1");
    let mut spec = spec(&origin);
    spec["storage"] = json!({"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": "1Gi"}}});
    let created: ResourceRepository = world.create("r", spec).await;
    let object: ResourceRepository = world.until_reason("r", "Ready").await;

    let claim = world.api::<PersistentVolumeClaim>().get("r-repo").await.unwrap();
    assert_eq!(claim.labels()["declarest.io/resource-repo"], "r");
    let owner = &claim.owner_references()[0];
    assert_eq!((owner.controller, Some(&owner.uid)), (Some(true), created.metadata.uid.as_ref()));
    let message = &ready(&object).unwrap().message;
    assert!(message.contains("PersistentVolumeClaim r-repo is not mounted"), "{message}");
}

#[tokio::test]
async fn a_mounted_claim_holds_the_mirror() {
    let world = World::start();
    let mounted = world.state.path().join("volumes/default/data");
    std::fs::create_dir_all(&mounted).unwrap();
    let origin = Origin::new();
    origin.commit("a.json", "1");
    let mut spec = spec(&origin);
    spec["storage"] = json!({"existingPVC": {"name": "data"}});
    world.create::<ResourceRepository>("r", spec).await;
    let refused: ResourceRepository = world.until_reason("r", "DependencyInvalid").await;
    let message = &ready(&refused).unwrap().message;
    assert_eq!(message, "spec.storage.existingPVC: PersistentVolumeClaim default/data does not exist");

    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .unwrap();
    world.api().create(&PostParams::default(), &claim).await.unwrap();
    let object: ResourceRepository = world.until_reason("r", "Ready").await;
    assert_eq!(object.status.unwrap().local_path.as_deref(), mounted.join("r").to_str());
}

#[tokio::test]
async fn somebody_elses_claim_is_not_taken() {
    let world = World::start();
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "r-repo"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .unwrap();
    world.api().create(&PostParams::default(), &claim).await.unwrap();
    let origin = Origin::new();
    let mut spec = spec(&origin);
    spec["storage"] = json!({"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": "1Gi"}}});
    world.create::<ResourceRepository>("r", spec).await;
    let refused: ResourceRepository = world.until_reason("r", "DependencyInvalid").await;
    let message = &ready(&refused).unwrap().message;
    assert!(message.contains("default/r-repo exists and belongs to somebody else"), "{message}");
}
