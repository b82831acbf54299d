//! What each check of a contract reports: one row for each rule, all verified by one operator.

use serde_json::{Value, json};

/// A contract, the objects that it is compared with, and the result. `NAME` stands for the name of the row, `PORT` for
/// the port of the probed server.
pub struct Row {
    pub name: &'static str,
    /// `spec.contract` without the target.
    pub contract: Value,
    /// The target, unless it is the Service with the name of the row.
    pub target: Option<Value>,
    pub objects: Vec<Value>,
    /// Facts about the status: `phase …`, `gate …`, `error …`, `warning …`, or a check with its status and reason.
    pub expected: &'static [&'static str],
}

impl Row {
    fn new(
        name: &'static str,
        document: &str,
        objects: Vec<Value>,
        expected: &'static [&'static str],
    ) -> Self {
        Self { name, contract: json!({"inline": document}), target: None, objects, expected }
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.contract[field] = value;
        self
    }

    fn on(mut self, target: Value) -> Self {
        self.target = Some(target);
        self
    }
}

const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn document(fields: &str) -> String {
    format!("pactoVersion: '1.0'\nservice: {{name: NAME, version: 1.0.0}}\n{fields}\n")
}

fn image(reference: &str) -> String {
    format!("pactoVersion: '1.0'\nservice: {{name: NAME, version: 1.0.0, image: {{ref: '{reference}'}}}}\n")
}

fn runtime(workload: &str, state: &str, scope: &str, durability: &str, more: &str) -> String {
    document(&format!(
        "interfaces: [{{name: api, type: http, port: PORT}}]\nruntime:\n  workload: {workload}\n  state: {{type: {state}, \
         persistence: {{scope: {scope}, durability: {durability}}}, dataCriticality: low}}\n{more}"
    ))
}

fn stateless(more: &str) -> String {
    runtime("service", "stateless", "local", "ephemeral", more)
}

fn service(ports: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "NAME"},
           "spec": {"selector": {"app": "NAME"}, "ports": ports}})
}

fn slices(ready: bool) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
           "metadata": {"name": "NAME-1", "labels": {"kubernetes.io/service-name": "NAME"}},
           "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": ready}}]})
}

/// A settled workload with two replicas and these changes.
fn workload(kind: &str, changes: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "NAME"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "NAME"}},
            "template": {
                "metadata": {"labels": {"app": "NAME"}},
                "spec": {"containers": [{"name": "NAME", "image": "r.io/a:1"}]},
            },
        },
        "status": {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2},
    });
    if kind == "StatefulSet" {
        object["spec"]["serviceName"] = json!("NAME");
    }
    merge(&mut object, changes);
    object
}

fn deployment(changes: Value) -> Value {
    workload("Deployment", changes)
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
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME-1", "labels": {"app": "NAME"}},
           "spec": {"containers": [{"name": "NAME", "image": image}]},
           "status": {"containerStatuses": [{"name": "NAME", "image": image, "imageID": id, "ready": true,
                                             "restartCount": 0}]}})
}

fn claim(mode: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "NAME"},
           "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}})
}

/// A Deployment with three replicas and a volume.
fn with_volume(volume: Value) -> Value {
    let mut volume = volume;
    volume["name"] = json!("data");
    deployment(json!({"spec": {"replicas": 3, "template": {"spec": {"volumes": [volume]}}},
                      "status": {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}}))
}

fn with_claim() -> Value {
    with_volume(json!({"persistentVolumeClaim": {"claimName": "NAME"}}))
}

fn autoscaler(min: i64, max: i64) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "NAME"},
           "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "NAME"},
                    "minReplicas": min, "maxReplicas": max}})
}

/// The table.
pub fn rows() -> Vec<Row> {
    [documents(), targets(), ports(), images(), lifecycle(), storage(), probes(), scaling()]
        .into_iter()
        .flatten()
        .collect()
}

