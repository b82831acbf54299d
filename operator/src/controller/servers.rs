//! Clients of managed servers, built from a spec and its Secrets. All policies of a server share its client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use declarest_core::server::{
    Auth, BaseUrl, Client, Gate, Grant, HeaderCredential, OAuth2, RequestObserver, ServerError, Settings,
    Throttling, TokenNeed,
};
use declarest_core::transport::TransportError;
use http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;

use super::cache::Cache;
use super::connections;
use super::context::{Context, Guarded};
use super::error::Failure;
use super::identity::{Built, Identity};
use super::kind::{Key, Kind as _};
use super::outcome::Reason;
use super::references::SecretReader;
use crate::crd::ManagedServer;
use crate::crd::managed_server::{self, GrantType, HttpAuth, RequestThrottling};
use crate::leader::Leadership;
use crate::shard::Namespaces;
use crate::telemetry::{Metrics, Subject, propagate_trace};

/// The gates and clients in use.
#[derive(Default)]
pub struct Servers {
    gates: Mutex<HashMap<Key, (Throttling, Arc<Gate>)>>,
    clients: Built<Client>,
}

impl Servers {
    /// Returns the client of `server`, which is expanded. Connections are kept until the spec or a Secret changes,
    /// and the gate is kept until its settings change.
    pub async fn client(&self, context: &Context, server: &ManagedServer) -> Result<Client, Failure> {
        // The identity is taken before Secrets are read, so that a rotation in between rebuilds the client.
        let identity = Identity::of(context, server);
        self.clients.get(server.key(), identity, self.build(context, server)).await
    }

    /// Forgets the client and gate of a deleted server.
    pub fn forget(&self, key: &Key) {
        self.clients.forget(key);
        self.gates.lock().remove(key);
    }

    /// Builds a client: settings with Secrets, gate, observer.
    async fn build(&self, context: &Context, server: &ManagedServer) -> Result<Client, Failure> {
        let key = server.key();
        let settings = settings(context, server).await?;
        let gate = self.gate(&key, throttling(server.spec.http.request_throttling.as_ref()))?;
        context.metrics.show_gate(key.subject(), &gate);
        let observer = Arc::new(Observer {
            metrics: Arc::clone(&context.metrics),
            leadership: context.leadership.clone(),
            servers: context.caches.servers.clone(),
            namespaces: context.namespaces.clone(),
            server: key,
        });
        Client::new(settings, gate, Some(observer)).map_err(|error| invalid(&error))
    }

    fn gate(&self, key: &Key, throttling: Throttling) -> Result<Arc<Gate>, Failure> {
        let mut gates = self.gates.lock();
        if let Some((_, gate)) = gates.get(key).filter(|(current, _)| *current == throttling) {
            return Ok(Arc::clone(gate));
        }
        let gate = Arc::new(Gate::new(&throttling).map_err(|error| invalid(&error))?);
        gates.insert(key.clone(), (throttling, Arc::clone(&gate)));
        Ok(gate)
    }
}

async fn settings(context: &Context, server: &ManagedServer) -> Result<Settings, Failure> {
    let http = &server.spec.http;
    let mut secrets = SecretReader::new(&context.client, &server.key().namespace);
    Ok(Settings {
        base_url: BaseUrl::parse(&http.base_url).map_err(|error| invalid(&error))?,
        auth: auth(&mut secrets, http.auth.as_ref()).await?,
        tls: connections::tls(&mut secrets, "spec.http.tls", http.tls.as_ref()).await?.into(),
        proxy: connections::proxy(&mut secrets, "spec.http.proxy", http.proxy.as_ref()).await?,
        default_headers: http.default_headers.clone().into_iter().collect(),
        health_check: http.health_check.clone(),
        cross_origin_redirects: http.allow_cross_origin_redirects,
        trace: None,
    })
}

async fn auth(secrets: &mut SecretReader, auth: Option<&HttpAuth>) -> Result<Auth, Failure> {
    let Some(auth) = auth else { return Ok(Auth::None) };
    if let Some(oauth2) = &auth.oauth2 {
        return self::oauth2(secrets, oauth2).await.map(Auth::OAuth2);
    }
    if let Some(basic) = &auth.basic_auth {
        return Ok(Auth::Basic {
            username: secrets.value("spec.http.auth.basicAuth.usernameRef", &basic.username_ref).await?,
            password: secrets.value("spec.http.auth.basicAuth.passwordRef", &basic.password_ref).await?,
        });
    }
    let mut headers = Vec::with_capacity(auth.custom_headers.len());
    for (index, custom) in auth.custom_headers.iter().enumerate() {
        let field = format!("spec.http.auth.customHeaders[{index}].valueRef");
        headers.push(HeaderCredential {
            header: custom.header.clone(),
            prefix: custom.prefix.clone().unwrap_or_default(),
            value: secrets.value(&field, &custom.value_ref).await?,
        });
    }
    Ok(Auth::Headers(headers))
}

