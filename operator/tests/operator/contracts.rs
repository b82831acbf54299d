//! Contracts of managed servers: loading, verification of objects in the cluster, and policies that wait for them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use axum::Router;
use declarest_core::contract::status::{CheckKind, ContractStatus, Gate, Phase};
use declarest_operator::crd::{ManagedServer, ManagedServerStatus};
use futures::future::join_all;
use http::Request;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::contract_server::{ProbedServer, serve};
use crate::contract_table::{Row, rows};
use crate::support::cluster::{Cluster, OPERATOR_NAMESPACE, config_dir};
use crate::support::faulty_api::Trouble;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, condition, declarest, on_cluster};

pub const RUNTIME: &str = "runtime:
  workload: service
  state: {type: stateless, persistence: {scope: local, durability: ephemeral}, dataCriticality: low}
";

pub fn contract(version: &str, port: u16, more: &str) -> String {
    format!(
        "pactoVersion: '1.0'\nservice: {{name: shop, version: {version}, image: {{ref: 'r.io/shop:1'}}}}\n\
         interfaces: [{{name: api, type: http, port: {port}}}]\n{RUNTIME}  health: {{interface: api, path: /health}}\n{more}"
    )
}

/// Starts an operator that reaches all Services on this machine, with the rights of the overlay.
pub async fn start() -> World {
    start_with(&[]).await
}

/// The same with further flags.
pub async fn start_with(arguments: &[&str]) -> World {
    start_resolving(&[&["--resolve=*.svc=127.0.0.1"], arguments].concat()).await
}

/// Starts an operator that reaches Services as these flags state.
pub async fn start_resolving(arguments: &[&str]) -> World {
    grant_rights();
    World::start_with(arguments).await
}

/// The same with an API that outlives the operator.
pub async fn start_clustered() -> World {
    grant_rights();
    World::start_clustered(&["--resolve=*.svc=127.0.0.1"]).await
}

fn grant_rights() {
    // kubectl fails if two of them create the same object.
    static RIGHTS: Once = Once::new();
    if on_cluster() {
        RIGHTS.call_once(|| {
            let overlay = config_dir("overlays/runtime-verification");
            for file in ["role.yaml", "role_binding.yaml"] {
                Cluster::shared().kubectl(&["apply", "-f", &format!("{overlay}/{file}")]).unwrap();
            }
        });
    }
}

pub async fn web() -> SocketAddr {
    serve(Router::new().route("/health", axum::routing::get(async || "ok"))).await
}

pub async fn send(world: &World, request: Request<Vec<u8>>) -> Value {
    world.client.request::<Value>(request).await.unwrap()
}

/// Creates an object as a user would, and its status as a controller of the cluster would.
pub async fn deploy(world: &World, mut object: Value) {
    let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
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

pub async fn deploy_shop(world: &World, port: u16) {
    deploy_service(world, json!({"port": port})).await;
    deploy_workload(world, "r.io/shop:1").await;
}

/// Deploys a Service with this port and an endpoint that is ready.
pub async fn deploy_service(world: &World, port: Value) {
    deploy(
        world,
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"},
               "spec": {"selector": {"app": "shop"}, "ports": [port]}}),
    )
    .await;
    deploy(
        world,
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
               "metadata": {"name": "shop-1", "labels": {"kubernetes.io/service-name": "shop"}},
               "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": true}}]}),
    )
    .await;
}

pub async fn deploy_workload(world: &World, image: &str) {
    deploy(
        world,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"},
               "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "shop"}},
                        "template": {"metadata": {"labels": {"app": "shop"}},
                                     "spec": {"containers": [{"name": "shop", "image": image}]}}},
               "status": {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}),
    )
    .await;
}

pub async fn create(world: &World, base: &str, contract: Value) {
    let spec = json!({"http": {"baseURL": base}, "contract": contract});
    world.create(declarest("ManagedServer", "server", &spec)).await;
}

