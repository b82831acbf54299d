//! Reads the objects of a contract's target from the Kubernetes API. It never writes.

use declarest_core::contract::objects::Selector;
use declarest_core::contract::{Cluster, ObjectKind};
use http::Request;
use kube::Client;
use serde_json::Value;
use url::form_urlencoded::Serializer;

/// The part of a manifest that gives the operator the rights to read.
const OVERLAY: &str = "config/overlays/runtime-verification";

/// Read access to one namespace.
pub struct ClusterReads<'a> {
    client: &'a Client,
    namespace: &'a str,
}

impl<'a> ClusterReads<'a> {
    pub fn new(client: &'a Client, namespace: &'a str) -> Self {
        Self { client, namespace }
    }

    /// Sends a GET request; `None` if there is nothing at this path.
    async fn read(&self, kind: ObjectKind, rest: &str) -> Result<Option<Value>, String> {
        let (_, _, plural) = kind.names();
        let path = format!("{}{rest}", kind.path(self.namespace));
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(|error| format!("cannot read {plural}: {error}"))?;
        match self.client.request::<Value>(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                Err(format!("the operator may not read {plural}; apply {OVERLAY}"))
            }
            Err(kube::Error::Api(status)) => {
                Err(format!("cannot read {plural}: {} ({})", status.message, status.code))
            }
            Err(error) => Err(format!("cannot read {plural}: {error}")),
        }
    }
}

impl Cluster for ClusterReads<'_> {
    async fn get(&self, kind: ObjectKind, name: &str) -> Result<Option<Value>, String> {
        // Names of claims come from templates, and are only parts of the path.
        let valid = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
            && name.bytes().any(|byte| byte != b'.');
        if valid { self.read(kind, &format!("/{name}")).await } else { Ok(None) }
    }

    async fn list(
        &self,
        kind: ObjectKind,
        selector: Option<&Selector>,
        limit: usize,
    ) -> Result<Vec<Value>, String> {
        let selector = selector.and_then(Selector::text).map(|text| ("labelSelector", text));
        let parameters = [("limit", limit.to_string())].into_iter().chain(selector);
        let query = Serializer::new(String::new()).extend_pairs(parameters).finish();
        let list = self.read(kind, &format!("?{query}")).await?;
        let items = list.and_then(|mut list| list.get_mut("items").map(Value::take));
        Ok(match items {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        })
    }
}
