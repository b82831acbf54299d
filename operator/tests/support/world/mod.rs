//! An operator process and the API it works against: the in-process one of standalone mode, or a real
//! kube-apiserver when `KUBEBUILDER_ASSETS` names one. Tests cannot distinguish the two.

mod awaited;
mod objects;

use std::env;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cgroup::Cgroup;
use super::cluster::{Cluster, OPERATOR_NAMESPACE, client};
use super::faulty_api::FaultyApi;
use super::served::Served;

/// How long anything that a test waits for may take, unless it says otherwise.
const PATIENCE: Duration = Duration::from_mins(3);

/// One of our kinds, or a Secret.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned
{
}
impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
{
}

/// An operator with a namespace of its own.
pub struct World {
    pub namespace: String,
    /// Further namespaces that the operator watches.
    pub others: Vec<String>,
    pub client: Client,
    /// How long anything that is waited for may take.
    pub patience: Duration,
    directory: TempDir,
    operator: Option<Child>,
    /// Leads the operator to its API; without one it runs in standalone mode.
    kubeconfig: Option<PathBuf>,
    /// The API of the kubeconfig, if it is ours to keep alive.
    served: Option<Arc<Served>>,
    arguments: Vec<String>,
    /// Further variables of the operator's environment.
    pub environment: Vec<(String, String)>,
    /// Limits the memory of the operator.
    cgroup: Option<Cgroup>,
    /// The length of the log that earlier processes wrote.
    earlier_log: usize,
}

impl World {
    /// Starts an operator and waits until its API answers.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// The same with further flags.
    pub async fn start_with(arguments: &[&str]) -> Self {
        Self::start_in(&[], arguments).await
    }

    /// The same with further variables of the environment.
    pub async fn start_in(environment: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut world = Self::cold_anywhere(arguments).await;
        world.environment = owned(environment);
        world.launch().await;
        world
    }

    /// The same with a further namespace, and with further flags.
    pub async fn start_with_neighbour(arguments: &[&str]) -> Self {
        let mut world = if on_cluster() {
            let mut world = Self::cold_on_cluster(arguments).await;
            world.others.push(Cluster::shared().create_namespace().await);
            world
        } else {
            let mut world = Self::prepare("team".to_owned(), nowhere(), None, arguments);
            world.others.push("neighbour".to_owned());
            world
        };
        world.launch().await;
        world
    }

    /// Starts an operator in `cgroup`.
    pub async fn start_within(cgroup: Cgroup) -> Self {
        let mut world = if on_cluster() {
            let cluster = Cluster::shared();
            let (namespace, client) = (cluster.create_namespace().await, cluster.admin().await);
            Self::prepare(namespace, client, Some(cluster.operator_kubeconfig.clone()), &[])
        } else {
            Self::prepare("team".to_owned(), nowhere(), None, &[])
        };
        world.cgroup = Some(cgroup);
        world.launch().await;
        world
    }

    /// Makes the other methods work on the further namespace, and again on the first one.
    pub fn swap_namespaces(&mut self) {
        std::mem::swap(&mut self.namespace, &mut self.others[0]);
    }

    /// The most memory that the cgroup used, in MiB.
    pub fn cgroup_peak(&self) -> Option<u64> {
        self.cgroup.as_ref()?.peak()
    }

    /// Prepares a standalone operator that finds these objects when it is launched.
    pub fn cold(arguments: &[&str], objects: impl IntoIterator<Item = Value>) -> Self {
        let world = Self::prepare("team".to_owned(), nowhere(), None, arguments);
        for mut object in objects {
            object["metadata"]["namespace"] = json!(world.namespace);
            world.write_manifest(&object);
        }
        world
    }

    /// Prepares an operator without objects, to be launched later.
    pub async fn cold_anywhere(arguments: &[&str]) -> Self {
        if on_cluster() { Self::cold_on_cluster(arguments).await } else { Self::cold(arguments, []) }
    }

    /// Starts an operator that runs as in a cluster and stands for election.
    pub async fn start_elected(environment: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut world = Self::prepare_clustered(&[&["--leader-elect"], arguments].concat()).await;
        world.environment = owned(environment);
        world.launch().await;
        world
    }

    /// Starts an operator that runs as in a cluster, whatever the API.
    pub async fn start_clustered(arguments: &[&str]) -> Self {
        let mut world = Self::prepare_clustered(arguments).await;
        world.launch().await;
        world
    }

    async fn prepare_clustered(arguments: &[&str]) -> Self {
        if on_cluster() {
            return Self::cold_on_cluster(arguments).await;
        }
        Self::prepare_served(arguments).await
    }

    /// Prepares an operator of an in-process API, which it reaches as it would reach a cluster.
    async fn prepare_served(arguments: &[&str]) -> Self {
        let served = Arc::new(Served::start().await);
        let (client, kubeconfig) = (served.client.clone(), served.kubeconfig.clone());
        let mut world = Self::prepare("team".to_owned(), client, Some(kubeconfig), arguments);
        world.served = Some(served);
        world
    }