async fn oauth2(secrets: &mut SecretReader, spec: &managed_server::OAuth2) -> Result<OAuth2, Failure> {
    let field = |name: &str| format!("spec.http.auth.oauth2.{name}");
    let username = secrets.optional(&field("usernameRef"), spec.username_ref.as_ref()).await?;
    let password = secrets.optional(&field("passwordRef"), spec.password_ref.as_ref()).await?;
    let grant = match (spec.grant_type, username, password) {
        (GrantType::ClientCredentials, ..) => Grant::ClientCredentials,
        (GrantType::Password, Some(username), Some(password)) => Grant::Password { username, password },
        (GrantType::Password, ..) => {
            let message = "spec.http.auth.oauth2: grantType password needs usernameRef and passwordRef";
            return Err(Failure::spec_invalid(message));
        }
    };
    Ok(OAuth2 {
        token_url: spec.token_url.clone(),
        grant,
        client_id: secrets.value(&field("clientIDRef"), &spec.client_id_ref).await?,
        client_secret: secrets.value(&field("clientSecretRef"), &spec.client_secret_ref).await?,
        scope: spec.scope.clone(),
        audience: spec.audience.clone(),
    })
}

/// Converts the limits. Zero means "no limit".
fn throttling(spec: Option<&RequestThrottling>) -> Throttling {
    let Some(spec) = spec else { return Throttling::default() };
    let positive =
        |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok()).filter(|n| *n > 0);
    Throttling {
        max_concurrent_requests: positive(spec.max_concurrent_requests).map(|n| n as usize),
        queue_size: positive(spec.queue_size).map(|n| n as usize),
        requests_per_second: positive(spec.requests_per_second).map(f64::from),
        burst: positive(spec.burst),
    }
}

/// Returns the failure of invalid settings: `DependencyInvalid` for certificates and header values, which come from
/// Secrets, otherwise `SpecInvalid`.
fn invalid(error: &ServerError) -> Failure {
    let from_secret = match error {
        ServerError::Setting { setting, .. } => setting.starts_with("http.auth"),
        ServerError::Connector(TransportError::Destination(_)) => false,
        ServerError::Connector(_) => true,
        _ => false,
    };
    let reason = if from_secret { Reason::DependencyInvalid } else { Reason::SpecInvalid };
    Failure::new(reason, format!("spec.http: {error}"))
}

/// The usual methods. Metadata can state any other text as a method.
const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Returns the label of a method. Labels have few values, because each one is a series.
fn method_label(method: &Method) -> &str {
    if METHODS.contains(method) { method.as_str() } else { "other" }
}

/// Returns the label of a status. The server can send any number.
fn code_label(status: Option<&StatusCode>) -> &str {
    let Some(status) = status else { return "none" };
    match status.as_u16() / 100 {
        _ if status.canonical_reason().is_some() => status.as_str(),
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    }
}

/// Records the request metrics of one server, and continues traces in its requests.
struct Observer {
    metrics: Arc<Metrics>,
    leadership: Leadership,
    servers: Cache<Guarded<ManagedServer>>,
    namespaces: Namespaces,
    server: Key,
}

impl Observer {
    /// Returns the server, unless it was deleted, or its namespace has left this process. Then its series are removed, and
    /// a request that ends later must not add one.
    fn subject(&self) -> Option<Subject<'_>> {
        let Key { namespace, name } = &self.server;
        let is_present =
            self.servers.object(namespace, name).is_some() && !self.namespaces.left(namespace).is_cancelled();
        is_present.then(|| self.server.subject())
    }
}

impl RequestObserver for Observer {
    fn completed(&self, method: &Method, status: Option<StatusCode>, elapsed: Duration) {
        if let Some(server) = self.subject() {
            self.metrics.requested(server, method_label(method), code_label(status.as_ref()), elapsed);
        }
    }

    fn throttled(&self, by_server: bool) {
        if let Some(server) = self.subject() {
            self.metrics.throttled(server, by_server);
        }
    }

    fn may_send(&self) -> bool {
        self.leadership.is_held()
    }

    fn propagate(&self, headers: &mut HeaderMap) {
        propagate_trace(headers);
    }

    fn token_asked(&self, need: TokenNeed, had: bool) {
        let reason = match need {
            TokenNeed::First => "first",
            TokenNeed::Expired => "expired",
            TokenNeed::Refused => "refused",
            TokenNeed::Forbidden => "forbidden",
            TokenNeed::Dropped => "dropped",
        };
        if let Some(server) = self.subject() {
            self.metrics.token_asked(server, reason, had);
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Some(204), "204")]
    #[case(Some(418), "418")]
    #[case(Some(299), "2xx")]
    #[case(Some(599), "5xx")]
    #[case(Some(999), "other")]
    #[case(None, "none")]
    fn a_status_has_one_of_few_labels(#[case] status: Option<u16>, #[case] expected: &str) {
        let status = status.map(|status| StatusCode::from_u16(status).unwrap());
        assert_eq!(code_label(status.as_ref()), expected);
    }

    #[test]
    fn zero_means_unlimited() {
        let spec = RequestThrottling {
            max_concurrent_requests: Some(0),
            queue_size: None,
            requests_per_second: Some(5),
            burst: Some(0),
        };
        let expected = Throttling { requests_per_second: Some(5.0), ..Throttling::default() };
        assert_eq!(throttling(Some(&spec)), expected);
    }
}
