use std::collections::BTreeSet;

use rstest::rstest;
use serde_json::{Value, json};

use super::super::document::Document;
use super::super::objects::Selector;
use super::super::observe::{Cluster, ObjectKind, observe};
use super::super::request::probe_requests;
use super::super::snapshot::{ProbeAnswer, Probed};
use super::super::target::{ProbeVia, WorkloadKind};
use super::super::time;
use super::*;

const NOW: &str = "2026-01-31T12:00:00Z";
const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A namespace with objects.
#[derive(Default)]
struct Objects {
    all: Vec<Value>,
    forbidden: BTreeSet<ObjectKind>,
}

impl Objects {
    fn of(&self, kind: ObjectKind) -> Result<Vec<Value>, String> {
        if self.forbidden.contains(&kind) {
            return Err(format!("{} is forbidden", kind.names().2));
        }
        Ok(self.all.iter().filter(|object| object["kind"] == kind.names().1).cloned().collect())
    }
}

impl Cluster for Objects {
    async fn get(&self, kind: ObjectKind, name: &str) -> Result<Option<Value>, String> {
        Ok(self.of(kind)?.into_iter().find(|object| object["metadata"]["name"] == name))
    }

    async fn list(&self, kind: ObjectKind, _: Option<&Selector>, _: usize) -> Result<Vec<Value>, String> {
        self.of(kind)
    }
}

fn contract(fields: &str) -> Contract {
    let text = format!("pactoVersion: '1.0'\nservice: {{name: shop, version: 1.0.0}}\n{fields}");
    let document = Document::read(text.as_bytes(), None);
    document.contract.unwrap_or_else(|| panic!("{:?}", document.errors))
}

fn runtime(workload: &str, state: &str, scope: &str, durability: &str, rest: &str) -> String {
    format!(
        "runtime: {{workload: {workload}, state: {{type: {state}, persistence: {{scope: {scope}, \
         durability: {durability}}}, dataCriticality: low}}{rest}}}"
    )
}

fn stateless(rest: &str) -> String {
    runtime("service", "stateless", "local", "ephemeral", rest)
}

fn service(ports: impl Into<Value>) -> Value {
    let ports: Value = ports.into();
    json!({"kind": "Service", "metadata": {"name": "shop"},
           "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "ports": ports}})
}

/// A settled workload with two replicas, and changes to its spec.
fn workload(kind: &str, changes: Value) -> Value {
    let mut object = json!({
        "kind": kind,
        "metadata": {"name": "shop", "generation": 2},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "shop"}},
            "template": {"spec": {"containers": [{"name": "shop", "image": "r.io/a:1",
                "ports": [{"name": "http", "containerPort": 8080}]}]}},
        },
        "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2},
    });
    merge(&mut object, changes);
    object
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn pod(image: &str, id: &str) -> Value {
    json!({"kind": "Pod", "metadata": {"name": "shop-1", "labels": {"app": "shop"},
                                        "creationTimestamp": "2026-01-31T11:59:55Z"},
           "spec": {"containers": [{"name": "side", "image": "side:1"}, {"name": "shop", "image": image}]},
           "status": {"containerStatuses": [{"name": "shop", "imageID": id}]}})
}

fn slices(ready: bool) -> Value {
    json!({"kind": "EndpointSlice", "metadata": {"name": "shop-x"},
           "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": ready}}]})
}

fn target() -> Target {
    Target {
        namespace: "team".to_owned(),
        service: Some("shop".to_owned()),
        workload: None,
        kind: None,
        probe: ProbeVia::Service(None),
    }
}

async fn verified(contract: &Contract, target: &Target, objects: &Objects) -> Vec<Check> {
    let snapshot = observe(contract, target, objects, time::parse(NOW).unwrap()).await;
    verify(contract, target, &Severities::new(), &snapshot).checks
}

fn find(checks: &[Check], kind: CheckKind) -> String {
    let check = checks.iter().find(|check| check.kind == kind).unwrap();
    format!("{} {}", check.status.as_str(), check.reason)
}

