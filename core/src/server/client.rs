//! Sends requests to one managed server.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::header::{Header, insert_all};
use super::oauth2::{TokenRenewal, Tokens};
use super::observer::RequestObserver;
use super::redaction::Redaction;
use super::request::query_secrets;
use super::trace::{self, Trace};
use super::wire::{Call, Patience, Purpose, Wire, pooled};
use super::{Auth, BaseUrl, Gate, Request, Response, ServerError, Throttling, percent_decoded};
use crate::error::{Categorized as _, Category};
use crate::path::LogicalPath;
use crate::payload::PayloadType;
use crate::proxy::Proxy;
use crate::secrets::{Secret, is_secret_name};
use crate::transport::retry::ATTEMPTS;
use crate::transport::{Access, Connector, TlsSettings, TransportError, destinations, shown};

/// The default of [`Client::with_attempt_timeout`].
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The memory that the value of an answer needs at most if it states a failure.
const STATEMENT: usize = 4 << 20;

/// The settings of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The base of all request URLs.
    pub base_url: BaseUrl,
    /// The credentials of requests.
    pub auth: Auth,
    /// Trusted CAs and the client certificate, also for the token endpoint.
    pub tls: TlsSettings,
    /// The proxy for the server and the token endpoint.
    pub proxy: Proxy,
    /// Headers of every request. Operation headers and credentials override them.
    pub default_headers: Vec<(String, String)>,
    /// The path of the health check; the base URL itself if absent.
    pub health_check: Option<String>,
    /// Whether redirects of reads may lead to another origin.
    pub cross_origin_redirects: bool,
    /// The trace that logs every request.
    pub trace: Option<Trace>,
}

impl Settings {
    /// Settings without credentials and proxy, for a server whose certificate the system trusts. Redirects may lead to
    /// other origins.
    pub fn new(base_url: BaseUrl) -> Self {
        Self {
            base_url,
            auth: Auth::None,
            tls: TlsSettings::default(),
            proxy: Proxy::default(),
            default_headers: Vec::new(),
            health_check: None,
            cross_origin_redirects: true,
            trace: None,
        }
    }
}

/// A pooled client of one managed server. Clones share connections, tokens and the gate.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    patience: Patience,
    cancelled: Option<CancellationToken>,
    renewal: TokenRenewal,
    /// The segments of paths that no redirect may replace.
    names: Vec<String>,
}

struct Shared {
    wire: Arc<Wire>,
    /// The headers of credentials that do not change.
    credentials: Vec<Header>,
    tokens: Option<Tokens>,
    health_check: Option<String>,
    tls: TlsSettings,
}

impl Client {
    /// Prepares connections without contacting the server. All clients of the same server share `gate`.
    pub fn new(
        settings: Settings,
        gate: Arc<Gate>,
        observer: Option<Arc<dyn RequestObserver>>,
    ) -> Result<Self, ServerError> {
        let Settings {
            base_url,
            auth,
            tls,
            proxy,
            default_headers,
            health_check,
            cross_origin_redirects,
            trace,
        } = settings;
        if let Some(trace) = &trace {
            trace.line(trace::ALL, || format!("TLS: {}", tls.origin()));
        }
        let connections = gate.max_concurrency();
        let certified = tls.presents();
        let mut secrets: Vec<Secret> = auth.secrets().into_iter().chain(proxy.secrets()).collect();
        secrets.extend(query_secrets(base_url.url()));
        let named = default_headers.iter().filter(|(name, _)| is_secret_name(name));
        secrets.extend(named.map(|(_, value)| Secret::from(value.trim().to_owned())));
        destinations::check_with_proxy(base_url.url(), &proxy).map_err(TransportError::from)?;
        let http = Connector::new(tls.clone(), proxy, move |builder| pooled(builder, connections))?;
        let default_headers = default_headers
            .iter()
            .map(|(name, value)| default_header(name, value))
            .collect::<Result<_, _>>()?;
        let credentials = auth.headers()?;
        let wire = Arc::new(Wire {
            http,
            certified,
            cross_origin_redirects,
            base_url,
            default_headers,
            redaction: Redaction::new(&secrets, trace.clone()),
            gate,
            observer,
            trace,
            auth: auth.mode(),
        });
        let tokens = match auth {
            Auth::OAuth2(settings) => Some(Tokens::new(settings, Arc::clone(&wire))?),
            Auth::None | Auth::Basic { .. } | Auth::Headers(_) => None,
        };
        wire.gate.serves(&wire.base_url);
        let shared = Arc::new(Shared { wire, credentials, tokens, health_check, tls });
        let patience = Patience { attempt: ATTEMPT_TIMEOUT, attempts: ATTEMPTS };
        let (cancelled, renewal, names) = Default::default();
        Ok(Self { shared, patience, cancelled, renewal, names })
    }

