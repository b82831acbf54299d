//! The operator under show: its process, its API, its log.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::Failure;

const NAMESPACE: &str = "default";
const REPOSITORY: &str = "shops";
const POLICY: &str = "shops";
/// The ManagedServer and the Deployment that runs it.
const SERVER: &str = "shop-api";
/// A change of this annotation makes the operator fetch at once, as a webhook of the Git host would.
const WEBHOOK_ANNOTATION: &str = "declarest.io/webhook-last-received-at";
/// Starts a program, sends it SIGTERM when stdin closes, and ends with its status. So the operator ends
/// in an orderly way also when this process is killed. The program itself reads from /dev/null.
const UNTIL_STDIN_CLOSES: &str = r#"
exec 3<&0
"$@" 3<&- & operator=$!
{ cat <&3 >/dev/null; kill -TERM $operator; } & watcher=$!
exec 3<&-
wait $operator
status=$?
kill $watcher
exit $status"#;
/// How long the process may take to end by itself, in-flight request included.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// What to start the operator with.
pub struct Launch<'a> {
    pub binary: &'a Path,
    pub manifests: &'a Path,
    pub state: &'a Path,
    pub log: &'a Path,
    /// Values of the placeholders in the manifests.
    pub environment: &'a [(&'a str, String)],
}

pub struct Operator {
    process: Child,
    log: PathBuf,
    kubeconfig: PathBuf,
    api: Option<ClientApis>,
}

struct ClientApis {
    address: String,
    repositories: Api<DynamicObject>,
    policies: Api<DynamicObject>,
    servers: Api<DynamicObject>,
    deployments: Api<DynamicObject>,
}

impl Operator {
    /// Starts the process; its objects can be asked for after [`Operator::connect`].
    pub fn start(launch: &Launch) -> Result<Operator, Failure> {
        let log = std::fs::File::create(launch.log)
            .map_err(|error| Failure::new(format!("cannot create {}: {error}", launch.log.display())))?;
        let process = Command::new("sh")
            .args(["-c", UNTIL_STDIN_CLOSES, "sh"])
            .arg(launch.binary)
            .arg("standalone")
            .arg("--manifests")
            .arg(launch.manifests)
            .arg("--state-dir")
            .arg(launch.state)
            .args(["--api-listen", "127.0.0.1:0"])
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C is for this process, which then closes the pipe.
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::new(format!("cannot run sh: {error}")))?;
        let kubeconfig = launch.state.join("kubeconfig");
        Ok(Operator { process, log: launch.log.to_owned(), kubeconfig, api: None })
    }

    /// Returns the kubeconfig of the API.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Connects to the API if the process has written its kubeconfig, and returns whether it has.
    pub async fn connect(&mut self) -> Result<bool, Failure> {
        self.check_alive()?;
        if !self.kubeconfig.exists() {
            return Ok(false);
        }
        let file = self.kubeconfig.display();
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)
            .map_err(|error| Failure::new(format!("cannot read {file}: {error}")))?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let config = config.map_err(|error| Failure::new(format!("cannot use {file}: {error}")))?;
        let address = config.cluster_url.to_string();
        let client = kube::Client::try_from(config)
            .map_err(|error| Failure::new(format!("cannot make a client of {file}: {error}")))?;
        self.api = Some(ClientApis {
            address,
            repositories: api(&client, "declarest.io/v1alpha1", "ResourceRepository", "resourcerepositories"),
            policies: api(&client, "declarest.io/v1alpha1", "SyncPolicy", "syncpolicies"),
            servers: api(&client, "declarest.io/v1alpha1", "ManagedServer", "managedservers"),
            deployments: api(&client, "apps/v1", "Deployment", "deployments"),
        });
        Ok(true)
    }

    /// Fails when the process has ended, which it should not do by itself.
    pub fn check_alive(&mut self) -> Result<(), Failure> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Failure::new(format!("the operator ended: {status}"))),
            Err(error) => Err(Failure::new(format!("cannot ask for the state of the operator: {error}"))),
        }
    }

    /// The policy as the API has it, or none while it has not.
    pub async fn policy(&self) -> Result<Option<Value>, Failure> {
        let Some(api) = &self.api else { return Ok(None) };
        let policy = api.policies.get_opt(POLICY).await.map_err(|error| {
            Failure::new(format!("cannot read SyncPolicy {NAMESPACE}/{POLICY} from {}: {error}", api.address))
        })?;
        policy.map(serde_json::to_value).transpose().map_err(|error| {
            Failure::new(format!("cannot read SyncPolicy {NAMESPACE}/{POLICY} as JSON: {error}"))
        })
    }

    /// Has the repository fetched now instead of at its poll interval.
    pub async fn fetch_now(&self) -> Result<(), Failure> {
        let api = self.connected()?;
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"metadata": {"annotations": {WEBHOOK_ANNOTATION: now}}});
        let patched =
            api.repositories.patch(REPOSITORY, &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.map(drop).map_err(|error| {
            Failure::new(format!("cannot annotate ResourceRepository {NAMESPACE}/{REPOSITORY}: {error}"))
        })
    }

    /// The result of the comparison of the server with its contract; null while there is none.
    pub async fn contract(&self) -> Result<Value, Failure> {
        let server = self.connected()?.servers.get(SERVER).await.map_err(|error| {
            Failure::new(format!("cannot read ManagedServer {NAMESPACE}/{SERVER}: {error}"))
        })?;
        Ok(server.data["status"]["contract"].clone())
    }

    /// Gives the server a contract.
    pub async fn set_contract(&self, contract: &Value) -> Result<(), Failure> {
        let patch = Patch::Merge(json!({"spec": {"contract": contract}}));
        let patched = self.connected()?.servers.patch(SERVER, &PatchParams::default(), &patch).await;
        patched.map(drop).map_err(|error| {
            Failure::new(format!("cannot change ManagedServer {NAMESPACE}/{SERVER}: {error}"))
        })
    }

    /// Creates the Deployment of the server, or changes its image.
    pub async fn deploy(&self, image: &str) -> Result<(), Failure> {
        let labels = json!({"app": SERVER});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": SERVER, "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": SERVER, "image": image}]},
            }},
        });
        let applied = PatchParams::apply("demo").force();
        let patched = self.connected()?.deployments.patch(SERVER, &applied, &Patch::Apply(&deployment)).await;
        patched
            .map(drop)
            .map_err(|error| Failure::new(format!("cannot apply Deployment {NAMESPACE}/{SERVER}: {error}")))
    }

    fn connected(&self) -> Result<&ClientApis, Failure> {
        self.api.as_ref().ok_or_else(|| Failure::new("the operator is not connected"))
    }

    /// The last lines of the log.
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].iter().map(ToString::to_string).collect()
    }

    /// Asks the process to end, as Kubernetes would, and waits until it has.
    pub async fn shut_down(mut self) -> Result<ExitStatus, Failure> {
        drop(self.process.stdin.take());
        let ended = tokio::time::timeout(SHUTDOWN, self.process.wait()).await;
        let ended =
            ended.map_err(|_| Failure::new(format!("the operator did not end within {SHUTDOWN:?}")))?;
        ended.map_err(|error| Failure::new(format!("cannot wait for the operator: {error}")))
    }
}

fn api(client: &kube::Client, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::from_gvk_with_plural(&kind, plural))
}