    /// Starts an operator that runs as in a cluster, behind a proxy to an in-process API. An API server is shared by all
    /// tests, so it is never put in trouble.
    pub async fn start_behind(arguments: &[&str]) -> (Self, FaultyApi) {
        let mut world = Self::prepare_served(arguments).await;
        let api = FaultyApi::start(world.kubeconfig.as_ref().unwrap()).await;
        world.kubeconfig = Some(api.kubeconfig.clone());
        world.launch().await;
        (world, api)
    }

    /// Prepares an operator of the real API server, with a namespace, to be launched later.
    pub async fn cold_on_cluster(arguments: &[&str]) -> Self {
        let cluster = Cluster::shared();
        let (namespace, client) = (cluster.create_namespace().await, cluster.admin().await);
        Self::prepare(namespace, client, Some(cluster.operator_kubeconfig.clone()), arguments)
    }

    /// Starts a further replica of an elected operator.
    pub async fn start_replica(&self, environment: &[(&str, &str)]) -> Self {
        let mut world =
            Self::prepare(self.namespace.clone(), self.client.clone(), self.kubeconfig.clone(), &[]);
        world.served.clone_from(&self.served);
        world.arguments.clone_from(&self.arguments);
        world.environment = owned(environment);
        world.launch().await;
        world
    }

    /// Starts another operator on the same API, with a namespace for its objects.
    pub async fn start_beside(&self, namespace: String, arguments: &[&str]) -> Self {
        let mut world = Self::prepare(namespace, self.client.clone(), self.kubeconfig.clone(), arguments);
        world.served.clone_from(&self.served);
        world.launch().await;
        world
    }

