//! One call of Vault's API: headers, redirects, limits, retries, and the meaning of statuses.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use rustify::Endpoint;
use url::Url;
use zeroize::Zeroizing;

use super::address::Address;
use super::answer::{Answer, complaint, silence};
use super::settings::{namespace, refuse};
use super::{VaultError, VaultSettings};
use crate::control::one_line;
use crate::error::with_causes;
use crate::proxy::ProxyUrl;
use crate::secrets::{Redactor, Secret, excerpt};
use crate::transport::exchange::location;
use crate::transport::retry::{self, Failure};
use crate::transport::{Connector, Refusal, causes, destinations, is_proxy_refusal, refusal, untrusted};

/// The time limit of one attempt, from connecting to the last byte of the answer.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest answer that is read, in bytes after decompression.
const BODY_LIMIT: usize = 4 << 20;

/// The longest part of a message of Vault that is shown, in characters.
const EXCERPT: usize = 256;

/// The most redirects that are followed. A standby redirects to the active node, which may change during the call.
const REDIRECTS: usize = 3;

/// One call of the API.
pub(super) struct Call {
    /// The action, worded to follow "cannot".
    action: String,
    /// Unencoded, as in policies.
    pub(super) path: String,
    /// The address of its URL is a placeholder.
    pub(super) request: Request<Bytes>,
    /// The value in the body, for redaction.
    value: Option<Secret>,
    /// The capability that a policy must grant.
    capability: &'static str,
    /// Whether the call may arrive twice.
    repeatable: bool,
}

impl Call {
    /// Prepares a call that may be repeated.
    pub(super) fn new(
        endpoint: &impl Endpoint,
        action: impl Into<String>,
        capability: &'static str,
    ) -> Result<Self, VaultError> {
        let path = endpoint.path().trim().trim_start_matches('/').to_owned();
        let request = endpoint
            .request("http://vault")
            .map_err(|error| refuse("path", format!("{path:?} cannot be sent: {}", with_causes(&error))))?;
        let request = request.map(|body| Bytes::from_owner(Zeroizing::new(body)));
        Ok(Self { action: action.into(), path, request, value: None, capability, repeatable: true })
    }

    /// Replaces the value at a path.
    pub(super) fn write(
        endpoint: &impl Endpoint,
        action: String,
        value: &Secret,
    ) -> Result<Self, VaultError> {
        Ok(Self { value: Some(value.clone()), ..Self::new(endpoint, action, "create and update")? })
    }

    /// A login. It is repeated only if it did not arrive, because it may use up a one-time secret id.
    pub(super) fn login(endpoint: &impl Endpoint) -> Result<Self, VaultError> {
        Ok(Self { repeatable: false, ..Self::new(endpoint, "log in", "update")? })
    }

    /// Changes a list for servers that do not support the method LIST.
    pub(super) fn by_get(mut self) -> Result<Self, VaultError> {
        let query = format!("{}?list=true", self.request.uri().path());
        *self.request.uri_mut() =
            query.parse().map_err(|_| refuse("path", format!("{query:?} cannot be sent")))?;
        *self.request.method_mut() = Method::GET;
        Ok(self)
    }

    /// Returns the request with the address of Vault and a token.
    fn to(&self, url: Url, token: Option<&HeaderValue>) -> reqwest::Request {
        let mut request = reqwest::Request::new(self.request.method().clone(), url);
        if let Some(token) = token {
            request.headers_mut().insert("x-vault-token", token.clone());
        }
        let body = self.request.body();
        if !body.is_empty() {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.clone().into());
        }
        request
    }
}

/// The connection to a Vault server.
pub(super) struct Line {
    pub(super) address: Address,
    connector: Connector,
    /// The secrets of the login and the proxy, for redaction.
    credentials: Vec<Secret>,
}

struct Failed {
    error: VaultError,
    failure: Failure,
}