/// Returns status and reason of one check.
async fn outcome(kind: CheckKind, fields: &str, objects: Vec<Value>) -> String {
    let objects = Objects { all: objects, ..Objects::default() };
    find(&verified(&contract(fields), &target(), &objects).await, kind)
}

#[tokio::test]
async fn without_a_target_a_contract_is_a_reference() {
    let target = Target { service: None, ..target() };
    let checks = verified(&contract(""), &target, &Objects::default()).await;
    assert_eq!((checks.len(), phase(&checks), gate(&checks, None)), (0, Phase::Reference, Gate::Open));
}

#[tokio::test]
async fn a_missing_service_fails_once() {
    let objects = Objects { all: vec![workload("Deployment", json!({}))], ..Objects::default() };
    let contract = contract("interfaces: [{name: api, type: http, port: 8080}]");
    let checks = verified(&contract, &target(), &objects).await;
    assert_eq!(find(&checks, CheckKind::ServiceExists), "False NotFound");
    assert_eq!(find(&checks, CheckKind::PortsAligned), "Unknown NotApplicable");
    assert_eq!(phase(&checks), Phase::Degraded);
    let message = &checks[0].message;
    assert_eq!(message, "Service expected Service shop, observed none");
}

#[tokio::test]
async fn a_forbidden_service_is_not_observed() {
    let forbidden = [ObjectKind::Service].into();
    let objects = Objects { all: vec![workload("Deployment", json!({}))], forbidden };
    let contract = contract("interfaces: [{name: api, type: http, port: 8080}]");
    let checks = verified(&contract, &target(), &objects).await;
    for kind in [CheckKind::ServiceExists, CheckKind::PortsAligned] {
        assert_eq!(find(&checks, kind), "Unknown ObservationFailed");
    }
    assert_eq!(phase(&checks), Phase::Degraded);
    assert_eq!(gate(&checks, Some(Gate::Open)), Gate::Open, "what is not observed keeps the gate");
    assert_eq!(gate(&checks, Some(Gate::Closed)), Gate::Closed);
    assert_eq!(gate(&checks, None), Gate::Closed);
}

#[rstest]
#[case::stateful_on_deployment(None, "stateful", "Deployment", "True Match", "False Mismatch")]
#[case::given_kind(
    Some(WorkloadKind::Deployment),
    "stateless",
    "StatefulSet",
    "False NotFound",
    "Unknown NotApplicable"
)]
#[case::stateless_on_stateful_set(None, "stateless", "StatefulSet", "True Match", "True Match")]
#[case::stateful(None, "stateful", "StatefulSet", "True Match", "True Match")]
#[tokio::test]
async fn kinds(
    #[case] kind: Option<WorkloadKind>,
    #[case] state: &str,
    #[case] found: &str,
    #[case] exists: &str,
    #[case] matches: &str,
) {
    let contract = contract(&runtime("service", state, "local", "ephemeral", ""));
    let objects = Objects { all: vec![workload(found, json!({}))], ..Objects::default() };
    let checks = verified(&contract, &Target { kind, ..target() }, &objects).await;
    assert_eq!(find(&checks, CheckKind::WorkloadExists), exists);
    assert_eq!(find(&checks, CheckKind::WorkloadKindMatches), matches);
}

#[rstest]
#[case("job", "Job", "True Match")]
#[case("job", "CronJob", "False Mismatch")]
#[case("scheduled", "CronJob", "True Match")]
#[tokio::test]
async fn kinds_of_jobs(#[case] declared: &str, #[case] kind: &str, #[case] expected: &str) {
    let fields = runtime(declared, "stateless", "local", "ephemeral", "");
    assert_eq!(
        outcome(CheckKind::WorkloadKindMatches, &fields, vec![workload(kind, json!({}))]).await,
        expected
    );
}

