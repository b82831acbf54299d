//! Reads the objects that a contract is compared with, with the client of the operator.

use declarest_core::contract::{ClusterReads, KubernetesApi, ReadFailure};
use http::Request;
use kube::Client;
use serde_json::Value;

/// The answer to a missing right: the part of the manifests that grants it.
const REMEDY: &str = "apply config/overlays/runtime-verification";

/// The API server of the operator.
pub struct Api<'a>(&'a Client);

impl<'a> Api<'a> {
    pub fn new(client: &'a Client) -> Self {
        Self(client)
    }

    /// Returns read access to one namespace.
    pub fn reads<'b>(&'b self, namespace: &'b str) -> ClusterReads<'b, Self> {
        ClusterReads::new(self, namespace, REMEDY)
    }
}

impl KubernetesApi for Api<'_> {
    async fn get(&self, path: String) -> Result<Value, ReadFailure> {
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
        let answer = match request {
            Ok(request) => self.0.request(request).await,
            Err(error) => Err(error),
        };
        answer.map_err(|error| match error {
            kube::Error::Api(status) => ReadFailure { status: Some(status.code), message: status.message },
            error => ReadFailure { status: None, message: error.to_string() },
        })
    }
}
