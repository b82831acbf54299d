//! The objects of a cluster that a verification reads. Nothing is written there.

use declarest_core::contract::{ClusterReads, ContractBinding, KubernetesApi, ReadFailure};
use http::Request;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::cluster::{Cluster, ClusterArguments};
use crate::error::Failure;

/// The API server of a cluster.
pub struct ApiServer {
    cluster: Cluster,
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
        Ok(Self { cluster: Cluster::connect(arguments).await?, failure: Mutex::new(None) })
    }

    /// Returns the namespace of the objects.
    pub fn namespace(&self) -> &str {
        &self.cluster.namespace
    }

    /// Returns read access to a namespace.
    pub fn reads<'a>(&'a self, namespace: &'a str) -> ClusterReads<'a, Self> {
        ClusterReads::new(self, namespace, "use an account with this right")
    }

    /// Returns the first read that failed. That something does not exist is not a failure.
    pub fn into_failure(self) -> Option<Failure> {
        self.failure.into_inner()
    }

    /// Reads a ManagedServer.
    pub async fn server(&self, namespace: &str, name: &str) -> Result<Server, Failure> {
        let kind = GroupVersionKind::gvk("declarest.io", "v1alpha1", "ManagedServer");
        let resource = ApiResource::from_gvk_with_plural(&kind, "managedservers");
        let api: Api<DynamicObject> = Api::namespaced_with(self.cluster.client.clone(), namespace, &resource);
        let mut object = api.get(name).await.map_err(|error| self.cluster.failure(&error))?;
        Server::deserialize(object.data["spec"].take())
            .map_err(|error| Failure::invalid(format!("spec of the ManagedServer {name}: {error}")))
    }
}

impl KubernetesApi for ApiServer {
    async fn get(&self, path: String) -> Result<Value, ReadFailure> {
        let answer = async {
            let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
            self.cluster.client.request(request).await
        };
        answer.await.map_err(|error| {
            let failure = self.cluster.failure(&error);
            let message = failure.message().to_owned();
            let status = if let kube::Error::Api(status) = error { Some(status.code) } else { None };
            if status != Some(404) {
                let mut first = self.failure.lock();
                first.get_or_insert(failure);
            }
            ReadFailure { status, message }
        })
    }
}