/// Waits until the contract of the server is as wanted.
pub async fn verified(
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

pub fn outcome(status: &ManagedServerStatus, kind: CheckKind) -> String {
    let contract = status.contract.as_ref().unwrap();
    let check = contract.checks.iter().find(|check| check.kind == kind).unwrap();
    format!("{} {}", check.status.as_str(), check.reason)
}

pub fn reason(status: &ManagedServerStatus) -> (String, String) {
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

/// Returns the statuses of all servers by name.
async fn statuses(world: &World) -> BTreeMap<String, ManagedServerStatus> {
    let servers = world.api::<ManagedServer>().list(&ListParams::default()).await.unwrap();
    let with_status = |server: ManagedServer| Some((server.name_any(), server.status?));
    servers.into_iter().filter_map(with_status).collect()
}

/// Whether a status has a fact of the table.
fn has(status: &ManagedServerStatus, fact: &str) -> bool {
    let contract = status.contract.as_ref().unwrap();
    let code = |name: &str| {
        let findings = contract.validation.iter().flat_map(|found| match name {
            "error" => found.errors.iter(),
            _ => found.warnings.iter(),
        });
        findings.map(|finding| finding.code.clone()).collect::<Vec<_>>()
    };
    let (name, rest) = fact.split_once(' ').unwrap();
    match name {
        "phase" => contract.phase.unwrap().as_str() == rest,
        "gate" => contract.gate.unwrap().as_str() == rest,
        "reason" => reason(status).1 == rest,
        "error" | "warning" => code(name).contains(&rest.to_owned()),
        check => outcome(status, CheckKind::named(check).unwrap()) == rest,
    }
}

/// Replaces the placeholders of a row.
fn filled(value: &Value, row: &Row, port: u16) -> Value {
    let text = value.to_string().replace("\"PORT\"", &port.to_string());
    serde_json::from_str(&text.replace("PORT", &port.to_string()).replace("NAME", row.name)).unwrap()
}

#[tokio::test]
async fn every_rule_of_the_table() {
    let mut world = start().await;
    world.patience *= 4;
    if on_cluster() {
        // No controller of the cluster creates the account that pods need.
        deploy(
            &world,
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}),
        )
        .await;
    }
    let server = ProbedServer::start().await;
    let port = server.address.port();
    let rows = rows();
    for row in &rows {
        for object in &row.objects {
            deploy(&world, filled(object, row, port)).await;
        }
        let mut contract = filled(&row.contract, row, port);
        let target = row.target.clone().unwrap_or(json!({"service": "NAME"}));
        contract["target"] = filled(&target, row, port);
        let spec = json!({"http": {"baseURL": "http://127.0.0.1:1"}, "contract": contract});
        world.create(declarest("ManagedServer", row.name, &spec)).await;
    }
    let found = world
        .eventually("all contracts are verified", || async {
            let found = statuses(&world).await;
            let verified = |row: &Row| found.get(row.name).is_some_and(|status| status.contract.is_some());
            rows.iter().all(verified).then_some(found)
        })
        .await;
    let wrong: Vec<String> = rows
        .iter()
        .flat_map(|row| row.expected.iter().map(move |fact| (row.name, *fact)))
        .filter(|(name, fact)| !has(&found[*name], fact))
        .map(|(name, fact)| format!("{name} is not {fact}: {:#?}", found[name].contract))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(server.elsewhere.load(Ordering::Relaxed), 0, "a probe followed a redirect to another origin");
    let texts = format!("{found:?}{}", world.log());
    assert!(!texts.contains("canary"), "a query or a body of an answer was reported");
    if on_cluster() {
        let written = Cluster::shared().written(&world.namespace);
        let own = |(group, plural): &(String, String)| group == "declarest.io" || plural == "events";
        assert!(written.iter().any(|(group, _)| group == "declarest.io"), "{written:?}");
        assert!(written.iter().all(own), "the operator writes other objects: {written:?}");
        let written = Cluster::shared().written(OPERATOR_NAMESPACE);
        let own = |(group, plural): &(String, String)| group == "coordination.k8s.io" && plural == "leases";
        assert!(written.iter().all(own), "the operator writes other objects in its namespace: {written:?}");
        let written = Cluster::shared().written("");
        assert!(written.is_empty(), "the operator writes objects of the cluster: {written:?}");
    }
}

#[tokio::test]
async fn without_the_right_to_read_services_nothing_is_known_of_them() {
    let (world, api) = World::start_behind(&["--resolve=*.svc=127.0.0.1"]).await;
    let address = web().await;
    deploy_shop(&world, address.port()).await;
    api.set(Trouble::Forbidden("/services"));
    let spec = json!({"inline": contract("1.0.0", address.port(), ""), "target": {"service": "shop"}, "gateSync": true});
    create(&world, "http://127.0.0.1:1", spec).await;
    let status = verified(&world, "the contract is verified", |contract| contract.phase.is_some()).await;
    for kind in [CheckKind::ServiceExists, CheckKind::PortsAligned, CheckKind::HealthEndpointReachable] {
        assert_eq!(outcome(&status, kind), "Unknown ObservationFailed");
    }
    assert_eq!(outcome(&status, CheckKind::ImageMatches), "True Match");
    let message = condition(&status.conditions, "ContractVerified").message;
    assert!(message.contains("apply config/overlays/runtime-verification"), "{message}");
    api.set(Trouble::None);
    verified(&world, "the right is granted", |contract| contract.phase == Some(Phase::Healthy)).await;
}