fn documents() -> Vec<Row> {
    let reference = json!({});
    let row =
        |name, document: &str, expected| Row::new(name, document, vec![], expected).on(reference.clone());
    let invalid = |name, fields: &str, expected| row(name, &document(fields), expected);
    vec![
        row("minimal", &document(""), &["phase Reference", "gate Open"]),
        row(
            "version-2",
            "pactoVersion: '2.0'",
            &["phase Invalid", "error UNSUPPORTED_VERSION", "gate Closed"],
        ),
        row("semver", "{pactoVersion: '1.0', service: {name: a, version: v1.2}}", &["phase Reference"]),
        row(
            "no-semver",
            "{pactoVersion: '1.0', service: {name: a, version: abc}}",
            &["error INVALID_SEMVER"],
        ),
        row("unknown", &stateless("  helth: {}\n"), &["phase Invalid", "error UNKNOWN_FIELD"]),
        invalid("unknown-top", "sla: 1", &["phase Reference", "warning UNKNOWN_FIELD"]),
        row(
            "conflict",
            &runtime("service", "stateless", "local", "persistent", ""),
            &["error STATELESS_PERSISTENT_CONFLICT"],
        ),
        invalid("min-max", "scaling: {min: 3, max: 2}", &["error SCALING_MIN_EXCEEDS_MAX"]),
        invalid("scaling-form", "scaling: {replicas: 1, min: 1}", &["error SCALING_FORM"]),
        invalid(
            "inline-file",
            "interfaces: [{name: e, type: event, contract: e.yaml}]",
            &["phase Reference"],
        ),
        of_url("bundle-file", "missing.tar.gz", &["error FILE_NOT_FOUND"]),
        of_url("bundle-climbs", "climbs.tar.gz", &["phase Invalid", "reason ContractUnavailable"]),
        of_url("bundle-link", "link.tar.gz", &["phase Invalid", "reason ContractUnavailable"]),
        of_url("metadata", "to-metadata", &["phase Invalid", "reason ContractUnavailable"]),
    ]
}

fn of_url(name: &'static str, file: &str, expected: &'static [&'static str]) -> Row {
    let row = Row::new(name, "", vec![], expected).on(json!({}));
    Row { contract: json!({"url": format!("http://127.0.0.1:PORT/{file}?token=canary")}), ..row }
}

fn targets() -> Vec<Row> {
    let only_deployment = json!({"service": "NAME", "workload": {"kind": "Deployment"}});
    let job = runtime("job", "stateless", "local", "ephemeral", "");
    vec![
        Row::new(
            "no-service",
            &stateless(""),
            vec![deployment(json!({}))],
            &[
                "ServiceExists False NotFound",
                "PortsAligned Unknown NotApplicable",
                "phase Degraded",
                "gate Closed",
            ],
        ),
        Row::new(
            "stateful",
            &runtime("service", "stateful", "local", "ephemeral", ""),
            vec![deployment(json!({}))],
            &["WorkloadExists True Match", "WorkloadKindMatches False Mismatch"],
        ),
        Row::new(
            "given-kind",
            &stateless(""),
            vec![workload("StatefulSet", json!({}))],
            &["WorkloadExists False NotFound", "WorkloadKindMatches Unknown NotApplicable"],
        )
        .on(only_deployment.clone()),
        Row::new(
            "stateless",
            &stateless(""),
            vec![workload("StatefulSet", json!({}))],
            &["WorkloadKindMatches True Match"],
        ),
        Row::new("job", &job, vec![deployment(json!({}))], &["WorkloadKindMatches False Mismatch"])
            .on(only_deployment),
    ]
}

fn ports() -> Vec<Row> {
    let declared = document("interfaces: [{name: api, type: http, port: 8080}]");
    let named = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "NAME", "image": "r.io/a:1", "ports": [{"name": "http", "containerPort": 8080}]}]}}}});
    let row = |name, ports: Value, changes: Value, expected| {
        Row::new(name, &declared, vec![service(&ports), deployment(changes)], expected)
    };
    let none = || json!({});
    let external = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "NAME"},
                          "spec": {"type": "ExternalName", "externalName": "shop.example"}});
    vec![
        row("target-port", json!([{"port": 80, "targetPort": 8080}]), none(), &["PortsAligned True Match"]),
        row("named-port", json!([{"port": 80, "targetPort": "http"}]), named, &["PortsAligned True Match"]),
        row(
            "unexpected",
            json!([{"name": "a", "port": 8080}, {"name": "b", "port": 9999}]),
            none(),
            &["PortsAligned False UnexpectedPorts", "phase Degraded", "gate Open"],
        )
        .with("gateSync", json!(true)),
        row(
            "missing-port",
            json!([{"port": 9999}]),
            none(),
            &["PortsAligned False MissingPorts", "gate Closed"],
        ),
        row("udp", json!([{"port": 8080, "protocol": "UDP"}]), none(), &["PortsAligned False MissingPorts"]),
        Row::new(
            "external",
            &stateless("  health: {interface: api, path: /ok}\n"),
            vec![external, deployment(none())],
            &[
                "ServiceExists True Match",
                "PortsAligned Unknown NotApplicable",
                "HealthEndpointReachable Unknown NotApplicable",
            ],
        ),
    ]
}

