//! A Kubernetes API in this process: the part of it that controllers and kubectl use.
//!
//! [`Api`] behaves like kube-apiserver for the built-in types the operator needs and for the custom
//! resources it is given: optimistic concurrency, generations, the status subresource, server-side
//! apply, finalizers, owner references, watches that resume, schemas with defaults and CEL rules.
//! There is no authentication: whoever holds a client, or reaches the loopback listener, may do
//! everything.

mod admit;
mod apply;
mod cel;
mod collect;
mod discovery;
mod engine;
mod events;
mod fields;
mod handler;
mod object;
mod patch;
mod render;
mod resource;
mod route;
mod schema;
mod selector;
mod status_error;
mod store;
mod table;
mod watch;

use std::path::Path;
use std::sync::Arc;

use declarest_core::error::{Categorized, Category};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::state::{StateDir, StateError};
use engine::Engine;
use object::meta;
pub(crate) use render::Body;
use resource::Registry;
use status_error::StatusError;
use store::Store;

/// How many changes of each type a watch can be behind before it has to list again.
const LOG_CAPACITY: usize = 4096;

/// Why an API could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A definition does not serve exactly one version.
    #[error("CRD {crd} does not serve exactly one version, which is all the in-process API can do")]
    Versions {
        /// The name of the definition.
        crd: String,
    },
    /// A definition has no structural schema.
    #[error("CRD {crd} has no openAPIV3Schema in its served version")]
    NoSchema {
        /// The name of the definition.
        crd: String,
    },
    /// A schema cannot be compiled.
    #[error("schema of CRD {crd} cannot be compiled: {message}")]
    Schema {
        /// The name of the definition.
        crd: String,
        /// Why.
        message: String,
    },
    /// A CEL rule cannot be compiled.
    #[error("rule `{rule}` of CRD {crd} cannot be compiled: {message}")]
    Rule {
        /// The name of the definition.
        crd: String,
        /// The source of the rule.
        rule: String,
        /// Why.
        message: String,
    },
    /// Saved objects cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// Objects cannot be brought into a consistent state.
    #[error("restored objects cannot be stored: {message}")]
    Restore {
        /// Why.
        message: String,
    },
}

impl Categorized for ApiError {
    fn category(&self) -> Category {
        match self {
            Self::Versions { .. } | Self::NoSchema { .. } | Self::Schema { .. } | Self::Rule { .. } => {
                Category::Validation
            }
            Self::State(_) | Self::Restore { .. } => Category::Internal,
        }
    }
}

/// The API. Clones share all objects.
#[derive(Clone, Debug)]
pub struct Api {
    engine: Arc<Engine>,
}

impl Api {
    /// An API for the custom resources of `crds` that keeps nothing beyond the process.
    pub fn new(crds: Vec<CustomResourceDefinition>) -> Result<Self, ApiError> {
        Self::build(crds, None, LOG_CAPACITY)
    }

    /// An API whose custom resources and claims are kept below `state_dir`. A write that was answered
    /// is on disk. Secrets, events and leases are never kept.
    pub fn restore(crds: Vec<CustomResourceDefinition>, state_dir: &Path) -> Result<Self, ApiError> {
        Self::build(crds, Some(StateDir::new(state_dir)), LOG_CAPACITY)
    }

    /// As [`Api::new`], with another bound on the history that watches resume from.
    #[cfg(test)]
    pub(crate) fn with_log_capacity(
        crds: Vec<CustomResourceDefinition>,
        log_capacity: usize,
    ) -> Result<Self, ApiError> {
        Self::build(crds, None, log_capacity)
    }

    fn build(
        crds: Vec<CustomResourceDefinition>,
        state: Option<StateDir>,
        log_capacity: usize,
    ) -> Result<Self, ApiError> {
        let registry = Registry::new(crds)?;
        let mut restored = Vec::new();
        if let Some(state) = &state {
            for resource in registry.stored().filter(|resource| resource.durable) {
                let mut objects = state.load(&resource.plural)?;
                if let Some(schema) = resource.schema() {
                    for object in &mut objects {
                        // The definition may have changed since the object was saved.
                        schema.prune(object);
                        schema.default(object);
                    }
                }
                restored.push((resource.table, objects));
            }
        }
        let store = Store::new(registry.tables(), log_capacity, state);
        let engine = Engine { registry, store };
        engine.settle(restored).map_err(|error| ApiError::Restore { message: error.message })?;
        Ok(Self { engine: Arc::new(engine) })
    }

    /// A client of this API, with `default` as its default namespace. Must be called inside a Tokio
    /// runtime: the client buffers requests in a task.
    pub fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await?.to_bytes();
                Ok::<_, kube::Error>(api.respond(Request::from_parts(parts, bytes)).await)
            }
        });
        kube::Client::new(service, "default")
    }

    /// Answers one request.
    pub(crate) async fn respond(&self, request: Request<Bytes>) -> Response<Body> {
        handler::handle(Arc::clone(&self.engine), request).await
    }

    /// The answer to a request that does not come from a program on this machine.
    pub(crate) fn refuse_foreign() -> Response<Body> {
        let message = "the in-process API answers local programs only: the Host header has to name a loopback \
                       address, and requests of web pages are refused";
        render::refuse(&StatusError::forbidden(message))
    }

    /// The answer to a body beyond `limit` bytes.
    pub(crate) fn refuse_large(limit: usize) -> Response<Body> {
        render::refuse(&StatusError::too_large(limit))
    }

    /// The answer to a request whose body broke off.
    pub(crate) fn refuse_unread(error: &(dyn std::error::Error + Send + Sync)) -> Response<Body> {
        render::refuse(&StatusError::bad_request(format!("the body of the request cannot be read: {error}")))
    }
}

impl Engine {
    /// Takes in the objects of an earlier process.
    fn settle(&self, restored: Vec<(usize, Vec<Value>)>) -> Result<(), StatusError> {
        let mut namespaces = vec!["default".to_owned()];
        for (table, objects) in restored {
            namespaces.extend(objects.iter().map(|object| meta(object, "namespace").to_owned()));
            self.store.restore(table, objects);
        }
        let writer = self.store.writer();
        for namespace in namespaces {
            self.ensure_namespace(&writer, &namespace)?;
        }
        collect::collect(self, &writer)
    }
}