    /// Returns the base URL without its query. It identifies the server.
    pub fn address(&self) -> String {
        self.wire().base_url.to_string()
    }

    /// Returns the client with another timeout for one attempt; the default is 30 s. The time counts from connecting
    /// to the last byte of the answer, without waiting at the gate.
    #[must_use]
    pub fn with_attempt_timeout(self, attempt: Duration) -> Self {
        Self { patience: Patience { attempt, ..self.patience }, ..self }
    }

    /// Returns the client with another number of attempts that may follow the first one of a request; the default is 3.
    #[must_use]
    pub fn with_retries(self, retries: u32) -> Self {
        Self { patience: Patience { attempts: retries.saturating_add(1), ..self.patience }, ..self }
    }

    /// Returns the time limit of one attempt, from connecting to the last byte of the answer.
    pub const fn attempt_timeout(&self) -> Duration {
        self.patience.attempt
    }

    /// Returns the client for a run that `cancelled` ends. From then on a request that waits, for the gate or for a
    /// retry, is not sent; one that has been sent is completed. Requests of a run wait at the gate even if its queue
    /// is full, because the run bounds their number.
    #[must_use]
    pub fn until(&self, cancelled: CancellationToken) -> Self {
        Self { cancelled: Some(cancelled), renewal: TokenRenewal::default(), ..self.clone() }
    }

    /// Returns the client with `renewal`: its OAuth 2.0 token is replaced after status 403 unless `renewal` was used
    /// before. A run with several clients passes the same one to each.
    #[must_use]
    pub fn renewing(self, renewal: &TokenRenewal) -> Self {
        Self { renewal: renewal.clone(), ..self }
    }

    /// Returns the client for this write of the resource at `path`. It follows no redirect to another name.
    #[must_use]
    pub fn writing(&self, path: &LogicalPath, request: &Request) -> Self {
        let last = request.path.trim_end_matches('/').rsplit('/').next();
        let names = path.as_str().split('/').chain(last).map(percent_decoded).collect();
        Self { names, ..self.clone() }
    }

    /// Returns the path of the base URL, unencoded; `/` if it has none.
    pub fn base_path(&self) -> String {
        self.wire().base_url.path()
    }

    /// Returns the number of requests that the server's gate admits at once now.
    pub fn concurrency(&self) -> usize {
        self.wire().gate.concurrency()
    }

    /// Returns the highest number of requests that the gate ever admits at once. A caller that keeps this many
    /// requests pending always uses the gate in full; the others wait there.
    pub fn max_concurrency(&self) -> usize {
        self.wire().gate.max_concurrency()
    }

    /// Sends `request` and reads the complete answer. Repeats it only if the server cannot act on it twice. An answer that
    /// states a failure, according to the request, has the meaning of a status of failure.
    pub async fn send(&self, request: &Request) -> Result<Response, ServerError> {
        let target = self.wire().base_url.target(request);
        let target = target.map_err(|error| self.wire().redacted(request, error))?;
        let response = self.send_to(request, &target).await?;
        let may_fail = response.status.is_success() && !response.body.is_empty();
        let Some(failed) = request.failed.clone().filter(|_| may_fail) else { return Ok(response) };
        let answer = response.clone();
        // An answer that is large or cannot be decoded, and an expression that fails, state nothing. Both block.
        let states_failure = spawn_blocking(move || {
            let decoded = answer.decode_within(Some(PayloadType::Json), STATEMENT);
            decoded.is_ok_and(|answer| failed.holds(&answer).unwrap_or(false))
        });
        let is_failure = states_failure.await.unwrap_or(false);
        if !is_failure {
            return Ok(response);
        }
        let (status, confidential) = (response.status, &request.confidential);
        let error = self.wire().rejection_without(request, status, &response.body, confidential);
        Err(self.wire().redacted(request, error))
    }

