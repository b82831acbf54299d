//! An API with controllers, and repositories for them to follow.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use declarest_operator::args::{Args, BindAddress, Command, ManagerOptions};
use declarest_operator::controller::kind::Kind;
use declarest_operator::crd;
use declarest_operator::directories::Directories;
use declarest_operator::leader::Candidate;
use declarest_operator::runtime::{Platform, RuntimeError, operate};
use declarest_operator::standalone;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const NAMESPACE: &str = "default";

/// Far longer than anything here takes: only a hanging test reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

/// An API, a state directory, and at most one running operator.
pub struct World {
    pub client: Client,
    pub state: TempDir,
    operator: Option<(CancellationToken, JoinHandle<Result<(), RuntimeError>>)>,
}

impl World {
    /// A world whose operator runs.
    pub fn start() -> Self {
        let mut world = Self::idle(crd::all());
        world.run();
        world
    }

    /// A world without an operator.
    pub fn idle(crds: Vec<CustomResourceDefinition>) -> Self {
        let api = standalone::Api::new(crds).unwrap();
        Self { client: api.client(), state: tempfile::tempdir().unwrap(), operator: None }
    }

    /// Starts the operator.
    pub fn run(&mut self) {
        self.run_with(None);
    }

    /// Starts the operator as a replica that stands for election.
    pub fn run_with(&mut self, election: Option<Candidate>) {
        let stop = CancellationToken::new();
        let platform = Platform {
            client: self.client.clone(),
            directories: Directories::below(self.state.path()),
            identity: "test".to_owned(),
            election,
            allow_file_repositories: true,
            metrics_address: BindAddress::Off,
            probe_address: BindAddress::Off,
        };
        let operator = tokio::spawn({
            let stop = stop.clone();
            async move { operate(platform, &options(), stop).await }
        });
        self.operator = Some((stop, operator));
    }

    /// Stops the operator in good order.
    pub async fn stop(&mut self) {
        let (stop, operator) = self.operator.take().unwrap();
        stop.cancel();
        operator.await.unwrap().unwrap();
    }

    /// Waits for the operator to end by itself.
    pub async fn ended(&mut self) -> Result<(), RuntimeError> {
        let (_, operator) = self.operator.take().unwrap();
        tokio::time::timeout(PATIENCE, operator).await.expect("the operator did not end").unwrap()
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub async fn create<K: Kind + serde::Serialize>(&self, name: &str, spec: Value) -> K {
        let object = serde_json::from_value(json!({
            "apiVersion": K::api_version(&()), "kind": K::NAME,
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        }));
        self.api().create(&PostParams::default(), &object.unwrap()).await.unwrap()
    }

    pub async fn create_secret(&self, name: &str, key: &str, value: &str) {
        let secret: Secret =
            serde_json::from_value(json!({"metadata": {"name": name}, "stringData": {key: value}})).unwrap();
        self.api().create(&PostParams::default(), &secret).await.unwrap();
    }

    pub async fn annotate<K: Kind>(&self, name: &str, annotation: &str, value: &str) {
        let patch = json!({"metadata": {"annotations": {annotation: value}}});
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn delete<K: Kind>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until the object is as `is` wants it.
    pub async fn until<K: Kind + Debug>(&self, name: &str, is: impl Fn(&K) -> bool) -> K {
        let condition = |object: Option<&K>| object.is_some_and(&is);
        let waited = await_condition(self.api::<K>(), name, condition);
        match tokio::time::timeout(PATIENCE, waited).await {
            Ok(object) => object.unwrap().unwrap(),
            Err(_) => panic!("{} {name} never got there: {:#?}", K::NAME, self.api::<K>().get(name).await),
        }
    }

    /// Waits until Ready has `reason`.
    pub async fn until_reason<K: Kind + Debug>(&self, name: &str, reason: &str) -> K {
        self.until(name, |object: &K| ready(object).is_some_and(|ready| ready.reason == reason)).await
    }

    pub async fn until_gone<K: Kind>(&self, name: &str) {
        let condition = |object: Option<&K>| object.is_none();
        let waited = await_condition(self.api::<K>(), name, condition);
        tokio::time::timeout(PATIENCE, waited).await.expect("the object never went away").unwrap();
    }
}

/// The Ready condition.
pub fn ready<K: Kind>(object: &K) -> Option<&Condition> {
    object.conditions().iter().find(|condition| condition.type_ == "Ready")
}

fn options() -> ManagerOptions {
    use clap::Parser as _;
    match Args::parse_from(["declarest-operator"]).into_command() {
        Command::Run(options) => options.manager,
        other => panic!("expected the default command, not {other:?}"),
    }
}

/// A Git repository on disk.
pub struct Origin {
    directory: TempDir,
}

impl Origin {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = git2::RepositoryInitOptions::new();
        options.initial_head("main").bare(true);
        git2::Repository::init_opts(directory.path(), &options).unwrap();
        Self { directory }
    }

    pub fn url(&self) -> String {
        format!("file://{}", self.directory.path().display())
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Commits one file on top of the branch; returns the commit's id.
    pub fn commit(&self, name: &str, content: &str) -> String {
        let repository = git2::Repository::open(self.directory.path()).unwrap();
        let parent = repository.head().ok().map(|head| head.peel_to_commit().unwrap());
        let base = parent.as_ref().map(|parent| parent.tree().unwrap());
        let blob = repository.blob(content.as_bytes()).unwrap();
        let mut files = repository.treebuilder(base.as_ref()).unwrap();
        files.insert(name, blob, 0o100_644).unwrap();
        let tree = repository.find_tree(files.write().unwrap()).unwrap();
        let author = git2::Signature::new("Test", "test@example.test", &git2::Time::new(0, 0)).unwrap();
        let parents: Vec<_> = parent.iter().collect();
        repository
            .commit(Some("refs/heads/main"), &author, &author, "change", &tree, &parents)
            .unwrap()
            .to_string()
    }
}