impl Line {
    pub(super) fn new(settings: &VaultSettings) -> Result<Self, VaultError> {
        let mut headers = HeaderMap::new();
        // An agent in front of Vault may require this header against requests of browsers.
        headers.insert("x-vault-request", HeaderValue::from_static("true"));
        headers.extend(namespace(settings.namespace.as_deref())?);
        let connector = Connector::new(settings.tls.clone(), settings.proxy.clone(), move |builder| {
            builder
                .default_headers(headers.clone())
                .redirect(reqwest::redirect::Policy::none())
                .tcp_nodelay(true)
                .user_agent(concat!("declarest/", env!("CARGO_PKG_VERSION")))
        })?;
        Ok(Self {
            address: Address::parse(&settings.address)?,
            connector,
            credentials: settings.auth.secrets().cloned().chain(settings.proxy.secrets()).collect(),
        })
    }

    /// Sends a call. Repeats it only if Vault cannot act on it twice.
    pub(super) async fn send(&self, call: &Call, token: Option<&HeaderValue>) -> Result<Answer, VaultError> {
        let mut attempt = 1;
        loop {
            let exchange = tokio::time::timeout(ATTEMPT_TIMEOUT, self.exchange(call, token)).await;
            let outcome = exchange.unwrap_or_else(|_| {
                let reason = format!("no complete answer within {} s", ATTEMPT_TIMEOUT.as_secs());
                Err(Failed { error: self.unreachable(call, reason), failure: Failure::Interrupted })
            });
            let Failed { error, failure } = match outcome {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let Some(pause) = retry::pause(call.repeatable, attempt, retry::ATTEMPTS, &failure) else {
                return Err(error);
            };
            tracing::debug!(%error, attempt, ?pause, "call of Vault will be repeated");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// Sends one request, follows redirects, and reads the answer.
    async fn exchange(&self, call: &Call, token: Option<&HeaderValue>) -> Result<Answer, Failed> {
        let mut url = self.address.url(&call.request).map_err(finally)?;
        for _ in 0..=REDIRECTS {
            if let Err(denied) = destinations::check_with_proxy(&url, self.connector.proxy()) {
                return Err(finally(self.unreachable(call, denied.to_string())));
            }
            let request = call.to(url.clone(), token);
            let mut answer = self.connector.client().execute(request).await.map_err(|error| {
                let proxy = self.connector.proxy().serving(&url);
                self.unanswered(call, proxy, &error)
            })?;
            let status = answer.status();
            if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
                && let Some(proxy) = self.connector.proxy().serving(&url)
            {
                return Err(finally(refused_by_proxy(call, proxy)));
            }
            if status.is_redirection() {
                url = redirect_target(&url, &answer).map_err(|why| finally(unsupported(call, why)))?;
                continue;
            }
            let asked_patience = retry::asked_patience(answer.headers());
            let body = self.read(call, &mut answer).await?;
            if status.is_success() {
                return Ok(Answer { action: call.action.clone(), path: call.path.clone(), body });
            }
            let error = self.refused(call, token, status, &body);
            // A Vault is not unsealed between two attempts.
            let failure = match error {
                VaultError::Sealed { .. } => Failure::Final,
                _ => Failure::Status(status, asked_patience),
            };
            return Err(Failed { error, failure });
        }
        // A standby that becomes active may redirect in a circle.
        let reason = format!("more than {REDIRECTS} redirects");
        Err(finally(VaultError::Answer { action: call.action.clone(), path: call.path.clone(), reason }))
    }

    async fn read(&self, call: &Call, answer: &mut reqwest::Response) -> Result<Zeroizing<Vec<u8>>, Failed> {
        let expected = answer.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        let mut body = Zeroizing::new(Vec::with_capacity(expected.min(BODY_LIMIT)));
        loop {
            let chunk = answer.chunk().await.map_err(|error| Failed {
                error: self.unreachable(call, format!("the answer is incomplete: {}", causes(&error))),
                failure: Failure::Interrupted,
            })?;
            let Some(chunk) = chunk else { return Ok(body) };
            if body.len() + chunk.len() > BODY_LIMIT {
                let limit = format!("it is larger than the limit of {BODY_LIMIT} bytes");
                return Err(finally(unsupported(call, limit)));
            }
            append(&mut body, &chunk);
        }
    }

    /// Returns the error for a status of 400 or more.
    fn refused(
        &self,
        call: &Call,
        token: Option<&HeaderValue>,
        status: StatusCode,
        body: &[u8],
    ) -> VaultError {
        let said = complaint(body).map(|text| self.redact(call, token, &text));
        let (action, path) = (call.action.clone(), call.path.clone());
        let sealed = said.as_deref().is_some_and(|said| said.to_lowercase().contains("sealed"));
        match (status, said) {
            (StatusCode::SERVICE_UNAVAILABLE, _) if sealed => {
                VaultError::Sealed { action, address: self.address.to_string() }
            }
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, said) => VaultError::Denied {
                action,
                path,
                capability: call.capability,
                reason: said.unwrap_or_else(|| silence(status)),
            },
            (StatusCode::NOT_FOUND, None) => VaultError::Absent { action, path },
            (StatusCode::NOT_FOUND, Some(reason)) => VaultError::NoRoute { action, path, reason },
            (status, said) => {
                let reason = said.unwrap_or_else(|| silence(status));
                VaultError::Status { action, path, status, reason }
            }
        }
    }

    fn redact(&self, call: &Call, token: Option<&HeaderValue>, text: &str) -> String {
        let token = token.and_then(|token| token.to_str().ok()).map(|token| Secret::from(token.to_owned()));
        let redactor = Redactor::new(self.credentials.iter().chain(&call.value).chain(&token));
        excerpt(&one_line(&redactor.redact(text)), EXCERPT).into_owned()
    }

    /// Returns the error of a request without an answer.
    fn unanswered(&self, call: &Call, proxy: Option<&ProxyUrl>, error: &reqwest::Error) -> Failed {
        if let Some(proxy) = proxy.filter(|_| is_proxy_refusal(error)) {
            return finally(refused_by_proxy(call, proxy));
        }
        let (reason, failure) = match refusal(error) {
            Some(Refusal::Theirs(why)) => {
                let reason = format!("{}; add its CA to tls", untrusted(why));
                (reason, Failure::Certificate)
            }
            Some(Refusal::Ours(alert)) => {
                let reason = "it requires a client certificate, or rejected the one in tls";
                (format!("{reason} (TLS alert {alert:?})"), Failure::Certificate)
            }
            None if error.is_connect() => (causes(error), Failure::Connect),
            None => (causes(error), Failure::Interrupted),
        };
        let way = proxy.map(|proxy| format!("through the proxy {proxy}: ")).unwrap_or_default();
        Failed { error: self.unreachable(call, way + &reason), failure }
    }

    fn unreachable(&self, call: &Call, reason: String) -> VaultError {
        VaultError::Unreachable { action: call.action.clone(), address: self.address.to_string(), reason }
    }
}

fn refused_by_proxy(call: &Call, proxy: &ProxyUrl) -> VaultError {
    VaultError::ProxyCredentials { action: call.action.clone(), proxy: proxy.to_string() }
}

/// Returns the target of a redirect. It gets the token and the secrets of the request, so it must be the host that is
/// configured.
pub(super) fn redirect_target(from: &Url, answer: &reqwest::Response) -> Result<Url, String> {
    let status = answer.status();
    let refuse = |why: &str| format!("a redirect with status {} {why}", status.as_u16());
    if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return Err(refuse("is not followed; configure its target as the address"));
    }
    let to = location(from, answer)
        .filter(|to| matches!(to.scheme(), "http" | "https"))
        .ok_or_else(|| refuse("has no usable Location header"))?;
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(refuse("leads from https to http and is not followed"));
    }
    if from.host() != to.host() {
        let host = to.host_str().unwrap_or_default();
        return Err(refuse(&format!(
            "leads to another host, {host}, and is not followed; configure it as the address"
        )));
    }
    Ok(to)
}

fn finally(error: VaultError) -> Failed {
    Failed { error, failure: Failure::Final }
}

fn unsupported(call: &Call, reason: String) -> VaultError {
    VaultError::Unsupported { action: call.action.clone(), path: call.path.clone(), reason }
}

/// Appends to a body. A vector that grows by itself would leave unzeroed memory behind.
fn append(body: &mut Zeroizing<Vec<u8>>, chunk: &[u8]) {
    let needed = body.len() + chunk.len();
    if body.capacity() < needed {
        let mut larger = Zeroizing::new(Vec::with_capacity(needed.next_power_of_two()));
        larger.extend_from_slice(body);
        *body = larger;
    }
    body.extend_from_slice(chunk);
}
