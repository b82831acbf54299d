//! Handles one delivery: checks it, and announces the push that it proves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use declarest_core::secrets::Secret;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::{Client, ResourceExt as _};
use parking_lot::Mutex;

use super::announce::Announcer;
use super::provider::Dialect;
use super::push::{InvalidPush, Push};
use super::recent::Recent;
use crate::controller::context::{Caches, Settings};
use crate::controller::error::Failure;
use crate::controller::kind::Key;
use crate::controller::outcome::Reason;
use crate::controller::references::SecretReader;
use crate::controller::resource_repository::DELIVERY_ID;
use crate::crd::resource_repository::{GitSource, RepositoryWebhook, WebhookEvent};
use crate::crd::validation::{is_label, is_subdomain};
use crate::crd::{ResourceRepository, SecretKeyRef};
use crate::http_server::{HttpServer, Limits};
use crate::telemetry::Metrics;

/// Limit of a body in bytes. A push that lists more commits than fit is fetched at the next poll.
const MAX_BODY: usize = 1 << 20;
/// A Git host sends one delivery per connection, and waits about 10 s for the response.
const LIMITS: Limits = Limits {
    connections: 64,
    headers: Duration::from_secs(5),
    connection: Some(Duration::from_secs(30)),
    keep_alive: false,
    drain: Duration::from_secs(10),
};
/// Limit of the time in which a body must arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Limit of the time in which a delivery waits for the caches to be filled after the start. A Git host waits longer.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// Receives deliveries for the repositories in the caches.
pub struct Receiver {
    client: Client,
    caches: Caches,
    settings: Settings,
    metrics: Arc<Metrics>,
    /// The watched namespaces; none means all.
    namespaces: Vec<String>,
    announcer: Announcer,
    recent: Recent,
    secrets: Mutex<HashMap<(Key, String), Known>>,
}

/// A value of one version of a Secret, or why that version has no usable value.
struct Known {
    version: Option<String>,
    value: Result<Secret, Failure>,
}

/// The result of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Accepted,
    Duplicate,
    Filtered,
    Ignored,
    Pong,
    Suspended,
    InvalidName,
    OtherNamespace,
    InvalidPush,
    Unauthorized,
    NotFound,
    TimedOut,
    TooLarge,
    Starting,
    SecretUnusable,
    NotAnnounced,
}

impl Answer {
    /// Returns the status, the text of the response, and the label of the metric.
    const fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Accepted => (StatusCode::ACCEPTED, "accepted", "accepted"),
            Self::Duplicate => (StatusCode::ACCEPTED, "duplicate", "duplicate"),
            Self::Filtered => (StatusCode::ACCEPTED, "filtered", "filtered"),
            Self::Ignored => (StatusCode::ACCEPTED, "ignored", "ignored"),
            Self::Pong => (StatusCode::ACCEPTED, "pong", "pong"),
            Self::Suspended => (StatusCode::ACCEPTED, "suspended", "suspended"),
            Self::InvalidName => (StatusCode::BAD_REQUEST, "the path has an invalid name", "invalid"),
            Self::OtherNamespace => {
                (StatusCode::BAD_REQUEST, "the operator does not watch this namespace", "invalid")
            }
            Self::InvalidPush => {
                (StatusCode::BAD_REQUEST, "the body is not a JSON object with a member ref", "invalid")
            }
            Self::Unauthorized => {
                (StatusCode::UNAUTHORIZED, "signature or token is not valid", "unauthorized")
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "no such repository webhook", "not_found"),
            Self::TimedOut => (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time", "timeout"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "the body exceeds 1 MiB", "too_large"),
            Self::Starting => {
                (StatusCode::SERVICE_UNAVAILABLE, "the operator is starting; deliver again", "starting")
            }
            Self::SecretUnusable => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the secret of the webhook cannot be used; see the log of the operator",
                "error",
            ),
            Self::NotAnnounced => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the delivery cannot be recorded; see the log of the operator",
                "error",
            ),
        }
    }
}

