//! Installing and uninstalling on a real API server, which has no objects of other tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::cluster::{Cluster, OPERATOR_NAMESPACE, config_dir};
use crate::support::manifests::{Kustomization, chart, objects, watch};
use crate::support::world::World;

/// Kinds of other projects that the manifests use, among them cert-manager: group, version, kind and plural. Their
/// schemas accept everything.
const FOREIGN: [(&str, &str, &str, &str); 6] = [
    ("cert-manager.io", "v1", "Certificate", "certificates"),
    ("cert-manager.io", "v1", "Issuer", "issuers"),
    ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"),
    ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
    ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
    ("route.openshift.io", "v1", "Route", "routes"),
];

/// The limit of each `kubectl delete`. It takes a few seconds, but sometimes minutes to delete definitions that are new.
const DELETE: &str = "--timeout=600s";

/// The steps share the definitions and the namespace of the operator, so they run one after another.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_can_be_installed_in_every_way_and_uninstalled() {
    let cluster = Cluster::shared();
    define_foreign_kinds(cluster);
    uninstall(cluster, "default", Operator::Runs).await;
    uninstall(cluster, "default", Operator::Ended).await;
    // The API server cannot reach the admission webhooks.
    uninstall(cluster, "release/admission-certmanager", Operator::Ended).await;
    undeploy(cluster).await;
    install_chart(cluster);
    install_bases(cluster);
    install_overlays(cluster).await;
    install_namespaced(cluster).await;
}

fn define_foreign_kinds(cluster: &Cluster) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definitions = FOREIGN.map(|(group, version, kind, plural)| {
        let version = json!({"name": version, "served": true, "storage": true, "schema": schema});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{plural}.{group}"),
                // Required below *.k8s.io.
                "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
            },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [version],
            },
        })
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions});
    cluster.apply(&list.to_string(), &[]).unwrap();
    let names = FOREIGN.map(|(group, _, _, plural)| format!("crd/{plural}.{group}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    cluster.kubectl(&[&["wait", "--for=condition=Established"], &*names].concat()).unwrap();
}

#[derive(PartialEq)]
enum Operator {
    Runs,
    Ended,
}

/// Creates objects of all kinds, also with claims, and waits until the operator has processed them.
async fn use_operator() -> World {
    let world = World::start().await;
    let kubectl = |args: &[&str]| Cluster::shared().kubectl(&[&["-n", &world.namespace], args].concat());
    kubectl(&["apply", "-k", &config_dir("samples")]).unwrap();
    let claim = json!({"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": "1Gi"}}});
    let repository = json!({
        "apiVersion": "declarest.io/v1alpha1",
        "kind": "ResourceRepository",
        "metadata": {"name": "on-a-claim", "namespace": world.namespace},
        "spec": {"type": "git", "git": {"url": "https://git.example.com/desired.git"}, "storage": claim},
    });
    Cluster::shared().apply(&repository.to_string(), &[]).unwrap();
    let conditions = "jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].reason}";
    world
        .eventually("all objects have been processed", || async {
            let reasons = kubectl(&["get", "declarest", "-o", conditions]).ok()?;
            (reasons.split_whitespace().count() == 5).then_some(())
        })
        .await;
    world
}

/// Installs the operator, uses it, and deletes everything with one command.
async fn uninstall(cluster: &Cluster, kustomization: &str, operator: Operator) {
    let admin = cluster.admin().await;
    cluster.install(&config_dir("default")).await.unwrap();
    cluster.log_in_operator(&admin).await.unwrap();
    let mut world = use_operator().await;
    if operator == Operator::Ended {
        world.kill();
    }
    cluster.install(&config_dir(kustomization)).await.unwrap();
    let deleted = cluster.kubectl(&["delete", DELETE, "-k", &config_dir(kustomization)]);
    deleted.unwrap_or_else(|error| panic!("{kustomization}: {error}"));
    assert_gone(cluster);
}

/// `make undeploy` deletes everything, also objects that admission webhooks protect although no operator runs.
async fn undeploy(cluster: &Cluster) {
    cluster.install(&config_dir("default")).await.unwrap();
    cluster.log_in_operator(&cluster.admin().await).await.unwrap();
    use_operator().await.kill();
    let kustomization = "config/release/admission-certmanager";
    cluster.kubectl(&["apply", "-k", &config_dir("release/admission-certmanager")]).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut make = Command::new("make");
    make.current_dir(root).arg("undeploy").arg(format!("KUSTOMIZATION={kustomization}"));
    make.arg(format!("KUBECTL={}", cluster.kubectl_path().display()));
    cluster.run(&mut make).unwrap_or_else(|error| panic!("{error}"));
    assert_gone(cluster);
}