    /// Returns `response` as an error, if its status is 400 or more and it is not the answer that the request allows.
    pub fn rejection(&self, request: &Request, response: &Response) -> ServerError {
        let error = self.wire().rejection(request, response.status, &response.body);
        self.wire().redacted(request, error)
    }

    /// Returns `error`, the answer to an equal request, without the secrets of `request`. Returns `None` if its text was
    /// cut, because the beginning of a secret is not recognised.
    pub(crate) fn adopted(&self, request: &Request, error: ServerError) -> Option<ServerError> {
        let is_cut = matches!(&error, ServerError::Status { excerpt, .. } if excerpt.ends_with('…'));
        if is_cut && !request.secrets.is_empty() {
            return None;
        }
        Some(self.wire().redacted(request, error))
    }

    /// Sends a request with credentials to the health check, or to the base URL if none is configured. Fails unless
    /// the status is below 400. The check is a path below the base URL or a URL of its origin.
    pub async fn health(&self) -> Result<(), ServerError> {
        let (request, target) = self.health_request()?;
        self.send_to(&request, &target).await.map(drop)
    }

    /// Fails if the configured health check rejects the credentials (401, 403). Some servers treat a client with expired
    /// credentials like one without, and hide resources from it instead of rejecting its requests.
    pub(crate) async fn check_credentials(&self) -> Result<(), ServerError> {
        if self.shared.health_check.is_none() {
            return Ok(());
        }
        let rejected = |error: &ServerError| error.category() == Category::Auth;
        self.health().await.or_else(|error| if rejected(&error) { Err(error) } else { Ok(()) })
    }

    /// Returns the URL of the health check without its query, which may hold a key.
    pub fn health_target(&self) -> Result<String, ServerError> {
        self.health_request().map(|(_, target)| shown(&target))
    }

    fn health_request(&self) -> Result<(Request, Url), ServerError> {
        let refuse = |reason: &str| ServerError::setting("http.healthCheck", reason);
        let check = self.shared.health_check.as_deref().unwrap_or("/").trim();
        let request = Request::new(Method::GET, check);
        let target = if check.contains("://") {
            let target = self.wire().base_url.same_origin(check);
            target
                .ok_or_else(|| refuse("must be a path, or a URL of the base URL's origin without a query"))?
        } else if check.contains('?') {
            return Err(refuse("must not have a query"));
        } else {
            self.wire().base_url.target(&request)?
        };
        Ok((request, target))
    }

    /// Returns the current OAuth 2.0 token, or requests one. `None` if another kind of authentication is configured.
    pub async fn access_token(&self) -> Result<Option<Secret>, ServerError> {
        match &self.shared.tokens {
            Some(tokens) => tokens.token(self.patience).await.map(|token| Some(token.value.clone())),
            None => Ok(None),
        }
    }

    /// Whether `url` has the origin of the base URL.
    pub fn serves(&self, url: &Url) -> bool {
        self.wire().base_url.origin_is(url)
    }

    /// Returns a client for another server, at `url`. It has no credentials, no default headers and no client
    /// certificate, and a gate of its own. Only the proxy and the trace are the same.
    pub(super) fn stranger(&self, url: &Url) -> Result<Self, ServerError> {
        let wire = self.wire();
        let settings = Settings {
            proxy: wire.http.proxy().clone(),
            trace: wire.trace.clone(),
            ..Settings::new(BaseUrl::parse(&url.origin().ascii_serialization())?)
        };
        let gate = Arc::new(Gate::new(&Throttling::default())?);
        Ok(Self { patience: self.patience, ..Self::new(settings, gate, None)? })
    }