#[tokio::test]
async fn a_job_on_a_given_deployment_differs() {
    let contract = contract(&runtime("job", "stateless", "local", "ephemeral", ""));
    let objects = Objects { all: vec![workload("Deployment", json!({}))], ..Objects::default() };
    let target = Target { kind: Some(WorkloadKind::Deployment), ..target() };
    let checks = verified(&contract, &target, &objects).await;
    assert_eq!(find(&checks, CheckKind::WorkloadKindMatches), "False Mismatch");
}

#[rstest]
#[case::target_port(json!([{"port": 80, "targetPort": 8080}]), "True Match")]
#[case::named(json!([{"port": 80, "targetPort": "http"}]), "True Match")]
#[case::same(json!([{"port": 8080}]), "True Match")]
#[case::unexpected(json!([{"port": 8080}, {"port": 9999}]), "False UnexpectedPorts")]
#[case::missing(json!([{"port": 9999}]), "False MissingPorts")]
#[case::udp(json!([{"port": 8080, "protocol": "UDP"}]), "False MissingPorts")]
#[case::udp_beside(json!([{"port": 8080}, {"port": 53, "protocol": "UDP"}]), "True Match")]
#[tokio::test]
async fn declared_ports(#[case] ports: Value, #[case] expected: &str) {
    let fields =
        "interfaces: [{name: api, type: http, port: 8080}, {name: e, type: event, contract: e.yaml}]";
    let objects = vec![service(ports), workload("Deployment", json!({}))];
    assert_eq!(outcome(CheckKind::PortsAligned, fields, objects).await, expected);
}

#[tokio::test]
async fn only_unexpected_ports_are_a_warning() {
    let ports = service(json!([{"port": 8080}, {"port": 9999}]));
    let objects = Objects { all: vec![ports, workload("Deployment", json!({}))], ..Objects::default() };
    let contract = contract("interfaces: [{name: api, type: http, port: 8080}]");
    let checks = verified(&contract, &target(), &objects).await;
    assert_eq!((phase(&checks), gate(&checks, None)), (Phase::Degraded, Gate::Open));
}

#[tokio::test]
async fn an_external_service_has_no_ports() {
    let mut external = service(json!([]));
    external["spec"]["type"] = json!("ExternalName");
    let fields = format!(
        "interfaces: [{{name: api, type: http, port: 8080}}]\n{}",
        stateless(", health: {interface: api, path: /h}")
    );
    let objects = Objects { all: vec![external, workload("Deployment", json!({}))], ..Objects::default() };
    let checks = verified(&contract(&fields), &target(), &objects).await;
    assert_eq!(find(&checks, CheckKind::ServiceExists), "True Match");
    assert_eq!(find(&checks, CheckKind::PortsAligned), "Unknown NotApplicable");
    assert_eq!(find(&checks, CheckKind::HealthEndpointReachable), "Unknown NotApplicable");
}

#[rstest]
#[case("nginx", "docker.io/library/nginx:1.27", "", "True Match")]
#[case("r.io/a:1", "r.io/a:1", "", "True Match")]
#[case("r.io/a:1", "r.io/a:2", "", "False Mismatch")]
#[case("r.io/a:1", "mirror/a:1", "", "False Mismatch")]
#[case(&format!("r.io/a@{A}"), "r.io/a:1", A, "True Match")]
#[case(&format!("r.io/a@{A}"), "r.io/a:1", B, "False Mismatch")]
#[case(&format!("r.io/a@{A}"), "r.io/a:1", "", "Unknown NotApplicable")]
#[case("r.io/a:1", &format!("r.io/a@{A}"), "", "Unknown NotApplicable")]
#[tokio::test]
async fn images(#[case] declared: &str, #[case] running: &str, #[case] id: &str, #[case] expected: &str) {
    let mut contract = contract("");
    contract.image = super::super::image::ImageRef::parse(declared);
    let objects =
        Objects { all: vec![workload("Deployment", json!({})), pod(running, id)], ..Objects::default() };
    let checks = verified(&contract, &target(), &objects).await;
    assert_eq!(find(&checks, CheckKind::ImageMatches), expected);
}