/// Fails if an object of the operator is left.
fn assert_gone(cluster: &Cluster) {
    let left = cluster.kubectl(&["get", "crd", "-l", "app.kubernetes.io/part-of=declarest", "-o", "name"]);
    assert_eq!(left.unwrap(), "");
    assert_only_definitions(cluster);
}

/// Fails if an object other than a definition is left.
fn assert_only_definitions(cluster: &Cluster) {
    let kinds = "clusterrole,clusterrolebinding,validatingwebhookconfiguration";
    let left = cluster.kubectl(&["get", kinds, "-l", "app.kubernetes.io/part-of=declarest", "-o", "name"]);
    assert_eq!(left.unwrap(), "");
    let kinds = "deployment,service,serviceaccount,role,rolebinding,poddisruptionbudget";
    let namespaced =
        ["get", kinds, "-n", OPERATOR_NAMESPACE, "-l", "app.kubernetes.io/part-of=declarest", "-o", "name"];
    assert_eq!(cluster.kubectl(&namespaced).unwrap(), "");
}

/// Applies each base alone, and each manifest of a release.
fn install_bases(cluster: &Cluster) {
    let directories = fs::read_dir(config_dir("release")).unwrap();
    let releases = directories.map(|entry| format!("release/{}", entry.unwrap().file_name().display()));
    let bases = ["crd", "rbac", "manager", "webhook", "certmanager"].map(str::to_owned);
    for base in bases.into_iter().chain(releases) {
        for mode in ["--dry-run=server", "--dry-run=none"] {
            let applied = cluster.kubectl(&["apply", mode, "-k", &config_dir(&base)]);
            applied.unwrap_or_else(|error| panic!("{base}: {error}"));
        }
    }
}

/// Applies every overlay, alone and with all others that it can be combined with.
async fn install_overlays(cluster: &Cluster) {
    cluster.install(&config_dir("release/core")).await.unwrap();
    let pods = ["label", "--overwrite", "namespace", OPERATOR_NAMESPACE];
    let enforce = "pod-security.kubernetes.io/enforce=restricted";
    cluster.kubectl(&[&pods[..], &[enforce]].concat()).unwrap();
    let directories = fs::read_dir(config_dir("overlays")).unwrap();
    let mut overlays: Vec<String> = directories
        .map(|entry| format!("overlays/{}", entry.unwrap().file_name().into_string().unwrap()))
        .collect();
    // The overlay secure-metrics changes an object of the overlay monitoring.
    overlays.sort();
    let except = |left_out: &[&str]| {
        let kept = overlays.iter().filter(|overlay| !left_out.iter().any(|name| overlay.ends_with(name)));
        kept.map(String::as_str).collect::<Vec<_>>()
    };
    // Its namespaces exist in a test of their own.
    let single = except(&["namespaced"]);
    let mut combinations: Vec<Vec<&str>> = single.iter().map(|overlay| vec![*overlay]).collect();
    // Shards cannot share the claim of persistent-state.
    combinations.push(except(&["namespaced", "sharded", "admission-openshift"]));
    combinations.push(except(&["namespaced", "sharded", "admission-certmanager"]));
    let after_shards = except(&["namespaced", "sharded", "persistent-state", "admission-openshift"]);
    combinations.push([&["overlays/sharded"], &after_shards[..]].concat());
    for components in combinations {
        let kustomization = Kustomization::new(&["default"], &components, "");
        assert_every_deployment(&kustomization.render(), &components);
        for mode in ["--dry-run=server", "--dry-run=none"] {
            let applied = cluster.kubectl(&["apply", mode, "-k", kustomization.path()]);
            applied.unwrap_or_else(|error| panic!("{components:?}: {error}"));
        }
        run_pod(cluster, &kustomization.render());
    }
    assert_restricted(cluster, &Kustomization::new(&["default"], &[], "").render());
}

/// Fails if an overlay changes only some of the Deployments.
fn assert_every_deployment(rendered: &str, components: &[&str]) {
    let arguments = [
        ("overlays/secure-metrics", "--metrics-secure"),
        ("overlays/admission-certmanager", "--enable-admission-webhooks"),
        ("overlays/admission-openshift", "--enable-admission-webhooks"),
    ];
    let expected = if components.contains(&"overlays/sharded") { 3 } else { 1 };
    let rendered = objects(rendered);
    let deployments: Vec<&Value> =
        rendered.values().filter(|object| object["kind"] == "Deployment").collect();
    assert_eq!(deployments.len(), expected, "{components:?}");
    for (overlay, argument) in arguments {
        let is_used = components.contains(&overlay);
        for deployment in &deployments {
            let given = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
            assert!(!is_used || given.contains(&json!(argument)), "{argument} is missing in {deployment}");
        }
    }
    for deployment in &deployments {
        let given = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
        let flags = given.iter().map(|argument| argument.as_str().unwrap().split('=').next().unwrap());
        let flags: Vec<&str> = flags.collect();
        let distinct: BTreeSet<&str> = flags.iter().copied().collect();
        assert_eq!(flags.len(), distinct.len(), "the operator rejects duplicates: {deployment}");
    }
    if components.contains(&"overlays/monitoring") && components.contains(&"overlays/secure-metrics") {
        let monitor = rendered.values().find(|object| object["kind"] == "ServiceMonitor").unwrap();
        assert_eq!(monitor["spec"]["endpoints"][0]["scheme"], "https");
    }
}

