//! A Kubernetes cluster, reached with a kubeconfig. Nothing is written there.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use declarest_core::contract::{ClusterReads, ContractBinding, KubernetesApi, ReadFailure};
use declarest_core::error::{Category, with_causes};
use http::Request;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde::Deserialize;
use serde_json::Value;

use crate::error::Failure;

/// The longest wait for a connection, and for an answer.
const TIME: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub struct ClusterArguments {
    /// File with the access to the cluster; default is $KUBECONFIG, ~/.kube/config, or that of the pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    kube_context: Option<String>,
}

/// The API server of a cluster.
pub struct ApiServer {
    client: Client,
    /// The namespace of the context.
    pub namespace: String,
    /// The first read that failed.
    failure: Mutex<Option<Failure>>,
}

/// The parts of a ManagedServer that a verification needs.
#[derive(Deserialize)]
pub struct Server {
    pub http: Endpoint,
    pub contract: Option<ContractBinding>,
}

/// The endpoint of a ManagedServer.
#[derive(Deserialize)]
pub struct Endpoint {
    #[serde(rename = "baseURL")]
    pub base_url: String,
}

impl ApiServer {
    /// Prepares the access. Sends requests only if the kubeconfig has a plugin for credentials.
    pub async fn connect(arguments: &ClusterArguments) -> Result<Self, Failure> {
        let mut config = configuration(arguments).await?;
        config.connect_timeout = Some(TIME);
        config.read_timeout = Some(TIME);
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config).map_err(|error| failure(&error))?;
        Ok(Self { client, namespace, failure: Mutex::new(None) })
    }

    /// Returns read access to a namespace.
    pub fn reads<'a>(&'a self, namespace: &'a str) -> ClusterReads<'a, Self> {
        ClusterReads::new(self, namespace, "use an account with this right")
    }

    /// Returns the first read that failed. That something does not exist is not a failure.
    pub fn into_failure(self) -> Option<Failure> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a ManagedServer.
    pub async fn server(&self, namespace: &str, name: &str) -> Result<Server, Failure> {
        let kind = GroupVersionKind::gvk("declarest.io", "v1alpha1", "ManagedServer");
        let resource = ApiResource::from_gvk_with_plural(&kind, "managedservers");
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        let mut object = api.get(name).await.map_err(|error| failure(&error))?;
        Server::deserialize(object.data["spec"].take())
            .map_err(|error| Failure::invalid(format!("spec of the ManagedServer {name}: {error}")))
    }
}

impl KubernetesApi for ApiServer {
    async fn get(&self, path: String) -> Result<Value, ReadFailure> {
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
        let answer = match request {
            Ok(request) => self.client.request(request).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| {
            let failure = failure(&error);
            let message = failure.message().to_owned();
            let status = if let kube::Error::Api(status) = error { Some(status.code) } else { None };
            if status != Some(404) {
                let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(failure);
            }
            ReadFailure { status, message }
        })
    }
}

async fn configuration(arguments: &ClusterArguments) -> Result<Config, Failure> {
    let ClusterArguments { kubeconfig, kube_context } = arguments;
    let options = KubeConfigOptions { context: kube_context.clone(), ..KubeConfigOptions::default() };
    let invalid = |error: &(dyn std::error::Error + 'static)| {
        Failure::invalid(format!("cannot use the kubeconfig: {}", with_causes(error)))
    };
    match kubeconfig {
        Some(file) if !file.is_file() => {
            let message = format!("there is no kubeconfig {}", file.display());
            Err(Failure::new(Category::NotFound, message))
        }
        Some(file) => {
            let read = Kubeconfig::read_from(file).map_err(|error| invalid(&error))?;
            Config::from_custom_kubeconfig(read, &options).await.map_err(|error| invalid(&error))
        }
        None if kube_context.is_some() => {
            Config::from_kubeconfig(&options).await.map_err(|error| invalid(&error))
        }
        None => Config::infer().await.map_err(|error| invalid(&error)),
    }
}

/// Returns the failure of a request to the API server.
fn failure(error: &kube::Error) -> Failure {
    let (category, message) = match error {
        kube::Error::Api(status) => {
            let category = match status.code {
                401 | 403 => Category::Auth,
                404 => Category::NotFound,
                _ => Category::Transport,
            };
            (category, format!("the API server answered {}: {}", status.code, status.message))
        }
        kube::Error::Auth(cause) => {
            (Category::Auth, format!("cannot log in to the cluster: {}", with_causes(cause)))
        }
        error => (Category::Transport, format!("cannot reach the API server: {}", with_causes(error))),
    };
    Failure::new(category, message)
}
