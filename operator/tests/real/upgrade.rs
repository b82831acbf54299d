//! Installing over the definitions and objects of v0.3.8, on a real API server of its own: nothing is lost, and the first
//! run prunes nothing.

use std::time::Duration;

use declarest_operator::crd::{self, SyncPolicy};
use kube::{CustomResourceExt as _, ResourceExt as _};
use serde_json::{Value, json};

use crate::support::cluster::{Cluster, config_dir};
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::world::{World, declarest};

/// The finalizer of v0.3.8.
const FINALIZER: &str = "declarest.io/cleanup";

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_v0_3_8_are_taken_over() {
    let cluster = Cluster::shared();
    install_old_definitions(cluster).await;
    let mut world = World::cold_on_cluster(&[]).await;
    let (git, server) = (GitRemote::new(), server());
    git.write("items/i1/resource.json", r#"{"id": "i1", "size": 1}"#);
    git.write("items/gone/resource.json", r#"{"id": "gone"}"#);
    let applied = git.commit("what v0.3.8 applied");
    create_old_objects(cluster, &world, &git, &server, &applied).await;
    git.remove("items/gone");
    git.write("items/i2/resource.json", r#"{"id": "i2", "size": 1}"#);
    let next = git.commit("a removal and an addition");
    git.push();

    cluster.install(&config_dir("default")).await.unwrap();
    cluster.log_in_operator(&cluster.admin().await).await.unwrap();
    world.launch().await;

    // The removal is older than the inventory of the new operator, which therefore keeps the resource.
    let status = world.applied(&next).await;
    assert_eq!(status.resource_stats.map(|stats| (stats.created, stats.pruned)), Some((1, 0)));
    assert!(server.get("/items/gone").is_some() && server.get("/items/foreign").is_some());
    assert_eq!(server.get("/items/i1"), Some(json!({"id": "i1", "size": 1})));
    let policy = world.api::<SyncPolicy>().get("policy").await.unwrap();
    assert_eq!(policy.finalizers(), [] as [&str; 0]);
    assert!(policy.spec.sync.prune);

    // From now on, the operator prunes what it has seen.
    git.remove("items/i2");
    let last = git.commit("another removal");
    git.push();
    world.notify().await;
    world.applied(&last).await;
    assert_eq!(server.get("/items/i2"), None);
    assert!(server.get("/items/gone").is_some() && server.get("/items/foreign").is_some());

    definitions_older_than_the_operator_are_reported(cluster, &world, &git, &server).await;
}

/// The image is upgraded, and the definitions are not.
async fn definitions_older_than_the_operator_are_reported(
    cluster: &Cluster,
    world: &World,
    git: &GitRemote,
    server: &RestServer,
) {
    let mut definition = serde_json::to_value(SyncPolicy::crd()).unwrap();
    let status = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    status["properties"].as_object_mut().unwrap().remove("lastAttemptedRepoRevision").unwrap();
    let applied = cluster.apply(&definition.to_string(), &[]).unwrap();
    assert!(applied.contains("configured"), "{applied}");
    // The definition is used a moment later.
    world
        .eventually("the field is gone", async || {
            let policy = world.api::<SyncPolicy>().get("policy").await.ok()?;
            policy.status?.last_attempted_repo_revision.is_none().then_some(())
        })
        .await;

    git.write("items/i3/resource.json", r#"{"id": "i3"}"#);
    let revision = git.commit("an addition");
    git.push();
    world.notify().await;
    let (_, message) = world.policy_reason("ReconcileFailed").await;
    assert!(message.contains("lastAttemptedRepoRevision: field not declared in schema"), "{message}");
    assert!(message.ends_with("apply the definitions of its version"), "{message}");
    assert_eq!(server.get("/items/i3"), None);

    cluster.install(&config_dir("default")).await.unwrap();
    world.request_sync().await;
    world.applied(&revision).await;
    assert!(server.get("/items/i3").is_some());
}

fn server() -> RestServer {
    let server =
        RestServer::start(Config { collections: vec!["/items".to_owned()], ..Config::default() }).unwrap();
    for id in ["i1", "gone", "foreign"] {
        server.put_by_hand(&format!("/items/{id}"), json!({"id": id, "size": 1}));
    }
    server
}

/// Installs definitions with the names of v0.3.8 that accept everything, as its own accepted fields that are unknown today.
/// They replace the current ones: the API server sometimes needs minutes to delete definitions that are new.
async fn install_old_definitions(cluster: &Cluster) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    for definition in crd::all() {
        let mut definition = serde_json::to_value(definition).unwrap();
        let version = &mut definition["spec"]["versions"][0];
        version["schema"] = schema.clone();
        version["additionalPrinterColumns"] = Value::Null;
        cluster.apply(&definition.to_string(), &[]).unwrap();
    }
    // Each schema is used a moment later.
    for definition in crd::all() {
        let mut object = declarest(&definition.spec.names.kind, "probe", &json!({"unknownToday": true}));
        object["metadata"]["namespace"] = json!("default");
        let mut attempts = 0..2400;
        while let Err(error) = cluster.apply(&object.to_string(), &["--dry-run=server", "--validate=strict"])
        {
            assert!(attempts.next().is_some(), "{error}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Creates the objects with a finalizer, an unknown field, and the status of a successful run.
async fn create_old_objects(
    cluster: &Cluster,
    world: &World,
    git: &GitRemote,
    server: &RestServer,
    applied: &str,
) {
    let repository = json!({
        "type": "git",
        "git": {"url": git.file_url(), "branch": "main"},
        "pollInterval": "1h",
        "storage": {"pvc": {"accessModes": ["ReadWriteOnce"], "requests": {"storage": "1Gi"}}},
    });
    let policy = json!({
        "resourceRepositoryRef": {"name": "repo"},
        "managedServerRef": {"name": "server"},
        "source": {"path": "/", "recursive": true},
        "sync": {"prune": true, "force": false},
        "syncInterval": "1h",
    });
    for (kind, name, spec) in [
        ("ResourceRepository", "repo", repository),
        ("ManagedServer", "server", json!({"http": {"baseURL": server.url()}, "pollInterval": "10m"})),
        ("SyncPolicy", "policy", policy),
    ] {
        let mut object = declarest(kind, name, &spec);
        object["metadata"]["finalizers"] = json!([FINALIZER]);
        object["spec"]["unknownToday"] = json!(true);
        world.create(object).await;
    }
    let status = json!({"status": {
        "observedGeneration": 1,
        "lastAttemptedRepoRevision": applied,
        "lastAppliedRepoRevision": applied,
        "lastAttemptTime": "2026-01-01T00:00:00Z",
        "lastSuccessfulSyncTime": "2026-01-01T00:00:00Z",
        "lastFullResyncTime": "2026-01-01T00:00:00Z",
        "lastSyncMode": "full",
        "lastSecretResourceVersionHash": "",
        "resourceStats": {"targeted": 2, "applied": 2, "pruned": 0, "failed": 0},
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "synced",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    let patch = format!("--patch={status}");
    let of_policy =
        ["patch", "syncpolicy", "policy", "-n", &world.namespace, "--type=merge", "--subresource=status"];
    cluster.kubectl(&[&of_policy[..], &[&patch]].concat()).unwrap();
}
