//! Several replicas, one leader.

use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse as _;

use declarest_operator::crd::ManagedServer;
use declarest_operator::leader::{Timing, lease_name};
use declarest_operator::shard::{self, Members};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};

use crate::support::api_server::{ApiServer, Ids};
use crate::support::cluster::OPERATOR_NAMESPACE;
use crate::support::git_remote::GitRemote;
use crate::support::world::{World, declarest, is_true};

/// One test at a time, because all replicas of a cluster compete for the same lease.
static TURN: Mutex<()> = Mutex::const_new(());

#[tokio::test(flavor = "multi_thread")]
async fn one_replica_leads_until_it_hands_over_or_loses_the_lease() {
    let _turn = TURN.lock().await;
    let mut first = World::start_elected(&[], &[]).await;
    first.create_server(json!({"baseURL": "https://api.example.test"})).await;
    first.server_reason("Ready").await;
    let leases: Api<Lease> = Api::namespaced(first.client.clone(), OPERATOR_NAMESPACE);
    let name = lease_name(Some(&shard::name(&Members::Listed(vec![first.namespace.clone()]))));
    let lease = async || -> LeaseSpec { leases.get(&name).await.unwrap().spec.unwrap() };
    let leader = lease().await.holder_identity.unwrap();

    let mut second = first.start_replica(&[]).await;
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
    leases.patch(&name, &PatchParams::default(), &usurper).await.unwrap();
    assert!(!second.ended().await.success());
    assert!(second.log().contains("lost the lease"), "{}", second.log());
}

/// A lease that is not handed over is held at least so long after its leader ended.
fn handover() -> Duration {
    let timing = Timing::default();
    timing.duration.saturating_sub(timing.retry_period)
}

/// The time when a replica became the leader.
async fn leads(world: &World) -> Timestamp {
    world
        .eventually("the replica leads", || async {
            let log = world.log();
            let line = log.lines().rev().find(|line| line.contains("became leader"))?;
            let line: Value = serde_json::from_str(line).ok()?;
            line["timestamp"].as_str()?.parse().ok()
        })
        .await
}

async fn stands(world: &World) {
    let stands = || async { world.log().contains("waiting for the lease").then_some(()) };
    world.eventually("the replica stands", stands).await;
    // It has seen the lease of the leader.
    tokio::time::sleep(Timing::default().retry_period).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_over_soon_after_a_crash_and_at_once_after_a_stop() {
    let _turn = TURN.lock().await;
    let mut first = World::start_elected(&[], &[]).await;
    leads(&first).await;
    let mut second = first.start_replica(&[]).await;
    stands(&second).await;
    let killed = Timestamp::now();
    first.kill();
    let after_crash = leads(&second).await.duration_since(killed);
    assert!(after_crash < jiff::SignedDuration::from_secs(40), "{after_crash}");

    let third = second.start_replica(&[]).await;
    stands(&third).await;
    let stopped = Timestamp::now();
    assert!(tokio::task::block_in_place(|| second.terminate()).success(), "{}", second.log_tail());
    let after_stop = leads(&third).await.duration_since(stopped);
    assert!(after_stop < jiff::SignedDuration::try_from(handover()).unwrap(), "{after_stop}");
}

/// The other replica has written a value that the record of the first one does not have.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_of_write_only_attributes_does_not_outlast_the_term_of_another_leader() {
    let _turn = TURN.lock().await;
    let git = GitRemote::new();
    git.write("users/_/metadata.yaml", "resource: {writeOnlyAttributes: [/password]}\n");
    let commit = |password: &str| {
        git.write("users/ana/resource.json", json!({"id": "ana", "password": password}).to_string());
        git.commit(password);
        git.push();
        git.head()
    };
    let server = ApiServer::rest(&["/users"], Ids::Stated("id"));
    let mut first = World::start_elected(&[], &[]).await;
    let head = commit("one");
    first.create_repository(&git.file_url(), Value::Null).await;
    first.create_server(json!({"baseURL": server.url()})).await;
    first.create_policy(json!({})).await;
    first.applied(&head).await;

    let mut second = first.start_replica(&[]).await;
    stands(&second).await;
    assert!(tokio::task::block_in_place(|| first.terminate()).success(), "{}", first.log_tail());
    leads(&second).await;
    let head = commit("two");
    second.notify().await;
    second.applied(&head).await;

    first.launch().await;
    stands(&first).await;
    assert!(tokio::task::block_in_place(|| second.terminate()).success(), "{}", second.log_tail());
    leads(&first).await;
    let head = commit("one");
    first.notify().await;
    first.applied(&head).await;
    assert_eq!(server.get("/users/ana"), Some(json!({"id": "ana", "password": "one"})));
}