#[rstest]
#[case::by_name(json!({}), "True Match")]
#[case::by_annotation(json!({"metadata": {"annotations": {"kubectl.kubernetes.io/default-container": "side"}}}), "False Mismatch")]
#[tokio::test]
async fn the_main_container_counts(#[case] template: Value, #[case] expected: &str) {
    let containers = json!([{"name": "side", "image": "side:1"}, {"name": "shop", "image": "r.io/a:1"}]);
    let mut object = workload("Deployment", json!({"spec": {"template": template}}));
    object["spec"]["template"]["spec"]["containers"] = containers;
    let mut contract = contract("");
    contract.image = super::super::image::ImageRef::parse("r.io/a:1");
    let objects = Objects { all: vec![object], ..Objects::default() };
    assert_eq!(find(&verified(&contract, &target(), &objects).await, CheckKind::ImageMatches), expected);
}

#[tokio::test]
async fn during_a_rollout_the_template_counts() {
    let changes = json!({"status": {"updatedReplicas": 1}, "metadata": {"generation": 3}});
    let mut object = workload("Deployment", changes);
    object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("r.io/a:2");
    let mut contract = contract("");
    contract.image = super::super::image::ImageRef::parse("r.io/a:2");
    let objects = Objects { all: vec![object, pod("r.io/a:1", "")], ..Objects::default() };
    assert_eq!(find(&verified(&contract, &target(), &objects).await, CheckKind::ImageMatches), "True Match");
}

#[rstest]
#[case("ordered", "StatefulSet", json!({}), "True Match")]
#[case("ordered", "StatefulSet", json!({"podManagementPolicy": "Parallel"}), "False Mismatch")]
#[case("rolling", "StatefulSet", json!({"updateStrategy": {"type": "RollingUpdate"}}), "True Match")]
#[case("rolling", "StatefulSet", json!({"updateStrategy": {"type": "OnDelete"}}), "False Mismatch")]
#[case("rolling", "Deployment", json!({}), "True Match")]
#[case("recreate", "Deployment", json!({"strategy": {"type": "Recreate"}}), "True Match")]
#[case("recreate", "Deployment", json!({}), "False Mismatch")]
#[case("rolling", "DaemonSet", json!({}), "True Match")]
#[case("rolling", "Job", json!({}), "Unknown NotApplicable")]
#[tokio::test]
async fn upgrades(#[case] declared: &str, #[case] kind: &str, #[case] spec: Value, #[case] expected: &str) {
    let rest = format!(", lifecycle: {{upgradeStrategy: {declared}}}");
    let fields = runtime("service", "hybrid", "local", "ephemeral", &rest);
    let object = workload(kind, json!({"spec": spec}));
    assert_eq!(outcome(CheckKind::UpgradeStrategyMatches, &fields, vec![object]).await, expected);
}

#[rstest]
#[case(30, json!(null), "True Match")]
#[case(45, json!(30), "False Mismatch")]
#[case(45, json!(45), "True Match")]
#[tokio::test]
async fn graceful_shutdown(#[case] declared: i64, #[case] period: Value, #[case] expected: &str) {
    let fields = stateless(&format!(", lifecycle: {{gracefulShutdownSeconds: {declared}}}"));
    let spec = json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": period}}}});
    let object = workload("Deployment", spec);
    assert_eq!(outcome(CheckKind::GracefulShutdownMatches, &fields, vec![object]).await, expected);
}

fn claim(modes: &[&str]) -> Value {
    json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {"accessModes": modes}})
}