/// A repository that deliveries are for, with expanded placeholders.
struct Target {
    key: Key,
    object: Arc<ResourceRepository>,
    git: GitSource,
    webhook: RepositoryWebhook,
}

impl Receiver {
    /// Creates a receiver with an API client of its own, so that deliveries do not wait for the controllers.
    pub fn new(
        client: Client,
        caches: Caches,
        settings: Settings,
        metrics: Arc<Metrics>,
        namespaces: Vec<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            announcer: Announcer::new(client.clone()),
            client,
            caches,
            settings,
            metrics,
            namespaces,
            recent: Recent::default(),
            secrets: Mutex::default(),
        })
    }

    /// Creates the server. Each connection carries one delivery.
    pub fn server(self: Arc<Self>) -> HttpServer {
        HttpServer { purpose: "webhooks", router: self.router(), limits: LIMITS, tls: None }
    }

    /// Returns the routes. Other methods get 405.
    fn router(self: Arc<Self>) -> Router {
        let router = Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/webhooks/repository/{namespace}/{name}", post(receive));
        let router = match self.namespaces.as_slice() {
            [_] => router.route("/webhooks/repository/{name}", post(receive_watched)),
            _ => router,
        };
        router.with_state(self)
    }

    async fn respond(&self, namespace: String, name: String, request: Request) -> Response {
        let (provider, answer) = match self.target(namespace, name).await {
            Ok(target) => {
                let refused = self.check(&target, request).await.err();
                (Some(target.webhook.provider), refused.unwrap_or(Answer::Accepted))
            }
            Err(answer) => (None, answer),
        };
        let (status, text, result) = answer.parts();
        self.metrics.webhook_received(provider.map_or("none", |provider| provider.into_str()), result);
        (status, format!("{text}\n")).into_response()
    }

    /// Returns the repository that a path names. Reads the caches only, which are filled soon after the start.
    async fn target(&self, namespace: String, name: String) -> Result<Target, Answer> {
        if !is_label(&namespace) || !is_subdomain(&name) {
            return Err(Answer::InvalidName);
        }
        if !self.namespaces.is_empty() && !self.namespaces.contains(&namespace) {
            return Err(Answer::OtherNamespace);
        }
        tokio::time::timeout(START_TIMEOUT, self.started()).await.map_err(|_| Answer::Starting)?;
        let object = self.caches.repositories.get(&namespace, &name).ok_or(Answer::NotFound)?;
        // A sender that is not proven must not learn why a spec is invalid.
        let expanded = self.settings.expanded(&object).map_err(|_| Answer::NotFound)?;
        let git = expanded.spec.git.ok_or(Answer::NotFound)?;
        let webhook = git.webhook.clone().ok_or(Answer::NotFound)?;
        Ok(Target { key: Key { namespace, name }, object: Arc::new(object), git, webhook })
    }

    /// Waits until the repositories and the Secrets are known. Before that, each of them would seem to be missing.
    async fn started(&self) {
        // A cache whose watch ended remains as it is.
        let _ = tokio::join!(self.caches.repositories.synced(), self.caches.secrets.synced());
    }

    /// Announces a delivery that passes all checks. The error is the answer to any other one.
    async fn check(&self, target: &Target, request: Request) -> Result<(), Answer> {
        let Target { key, webhook, .. } = target;
        if webhook.suspend {
            return Err(Answer::Suspended);
        }
        // Read the body, within limits of size and time.
        let (parts, body) = request.into_parts();
        let body = read(body).await?;
        // Prove the sender. Nothing was read from the API server or written so far.
        let dialect = Dialect::of(webhook.provider);
        let secret = self.secret(key, &webhook.secret_ref).await.map_err(|failure| {
            tracing::warn!(
                namespace = key.namespace,
                name = key.name,
                detail = failure.message,
                "cannot check a webhook delivery"
            );
            Answer::SecretUnusable
        })?;
        if !dialect.is_proven(&parts.headers, &body, &secret) {
            return Err(Answer::Unauthorized);
        }
        // Select pushes to a branch that is followed.
        match dialect.event(&parts.headers) {
            Some(WebhookEvent::Ping) => return Err(Answer::Pong),
            Some(event) if webhook.events.contains(&event) => {}
            _ => return Err(Answer::Ignored),
        }
        let delivery = dialect.delivery(&parts.headers);
        let push = push(&parts.headers, &body).map_err(|error| {
            tracing::debug!(
                namespace = key.namespace,
                name = key.name,
                delivery,
                %error,
                "rejected a webhook delivery"
            );
            Answer::InvalidPush
        })?;
        if !push.branch().is_some_and(|branch| follows(target, branch)) {
            return Err(Answer::Filtered);
        }
        // Announce each delivery once.
        let id = delivery.map(|id| (key.namespace.clone(), key.name.clone(), id.to_owned()));
        let announced = target.object.annotations().get(DELIVERY_ID).map(String::as_str);
        if delivery.is_some()
            && (announced == delivery || id.as_ref().is_some_and(|id| self.recent.contains(id)))
        {
            return Err(Answer::Duplicate);
        }
        if !self.announcer.announce(key, delivery).await {
            return Err(Answer::NotAnnounced);
        }
        if let Some(id) = id {
            self.recent.insert(id);
        }
        Ok(())
    }

    /// Returns the shared secret. It is read once for each version of the Secret, so that a flood of deliveries does
    /// not become a flood of requests to the API server.
    async fn secret(&self, repository: &Key, reference: &SecretKeyRef) -> Result<Secret, Failure> {
        let namespace = &repository.namespace;
        let version =
            self.caches.secrets.object(namespace, &reference.name).map(|secret| secret.resource_version());
        let Some(version) = version else {
            return Err(Failure::dependency_invalid(format!(
                "spec.git.webhook.secretRef: Secret {namespace}/{} does not exist",
                reference.name
            )));
        };
        let place =
            (Key { namespace: namespace.clone(), name: reference.name.clone() }, reference.key.clone());
        if let Some(known) = self.secrets.lock().get(&place).filter(|known| known.version == version) {
            return known.value.clone();
        }
        let mut reader = SecretReader::new(&self.client, namespace);
        let value = reader.value("spec.git.webhook.secretRef", reference).await;
        if value.as_ref().is_err_and(|failure| failure.reason != Reason::DependencyInvalid) {
            // The API server did not answer, which says nothing about the Secret.
            return value;
        }
        let mut secrets = self.secrets.lock();
        secrets
            .retain(|(secret, _), _| self.caches.secrets.object(&secret.namespace, &secret.name).is_some());
        secrets.insert(place, Known { version, value: value.clone() });
        value
    }
}

async fn receive(
    State(receiver): State<Arc<Receiver>>,
    Path((namespace, name)): Path<(String, String)>,
    request: Request,
) -> Response {
    receiver.respond(namespace, name, request).await
}

async fn receive_watched(
    State(receiver): State<Arc<Receiver>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let namespace = receiver.namespaces.first().cloned().unwrap_or_default();
    receiver.respond(namespace, name, request).await
}

async fn read(body: Body) -> Result<Bytes, Answer> {
    let read = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY).collect()).await;
    match read.map_err(|_| Answer::TimedOut)? {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Answer::TooLarge),
        Err(_) => Err(Answer::InvalidPush),
    }
}

fn push(headers: &HeaderMap, body: &[u8]) -> Result<Push, InvalidPush> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    Push::parse(content_type.unwrap_or_default(), body)
}

/// Returns whether a push to `branch` is fetched.
fn follows(target: &Target, branch: &str) -> bool {
    match &target.webhook.branch_filter {
        Some(filter) => filter.compile().is_ok_and(|filter| filter.matches(branch)),
        None => target.git.branch == branch,
    }
}
