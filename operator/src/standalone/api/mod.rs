//! The in-process Kubernetes API: the part of kube-apiserver that controllers and kubectl use.
//!
//! [`Api`] behaves like kube-apiserver for the built-in types that the operator needs and for the given custom
//! resources: optimistic concurrency, generations, the status subresource, server-side apply, finalizers, owner
//! references, watches that resume, schemas with defaults and CEL rules. There is no authentication: every client,
//! also one of the loopback listener, may perform all operations.
//!
//! The stages of a request are `route` and `handler` (find the verb and its target), `patch` or `apply` (compute
//! the new object), `admit` (prune, default, validate), `engine` and `store` (check preconditions, commit),
//! `collect` (garbage collection) and `render` (write the response).
//!
//! ```text
//! status_error                errors as clients expect them
//! schema, column, resource    the served types: their schemas, their columns in tables
//! object                      metadata, and the rules of all objects
//! store, removal, collect     the objects, the end of one, garbage collection
//! admit, fields, apply        checks of a new object, field managers, server-side apply
//! engine                      one write
//! route, selector, patch      what a request asks for
//! events, table, render       what a response shows
//! discovery, watch, handler   one request
//! ```
//!
//! Each file uses those above it.

mod admit;
mod apply;
mod collect;
mod column;
mod discovery;
mod engine;
mod events;
mod fields;
mod handler;
mod object;
mod patch;
mod removal;
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

use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use parking_lot::Mutex;
use serde_json::Value;

use super::state::{StateDir, StateError};
use engine::Engine;
use object::meta;
pub(crate) use render::Body;
use resource::Registry;
use status_error::StatusError;
use store::Store;

/// Number of changes of each type, in the last minutes, that a watch can be behind before its client must list again. Each
/// change holds a whole object, about 16 KiB for a policy.
const LOG_CAPACITY: usize = 1024;

/// The API could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A definition does not serve exactly one version.
    #[error("CRD {0} must serve exactly one version; the in-process API supports only one")]
    Versions(String),
    /// A definition has no structural schema.
    #[error("CRD {0} has no openAPIV3Schema in its served version")]
    NoSchema(String),
    /// A schema cannot be compiled.
    #[error("schema of CRD {crd} cannot be compiled: {message}")]
    Schema {
        /// The name of the definition.
        crd: String,
        /// The cause.
        message: String,
    },
    /// A CEL rule cannot be compiled.
    #[error("rule `{rule}` of CRD {crd} cannot be compiled: {message}")]
    Rule {
        /// The name of the definition.
        crd: String,
        /// The source of the rule.
        rule: String,
        /// The cause.
        message: String,
    },
    /// Saved objects cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// Restored objects cannot be stored consistently.
    #[error("restored objects cannot be stored: {0}")]
    Restore(String),
}

/// The API. Clones share all objects.
#[derive(Clone, Debug)]
pub struct Api {
    engine: Arc<Engine>,
}

impl Api {
    /// Creates an API for the custom resources of `crds` whose objects do not outlive the process.
    pub fn new(crds: Vec<CustomResourceDefinition>) -> Result<Self, ApiError> {
        Self::build(crds, None, LOG_CAPACITY)
    }

    /// Creates an API that stores custom resources and claims below `state_dir`. A confirmed write is on disk.
    /// Secrets, events and leases are never stored on disk.
    pub fn restore(crds: Vec<CustomResourceDefinition>, state_dir: &Path) -> Result<Self, ApiError> {
        Self::build(crds, Some(StateDir::new(state_dir)), LOG_CAPACITY)
    }

    /// Like [`Api::new`], with another limit of the history that watches resume from.
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
        // Load the objects of an earlier process.
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
        // Fill the store, and run the garbage collection that the earlier process did not finish.
        let store = Store::new(registry.tables(), log_capacity, state);
        let engine = Engine { registry, store, expired: Mutex::default() };
        engine.settle(restored).map_err(|error| ApiError::Restore(error.message))?;
        Ok(Self { engine: Arc::new(engine) })
    }

    /// Returns a client of this API, with `default` as its default namespace. Call it in a Tokio runtime, because
    /// the client buffers requests in a task.
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

    /// Handles one request.
    pub(crate) async fn respond(&self, request: Request<Bytes>) -> Response<Body> {
        handler::handle(Arc::clone(&self.engine), request).await
    }

    /// Returns the response to a request without the token.
    pub(crate) fn refuse_unknown() -> Response<Body> {
        render::refuse(&StatusError::unauthorized())
    }

    /// Returns the response to a body of more than `limit` bytes.
    pub(crate) fn refuse_large(limit: usize) -> Response<Body> {
        render::refuse(&StatusError::too_large(limit))
    }

    /// Returns the response to a request whose body cannot be read.
    pub(crate) fn refuse_unread(error: &(dyn std::error::Error + Send + Sync)) -> Response<Body> {
        render::refuse(&StatusError::bad_request(format!("the body of the request cannot be read: {error}")))
    }
}

impl Engine {
    /// Stores the objects of an earlier process, creates their namespaces and collects garbage.
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
        self.collect(&writer)
    }
}
