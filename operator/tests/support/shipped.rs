//! The operator as it is shipped: arguments, environment and probes of the Deployment that is installed, with its
//! `ServiceAccount`. Only addresses, directories and the port numbers of probes are replaced, and loopback is allowed. If
//! the process ends, it is started again, as by a kubelet.

use std::cell::RefCell;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Container;
use kube::Api;
use serde_json::Value;

use super::cluster::{Cluster, OPERATOR_NAMESPACE};

/// The directory of the state volume in the manifests.
const STATE: &str = "/var/lib/declarest";

/// The operator as it is shipped. Dropping it kills the process.
pub struct Shipped {
    pub container: Container,
    command: RefCell<Command>,
    process: RefCell<Child>,
    directory: tempfile::TempDir,
}

impl Shipped {
    /// Starts the operator of the Deployment that is installed.
    pub async fn start(cluster: &Cluster) -> Self {
        let deployments = Api::<Deployment>::namespaced(cluster.admin().await, OPERATOR_NAMESPACE);
        let deployment = deployments.get("declarest-operator-controller-manager").await.unwrap();
        let pod = deployment.spec.unwrap().template.spec.unwrap();
        assert_eq!(pod.service_account_name.as_deref(), Some("declarest-operator"));
        Self::of(cluster, pod.containers.into_iter().next().unwrap())
    }

    /// Starts the operator with the container of a Deployment, which need not be installed.
    pub fn of(cluster: &Cluster, container: Container) -> Self {
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
        Self { container, command: command.into(), process, directory }
    }

    fn restart_if_ended(&self) {
        let mut process = self.process.borrow_mut();
        if process.try_wait().unwrap().is_some() {
            *process = self.command.borrow_mut().spawn().unwrap();
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("operator.log")).unwrap()
    }

    /// Waits until `look` returns a value. Starts the process again if it ended.
    pub async fn eventually<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
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

    /// The address of the listener of the running process for this purpose.
    pub async fn listener(&self, purpose: &str) -> String {
        let text = format!("listening for {purpose}");
        self.eventually(&text, async || {
            let log = self.log();
            let line: Value =
                serde_json::from_str(log.lines().rev().find(|line| line.contains(&text))?).ok()?;
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