/// Creates the pod of the Deployment without a controller, so that the security standards are checked.
fn run_pod(cluster: &Cluster, rendered: &str) {
    cluster.apply(&pod(rendered).to_string(), &["--dry-run=server"]).unwrap();
}

fn pod(rendered: &str) -> Value {
    let rendered = objects(rendered);
    let deployment = rendered.values().find(|object| object["kind"] == "Deployment").unwrap();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "manager", "namespace": OPERATOR_NAMESPACE},
        "spec": deployment["spec"]["template"]["spec"],
    })
}

/// Fails if the namespace admits pods that do not meet the standard.
fn assert_restricted(cluster: &Cluster, rendered: &str) {
    let mut pod = pod(rendered);
    pod["spec"]["containers"][0]["securityContext"] = Value::Null;
    let refused = cluster.apply(&pod.to_string(), &["--dry-run=server"]).unwrap_err();
    assert!(refused.contains("violates PodSecurity \"restricted"), "{refused}");
}

async fn install_namespaced(cluster: &Cluster) {
    // The definitions stay: the API server sometimes needs minutes to delete definitions that were just created again.
    let roles = ["delete", "clusterrole,clusterrolebinding", "-l", "app.kubernetes.io/part-of=declarest"];
    cluster.kubectl(&roles).unwrap();
    let [first, second, other] = [
        cluster.create_namespace().await,
        cluster.create_namespace().await,
        cluster.create_namespace().await,
    ];
    let patch = watch(&format!("{first},{second}"));
    let kustomization = Kustomization::new(&["default"], &["overlays/namespaced"], &patch)
        .with_namespace(&first)
        .with_namespace(&second);
    cluster.install(kustomization.path()).await.unwrap();
    let operator = format!("--as=system:serviceaccount:{OPERATOR_NAMESPACE}:declarest-operator");
    let may = |verb: &str, resource: &str, namespace: &str| {
        let args = ["auth", "can-i", verb, resource, "-n", namespace, &operator];
        cluster.kubectl(&args).is_ok()
    };
    for namespace in [&first, &second] {
        assert!(may("get", "secrets", namespace) && may("watch", "syncpolicies.declarest.io", namespace));
        assert!(may("patch", "syncpolicies.declarest.io/status", namespace));
    }
    for namespace in [other.as_str(), OPERATOR_NAMESPACE, "kube-system"] {
        assert!(!may("get", "secrets", namespace) && !may("list", "syncpolicies.declarest.io", namespace));
    }
    assert!(may("update", "leases.coordination.k8s.io", OPERATOR_NAMESPACE));
    let shown = cluster.kubectl(&["kustomize", kustomization.path()]).unwrap();
    assert!(shown.contains(&format!("value: {first},{second}\n")), "{shown}");
    cluster.kubectl(&["delete", "--wait=false", "-k", kustomization.path()]).unwrap();
}

/// Lets the API server check the chart with its defaults and with the values of its directory `ci`, then installs it with
/// its defaults, and deletes it as Helm does, which keeps the definitions.
fn install_chart(cluster: &Cluster) {
    let values = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/declarest-operator/ci");
    let mut files: Vec<String> = fs::read_dir(values)
        .unwrap()
        .map(|entry| entry.unwrap().path().to_string_lossy().into_owned())
        .collect();
    files.sort();
    for namespace in ["team-a", "team-b"] {
        cluster.kubectl(&["create", "namespace", namespace]).unwrap();
    }
    cluster.apply(&chart(&[]).unwrap(), &["--dry-run=server"]).unwrap();
    for file in &files {
        cluster.apply(&chart(&["--values", file]).unwrap(), &["--dry-run=server"]).unwrap();
    }
    cluster.apply(&chart(&[]).unwrap(), &[]).unwrap();
    let installed = cluster.kubectl(&["get", "deployment", "-n", OPERATOR_NAMESPACE, "-o", "name"]).unwrap();
    assert_eq!(installed, "deployment.apps/declarest-operator-controller-manager\n");
    let deleted = tempfile::NamedTempFile::new().unwrap();
    fs::write(&deleted, chart(&["--set", "crds.install=false"]).unwrap()).unwrap();
    cluster.kubectl(&["delete", DELETE, "-f", deleted.path().to_str().unwrap()]).unwrap();
    assert_only_definitions(cluster);
}
