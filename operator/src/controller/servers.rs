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

use super::connections;
use super::context::Context;
use super::error::Failure;
use super::identity::{Built, Identity};
use super::kind::{Key, Kind as _};
use super::outcome::Reason;
use super::references::SecretReader;
use crate::crd::ManagedServer;
use crate::crd::managed_server::{self, GrantType, HttpAuth, RequestThrottling};
use crate::leader::Leadership;
use crate::telemetry::{Metrics, propagate_trace};

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
        let (metrics, leadership) = (Arc::clone(&context.metrics), context.leadership.clone());
        let observer = Arc::new(Observer { metrics, leadership, server: key });
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

/// Records the request metrics of one server, and continues traces in its requests.
struct Observer {
    metrics: Arc<Metrics>,
    leadership: Leadership,
    server: Key,
}

impl RequestObserver for Observer {
    fn completed(&self, method: &Method, status: Option<StatusCode>, elapsed: Duration) {
        let code = status.as_ref().map_or("none", StatusCode::as_str);
        self.metrics.requested(self.server.subject(), method.as_str(), code, elapsed);
    }

    fn throttled(&self, by_server: bool) {
        self.metrics.throttled(self.server.subject(), by_server);
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
        self.metrics.token_asked(self.server.subject(), reason, had);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