#[rstest]
#[case::empty_dir("hybrid", "local", "persistent", json!({"emptyDir": {}}), 3, None, "False MissingPersistentStorage")]
#[case::stateless_claim("stateless", "local", "ephemeral", json!({"persistentVolumeClaim": {"claimName": "data"}}), 3, Some(&["ReadWriteOnce"][..]), "False UnexpectedPersistentStorage")]
#[case::stateless("stateless", "local", "ephemeral", json!({"emptyDir": {}}), 3, None, "True Match")]
#[case::local("hybrid", "local", "persistent", json!({"persistentVolumeClaim": {"claimName": "data"}}), 3, Some(&["ReadWriteOnce"][..]), "True Match")]
#[case::no_claim("hybrid", "local", "persistent", json!({"persistentVolumeClaim": {"claimName": "data"}}), 3, None, "False ClaimNotFound")]
#[case::once("hybrid", "shared", "persistent", json!({"persistentVolumeClaim": {"claimName": "data"}}), 3, Some(&["ReadWriteOnce"][..]), "False ScopeMismatch")]
#[case::once_alone("hybrid", "shared", "persistent", json!({"persistentVolumeClaim": {"claimName": "data"}}), 1, Some(&["ReadWriteOnce"][..]), "True Match")]
#[case::many("hybrid", "shared", "persistent", json!({"persistentVolumeClaim": {"claimName": "data"}}), 3, Some(&["ReadWriteMany"][..]), "True Match")]
#[case::external("hybrid", "shared", "persistent", json!({"emptyDir": {}}), 3, None, "Unknown NotApplicable")]
#[tokio::test]
async fn storage(
    #[case] state: &str,
    #[case] scope: &str,
    #[case] durability: &str,
    #[case] volume: Value,
    #[case] replicas: i64,
    #[case] modes: Option<&[&str]>,
    #[case] expected: &str,
) {
    let fields = runtime("service", state, scope, durability, "");
    let spec = json!({"replicas": replicas, "template": {"spec": {"volumes": [volume]}}});
    let mut objects = vec![workload("Deployment", json!({"spec": spec}))];
    objects.extend(modes.map(claim));
    assert_eq!(outcome(CheckKind::StateModelMatches, &fields, objects).await, expected);
}

#[tokio::test]
async fn claim_templates_are_local_storage() {
    let fields = runtime("service", "stateful", "local", "persistent", "");
    let spec = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
    let object = workload("StatefulSet", spec);
    assert_eq!(outcome(CheckKind::StateModelMatches, &fields, vec![object]).await, "True Match");
}

