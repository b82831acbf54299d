//! The Helm chart installs what kustomize installs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use rstest::rstest;
use serde_json::Value;

use crate::support::cluster::{OPERATOR_NAMESPACE, config_dir};
use crate::support::manifests::{Kustomization, chart, kubectl, objects, watch};

/// Each value of the chart, and the overlays that do the same.
#[rstest]
#[case::core(&[], &[])]
#[case::admission_certmanager(&["admission-certmanager"], &["admission.enabled=true"])]
#[case::admission_openshift(
    &["admission-openshift"],
    &["admission.enabled=true", "admission.provider=openshift"]
)]
#[case::monitoring(
    &["monitoring"],
    &[
        "monitoring.serviceMonitor.enabled=true",
        "monitoring.rules.enabled=true",
        "monitoring.dashboard.enabled=true",
    ]
)]
#[case::secure_metrics(&["secure-metrics"], &["metrics.secure=true"])]
#[case::secure_monitoring(
    &["monitoring", "secure-metrics"],
    &[
        "metrics.secure=true",
        "monitoring.serviceMonitor.enabled=true",
        "monitoring.rules.enabled=true",
        "monitoring.dashboard.enabled=true",
    ]
)]
#[case::runtime_verification(&["runtime-verification"], &["runtimeVerification.enabled=true"])]
#[case::persistent_state(&["persistent-state"], &["persistence.enabled=true"])]
#[case::network_policy(&["network-policy"], &["networkPolicy.enabled=true"])]
#[case::ingress(&["repo-webhook-ingress"], &["repositoryWebhook.ingress.enabled=true"])]
#[case::http_route(
    &["repo-webhook-httproute"],
    &["repositoryWebhook.httpRoute.enabled=true"]
)]
#[case::route(
    &["repo-webhook-route-openshift"],
    &["repositoryWebhook.route.enabled=true"]
)]
#[case::combined(
    &["persistent-state", "admission-certmanager", "network-policy"],
    &["admission.enabled=true", "persistence.enabled=true", "networkPolicy.enabled=true"]
)]
fn values_equal_overlays(#[case] overlays: &[&str], #[case] values: &[&str]) {
    let overlays: Vec<String> = overlays.iter().map(|overlay| format!("overlays/{overlay}")).collect();
    let overlays: Vec<&str> = overlays.iter().map(String::as_str).collect();
    assert_same(&Kustomization::new(&["release/core"], &overlays, ""), values);
}

#[test]
fn listed_namespaces_get_roles_instead_of_a_cluster_role() {
    let kustomization =
        Kustomization::new(&["release/core"], &["overlays/namespaced"], &watch("team-a,team-b"))
            .with_namespace("team-a")
            .with_namespace("team-b");
    assert_same(&kustomization, &["watchNamespaces={team-a,team-b}"]);
}

#[test]
fn contracts_are_verified_with_rights_in_the_listed_namespaces_only() {
    let roles = ["namespace", "runtime-verification"];
    let kustomization =
        Kustomization::new(&["release/core"], &["overlays/namespaced"], &watch("team-a,team-b"))
            .with_roles("team-a", &roles)
            .with_roles("team-b", &roles);
    assert_same(&kustomization, &["watchNamespaces={team-a,team-b}", "runtimeVerification.enabled=true"]);
    let granted = objects(&kustomization.render());
    let of_cluster = granted.keys().filter(|(kind, ..)| kind == "ClusterRole");
    let names: Vec<&str> = of_cluster.map(|(_, _, name)| name.as_str()).collect();
    assert!(names.iter().all(|name| !name.contains("runtime")), "{names:?}");
    let rules = |path: &str| {
        let text = fs::read_to_string(config_dir(path)).unwrap();
        serde_saphyr::from_str::<Value>(&text).unwrap()["rules"].clone()
    };
    assert_eq!(
        rules("overlays/namespaced/runtime-verification/role.yaml"),
        rules("overlays/runtime-verification/role.yaml")
    );
}

fn assert_same(kustomization: &Kustomization, values: &[&str]) {
    // Only Helm can keep objects that it installed.
    let values = values.iter().chain(&["crds.keep=false"]);
    let set: Vec<&str> = values.flat_map(|value| ["--set", value]).collect();
    let (kustomize, helm) = (objects(&kustomization.render()), objects(&chart(&set).unwrap()));
    let ids = |objects: &BTreeMap<_, _>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(ids(&helm), ids(&kustomize));
    for (id, object) in &kustomize {
        assert_eq!(sorted(&helm[id]), sorted(object), "{id:?}");
    }
}

