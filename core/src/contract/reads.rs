//! Reads the objects of a target from a Kubernetes API. It never writes.

use std::future::Future;

use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::objects::Selector;
use super::observe::{Cluster, ObjectKind};

/// A Kubernetes API server.
pub trait KubernetesApi: Sync {
    /// Sends a GET request for a path with a query.
    fn get(&self, path: String) -> impl Future<Output = Result<Value, ReadFailure>> + Send;
}

/// Why an API server returned no object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFailure {
    /// The status of the answer; `None` if there was no usable answer.
    pub status: Option<u16>,
    /// The reason, for users.
    pub message: String,
}

/// Read access to one namespace of an API server.
pub struct ClusterReads<'a, A> {
    api: &'a A,
    namespace: &'a str,
    remedy: &'static str,
}

impl<'a, A: KubernetesApi> ClusterReads<'a, A> {
    /// Creates the access. If a right is missing, errors state `remedy`.
    pub fn new(api: &'a A, namespace: &'a str, remedy: &'static str) -> Self {
        Self { api, namespace, remedy }
    }

    /// Returns an object or a list; `None` if there is nothing at this path.
    async fn read(&self, kind: ObjectKind, rest: &str) -> Result<Option<Value>, String> {
        let (_, _, plural) = kind.names();
        let failure = match self.api.get(format!("{}{rest}", kind.path(self.namespace))).await {
            Ok(object) => return Ok(Some(object)),
            Err(failure) => failure,
        };
        match failure.status {
            Some(404) => Ok(None),
            Some(403) => Err(format!("there is no right to read {plural}; {}", self.remedy)),
            Some(status) => Err(format!("cannot read {plural}: {} ({status})", failure.message)),
            None => Err(format!("cannot read {plural}: {}", failure.message)),
        }
    }
}

impl<A: KubernetesApi> Cluster for ClusterReads<'_, A> {
    async fn get(&self, kind: ObjectKind, name: &str) -> Result<Option<Value>, String> {
        // Names of claims come from templates, and must not change the path.
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
