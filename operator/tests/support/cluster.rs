//! One real API server per test process, with the operator installed as users install it.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use declarest_operator::crd;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::control_plane::ControlPlane;

/// Where the manifests put the operator.
pub const OPERATOR_NAMESPACE: &str = "declarest-system";
const SERVICE_ACCOUNT: &str = "declarest-operator";

/// A real API server with RBAC, our CRDs and the manifests of `config/default`. No kubelet, scheduler or
/// controller-manager runs: nothing starts pods, collects garbage or finishes deleting namespaces.
pub struct Cluster {
    control_plane: ControlPlane,
    assets: PathBuf,
    /// All rights.
    pub admin_kubeconfig: PathBuf,
    /// Credentials of the operator's service account, and so only what the shipped RBAC allows.
    pub operator_kubeconfig: PathBuf,
    namespaces: AtomicU32,
}

impl Cluster {
    /// The cluster of this test process, started by the first test that asks for it.
    ///
    /// # Panics
    /// When `KUBEBUILDER_ASSETS` does not name a directory with etcd, kube-apiserver and kubectl, or one of
    /// them does not start.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Result<Cluster, String>> = OnceLock::new();
        SHARED.get_or_init(Self::start_blocking).as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Callers are inside a runtime of their own that must not be blocked on, hence a thread.
    fn start_blocking() -> Result<Self, String> {
        std::thread::spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| format!("cannot build a runtime: {error}"))?
                .block_on(Self::start())
        })
        .join()
        .unwrap_or_else(|_| Err("the thread that starts the cluster panicked".to_owned()))
    }

    async fn start() -> Result<Self, String> {
        let assets = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from).ok_or(
            "KUBEBUILDER_ASSETS is not set; run these tests with `make test-cluster`, or build etcd, \
             kube-apiserver and kubectl with `make envtest` and set it to the directory that prints",
        )?;
        let control_plane = ControlPlane::start(&assets)?;
        let admin_kubeconfig =
            write_kubeconfig(&control_plane, "admin.kubeconfig", control_plane.admin_token)?;
        let admin = client(&admin_kubeconfig).await;
        control_plane.wait_until(|| async { admin.request_text(readyz()).await.is_ok() }).await?;

        let mut cluster = Self {
            control_plane,
            assets,
            admin_kubeconfig,
            operator_kubeconfig: PathBuf::new(),
            namespaces: AtomicU32::new(0),
        };
        create_namespace(&admin, OPERATOR_NAMESPACE).await?;
        cluster.install(&config_dir("default")).await?;
        cluster.operator_kubeconfig = cluster.log_in_operator(&admin).await?;
        Ok(cluster)
    }

    /// Installs the operator as the documentation describes.
    pub async fn install(&self, kustomization: &str) -> Result<(), String> {
        self.kubectl(&["apply", "-k", kustomization])?;
        // Established definitions reach discovery and the OpenAPI document a moment later, kind by kind.
        let documented = || async {
            crd::all().iter().all(|crd| self.kubectl(&["explain", &crd.spec.names.plural]).is_ok())
        };
        self.control_plane.wait_until(documented).await
    }

    /// Writes a token for the operator's service account to its kubeconfig, as a kubelet would.
    pub async fn log_in_operator(&self, admin: &Client) -> Result<PathBuf, String> {
        let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), OPERATOR_NAMESPACE);
        let request = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(7200), ..Default::default() },
            ..Default::default()
        };
        let token = accounts
            .create_token_request(SERVICE_ACCOUNT, &PostParams::default(), &request)
            .await
            .map_err(|error| format!("cannot get a token for {SERVICE_ACCOUNT}: {error}"))?
            .status
            .map(|status| status.token)
            .ok_or("the API server granted an empty token")?;
        write_kubeconfig(&self.control_plane, "operator.kubeconfig", &token)
    }

    /// Sends a signal to `etcd` or `kube-apiserver`. This affects all tests of the process.
    pub fn signal(&self, server: &str, signal: &str) {
        self.control_plane.signal(server, signal);
    }

    /// A client with all rights. Make one per test: it ends with the runtime that it is made in.
    pub async fn admin(&self) -> Client {
        client(&self.admin_kubeconfig).await
    }

    /// The same with a default namespace.
    pub async fn admin_in(&self, namespace: &str) -> Client {
        let mut config = config(&self.admin_kubeconfig).await;
        namespace.clone_into(&mut config.default_namespace);
        Client::try_from(config).unwrap()
    }

    /// A client with the rights of a user with this name.
    pub async fn user(&self, name: &str) -> Client {
        let mut config = config(&self.admin_kubeconfig).await;
        config.auth_info.impersonate = Some(name.to_owned());
        Client::try_from(config).unwrap()
    }

    /// A client with the operator's rights.
    pub async fn operator(&self) -> Client {
        client(&self.operator_kubeconfig).await
    }

    /// Creates a namespace of its own for a test and returns its name. It is never deleted: without a
    /// controller-manager it would stay in deletion, and the cluster ends with the process anyway.
    pub async fn create_namespace(&self) -> String {
        let name = format!("test-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        create_namespace(&self.admin().await, &name).await.unwrap_or_else(|error| panic!("{error}"));
        name
    }

    /// Returns the groups and the plurals of the objects that the operator wrote in a namespace, by the audit log. The
    /// empty namespace stands for objects of the cluster.
    pub fn written(&self, namespace: &str) -> BTreeSet<(String, String)> {
        let user = format!("system:serviceaccount:{OPERATOR_NAMESPACE}:{SERVICE_ACCOUNT}");
        let entries = self.control_plane.audit_log();
        // A review of a right is a question, which is not stored.
        let is_question = |entry: &Value| entry["objectRef"]["resource"] == "subjectaccessreviews";
        let own = entries.iter().filter(|entry| entry["user"]["username"] == user && !is_question(entry));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let objects = own.map(|entry| &entry["objectRef"]);
        let objects = objects.filter(|object| text(&object["namespace"]) == namespace);
        objects.map(|object| (text(&object["apiGroup"]), text(&object["resource"]))).collect()
    }

    /// Runs kubectl as admin and returns what it printed.
    pub fn kubectl(&self, args: &[&str]) -> Result<String, String> {
        self.run(Command::new(self.kubectl_path()).args(args))
    }

    /// Runs `kubectl apply` as admin for `manifest`, with further arguments.
    pub fn apply(&self, manifest: &str, args: &[&str]) -> Result<String, String> {
        let file = NamedTempFile::new().map_err(|error| error.to_string())?;
        fs::write(&file, manifest).map_err(|error| error.to_string())?;
        self.run(Command::new(self.kubectl_path()).arg("apply").arg("-f").arg(file.path()).args(args))
    }

    pub fn kubectl_path(&self) -> PathBuf {
        self.assets.join("kubectl")
    }

    /// Runs a program that uses kubectl as admin, and returns what it printed.
    pub fn run(&self, command: &mut Command) -> Result<String, String> {
        let output = command
            .env("KUBECONFIG", &self.admin_kubeconfig)
            // kubectl caches what it discovers below HOME.
            .env("HOME", &self.control_plane.dir)
            .output()
            .map_err(|error| format!("cannot run {command:?}: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)))
        }
    }
}

/// A directory of `config/` as an argument for kubectl.
pub fn config_dir(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").join(name).to_string_lossy().into_owned()
}

fn readyz() -> http::Request<Vec<u8>> {
    let mut request = http::Request::new(Vec::new());
    *request.uri_mut() = http::Uri::from_static("/readyz");
    request
}

/// A client with the credentials of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Client {
    Client::try_from(config(kubeconfig).await).unwrap()
}

async fn config(kubeconfig: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

async fn create_namespace(admin: &Client, name: &str) -> Result<(), String> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..Default::default() };
    Api::<Namespace>::all(admin.clone())
        .create(&PostParams::default(), &Namespace { metadata, ..Default::default() })
        .await
        .map(drop)
        .map_err(|error| format!("cannot create the namespace {name}: {error}"))
}

/// Writes a kubeconfig (JSON is YAML) that holds one bearer token.
fn write_kubeconfig(control_plane: &ControlPlane, name: &str, token: &str) -> Result<PathBuf, String> {
    use base64::Engine as _;
    let ca = base64::engine::general_purpose::STANDARD.encode(&control_plane.ca);
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{
            "name": "test",
            "cluster": {"server": control_plane.url, "certificate-authority-data": ca}
        }],
        "users": [{"name": "test", "user": {"token": token}}]
    });
    let path = control_plane.dir.join(name);
    fs::write(&path, kubeconfig.to_string())
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path)
}