    fn prepare(namespace: String, client: Client, kubeconfig: Option<PathBuf>, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("manifests")).unwrap();
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self {
            namespace,
            others: Vec::new(),
            client,
            patience: PATIENCE,
            directory,
            operator: None,
            kubeconfig,
            served: None,
            arguments,
            environment: Vec::new(),
            cgroup: None,
            earlier_log: 0,
        }
    }

    /// Starts the operator again, on the state that the last one left.
    pub async fn launch(&mut self) {
        assert!(self.operator.is_none(), "the operator runs already");
        let written = self.state().join("kubeconfig");
        let _ = fs::remove_file(&written);
        let log = fs::File::options().create(true).append(true).open(self.log_path()).unwrap();
        self.earlier_log = usize::try_from(log.metadata().unwrap().len()).unwrap();
        let mut command = match &self.cgroup {
            None => Command::new(env!("CARGO_BIN_EXE_declarest-operator")),
            Some(cgroup) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", r#"echo $$ >"$1" && shift && exec "$@""#, "sh"]).arg(cgroup.members());
                shell.arg(env!("CARGO_BIN_EXE_declarest-operator"));
                shell
            }
        };
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig).env("POD_NAMESPACE", OPERATOR_NAMESPACE);
            command.args(["--allow-file-repositories", "--allow-cidr=127.0.0.0/8,::1/128"]);
            if !self.is_given("--health-probe-bind-address") {
                command.arg("--health-probe-bind-address=0");
            }
            if !self.is_given("--metrics-bind-address") {
                command.arg("--metrics-bind-address=0");
            }
            if !self.is_given("--repository-webhook-bind-address") {
                command.arg("--repository-webhook-bind-address=0");
            }
            let watched: Vec<&str> =
                std::iter::once(&self.namespace).chain(&self.others).map(String::as_str).collect();
            if !self.is_given("--watch-namespace-selector") {
                command.arg(format!("--watch-namespace={}", watched.join(",")));
            }
            for (variable, directory) in [
                ("REPO_BASE_DIR", "repos"),
                ("CACHE_BASE_DIR", "cache"),
                ("SECRETS_BASE_DIR", "secrets"),
                ("VOLUMES_DIR", "volumes"),
                ("BUNDLE_DIR", "bundles"),
            ] {
                command.env(format!("DECLAREST_OPERATOR_{variable}"), self.state().join(directory));
            }
        } else {
            command.arg("standalone").arg("--manifests").arg(self.manifests());
            command.arg("--state-dir").arg(self.state()).args(["--api-listen", "127.0.0.1:0"]);
        }
        if !self.is_given("--log-level") {
            command.args(["--log-level", "debug"]);
        }
        command.env("DECLAREST_VAR_HIDDEN", "concealed-value");
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.operator = Some(command.spawn().unwrap());
        if self.kubeconfig.is_none() {
            self.wait_for_file(&written).await;
            self.client = client(&written).await;
        }
    }

    fn is_given(&self, flag: &str) -> bool {
        self.arguments.iter().any(|argument| argument.starts_with(flag))
    }

    /// Ends the operator as a crash would: without any chance to tidy up.
    pub fn kill(&mut self) {
        let mut operator = self.operator.take().unwrap();
        operator.kill().unwrap();
        operator.wait().unwrap();
    }

    /// Asks the operator to stop, as Kubernetes does, and waits for it.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal("-TERM");
        self.operator.take().unwrap().wait().unwrap()
    }

    /// Sends a signal to the operator.
    pub fn signal(&self, signal: &str) {
        let pid = self.operator.as_ref().unwrap().id();
        assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
    }

    /// Waits for the operator to end by itself.
    pub async fn ended(&mut self) -> ExitStatus {
        let mut operator = self.operator.take().unwrap();
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(status) = operator.try_wait().unwrap() {
                return status;
            }
            if Instant::now() > deadline {
                let _ = operator.kill();
                panic!("the operator does not end\n{}", self.log_tail());
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Peak resident memory of the running operator in MiB.
    pub fn peak_memory(&self) -> u64 {
        let status = self.process("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
    }

    /// CPU time of the running operator so far.
    pub fn cpu_time(&self) -> Duration {
        // Clock ticks in user and system mode, of which Linux shows 100 a second (`proc(5)`).
        let stat = self.process("stat");
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ');
        let ticks: u64 = fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// What the system reports about the operator's process (`proc(5)`).
    pub fn process(&self, file: &str) -> String {
        let pid = self.operator.as_ref().unwrap().id();
        fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap()
    }

    /// The number of entries in a directory about the operator's process (`proc(5)`).
    pub fn process_entries(&self, directory: &str) -> usize {
        let pid = self.operator.as_ref().unwrap().id();
        fs::read_dir(format!("/proc/{pid}/{directory}")).unwrap().count()
    }

    /// What the operator logged so far, all its lives together.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The address of the receiver of webhooks, if it listens on a free port.
    pub async fn webhook_address(&self) -> String {
        self.listener("listening for webhooks").await
    }

    /// The address in the log line of the running process with this text.
    pub async fn listener(&self, text: &str) -> String {
        let look = || async {
            let log = self.log();
            let line = log[self.earlier_log..].lines().find(|line| line.contains(text))?;
            let line: Value = serde_json::from_str(line).ok()?;
            Some(line["address"].as_str()?.to_owned())
        };
        self.eventually(text, look).await
    }

    async fn until<T: Debug>(
        &self,
        what: &str,
        look: impl AsyncFn() -> Option<T>,
        wanted: impl Fn(&T) -> bool,
    ) -> T {
        let deadline = Instant::now() + self.patience;
        loop {
            let seen = look().await;
            match seen {
                Some(seen) if wanted(&seen) => return seen,
                seen if Instant::now() > deadline => {
                    panic!("not reached: {what}; it is {seen:#?}\n{}", self.log_tail())
                }
                _ => tokio::time::sleep(Duration::from_millis(25)).await,
            }
        }
    }

    /// Waits until `look` finds something.
    pub async fn eventually<T, F: Future<Output = Option<T>>>(&self, what: &str, look: impl Fn() -> F) -> T {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            assert!(Instant::now() < deadline, "not reached: {what}\n{}", self.log_tail());
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Waits until the operator has removed a file or directory, which it does after the object is gone.
    pub async fn removed(&self, path: &Path) {
        let what = format!("{} is removed", path.display());
        self.eventually(&what, || async { (!path.exists()).then_some(()) }).await;
    }

    async fn wait_for_file(&self, file: &Path) {
        self.eventually(&format!("{} is written", file.display()), || async { file.exists().then_some(()) })
            .await;
    }

    /// The last lines of it.
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    fn manifests(&self) -> PathBuf {
        self.directory.path().join("manifests")
    }

    pub fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// The access of a user to the API.
    pub fn user_kubeconfig(&self) -> PathBuf {
        if self.kubeconfig.is_some() && self.served.is_none() {
            return Cluster::shared().admin_kubeconfig.clone();
        }
        self.kubeconfig.clone().unwrap_or_else(|| self.state().join("kubeconfig"))
    }

    /// Where the mirror of a repository is kept.
    pub fn mirror(&self, repository: &str) -> PathBuf {
        self.state().join("repos/resourcerepositories").join(&self.namespace).join(repository)
    }

    pub fn log_path(&self) -> PathBuf {
        self.directory.path().join("operator.log")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(operator) = &mut self.operator {
            let _ = operator.kill();
            let _ = operator.wait();
        }
    }
}

fn owned(environment: &[(&str, &str)]) -> Vec<(String, String)> {
    environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Whether the tests run against a real API server.
pub fn on_cluster() -> bool {
    env::var_os("KUBEBUILDER_ASSETS").is_some()
}

/// The Ready condition.
pub fn ready(conditions: &[Condition]) -> Condition {
    condition(conditions, "Ready")
}

/// The condition of a type; an empty one if there is none.
pub fn condition(conditions: &[Condition], type_: &str) -> Condition {
    conditions.iter().find(|condition| condition.type_ == type_).cloned().unwrap_or_else(|| Condition {
        last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            jiff::Timestamp::UNIX_EPOCH,
        ),
        message: String::new(),
        observed_generation: None,
        reason: String::new(),
        status: String::new(),
        type_: type_.to_owned(),
    })
}

pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    condition(conditions, type_).status == "True"
}

/// An object of ours.
pub fn declarest(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "declarest.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A client for the time before the standalone operator wrote its kubeconfig.
fn nowhere() -> Client {
    // Without a provider of cryptography even a plain http client refuses to be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::try_from(Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap()
}
