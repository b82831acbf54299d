//! The overlay `sharded` on a real API server: each of its operators handles its namespaces alone.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::cluster::Cluster;
use crate::support::manifests::{Kustomization, objects};
use crate::support::shipped::Shipped;

/// The Deployments of the overlay `sharded` by the shard of their label; that of no label is the shard `main`.
fn shards() -> Vec<(String, Deployment)> {
    let rendered = objects(&Kustomization::new(&["default"], &["overlays/sharded"], "").render());
    let deployments = rendered.into_values().filter(|object| object["kind"] == "Deployment");
    let named = deployments.map(|deployment| {
        let label = &deployment["metadata"]["labels"]["sharding.declarest.io/key"];
        (label.as_str().unwrap_or("main").to_owned(), serde_json::from_value(deployment).unwrap())
    });
    named.collect()
}

/// Creates a namespace, with the label of the shard, and in it a store whose Secret is missing.
async fn create_store(cluster: &Cluster, shard: &str) -> String {
    let namespace = cluster.create_namespace().await;
    if shard != "main" {
        let label = json!({"metadata": {"labels": {"sharding.declarest.io/key": shard}}});
        let namespaces: Api<Namespace> = Api::all(cluster.admin().await);
        namespaces.patch(&namespace, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    }
    let passphrase = json!({"name": "missing", "key": "passphrase"});
    let file = json!({"path": "store.json", "encryption": {"passphraseRef": passphrase}});
    let store = json!({
        "apiVersion": "declarest.io/v1alpha1", "kind": "SecretStore",
        "metadata": {"name": "store", "namespace": namespace}, "spec": {"file": file},
    });
    cluster.apply(&store.to_string(), &[]).unwrap();
    namespace
}

#[tokio::test]
async fn the_shipped_shards_divide_the_namespaces() {
    let cluster = Cluster::shared();
    // All namespaces have their label before an operator sees them.
    let mut namespaces = Vec::new();
    for (shard, deployment) in shards() {
        namespaces.push((create_store(cluster, &shard).await, shard, deployment));
    }
    let started = namespaces.into_iter().map(|(namespace, shard, deployment)| {
        let container = deployment.spec.unwrap().template.spec.unwrap().containers.remove(0);
        (shard, namespace, Shipped::of(cluster, container))
    });
    let divided: Vec<_> = started.collect();
    assert_eq!(divided.len(), 3);
    for (shard, namespace, operator) in &divided {
        let reason = r#"jsonpath={.status.conditions[?(@.type=="Ready")].reason}"#;
        let seen = async || {
            let reason = cluster.kubectl(&["get", "sst", "store", "-n", namespace, "-o", reason]).ok()?;
            (!reason.is_empty()).then_some(())
        };
        operator.eventually(&format!("{shard} reports the missing Secret"), seen).await;
    }
    for (shard, own, operator) in &divided {
        let log = operator.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let handled: Vec<_> =
            lines.filter_map(|line| line["namespace"].as_str().map(str::to_owned)).collect();
        assert!(handled.contains(own), "{shard}: {log}");
        for (_, other, _) in divided.iter().filter(|(_, other, _)| other != own) {
            assert!(!handled.contains(other), "{shard} handled {other}: {log}");
        }
    }
}
