//! When contracts are verified, what a verification announces, and what it starts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, Uri};
use declarest_core::contract::status::{CheckKind, ContractStatus, Gate, Phase};
use declarest_operator::crd::ManagedServer;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use rstest::rstest;
use serde_json::{Value, json};

use super::contract_server::serve;
use super::contracts::{
    contract, create, deploy, deploy_shop, outcome, start_clustered, start_with, verified, web,
};
use super::events::event;
use super::metrics::{METRICS, series};
use crate::support::faulty_api::Trouble;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, condition, declarest};

/// Nothing listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

/// The next interval is later than a test waits.
async fn once_an_hour(world: &World) {
    world.patch::<ManagedServer>("server", json!({"spec": {"pollInterval": "1h"}})).await;
}

fn is(phase: Phase) -> impl Fn(&ContractStatus) -> bool {
    move |contract| contract.phase == Some(phase)
}

async fn deploy_autoscaler(world: &World, max: u32) {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"});
    let spec = json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": max});
    let metadata = json!({"name": "scaler"});
    let kind = "HorizontalPodAutoscaler";
    deploy(world, json!({"apiVersion": "autoscaling/v2", "kind": kind, "metadata": metadata, "spec": spec}))
        .await;
}

/// Each change comes back once, because a pass that another event started may see the first one.
#[rstest]
#[case::created(false)]
#[case::changed(true)]
#[tokio::test]
async fn an_autoscaler_is_noticed(#[case] exists: bool) {
    let (mut world, address) = (start_with(&[]).await, web().await);
    world.patience *= 2;
    deploy_shop(&world, address.port()).await;
    if exists {
        deploy_autoscaler(&world, 2).await;
    }
    let document = contract("1.0.0", address.port(), "scaling: {min: 1, max: 2}\n");
    create(&world, NOWHERE, json!({"inline": document, "target": {"service": "shop"}})).await;
    once_an_hour(&world).await;
    let change = async |max: u32| {
        if exists {
            let range = json!({"spec": {"maxReplicas": max}});
            world.patch::<HorizontalPodAutoscaler>("scaler", range).await;
        } else if max > 2 {
            deploy_autoscaler(&world, max).await;
        } else {
            world.delete::<HorizontalPodAutoscaler>("scaler").await;
        }
    };
    verified(&world, "the replicas are in range", is(Phase::Healthy)).await;
    for _ in 0..2 {
        change(9).await;
        let status = verified(&world, "the autoscaler exceeds the range", is(Phase::Degraded)).await;
        assert_eq!(outcome(&status, CheckKind::ScalingMatches), "False AutoscalerOutOfRange");
        change(2).await;
        verified(&world, "the autoscaler is in range", is(Phase::Healthy)).await;
    }
}