/// The limit of one request per second delays the first look at all objects by more than the renew deadline.
#[tokio::test(flavor = "multi_thread")]
async fn renewals_do_not_wait_for_requests_of_the_controllers() {
    let _turn = TURN.lock().await;
    let mut world = World::start_elected(&[], &["--kube-api-qps=1", "--kube-api-burst=1"]).await;
    for number in 0..15 {
        let spec = json!({"http": {"baseURL": "https://api.example.test"}});
        world.create(declarest("ManagedServer", &format!("s{number}"), &spec)).await;
    }
    leads(&world).await;
    let timing = Timing::default();
    tokio::time::sleep(timing.duration + timing.retry_period).await;
    assert!(!world.log().contains("cannot renew"), "{}", world.log_tail());
    let servers = world.api::<ManagedServer>();
    let ready = async || {
        let all = servers.list(&kube::api::ListParams::default()).await.unwrap().items;
        let is_reconciled = |server: &&ManagedServer| {
            server.status.as_ref().is_some_and(|status| !status.conditions.is_empty())
        };
        all.iter().filter(is_reconciled).count()
    };
    assert!(ready().await < 15, "the limit did not delay the controllers");
    assert!(tokio::task::block_in_place(|| world.terminate()).success(), "{}", world.log_tail());
}

/// A managed server that has none of its resources, so every run writes all of them. It records which replica sent each
/// write, and when.
#[derive(Clone, Default)]
struct Forgetful {
    writes: Arc<StdMutex<Vec<(String, Instant)>>>,
    /// The replica whose writes are not answered now.
    unanswered: watch::Sender<Option<&'static str>>,
}

impl Forgetful {
    async fn start(&self) -> String {
        let server = self.clone();
        let router = Router::new().fallback(move |request: Request| {
            let server = server.clone();
            async move {
                if request.method() == Method::GET {
                    let is_list = request.uri().path() == "/items";
                    return if is_list {
                        axum::Json(json!([])).into_response()
                    } else {
                        StatusCode::NOT_FOUND.into_response()
                    };
                }
                let replica = request.headers()["x-replica"].to_str().unwrap().to_owned();
                server.writes.lock().unwrap().push((replica.clone(), Instant::now()));
                // So that requests wait for each other.
                tokio::time::sleep(Duration::from_millis(50)).await;
                let mut unanswered = server.unanswered.subscribe();
                unanswered.wait_for(|unanswered| *unanswered != Some(replica.as_str())).await.unwrap();
                StatusCode::NO_CONTENT.into_response()
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, router).await });
        url
    }

    /// The times of the writes of a replica.
    fn writes(&self, replica: &str) -> Vec<Instant> {
        let writes = self.writes.lock().unwrap();
        writes.iter().filter(|(writer, _)| writer == replica).map(|(_, at)| *at).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_suspended_does_not_write_beside_its_successor() {
    let _turn = TURN.lock().await;
    let git = GitRemote::new();
    for number in 0..300 {
        git.write(&format!("items/i{number}/resource.json"), json!({"id": format!("i{number}")}).to_string());
    }
    git.commit("first");
    git.push();
    let mut first = World::start_elected(&[("DECLAREST_VAR_REPLICA", "first")], &[]).await;
    let server = Forgetful::default();
    first.create_repository(&git.file_url(), Value::Null).await;
    let http = json!({
        "baseURL": server.start().await, "defaultHeaders": {"X-Replica": "${DECLAREST_VAR_REPLICA}"},
        "requestThrottling": {"maxConcurrentRequests": 4, "queueSize": 400},
    });
    first.create_server(http).await;
    first.create_policy(json!({"source": {"path": "/items"}})).await;
    first
        .eventually("the first writes", || async { (server.writes("first").len() > 20).then_some(()) })
        .await;
    let second = first.start_replica(&[("DECLAREST_VAR_REPLICA", "second")]).await;
    stands(&second).await;
    first.request_sync().await;
    let before = server.writes("first").len();
    first
        .eventually("it writes again", || async { (server.writes("first").len() > before + 5).then_some(()) })
        .await;

    // A request that is not written completely when the process is suspended is written when it resumes. So all
    // requests have arrived before.
    server.unanswered.send_replace(Some("first"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.signal("-STOP");
    let suspended = Instant::now();
    server.unanswered.send_replace(None);
    second
        .eventually("the second writes", || async { (server.writes("second").len() > 5).then_some(()) })
        .await;
    tokio::time::sleep(Duration::from_secs(20).saturating_sub(suspended.elapsed())).await;
    first.signal("-CONT");
    assert!(!first.ended().await.success());
    assert!(first.log().contains("lost the lease"), "{}", first.log_tail());
    let last = *server.writes("first").last().unwrap();
    assert!(last < server.writes("second")[0], "both replicas wrote");
    assert!(last < suspended, "the suspended replica wrote again");
}
