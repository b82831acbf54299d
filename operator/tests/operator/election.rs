//! Several replicas, one leader.

use std::time::Duration;

use declarest_operator::crd::ManagedServer;
use declarest_operator::leader::{LEASE_NAME, Timing};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::support::cluster::OPERATOR_NAMESPACE;
use crate::support::world::{World, declarest, is_true};

/// One test, because all replicas of a cluster compete for the same lease.
#[tokio::test(flavor = "multi_thread")]
async fn one_replica_leads_until_it_hands_over_or_loses_the_lease() {
    let mut first = World::start_elected().await;
    first.create_server(json!({"baseURL": "https://api.example.test"})).await;
    first.server_reason("Ready").await;
    let leases: Api<Lease> = Api::namespaced(first.client.clone(), OPERATOR_NAMESPACE);
    let lease = async || -> LeaseSpec { leases.get(LEASE_NAME).await.unwrap().spec.unwrap() };
    let leader = lease().await.holder_identity.unwrap();

    let mut second = first.start_replica().await;
    let stands = "waiting for the lease";
    second.eventually("the second stands", || async { second.log().contains(stands).then_some(()) }).await;
    assert!(!second.log().contains("became leader"));

    let stopped = Timestamp::now();
    assert!(tokio::task::block_in_place(|| first.terminate()).success(), "{}", first.log());
    second.create(declarest("ManagedServer", "other", &json!({"http": {"baseURL": "https://b.test"}}))).await;
    let servers = second.api::<ManagedServer>();
    second
        .eventually("the second reconciles", || async {
            is_true(&servers.get("other").await.ok()?.status?.conditions, "Ready").then_some(())
        })
        .await;
    let taken = lease().await;
    assert_ne!(taken.holder_identity, Some(leader));
    let waited = taken.acquire_time.unwrap().0.duration_since(stopped);
    assert!(waited < jiff::SignedDuration::try_from(handover()).unwrap(), "not handed over: {waited}");

    let usurper = Patch::Merge(json!({"spec": {"holderIdentity": "usurper"}}));
    leases.patch(LEASE_NAME, &PatchParams::default(), &usurper).await.unwrap();
    assert!(!second.ended().await.success());
    assert!(second.log().contains("lost the lease"), "{}", second.log());
}

/// A lease that is not handed over is held at least so long after its leader ended.
fn handover() -> Duration {
    let timing = Timing::default();
    timing.duration.saturating_sub(timing.retry_period)
}
