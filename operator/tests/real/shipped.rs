//! The operator as it is shipped, in all namespaces of a real API server.

use std::time::Duration;

use declarest_operator::crd::SyncPolicy;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Probe;
use kube::api::{Api, DynamicObject, PostParams};
use kube::{Client, Discovery};
use serde_json::{Value, json};

use crate::support::cluster::{Cluster, OPERATOR_NAMESPACE};
use crate::support::git_http::GitHttp;
use crate::support::git_remote::GitRemote;
use crate::support::rest_server::{Config, RestServer};
use crate::support::shipped::Shipped;
use crate::support::world::{declarest, is_true};

async fn create(client: &Client, discovery: &Discovery, namespace: &str, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let kind = object.types.as_ref().unwrap().kind.clone();
    let group = discovery.get("declarest.io").unwrap();
    let (resource, _) = group.recommended_kind(&kind).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Waits until the policies are ready and have applied the revision.
async fn all_applied(operator: &Shipped, policies: &[Api<SyncPolicy>], revision: &str) {
    for api in policies {
        let ready = async || {
            let status = api.get("policy").await.ok()?.status?;
            let is_applied = status.last_applied_repo_revision.as_deref() == Some(revision);
            (is_applied && is_true(&status.conditions, "Ready")).then_some(())
        };
        operator.eventually("the policy has applied the revision", ready).await;
    }
}

async fn status_of(address: &str, probe: &Probe) -> u16 {
    let path = probe.http_get.as_ref().unwrap().path.as_deref().unwrap();
    reqwest::get(format!("http://{address}{path}")).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_shipped_operator_reconciles_all_namespaces_and_outlives_the_control_plane() {
    let cluster = Cluster::shared();
    let client = cluster.admin().await;
    let operator = Shipped::start(cluster).await;
    let container = &operator.container;
    let arguments = container.args.clone().unwrap_or_default();
    assert!(!arguments.iter().any(|argument| argument.starts_with("--watch-namespace")), "{arguments:?}");

    let config = Config { collections: vec!["/a".to_owned(), "/b".to_owned()], ..Config::default() };
    let (git, server) = (GitRemote::new(), RestServer::start(config).unwrap());
    for name in ["a", "b"] {
        git.write(&format!("{name}/one/resource.json"), r#"{"id": "one"}"#);
    }
    git.commit("first");
    git.push();
    let http = GitHttp::start(git.root(), None);
    let discovery = Discovery::new(client.clone()).filter(&["declarest.io"]).run().await.unwrap();
    let mut namespaces = Vec::new();
    for name in ["a", "b"] {
        let namespace = cluster.create_namespace().await;
        let git_source = json!({"url": http.url("desired.git")});
        let repository = json!({"type": "git", "pollInterval": "30s", "git": git_source});
        let policy = json!({
            "resourceRepositoryRef": {"name": "repo"}, "managedServerRef": {"name": "server"},
            "source": {"path": format!("/{name}")},
        });
        for (kind, name, spec) in [
            ("ResourceRepository", "repo", repository),
            ("ManagedServer", "server", json!({"http": {"baseURL": server.url()}})),
            ("SyncPolicy", "policy", policy),
        ] {
            create(&client, &discovery, &namespace, declarest(kind, name, &spec)).await;
        }
        namespaces.push(namespace);
    }
    let policies: Vec<Api<SyncPolicy>> =
        namespaces.iter().map(|namespace| Api::namespaced(client.clone(), namespace)).collect();
    all_applied(&operator, &policies, &git.head()).await;
    assert!(server.get("/a/one").is_some() && server.get("/b/one").is_some());

    let probes = operator.listener("probes").await;
    for probe in [&container.startup_probe, &container.liveness_probe, &container.readiness_probe] {
        assert_eq!(status_of(&probes, probe.as_ref().unwrap()).await, 200);
    }
    let leases: Api<Lease> = Api::namespaced(client, OPERATOR_NAMESPACE);
    let lease = leases.get("declarest-operator.declarest.io").await.unwrap();
    assert!(lease.spec.unwrap().holder_identity.is_some());

    // A restarted API server refuses requests until it has read the roles, so this is checked before.
    assert!(!operator.log().contains("Forbidden"), "{}", operator.log());

    // An etcd that does not answer for longer than the lease is renewed, and an API server that is killed.
    for (number, trouble) in [("etcd", "-STOP"), ("kube-apiserver", "-KILL")].into_iter().enumerate() {
        let (process, signal) = trouble;
        cluster.signal(process, signal);
        for name in ["a", "b"] {
            git.write(&format!("{name}/more{number}/resource.json"), format!(r#"{{"id": "more{number}"}}"#));
        }
        git.commit("more");
        git.push();
        tokio::time::sleep(Duration::from_secs(15)).await;
        if signal == "-STOP" {
            cluster.signal(process, "-CONT");
        }
        all_applied(&operator, &policies, &git.head()).await;
        for name in ["a", "b"] {
            assert!(server.get(&format!("/{name}/more{number}")).is_some());
        }
    }
    assert_eq!(server.duplicates(), []);
    assert_eq!(server.writes().len(), 6, "{:?}", server.writes());
}