fn autoscaler(min: i64, max: i64) -> Value {
    json!({"kind": "HorizontalPodAutoscaler", "metadata": {"name": "shop"},
           "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "shop"}, "minReplicas": min, "maxReplicas": max}})
}

#[rstest]
#[case::autoscaler("{min: 2, max: 5}", json!({}), Some((2, 5)), "True Match")]
#[case::wide("{min: 2, max: 5}", json!({}), Some((1, 10)), "False AutoscalerOutOfRange")]
#[case::many("{min: 2, max: 5}", json!({"spec": {"replicas": 6}}), None, "False ReplicasOutOfRange")]
#[case::exact("{replicas: 2}", json!({}), None, "True Match")]
#[case::none("{min: 0, max: 5}", json!({"spec": {"replicas": 0}, "status": {"readyReplicas": null}}), None, "True Match")]
#[case::settled("{min: 2, max: 5}", json!({"spec": {"replicas": 3}, "status": {"updatedReplicas": 3, "readyReplicas": 1}}), None, "False ReplicasNotReady")]
#[case::rollout("{min: 2, max: 5}", json!({"spec": {"replicas": 3}, "status": {"updatedReplicas": 2, "readyReplicas": 1}}), None, "True Match")]
#[tokio::test]
async fn scaling(
    #[case] declared: &str,
    #[case] changes: Value,
    #[case] range: Option<(i64, i64)>,
    #[case] expected: &str,
) {
    let mut objects = vec![workload("Deployment", changes)];
    objects.extend(range.map(|(min, max)| autoscaler(min, max)));
    assert_eq!(outcome(CheckKind::ScalingMatches, &format!("scaling: {declared}"), objects).await, expected);
}

#[tokio::test]
async fn a_daemon_set_has_no_scale() {
    let objects = vec![workload("DaemonSet", json!({}))];
    let found = outcome(CheckKind::ScalingMatches, "scaling: {replicas: 1}", objects).await;
    assert_eq!(found, "Unknown NotApplicable");
}

/// A contract with both endpoints.
fn probed_contract(delay: i64) -> Contract {
    let rest = format!(
        ", health: {{interface: api, path: /h, initialDelaySeconds: {delay}}}, metrics: {{interface: api, path: /m}}"
    );
    contract(&format!("interfaces: [{{name: api, type: http, port: 8080}}]\n{}", stateless(&rest)))
}

#[rstest]
#[case::ok(Some(204), ProbeAnswer::Healthy { empty: false }, "True Match")]
#[case::status(Some(503), ProbeAnswer::Status, "False InvalidStatus")]
#[case::timeout(None, ProbeAnswer::Timeout, "False Timeout")]
#[case::redirect(Some(302), ProbeAnswer::Redirected, "False Redirected")]
#[case::tls(None, ProbeAnswer::TlsFailed("bad".to_owned()), "False TLSFailed")]
#[case::refused(None, ProbeAnswer::ConnectionFailed("refused".to_owned()), "False ConnectionFailed")]
#[case::dns(None, ProbeAnswer::Unresolved("no name".to_owned()), "Unknown ObservationFailed")]
#[case::grpc(Some(200), ProbeAnswer::NotServing("no".to_owned()), "False NotServing")]
#[case::old_grpc(Some(200), ProbeAnswer::Unimplemented, "Unknown NotApplicable")]
#[tokio::test]
async fn answers(#[case] status: Option<u16>, #[case] answer: ProbeAnswer, #[case] expected: &str) {
    let (contract, target) = (probed_contract(0), target());
    let all = vec![service(json!([{"port": 8080}])), workload("Deployment", json!({})), slices(true)];
    let objects = Objects { all, ..Objects::default() };
    let mut snapshot = observe(&contract, &target, &objects, 0).await;
    let requests = probe_requests(&contract, &target, &Severities::new(), &snapshot);
    let urls: Vec<&str> = requests.iter().map(|request| request.url.as_str()).collect();
    assert_eq!(urls, ["http://shop.team.svc:8080/h", "http://shop.team.svc:8080/m"]);
    let probed = Probed { url: String::new(), status, latency_ms: 1, answer };
    snapshot.probes.insert(ProbeKind::Health, probed);
    let checks = verify(&contract, &target, &Severities::new(), &snapshot).checks;
    assert_eq!(find(&checks, CheckKind::HealthEndpointReachable), expected);
}

#[tokio::test]
async fn metrics_need_a_body() {
    let (contract, target) = (probed_contract(0), target());
    let all = vec![service(json!([{"port": 8080}])), workload("Deployment", json!({})), slices(true)];
    let objects = Objects { all, ..Objects::default() };
    let mut snapshot = observe(&contract, &target, &objects, 0).await;
    for kind in [ProbeKind::Health, ProbeKind::Metrics] {
        let answer = ProbeAnswer::Healthy { empty: true };
        snapshot.probes.insert(kind, Probed { url: String::new(), status: Some(200), latency_ms: 1, answer });
    }
    let checks = verify(&contract, &target, &Severities::new(), &snapshot).checks;
    assert_eq!(find(&checks, CheckKind::HealthEndpointReachable), "True Match");
    assert_eq!(find(&checks, CheckKind::MetricsEndpointReachable), "False EmptyResponse");
}

#[rstest]
#[case::not_ready(json!([{"port": 8080}]), json!({}), slices(false), 0, "False NoReadyEndpoints")]
#[case::starting(json!([{"port": 8080}]), json!({}), slices(false), 20, "Unknown Starting")]
#[case::no_port(json!([{"port": 9999}]), json!({}), slices(true), 0, "False PortNotExposed")]
#[case::idle(json!([{"port": 8080}]), json!({"spec": {"replicas": 0}}), slices(false), 0, "Unknown NotApplicable")]
#[tokio::test]
async fn endpoints_without_a_request(
    #[case] ports: Value,
    #[case] changes: Value,
    #[case] slices: Value,
    #[case] delay: i64,
    #[case] expected: &str,
) {
    let contract = probed_contract(delay);
    let all = vec![service(ports), workload("Deployment", changes), slices, pod("r.io/a:1", "")];
    let objects = Objects { all, ..Objects::default() };
    let checks = verified(&contract, &target(), &objects).await;
    assert_eq!(find(&checks, CheckKind::HealthEndpointReachable), expected);
    if expected == "Unknown Starting" {
        assert!(
            !checks.iter().any(|check| check.kind == CheckKind::HealthEndpointReachable && check.degrades())
        );
    }
}

#[rstest]
#[case::plain(json!([{"port": 80, "targetPort": 8080}]), "10.0.0.1", "http://shop.team.svc/h")]
#[case::headless(json!([{"port": 80, "targetPort": "http"}]), "None", "http://shop.team.svc:8080/h")]
#[case::https_name(json!([{"name": "https", "port": 8080}]), "10.0.0.1", "https://shop.team.svc:8080/h")]
#[case::https_port(json!([{"port": 443, "targetPort": 8080}]), "10.0.0.1", "https://shop.team.svc/h")]
#[case::https_protocol(json!([{"port": 8080, "appProtocol": "https"}]), "10.0.0.1", "https://shop.team.svc:8080/h")]
#[tokio::test]
async fn the_url_of_a_probe(#[case] ports: Value, #[case] cluster_ip: &str, #[case] expected: &str) {
    let (contract, target) = (probed_contract(0), target());
    let mut service = service(ports);
    service["spec"]["clusterIP"] = json!(cluster_ip);
    let objects =
        Objects { all: vec![service, workload("Deployment", json!({})), slices(true)], ..Objects::default() };
    let snapshot = observe(&contract, &target, &objects, 0).await;
    let requests = probe_requests(&contract, &target, &Severities::new(), &snapshot);
    assert_eq!(requests[0].url.as_str(), expected);
}

#[tokio::test]
async fn without_a_service_the_origin_of_the_base_url_is_probed() {
    let contract = probed_contract(0);
    let base = "https://shop.example:8443/api".parse().unwrap();
    let target = Target {
        service: None,
        workload: Some("shop".to_owned()),
        probe: ProbeVia::Service(Some(base)),
        ..target()
    };
    let objects = Objects { all: vec![workload("Deployment", json!({}))], ..Objects::default() };
    let snapshot = observe(&contract, &target, &objects, 0).await;
    let requests = probe_requests(&contract, &target, &Severities::new(), &snapshot);
    assert_eq!(requests[0].url.as_str(), "https://shop.example:8443/h");
    let checks = verify(&contract, &target, &Severities::new(), &snapshot).checks;
    assert_eq!(find(&checks, CheckKind::ServiceExists), "Unknown NotApplicable");
}

#[tokio::test]
async fn a_disabled_check_is_ignored() {
    let mut contract = contract("");
    contract.image = super::super::image::ImageRef::parse("r.io/a:9");
    let all = vec![service(json!([])), workload("Deployment", json!({}))];
    let objects = Objects { all, ..Objects::default() };
    let snapshot = observe(&contract, &target(), &objects, 0).await;
    let severities = Severities::from([(CheckKind::ImageMatches, Severity::Off)]);
    let checks = verify(&contract, &target(), &severities, &snapshot).checks;
    assert_eq!(find(&checks, CheckKind::ImageMatches), "Unknown Disabled");
    assert_eq!(phase(&checks), Phase::Healthy);
    assert_eq!(summary(&checks).total, 10);
}