/// Returns the number of requests for one object of a target, and for a list of them.
fn reads(requests: &[String]) -> (usize, usize) {
    let count = |plurals: &[&str]| {
        let reads = |request: &&String| plurals.iter().any(|plural| request.contains(plural));
        requests.iter().filter(reads).count()
    };
    let objects =
        count(&["/services/", "/deployments/", "/statefulsets/", "/daemonsets/", "/persistentvolumeclaims/"]);
    // Watches have lists of other kinds.
    (objects, count(&["/pods?", "/endpointslices?", "/horizontalpodautoscalers?"]))
}

#[tokio::test]
#[ignore = "takes minutes; docs/performance.md has its figures"]
async fn five_hundred_contracts_stay_within_their_limits() {
    const SERVERS: usize = 500;
    let (mut world, api) = World::start_behind(&["--resolve=*.svc=127.0.0.1"]).await;
    world.patience *= 5;
    let (busy, peak, probes) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let counts = Arc::new((busy, peak, probes));
    let counted = Arc::clone(&counts);
    let router = Router::new().fallback(async move || {
        let (busy, peak, probes) = &*counted;
        probes.fetch_add(1, Ordering::Relaxed);
        peak.fetch_max(busy.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(5)).await;
        busy.fetch_sub(1, Ordering::Relaxed);
        "ok"
    });
    let port = serve(router).await.port();
    deploy_shop(&world, port).await;
    let document =
        contract("1.0.0", port, "  metrics: {interface: api, path: /metrics}\nscaling: {min: 1, max: 2}\n");
    let spec = json!({"http": {"baseURL": "http://127.0.0.1:1"}, "pollInterval": "1h",
                      "contract": {"inline": document, "target": {"service": "shop"}}});
    let started = Instant::now();
    let names = (0..SERVERS).map(|number| format!("server-{number}"));
    join_all(names.map(|name| world.create(declarest("ManagedServer", &name, &spec)))).await;
    world
        .eventually("all contracts are verified", || async {
            let found = statuses(&world).await;
            let phase =
                |status: &ManagedServerStatus| status.contract.as_ref().and_then(|contract| contract.phase);
            let healthy = found.values().filter(|status| phase(status) == Some(Phase::Healthy)).count();
            (healthy == SERVERS).then_some(())
        })
        .await;
    let requests = api.requests();
    let (gets, lists) = reads(&requests);
    let (peak, probes) = (counts.1.load(Ordering::Relaxed), counts.2.load(Ordering::Relaxed));
    println!(
        "{SERVERS} contracts: {:?}, {gets} GETs, {lists} lists, {probes} probes, at most {peak} at once, {} requests, \
         {} MiB at peak",
        started.elapsed(),
        requests.len(),
        world.peak_memory()
    );
    // Each pass reads at least the Service. A pass may follow the start of a watch.
    let passes = requests.iter().filter(|request| request.contains("/services/shop")).count();
    assert!((SERVERS..=2 * SERVERS).contains(&passes), "{passes} passes");
    assert!(gets <= 16 * passes && lists <= 3 * passes && probes <= 2 * passes, "{gets} {lists} {probes}");
    assert!(peak <= 8, "{peak} probes at the same time, but four passes send at most two each");
    assert!(world.peak_memory() < 256, "{} MiB", world.peak_memory());
}

#[tokio::test]
async fn the_history_has_an_entry_for_each_change() {
    let world = start().await;
    create(&world, "http://127.0.0.1:1", json!({"inline": contract("1.0.0", 80, "")})).await;
    for (version, length) in [("1.0.0", 1), ("2.0.0", 2), ("1.0.0", 3)] {
        let change = json!({"spec": {"contract": {"inline": contract(version, 80, "")}}});
        world.patch::<ManagedServer>("server", change).await;
        verified(&world, "the version is in the history", |contract| contract.history.len() == length).await;
    }
    let status = verified(&world, "the history is complete", |contract| contract.history.len() == 3).await;
    let history = &status.contract.as_ref().unwrap().history;
    let versions: Vec<&str> = history.iter().map(|entry| entry.version.as_str()).collect();
    assert_eq!(versions, ["1.0.0", "2.0.0", "1.0.0"]);
}
