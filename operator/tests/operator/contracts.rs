//! Contracts of managed servers: loading, verification of objects in the cluster, and policies that wait for them.

use std::net::SocketAddr;

use axum::Router;
use declarest_core::contract::status::{CheckKind, ContractStatus, Gate, Phase};
use declarest_operator::crd::{ManagedServer, ManagedServerStatus};
use http::Request;
use serde_json::{Value, json};

use crate::support::cluster::{Cluster, config_dir};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, condition, declarest, on_cluster};

const RUNTIME: &str = "runtime:
  workload: service
  state: {type: stateless, persistence: {scope: local, durability: ephemeral}, dataCriticality: low}
";

fn contract(version: &str, port: u16, more: &str) -> String {
    format!(
        "pactoVersion: '1.0'\nservice: {{name: shop, version: {version}, image: {{ref: 'r.io/shop:1'}}}}\n\
         interfaces: [{{name: api, type: http, port: {port}}}]\n{RUNTIME}  health: {{interface: api, path: /health}}\n{more}"
    )
}

/// Starts an operator that reaches all Services on this machine, with the rights of the overlay.
async fn start() -> World {
    if on_cluster() {
        let overlay = config_dir("overlays/runtime-verification");
        for file in ["role.yaml", "role_binding.yaml"] {
            Cluster::shared().kubectl(&["apply", "-f", &format!("{overlay}/{file}")]).unwrap();
        }
    }
    World::start_with(&["--resolve=*.svc=127.0.0.1"]).await
}

async fn web() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/health", axum::routing::get(async || "ok"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn send(world: &World, request: Request<Vec<u8>>) -> Value {
    world.client.request::<Value>(request).await.unwrap()
}

/// Creates an object as a user would, and its status as a controller of the cluster would.
async fn deploy(world: &World, plural: &str, mut object: Value) {
    let status = object.as_object_mut().unwrap().remove("status");
    let version = object["apiVersion"].as_str().unwrap();
    let root = if version.contains('/') { "apis" } else { "api" };
    let path = format!("/{root}/{version}/namespaces/{}/{plural}", world.namespace);
    let json = "application/json";
    let body = serde_json::to_vec(&object).unwrap();
    let created = send(world, Request::post(&path).header("content-type", json).body(body).unwrap()).await;
    if let Some(mut status) = status {
        status["observedGeneration"] = created["metadata"].get("generation").cloned().unwrap_or(json!(0));
        let path = format!("{path}/{}/status", object["metadata"]["name"].as_str().unwrap());
        let patch = serde_json::to_vec(&json!({"status": status})).unwrap();
        let merge = "application/merge-patch+json";
        send(world, Request::patch(path).header("content-type", merge).body(patch).unwrap()).await;
    }
}

async fn deploy_shop(world: &World, port: u16) {
    deploy(
        world,
        "services",
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"},
               "spec": {"selector": {"app": "shop"}, "ports": [{"port": port}]}}),
    )
    .await;
    deploy(
        world,
        "endpointslices",
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
               "metadata": {"name": "shop-1", "labels": {"kubernetes.io/service-name": "shop"}},
               "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": true}}]}),
    )
    .await;
    deploy_workload(world, "r.io/shop:1").await;
}

async fn deploy_workload(world: &World, image: &str) {
    deploy(
        world,
        "deployments",
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"},
               "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "shop"}},
                        "template": {"metadata": {"labels": {"app": "shop"}},
                                     "spec": {"containers": [{"name": "shop", "image": image}]}}},
               "status": {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}),
    )
    .await;
}

async fn create(world: &World, base: &str, contract: Value) {
    let spec = json!({"http": {"baseURL": base}, "contract": contract});
    world.create(declarest("ManagedServer", "server", &spec)).await;
}

/// Waits until the contract of the server is as wanted.
async fn verified(
    world: &World,
    what: &str,
    wanted: impl Fn(&ContractStatus) -> bool,
) -> ManagedServerStatus {
    let api = world.api::<ManagedServer>();
    world
        .eventually(what, || async {
            let status = api.get("server").await.ok()?.status?;
            status.contract.as_deref().is_some_and(&wanted).then_some(status)
        })
        .await
}

fn outcome(status: &ManagedServerStatus, kind: CheckKind) -> String {
    let contract = status.contract.as_ref().unwrap();
    let check = contract.checks.iter().find(|check| check.kind == kind).unwrap();
    format!("{} {}", check.status.as_str(), check.reason)
}

fn reason(status: &ManagedServerStatus) -> (String, String) {
    let verified = condition(&status.conditions, "ContractVerified");
    (verified.status, verified.reason)
}

#[tokio::test]
async fn a_contract_without_a_target_is_a_reference() {
    let world = start().await;
    create(&world, "http://127.0.0.1:1", json!({"inline": contract("1.0.0", 80, "")})).await;
    let status = verified(&world, "the contract is verified", |contract| contract.phase.is_some()).await;
    let contract = status.contract.as_ref().unwrap();
    assert_eq!((contract.phase, contract.version.as_deref()), (Some(Phase::Reference), Some("1.0.0")));
    assert_eq!(reason(&status), ("True".to_owned(), "Reference".to_owned()));
    assert_eq!(contract.source.as_deref(), Some("inline"));
}

