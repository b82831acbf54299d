//! The operator as it is shipped: arguments, environment and probes of the rendered Deployment, with its `ServiceAccount`, in
//! all namespaces of a real API server. Only addresses, directories and the port numbers of probes are replaced, and
//! loopback is allowed. If the process ends, it is started again, as by a kubelet.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking, its fixtures too")]

mod support;

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use declarest_operator::crd::SyncPolicy;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Container, Probe};
use kube::api::{Api, DynamicObject, PostParams};
use kube::{Client, Discovery};
use serde_json::{Value, json};
use support::cluster::{Cluster, OPERATOR_NAMESPACE, config_dir};
use support::git_http::GitHttp;
use support::git_remote::GitRemote;
use support::rest_server::{Config, RestServer};
use support::world::{declarest, is_true};

/// The directory of the state volume in the manifests.
const STATE: &str = "/var/lib/declarest";

struct Shipped {
    command: RefCell<Command>,
    process: RefCell<Child>,
    directory: tempfile::TempDir,
}

impl Shipped {
    fn start(cluster: &Cluster, container: &Container) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_declarest-operator"));
        command.env_clear().args(container.args.as_deref().unwrap_or_default());
        for port in container.ports.as_deref().unwrap_or_default() {
            let flag = match port.name.as_deref() {
                Some("metrics") => "--metrics-bind-address",
                Some("probes") => "--health-probe-bind-address",
                Some("repo-webhook") => "--repository-webhook-bind-address",
                other => panic!("an unknown port: {other:?}"),
            };
            command.arg(format!("{flag}=127.0.0.1:0"));
        }
        command.arg("--allow-cidr=127.0.0.0/8,::1/128");
        for variable in container.env.as_deref().unwrap_or_default() {
            let value = match (
                &variable.value,
                variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref()),
            ) {
                (Some(value), _) => value.replace(STATE, &directory.path().display().to_string()),
                (None, Some(field)) if field.field_path == "metadata.namespace" => {
                    OPERATOR_NAMESPACE.to_owned()
                }
                _ => panic!("an unknown source of {}", variable.name),
            };
            command.env(&variable.name, value);
        }
        command.env("KUBECONFIG", &cluster.operator_kubeconfig);
        let log = fs::File::create(directory.path().join("operator.log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().unwrap().into();
        Self { command: command.into(), process, directory }
    }

    fn restart_if_ended(&self) {
        let mut process = self.process.borrow_mut();
        if process.try_wait().unwrap().is_some() {
            *process = self.command.borrow_mut().spawn().unwrap();
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("operator.log")).unwrap()
    }

    async fn eventually<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(Instant::now() < deadline, "not reached: {what}\n{}", self.log());
            self.restart_if_ended();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the policies are ready and have applied the revision.
    async fn all_applied(&self, policies: &[Api<SyncPolicy>], revision: &str) {
        for api in policies {
            let ready = async || {
                let status = api.get("policy").await.ok()?.status?;
                let is_applied = status.last_applied_repo_revision.as_deref() == Some(revision);
                (is_applied && is_true(&status.conditions, "Ready")).then_some(())
            };
            self.eventually("the policy has applied the revision", ready).await;
        }
    }

    /// The address of the listener for this purpose.
    async fn listener(&self, purpose: &str) -> String {
        let text = format!("listening for {purpose}");
        self.eventually(&text, async || {
            let log = self.log();
            let line: Value = serde_json::from_str(log.lines().find(|line| line.contains(&text))?).ok()?;
            Some(line["address"].as_str()?.to_owned())
        })
        .await
    }
}

impl Drop for Shipped {
    fn drop(&mut self) {
        let process = self.process.get_mut();
        let _ = process.kill();
        let _ = process.wait();
    }
}

async fn create(client: &Client, discovery: &Discovery, namespace: &str, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let kind = object.types.as_ref().unwrap().kind.clone();
    let group = discovery.get("declarest.io").unwrap();
    let (resource, _) = group.recommended_kind(&kind).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn status_of(address: &str, probe: &Probe) -> u16 {
    let path = probe.http_get.as_ref().unwrap().path.as_deref().unwrap();
    reqwest::get(format!("http://{address}{path}")).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_shipped_operator_reconciles_all_namespaces_and_outlives_the_control_plane() {
    assert!(Path::new(&config_dir("default")).is_dir());
    let cluster = Cluster::shared();
    let client = cluster.admin().await;
    let deployments = Api::<Deployment>::namespaced(client.clone(), OPERATOR_NAMESPACE);
    let deployment = deployments.get("declarest-operator-controller-manager").await.unwrap();
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.service_account_name.as_deref(), Some("declarest-operator"));
    let container = &pod.containers[0];
    let arguments = container.args.clone().unwrap_or_default();
    assert!(!arguments.iter().any(|argument| argument.starts_with("--watch-namespace")), "{arguments:?}");
    let operator = Shipped::start(cluster, container);

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
    operator.all_applied(&policies, &git.head()).await;
    assert!(server.get("/a/one").is_some() && server.get("/b/one").is_some());

    let probes = operator.listener("probes").await;
    for probe in [&container.startup_probe, &container.liveness_probe, &container.readiness_probe] {
        assert_eq!(status_of(&probes, probe.as_ref().unwrap()).await, 200);
    }
    let leases: Api<Lease> = Api::namespaced(client, OPERATOR_NAMESPACE);
    let lease = leases.get("declarest-operator.declarest.io").await.unwrap();
    assert!(lease.spec.unwrap().holder_identity.is_some());

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
        operator.all_applied(&policies, &git.head()).await;
        for name in ["a", "b"] {
            assert!(server.get(&format!("/{name}/more{number}")).is_some());
        }
    }
    assert_eq!(server.duplicates(), []);
    assert_eq!(server.writes().len(), 6, "{:?}", server.writes());
    assert!(!operator.log().contains("Forbidden"), "{}", operator.log());
}