fn images() -> Vec<Row> {
    let row = |name, declared: &str, running: &str, id: &str, expected| {
        Row::new(
            name,
            &image(declared),
            vec![service(&json!([{"port": 80}])), deployment(json!({})), pod(running, id)],
            expected,
        )
    };
    let (by_a, reported_a, reported_b) =
        (format!("r.io/a@{A}"), format!("r.io/a@{A}"), format!("r.io/a@{B}"));
    let sidecar = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "side", "image": "side:1"}, {"name": "NAME", "image": "r.io/a:1"}]}}}});
    let rollout = json!({"spec": {"template": {"spec": {"containers": [{"name": "NAME", "image": "r.io/a:2"}]}}},
                         "status": {"updatedReplicas": 1}});
    vec![
        row("image-short", "nginx", "docker.io/library/nginx:1.27", "", &["ImageMatches True Match"]),
        row(
            "image-tag",
            "r.io/a:1",
            "r.io/a:2",
            "",
            &["ImageMatches False Mismatch", "phase Degraded", "gate Open"],
        ),
        row("image-mirror", "r.io/a:1", "mirror/a:1", "", &["ImageMatches False Mismatch"]),
        row("image-digest", &by_a, "r.io/a:1", &reported_a, &["ImageMatches True Match"]),
        row("image-other-digest", &by_a, "r.io/a:1", &reported_b, &["ImageMatches False Mismatch"]),
        row("image-pinned", "r.io/a:1", &by_a, "", &["ImageMatches Unknown NotApplicable"]),
        row("image-off", "r.io/a:1", "r.io/a:2", "", &["ImageMatches Unknown Disabled", "phase Healthy"])
            .with("severity", json!({"ImageMatches": "off"})),
        Row::new("sidecar", &image("r.io/a:1"), vec![deployment(sidecar)], &["ImageMatches True Match"]),
        Row::new(
            "rollout",
            &image("r.io/a:2"),
            vec![deployment(rollout), pod("r.io/a:1", "")],
            &["ImageMatches True Match"],
        ),
    ]
}

fn lifecycle() -> Vec<Row> {
    let upgrade = |name, strategy: &str, spec: Value, expected| {
        let document = runtime(
            "service",
            "stateful",
            "local",
            "ephemeral",
            &format!("  lifecycle: {{upgradeStrategy: {strategy}}}\n"),
        );
        Row::new(name, &document, vec![workload("StatefulSet", json!({"spec": spec}))], expected)
    };
    let graceful = |name, seconds: u32, spec: Value, expected| {
        let document = stateless(&format!("  lifecycle: {{gracefulShutdownSeconds: {seconds}}}\n"));
        Row::new(name, &document, vec![deployment(json!({"spec": {"template": {"spec": spec}}}))], expected)
    };
    vec![
        upgrade(
            "ordered",
            "ordered",
            json!({"podManagementPolicy": "OrderedReady"}),
            &["UpgradeStrategyMatches True Match"],
        ),
        upgrade(
            "parallel",
            "ordered",
            json!({"podManagementPolicy": "Parallel"}),
            &["UpgradeStrategyMatches False Mismatch"],
        ),
        upgrade(
            "rolling",
            "rolling",
            json!({"updateStrategy": {"type": "RollingUpdate"}}),
            &["UpgradeStrategyMatches True Match"],
        ),
        upgrade(
            "on-delete",
            "rolling",
            json!({"updateStrategy": {"type": "OnDelete"}}),
            &["UpgradeStrategyMatches False Mismatch"],
        ),
        graceful("graceful", 30, json!({}), &["GracefulShutdownMatches True Match"]),
        graceful(
            "hasty",
            45,
            json!({"terminationGracePeriodSeconds": 30}),
            &["GracefulShutdownMatches False Mismatch"],
        ),
    ]
}