#[tokio::test]
async fn phases_are_announced_and_measured() {
    let (world, address) = (start_with(&[METRICS]).await, web().await);
    let document = contract("1.0.0", address.port(), "");
    create(&world, NOWHERE, json!({"inline": document, "target": {"service": "shop"}})).await;
    let (type_, note) = event(&world, "ContractDegraded").await;
    assert!(type_ == "Warning" && note.contains("ServiceExists NotFound"), "{type_}: {note}");
    assert_eq!(
        event(&world, "ContractLoaded").await,
        ("Normal".to_owned(), "contract shop 1.0.0 was loaded".to_owned())
    );
    let of =
        |name: &str, more: &str| format!(r#"{name}{{{more}name="server",namespace="{}"}}"#, world.namespace);
    let failed = r#"check="ServiceExists",name="server",namespace="#;
    let failed = format!(r#"contract_check{{{failed}"{}",status="False"}}"#, world.namespace);
    series(&world, &failed, |value| value > 0.5).await;
    series(&world, &of("contract_last_verified_timestamp_seconds", ""), |value| value > 1e9).await;

    deploy_shop(&world, address.port()).await;
    assert_eq!(event(&world, "ContractVerified").await.0, "Normal");
    let phase = |phase: &str| {
        format!(r#"contract_phase{{name="server",namespace="{}",phase="{phase}"}}"#, world.namespace)
    };
    series(&world, &phase("Healthy"), |value| value > 0.5).await;

    let broken = json!({"spec": {"contract": {"inline": "pactoVersion: '2.0'"}}});
    world.patch::<ManagedServer>("server", broken).await;
    let (type_, note) = event(&world, "ContractInvalid").await;
    assert!(type_ == "Warning" && note.contains("UNSUPPORTED_VERSION"), "{type_}: {note}");
    series(&world, &phase("Invalid"), |value| value > 0.5).await;

    let absent = json!({"spec": {"contract": {"inline": null, "url": format!("{NOWHERE}/pacto.yaml")}}});
    world.patch::<ManagedServer>("server", absent).await;
    assert_eq!(event(&world, "ContractUnavailable").await.0, "Warning");

    world.patch::<ManagedServer>("server", json!({"spec": {"contract": null}})).await;
    let no_contract = || async {
        let status = world.api::<ManagedServer>().get("server").await.ok()?.status?;
        let is_reported = status.conditions.iter().any(|condition| condition.type_ == "ContractVerified");
        (status.contract.is_none() && !is_reported).then_some(())
    };
    world.eventually("nothing is left of the contract", no_contract).await;
}

#[tokio::test]
async fn a_contract_is_verified_although_artifacts_cannot_be_fetched() {
    let world = start_with(&[]).await;
    let spec = json!({
        "http": {"baseURL": NOWHERE},
        "openapi": {"url": format!("{NOWHERE}/openapi.json")},
        "contract": {"inline": contract("1.0.0", 80, "")},
    });
    world.create(declarest("ManagedServer", "server", &spec)).await;
    let status = verified(&world, "the contract is verified", is(Phase::Reference)).await;
    assert_eq!(condition(&status.conditions, "Ready").reason, "ArtifactUnavailable");
}

/// The interval of ten minutes is later than the test ends.
#[tokio::test]
async fn a_changed_target_downloads_no_document_again() {
    let (world, address) = (start_with(&[]).await, web().await);
    deploy_shop(&world, address.port()).await;
    let (text, asked) = (contract("1.0.0", address.port(), ""), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&asked);
    let document = async move |uri: Uri| {
        counted.fetch_add(1, Ordering::Relaxed);
        let openapi = r#"{"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": {}}"#;
        if uri.path() == "/pacto.yaml" { text } else { openapi.to_owned() }
    };
    let source = serve(Router::new().fallback(document)).await;
    let spec = json!({
        "http": {"baseURL": NOWHERE},
        "openapi": {"url": format!("http://{source}/openapi.json")},
        "contract": {"url": format!("http://{source}/pacto.yaml"), "target": {"service": "shop"}},
    });
    world.create(declarest("ManagedServer", "server", &spec)).await;
    verified(&world, "the documents are loaded", is(Phase::Healthy)).await;
    for (image, phase) in [("r.io/shop:2", Phase::Degraded), ("r.io/shop:1", Phase::Healthy)] {
        let image =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": image}]}}}});
        world.patch::<k8s_openapi::api::apps::v1::Deployment>("shop", image).await;
        let status = verified(&world, phase.as_str(), is(phase)).await;
        assert_eq!(condition(&status.conditions, "ArtifactsCached").reason, "Cached");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

/// The last copy also serves after a restart, and its checks are run.
#[tokio::test]
async fn the_last_contract_is_compared_while_its_source_fails() {
    let (mut world, address) = (start_clustered().await, web().await);
    deploy_shop(&world, address.port()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source = format!("http://{}/pacto.yaml", listener.local_addr().unwrap());
    let text = contract("1.0.0", address.port(), "");
    let router = Router::new().fallback(async move || text.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    create(&world, NOWHERE, json!({"url": source, "target": {"service": "shop"}})).await;
    verified(&world, "the contract is loaded", is(Phase::Healthy)).await;
    serving.abort();
    let _ = serving.await;
    world.kill();
    world.launch().await;
    let status = verified(&world, "the last contract is used", |contract| contract.stale).await;
    assert_eq!(status.contract.as_ref().unwrap().phase, Some(Phase::Healthy));
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "r.io/shop:2"}]}}}});
    world.patch::<k8s_openapi::api::apps::v1::Deployment>("shop", image).await;
    let status = verified(&world, "the objects are compared", is(Phase::Degraded)).await;
    assert!(status.contract.as_ref().unwrap().stale);
    assert_eq!(outcome(&status, CheckKind::ImageMatches), "False Mismatch");
}