    /// Returns the current access data of this server, for other HTTP clients: default headers, credentials, TLS and
    /// proxy. Requests an OAuth 2.0 token if there is none.
    pub async fn access(&self) -> Result<Access, ServerError> {
        let mut headers = HeaderMap::new();
        insert_all(&mut headers, &self.wire().default_headers);
        insert_all(&mut headers, &self.shared.credentials);
        if let Some(tokens) = &self.shared.tokens {
            let token = tokens.token(self.patience).await?;
            insert_all(&mut headers, std::slice::from_ref(&token.header));
        }
        let tls = self.shared.tls.read()?;
        Ok(Access::new(self.wire().base_url.origin(), headers, tls, self.wire().http.proxy().clone()))
    }

    /// Drops the OAuth 2.0 token, if any. The next request obtains another one.
    pub fn invalidate_token(&self) {
        if let Some(tokens) = &self.shared.tokens {
            tokens.drop_token();
        }
    }

    /// Sends `request` to a URL that may be outside the server. Only the server's origin gets credentials.
    ///
    /// A token that the server rejects (401) is replaced, unless it has itself replaced a rejected one shortly before;
    /// the server has not acted on that request. After the first 403 of a run or, outside of runs, of the client, the
    /// token is replaced as well.
    pub(super) async fn send_to(&self, request: &Request, target: &Url) -> Result<Response, ServerError> {
        self.send_if(request, target, &[]).await
    }

    /// Like [`Self::send_to`], with conditional headers that allow the answer 304.
    pub(super) async fn send_if(
        &self,
        request: &Request,
        target: &Url,
        conditions: &[Header],
    ) -> Result<Response, ServerError> {
        let tokens = self.shared.tokens.as_ref().filter(|_| self.wire().base_url.origin_is(target));
        let Some(tokens) = tokens else {
            return self.send_with(request, target, conditions, &self.shared.credentials).await;
        };
        let token = tokens.token(self.patience).await?;
        let outcome = self.send_with(request, target, conditions, std::slice::from_ref(&token.header)).await;
        let fresh = match outcome.as_ref().err().and_then(ServerError::status) {
            Some(StatusCode::UNAUTHORIZED) => {
                let path = self.wire().redaction.redact_with(&request.secrets, &request.path);
                tracing::debug!(path, "the server rejected the access token; requesting another");
                tokens.replaced(&token, self.patience).await.transpose()?
            }
            // The server has not acted on this request, either.
            Some(StatusCode::FORBIDDEN) => tokens.renewed(&token, &self.renewal, self.patience).await,
            _ => None,
        };
        let Some(fresh) = fresh else { return outcome };
        self.send_with(request, target, conditions, std::slice::from_ref(&fresh.header)).await
    }

    async fn send_with(
        &self,
        request: &Request,
        target: &Url,
        conditions: &[Header],
        credentials: &[Header],
    ) -> Result<Response, ServerError> {
        let (purpose, patience) = (Purpose::Resource, self.patience);
        let (names, cancelled) = (&*self.names, self.cancelled.as_ref());
        let call = Call { request, target, credentials, conditions, names, purpose, patience, cancelled };
        // Boxed because the future is large and part of the futures of all callers.
        Box::pin(self.wire().send(call)).await
    }

    fn wire(&self) -> &Arc<Wire> {
        &self.shared.wire
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base_url", &self.wire().base_url).finish_non_exhaustive()
    }
}

fn default_header(name: &str, value: &str) -> Result<Header, ServerError> {
    let refuse = |what: &str| ServerError::setting("http.defaultHeaders", format!("\"{name}\" {what}"));
    let header = HeaderName::try_from(name.trim()).map_err(|_| refuse("is not a header name"))?;
    let value = HeaderValue::try_from(value).map_err(|_| refuse("has a value that a header cannot carry"))?;
    Ok((header, value))
}
