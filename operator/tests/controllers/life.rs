//! The life of the process.

use std::time::Duration;

use declarest_operator::crd::{self, ManagedServer};
use declarest_operator::leader::{Candidate, LEASE_NAME, Timing};
use declarest_operator::runtime::RuntimeError;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::json;

use crate::world::World;

fn candidate(world: &World, identity: &str) -> Candidate {
    let timing = Timing {
        duration: Duration::from_secs(2),
        renew_deadline: Duration::from_secs(1),
        retry_period: Duration::from_millis(20),
    };
    Candidate::new(world.api(), identity.to_owned(), timing)
}

#[tokio::test]
async fn only_the_leader_reconciles_and_a_clean_end_hands_over() {
    let mut world = World::idle(crd::all());
    let first = candidate(&world, "first");
    world.run_with(Some(first));
    world.create::<ManagedServer>("s", json!({"http": {"baseURL": "https://api.example.test"}})).await;
    world.until_reason::<ManagedServer>("s", "Ready").await;
    let lease = world.api::<Lease>().get(LEASE_NAME).await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("first"));

    world.stop().await;
    let lease = world.api::<Lease>().get(LEASE_NAME).await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity, None);
}

#[tokio::test]
async fn a_lost_lease_ends_the_process() {
    let mut world = World::idle(crd::all());
    let holder = candidate(&world, "holder");
    world.run_with(Some(holder));
    world.create::<ManagedServer>("s", json!({"http": {"baseURL": "https://api.example.test"}})).await;
    world.until_reason::<ManagedServer>("s", "Ready").await;

    let patch = json!({"spec": {"holderIdentity": "usurper"}});
    world.api::<Lease>().patch(LEASE_NAME, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert!(matches!(world.ended().await, Err(RuntimeError::LeaseLost(_))));
}

/// Time stands still but for waits, so that the pauses between the tries take none.
#[tokio::test(start_paused = true)]
async fn a_cleanup_that_keeps_failing_lets_the_object_go() {
    let mut world = World::idle(crd::all());
    // A file where the object's directory would be cannot be removed as a directory.
    let obstacle = world.state.path().join("cache/managedservers/default/s");
    std::fs::create_dir_all(obstacle.parent().unwrap()).unwrap();
    std::fs::write(&obstacle, "").unwrap();
    world.run();
    world.create::<ManagedServer>("s", json!({"http": {"baseURL": "https://api.example.test"}})).await;
    let object: ManagedServer = world.until_reason("s", "Ready").await;
    world.delete::<ManagedServer>("s").await;
    let gone = kube::runtime::conditions::is_deleted(object.metadata.uid.as_ref().unwrap());
    await_condition(world.api::<ManagedServer>(), "s", gone).await.unwrap();

    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap();
    let notes = events.items.into_iter().filter(|event| event.reason.as_deref() == Some("CleanupFailed"));
    let mut notes: Vec<String> = notes.filter_map(|event| event.note).collect();
    notes.sort();
    assert_eq!(notes.len(), 5, "{notes:?}");
    assert!(notes[0].starts_with("try 1 of 5: cannot remove directory "), "{notes:?}");
    assert!(notes[4].ends_with("; giving up"), "{notes:?}");
}