/// A policy that was synced once, on a server without a contract.
async fn synced(world: &World, git: &GitRemote) -> RestServer {
    git.write("shops/rio/resource.yaml", "id: rio\n");
    let first = git.commit("first");
    git.push();
    let collections = vec!["/shops".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    world.create_repository(&git.file_url(), Value::Null).await;
    world.create_server(json!({"baseURL": server.url()})).await;
    world.create_policy(json!({})).await;
    world.applied(&first).await;
    server
}

#[tokio::test]
async fn a_change_of_the_contract_alone_starts_no_run() {
    let (world, git) = (start_with(&[]).await, GitRemote::new());
    let _server = synced(&world, &git).await;
    let full = world.policy("it is synced", |_| true).await.last_full_resync_time;
    for version in ["1.0.0", "2.0.0"] {
        let change = json!({"spec": {"contract": {"inline": contract(version, 80, "")}}});
        world.patch::<ManagedServer>("server", change).await;
        verified(&world, version, |contract| contract.version.as_deref() == Some(version)).await;
    }
    git.write("shops/oslo/resource.yaml", "id: oslo\n");
    let second = git.commit("second");
    git.push();
    world.notify().await;
    let status = world.applied(&second).await;
    assert_eq!(status.last_trigger.as_deref(), Some("RevisionChanged"));
    assert_eq!(status.last_full_resync_time, full, "the contract started a full run");
}

#[tokio::test]
async fn a_failing_check_holds_a_policy_back_again() {
    let (world, git, address) = (start_with(&[]).await, GitRemote::new(), web().await);
    let server = synced(&world, &git).await;
    deploy_shop(&world, address.port()).await;
    let document = contract("1.0.0", address.port(), "");
    let gated = json!({"inline": document, "target": {"service": "shop"}, "gateSync": true, "severity": {"ImageMatches": "error"}});
    world.patch::<ManagedServer>("server", json!({"spec": {"contract": gated}})).await;
    verified(&world, "the gate is open", |contract| contract.gate == Some(Gate::Open)).await;
    world.policy_reason("Ready").await;

    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "r.io/shop:2"}]}}}});
    world.patch::<k8s_openapi::api::apps::v1::Deployment>("shop", image).await;
    world.policy_reason("DependencyNotReady").await;
    let writes = server.writes().len();
    git.write("shops/oslo/resource.yaml", "id: oslo\n");
    let second = git.commit("second");
    git.push();
    world.notify().await;
    world.fetched(&second).await;
    world.request_sync().await;
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "r.io/shop:1"}]}}}});
    assert_eq!(server.writes().len(), writes);
    world.patch::<k8s_openapi::api::apps::v1::Deployment>("shop", image).await;
    world.applied(&second).await;
    assert_eq!(server.writes().len(), writes + 1);
}

#[tokio::test]
async fn what_cannot_be_read_keeps_the_gate() {
    let (world, api) = World::start_behind(&["--resolve=*.svc=127.0.0.1"]).await;
    let address = web().await;
    deploy_shop(&world, address.port()).await;
    let spec = json!({"inline": contract("1.0.0", address.port(), ""), "target": {"service": "shop"}, "gateSync": true});
    create(&world, NOWHERE, spec).await;
    verified(&world, "the gate is open", |contract| contract.gate == Some(Gate::Open)).await;
    api.set(Trouble::Forbidden("/services"));
    once_an_hour(&world).await;
    let status = verified(&world, "the Service cannot be read", is(Phase::Degraded)).await;
    assert_eq!(outcome(&status, CheckKind::ServiceExists), "Unknown ObservationFailed");
    assert_eq!(status.contract.unwrap().gate, Some(Gate::Open));
}

/// A service that keeps the headers of its requests.
async fn recording() -> (u16, Arc<Mutex<Vec<HeaderMap>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let answer = async move |headers: HeaderMap| {
        kept.lock().unwrap().push(headers);
        "ok"
    };
    (serve(Router::new().route("/health", axum::routing::get(answer))).await.port(), seen)
}

#[rstest]
#[case::service(json!({"service": "shop"}))]
#[case::base_url(json!({"workload": {"name": "shop"}}))]
#[tokio::test]
async fn probes_have_no_credentials_and_no_headers_of_the_user(#[case] target: Value) {
    let world = start_with(&[]).await;
    let (port, seen) = recording().await;
    deploy_shop(&world, port).await;
    world.create_secret("login", &[("user", "canary"), ("key", "canary")]).await;
    let key = |key: &str| json!({"name": "login", "key": key});
    let http = json!({
        "baseURL": format!("http://127.0.0.1:{port}/api"),
        "defaultHeaders": {"X-Team": "canary"},
        "auth": {"basicAuth": {"usernameRef": key("user"), "passwordRef": key("key")}},
    });
    let contract = json!({"inline": contract("1.0.0", port, ""), "target": target});
    let spec = json!({"http": http, "contract": contract});
    world.create(declarest("ManagedServer", "server", &spec)).await;
    let status = verified(&world, "the contract is verified", |contract| contract.phase.is_some()).await;
    assert_eq!(outcome(&status, CheckKind::HealthEndpointReachable), "True Match");
    let seen = seen.lock().unwrap();
    assert!(!seen.is_empty());
    for headers in seen.iter() {
        assert!(!headers.contains_key("authorization") && !headers.contains_key("x-team"), "{headers:?}");
    }
}