fn storage() -> Vec<Row> {
    let row = |name, scope: &str, objects, expected| {
        Row::new(name, &runtime("service", "hybrid", scope, "persistent", ""), objects, expected)
    };
    vec![
        row(
            "empty-dir",
            "local",
            vec![with_volume(json!({"emptyDir": {}}))],
            &["StateModelMatches False MissingPersistentStorage"],
        ),
        Row::new(
            "claimed",
            &stateless(""),
            vec![with_claim(), claim("ReadWriteOnce")],
            &["StateModelMatches False UnexpectedPersistentStorage"],
        ),
        row(
            "once",
            "shared",
            vec![with_claim(), claim("ReadWriteOnce")],
            &["StateModelMatches False ScopeMismatch"],
        ),
        row("many", "shared", vec![with_claim(), claim("ReadWriteMany")], &["StateModelMatches True Match"]),
        row("no-claim", "local", vec![with_claim()], &["StateModelMatches False ClaimNotFound"]),
    ]
}

fn probes() -> Vec<Row> {
    let objects =
        |ready, changes| vec![service(&json!([{"port": "PORT"}])), slices(ready), deployment(changes)];
    let health = |path: &str| stateless(&format!("  health: {{interface: api, path: {path}}}\n"));
    let row = |name, path: &str, expected| Row::new(name, &health(path), objects(true, json!({})), expected);
    let starting = stateless("  health: {interface: api, path: /unavailable, initialDelaySeconds: 36000}\n");
    let mut young = objects(true, json!({}));
    young.push(pod("r.io/a:1", ""));
    let idle =
        json!({"spec": {"replicas": 0}, "status": {"replicas": 0, "updatedReplicas": 0, "readyReplicas": 0}});
    let metrics = stateless("  metrics: {interface: api, path: /empty}\n");
    vec![
        row("health", "/no-content", &["HealthEndpointReachable True Match", "phase Healthy", "gate Open"]),
        row("unauthorized", "/unauthorized", &["HealthEndpointReachable False InvalidStatus", "gate Closed"]),
        row("unavailable", "/unavailable", &["HealthEndpointReachable False InvalidStatus"]),
        row("slow", "/slow", &["HealthEndpointReachable False Timeout"]),
        row("redirect", "/same-origin", &["HealthEndpointReachable True Match"]),
        row("redirect-away", "/other-origin", &["HealthEndpointReachable False Redirected"]),
        row("redirect-metadata", "/to-metadata", &["HealthEndpointReachable False Redirected"]),
        Row::new(
            "starting",
            &starting,
            young,
            &["HealthEndpointReachable Unknown Starting", "phase Healthy"],
        ),
        Row::new(
            "idle",
            &format!("{}scaling: {{min: 0, max: 2}}\n", health("/ok")),
            objects(false, idle),
            &["ScalingMatches True Match", "HealthEndpointReachable Unknown NotApplicable"],
        ),
        Row::new(
            "not-ready",
            &health("/ok"),
            objects(false, json!({})),
            &["HealthEndpointReachable False NoReadyEndpoints"],
        ),
        Row::new(
            "no-metrics",
            &metrics,
            objects(true, json!({})),
            &["MetricsEndpointReachable False EmptyResponse"],
        ),
    ]
}

fn scaling() -> Vec<Row> {
    let row =
        |name, objects, expected| Row::new(name, &document("scaling: {min: 2, max: 5}"), objects, expected);
    let of = |replicas: u32, updated: u32, ready: u32| {
        deployment(json!({"spec": {"replicas": replicas},
                          "status": {"replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready}}))
    };
    vec![
        row("scaled", vec![of(2, 2, 2), autoscaler(2, 5)], &["ScalingMatches True Match"]),
        row(
            "scaled-far",
            vec![of(2, 2, 2), autoscaler(1, 10)],
            &["ScalingMatches False AutoscalerOutOfRange"],
        ),
        row("many-replicas", vec![of(6, 6, 6)], &["ScalingMatches False ReplicasOutOfRange"]),
        row("few-ready", vec![of(3, 3, 1)], &["ScalingMatches False ReplicasNotReady"]),
        row("rolling-out", vec![of(3, 2, 1)], &["ScalingMatches True Match"]),
    ]
}