/// Sorts lists of named items, such as ports and volumes: patches of kustomize put new items first.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            if items.iter().all(|item| item["name"].is_string()) {
                items.sort_by_key(|item| item["name"].to_string());
            }
            items.into()
        }
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), sorted(field))).collect(),
        scalar => scalar.clone(),
    }
}

#[test]
fn custom_resources_outlive_a_release() {
    for ((kind, _, name), object) in objects(&chart(&[]).unwrap()) {
        let kept = object["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
        assert_eq!(kept, kind == "CustomResourceDefinition", "{kind} {name}");
    }
}

#[test]
fn images_are_pinned_and_arguments_are_appended() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let pinned = format!("image.digest={digest}");
    let set = ["--set", &pinned, "--set", "args={--log-level=debug}", "--set", "resources.limits.memory=1Gi"];
    let rendered = objects(&chart(&set).unwrap());
    let deployment = rendered.values().find(|object| object["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], format!("declarest-operator:latest@{digest}"));
    assert_eq!(container["args"].as_array().unwrap().last().unwrap(), "--log-level=debug");
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(container["resources"]["requests"]["cpu"], "100m", "other defaults stay");
}

#[test]
fn a_second_release_has_names_of_its_own() {
    let named = |args: &[&str]| objects(&chart(args).unwrap()).into_keys().collect::<Vec<_>>();
    let other = named(&["--set", "fullnameOverride=other,crds.install=false"]);
    assert!(other.iter().all(|(_, _, name)| name.starts_with("other")), "{other:?}");
    let first = named(&[]);
    assert!(other.iter().all(|id| !first.contains(id)), "{other:?}");
}

/// The shards of the overlay are releases of the chart.
#[rstest]
#[case::main(
    "declarest-operator-controller-manager",
    "main",
    r"sharding.declarest.io/key notin (shard1\,shard2)"
)]
#[case::other("declarest-operator-shard1", "shard1", "sharding.declarest.io/key=shard1")]
fn releases_are_shards(#[case] deployment: &str, #[case] shard: &str, #[case] selector: &str) {
    let (name, selector) = (format!("shardName={shard}"), format!("watchNamespaceSelector={selector}"));
    let rendered = objects(&chart(&["--set", &name, "--set", &selector]).unwrap());
    let helm = rendered.values().find(|object| object["kind"] == "Deployment").unwrap();
    let rendered = objects(&Kustomization::new(&["release/core"], &["overlays/sharded"], "").render());
    let id = ("Deployment".to_owned(), OPERATOR_NAMESPACE.to_owned(), deployment.to_owned());
    let kustomize = &rendered[&id];
    let pod = |deployment: &Value| sorted(&deployment["spec"]["template"]["spec"]);
    assert_eq!(pod(helm), pod(kustomize));
    // The label of the metrics by which alerts distinguish shards.
    assert_eq!(helm["spec"]["template"]["metadata"]["labels"]["sharding.declarest.io/key"], shard);
}

#[rstest]
#[case::unknown_value("replica=2", "additional properties 'replica' not allowed")]
#[case::unknown_provider("admission.provider=manual", "/admission/provider")]
#[case::short_digest("image.digest=sha256:abc", "/image/digest")]
#[case::invalid_namespace("watchNamespaces={Team A}", "/watchNamespaces/0")]
#[case::two_selections("watchNamespaces={team-a},watchNamespaceSelector=a=b", "either watchNamespaces or")]
#[case::invalid_shard("shardName=Shard 1", "/shardName")]
#[case::shared_volume("persistence.enabled=true,replicas=2", "needs replicas: 1")]
fn invalid_values_are_rejected(#[case] values: &str, #[case] expected: &str) {
    let error = chart(&["--set", values]).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn the_manifests_of_a_release_pin_its_image() {
    let directory = tempfile::tempdir().unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    let mut make = Command::new("make");
    make.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).arg("release-assets");
    make.args(["RELEASE_TAG=v1.2.3", "OPERATOR_IMAGE=registry.example.com/operator"]);
    make.arg(format!("OPERATOR_IMAGE_DIGEST={digest}")).arg(format!("DIST={}", directory.path().display()));
    make.arg(format!("KUBECTL={}", kubectl().display()));
    let made = make.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let checksums = read("SHA256SUMS");
    let files: Vec<&str> = checksums.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    let [certmanager, openshift, core] =
        ["install-admission-certmanager.yaml", "install-admission-openshift.yaml", "install.yaml"];
    assert_eq!(files, ["declarest-operator-1.2.3.tgz", certmanager, openshift, core]);
    for manifest in [certmanager, openshift, core] {
        let rendered = objects(&read(manifest));
        let deployment = rendered.values().find(|object| object["kind"] == "Deployment").unwrap();
        let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
        assert_eq!(*image, format!("registry.example.com/operator:v1.2.3@{digest}"));
    }
}