#[tokio::test]
async fn an_invalid_contract_is_reported_and_keeps_the_history() {
    let world = start().await;
    create(&world, "http://127.0.0.1:1", json!({"inline": contract("1.0.0", 80, "")})).await;
    verified(&world, "the contract is verified", |contract| contract.phase == Some(Phase::Reference)).await;
    let broken = json!({"spec": {"contract": {"inline": "pactoVersion: '2.0'"}}});
    world.patch::<ManagedServer>("server", broken).await;
    let status =
        verified(&world, "the contract is invalid", |contract| contract.phase == Some(Phase::Invalid)).await;
    let contract = status.contract.as_ref().unwrap();
    assert_eq!(contract.validation.as_ref().unwrap().errors[0].code, "UNSUPPORTED_VERSION");
    assert_eq!(contract.history[0].version, "1.0.0");
    assert_eq!(reason(&status), ("False".to_owned(), "Invalid".to_owned()));
    let ready = condition(&status.conditions, "Ready");
    assert_eq!(ready.status, "True", "the contract does not affect Ready");
}

#[tokio::test]
async fn objects_in_the_cluster_are_compared() {
    let (world, address) = (start().await, web().await);
    deploy_shop(&world, address.port()).await;
    let spec = json!({"inline": contract("1.0.0", address.port(), "scaling: {min: 1, max: 2}\n"),
                      "target": {"service": "shop"}});
    create(&world, "http://127.0.0.1:1", spec).await;
    let status = verified(&world, "the contract is verified", |contract| contract.phase.is_some()).await;
    let contract = status.contract.as_ref().unwrap();
    assert_eq!(contract.phase, Some(Phase::Healthy), "{contract:#?}");
    assert_eq!(outcome(&status, CheckKind::HealthEndpointReachable), "True Match");
    assert_eq!(
        contract.endpoints[0].url,
        format!("http://shop.{}.svc:{}/health", world.namespace, address.port())
    );
    assert_eq!(contract.gate, Some(Gate::Open));
    assert_eq!(contract.observed.as_ref().unwrap().images[0].image, "r.io/shop:1");
}

#[tokio::test]
async fn a_change_of_the_target_is_noticed() {
    let (world, address) = (start().await, web().await);
    let spec = json!({"inline": contract("1.0.0", address.port(), ""), "target": {"service": "shop"}});
    create(&world, "http://127.0.0.1:1", spec).await;
    let status = verified(&world, "the target is missing", |contract| contract.phase.is_some()).await;
    assert_eq!(status.contract.as_ref().unwrap().phase, Some(Phase::Degraded));
    for kind in [CheckKind::ServiceExists, CheckKind::WorkloadExists] {
        assert_eq!(outcome(&status, kind), "False NotFound");
    }
    // The next interval is later than the test waits.
    world.patch::<ManagedServer>("server", json!({"spec": {"pollInterval": "1h"}})).await;
    deploy_shop(&world, address.port()).await;
    verified(&world, "the target is deployed", |contract| contract.phase == Some(Phase::Healthy)).await;
}

#[tokio::test]
async fn a_policy_waits_for_the_contract() {
    let (world, address) = (start().await, web().await);
    let git = GitRemote::new();
    git.write("shops/rio/resource.yaml", "id: rio\n");
    git.commit("first");
    git.push();
    let collections = vec!["/shops".to_owned()];
    let server = RestServer::start(Config { collections, ..Config::default() }).unwrap();
    world.create_repository(&git.file_url(), Value::Null).await;
    let spec = json!({"inline": contract("1.0.0", address.port(), ""), "target": {"service": "shop"}, "gateSync": true});
    create(&world, &server.url(), spec).await;
    world.create_policy(json!({})).await;
    let (_, message) = world.policy_reason("DependencyNotReady").await;
    assert!(message.contains("gateSync"), "{message}");
    verified(&world, "the gate is closed", |contract| contract.gate == Some(Gate::Closed)).await;
    assert_eq!(server.writes().len(), 0);
    deploy_shop(&world, address.port()).await;
    world.policy_reason("Ready").await;
    assert_eq!(server.writes().len(), 1);
}

#[tokio::test]
async fn a_registry_that_fails_leaves_the_last_contract_in_use() {
    let world = start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let text = contract("1.0.0", 80, "");
    let router = Router::new().fallback(async move || text.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    create(&world, "http://127.0.0.1:1", json!({"url": format!("http://{address}/pacto.yaml?token=canary")}))
        .await;
    let status = verified(&world, "the contract is loaded", |contract| contract.hash.is_some()).await;
    let source = status.contract.as_ref().unwrap().source.clone().unwrap();
    assert_eq!(source, format!("http://{address}/pacto.yaml"));
    serving.abort();
    world.patch::<ManagedServer>("server", json!({"spec": {"pollInterval": "11m"}})).await;
    let status = verified(&world, "the last contract is used", |contract| contract.stale).await;
    assert_eq!(status.contract.as_ref().unwrap().phase, Some(Phase::Reference));
    // A copy of another source is not used.
    let other = json!({"spec": {"contract": {"url": format!("http://{address}/other.yaml")}}});
    world.patch::<ManagedServer>("server", other).await;
    let status =
        verified(&world, "there is no contract", |contract| contract.phase == Some(Phase::Invalid)).await;
    assert_eq!(reason(&status), ("False".to_owned(), "ContractUnavailable".to_owned()));
    assert!(!format!("{status:?}{}", world.log()).contains("canary"));
}
