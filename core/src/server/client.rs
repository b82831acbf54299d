//! Sends requests to one managed server.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::oauth2::{TokenNeed, TokenRenewal, Tokens};
use super::request::{query_secrets, without_query};
use super::trace::{self, Trace};
use super::wire::{Call, Header, Purpose, Redaction, Wire, insert_all, pooled};
use super::{Auth, BaseUrl, Gate, Request, Response, ServerError, Throttling};
use crate::proxy::Proxy;
use crate::secrets::{Secret, is_secret_name};
use crate::transport::{Access, Connector, TlsSettings};

/// [`Client::with_attempt_timeout`], where nothing else is said.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest successful answer that is read, after decompression.
pub(super) const BODY_LIMIT: usize = 32 << 20;

/// What a client needs to know about its server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where requests go.
    pub base_url: BaseUrl,
    /// How they are authenticated.
    pub auth: Auth,
    /// Whom to trust, and who we are; for the token endpoint, too.
    pub tls: TlsSettings,
    /// The way to the server and to the token endpoint.
    pub proxy: Proxy,
    /// Headers of every request; operation headers and credentials beat them.
    pub default_headers: Vec<(String, String)>,
    /// A path that tells whether the server is well; the base URL itself when absent.
    pub health_check: Option<String>,
    /// Who is told about every request, if anybody is.
    pub trace: Option<Trace>,
}

impl Settings {
    /// Direct connections without credentials to a server that the system trusts.
    pub fn new(base_url: BaseUrl) -> Self {
        Self {
            base_url,
            auth: Auth::None,
            tls: TlsSettings::default(),
            proxy: Proxy::default(),
            default_headers: Vec::new(),
            health_check: None,
            trace: None,
        }
    }
}

/// Hears about every attempt, for metrics. Called from request tasks; must not block.
pub trait RequestObserver: Send + Sync {
    /// An attempt ended: with a status, or without one when the server did not answer. Those at the token
    /// endpoint do not count.
    fn completed(&self, method: &Method, status: Option<StatusCode>, elapsed: Duration);
    /// A request waited: at our own gate, or because the server asked for patience (429, 503).
    fn throttled(&self, by_server: bool);
    /// An OAuth 2.0 token was asked for, and was had or not.
    fn token_asked(&self, _need: TokenNeed, _had: bool) {}
}

/// A pooled client of one managed server; clones share connections, tokens and the gate.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    attempt_timeout: Duration,
    cancelled: Option<CancellationToken>,
    renewal: TokenRenewal,
}

struct Shared {
    wire: Arc<Wire>,
    /// What does not change.
    credentials: Vec<Header>,
    tokens: Option<Tokens>,
    health_check: Option<String>,
    tls: TlsSettings,
}

impl Client {
    /// Prepares connections; nothing is contacted yet. Everything that talks to the same server shares
    /// `gate`.
    pub fn new(
        settings: Settings,
        gate: Arc<Gate>,
        observer: Option<Arc<dyn RequestObserver>>,
    ) -> Result<Self, ServerError> {
        let Settings { base_url, auth, tls, proxy, default_headers, health_check, trace } = settings;
        if let Some(trace) = &trace {
            trace.line(trace::ALL, || format!("TLS: {}", tls.origin()));
        }
        let connections = gate.max_concurrency();
        let certified = tls.presents();
        let mut secrets: Vec<Secret> = auth.secrets().into_iter().chain(proxy.secrets()).collect();
        secrets.extend(query_secrets(base_url.url()));
        let named = default_headers.iter().filter(|(name, _)| is_secret_name(name));
        secrets.extend(named.map(|(_, value)| Secret::from(value.trim().to_owned())));
        let http = Connector::new(tls.clone(), proxy, move |builder| pooled(builder, connections))?;
        let default_headers = default_headers
            .iter()
            .map(|(name, value)| default_header(name, value))
            .collect::<Result<_, _>>()?;
        let credentials = auth.headers()?;
        let wire = Arc::new(Wire {
            http,
            certified,
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
        let (attempt_timeout, renewal) = (ATTEMPT_TIMEOUT, TokenRenewal::default());
        Ok(Self { shared, attempt_timeout, cancelled: None, renewal })
    }

    /// The base URL without its query, for telling servers apart.
    pub fn address(&self) -> String {
        self.wire().base_url.to_string()
    }

    /// The same client with other patience than 30 s for one attempt, from connecting to the last byte of the
    /// answer; waiting at the gate does not count.
    #[must_use]
    pub fn with_attempt_timeout(self, attempt_timeout: Duration) -> Self {
        Self { attempt_timeout, ..self }
    }

    /// How long one attempt may take, from connecting to the last byte of the answer.
    pub const fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    /// The same client for a run that `cancelled` ends. From then on a request that waits, for the gate or to be
    /// repeated, is not sent any more; one that has been sent is heard out. Requests of a run wait at the gate
    /// however many wait there already, since the run bounds their number.
    #[must_use]
    pub fn until(&self, cancelled: CancellationToken) -> Self {
        Self { cancelled: Some(cancelled), renewal: TokenRenewal::default(), ..self.clone() }
    }

    /// The same client, whose OAuth 2.0 token is replaced after an answer 403 unless `renewal` was used before. A run
    /// with several clients passes the same one to each.
    #[must_use]
    pub fn renewing(self, renewal: &TokenRenewal) -> Self {
        Self { renewal: renewal.clone(), ..self }
    }

    /// The path of the base URL, unencoded; `/` if it has none.
    pub fn base_path(&self) -> String {
        self.wire().base_url.path()
    }

    /// How many requests the server's gate lets run at once now.
    pub fn concurrency(&self) -> usize {
        self.wire().gate.concurrency()
    }

    /// How many requests the gate may ever let run at once. With that many under way all that it allows is
    /// used, also after it has grown; the others wait their turn there.
    pub fn max_concurrency(&self) -> usize {
        self.wire().gate.max_concurrency()
    }

    /// Sends `request` and reads the answer to its end, with the retries that cannot do a thing twice.
    pub async fn send(&self, request: &Request) -> Result<Response, ServerError> {
        let target = self.wire().base_url.target(request);
        let target = target.map_err(|error| self.wire().redacted(request, error))?;
        self.send_to(request, &target).await
    }

    /// Asks the health check, or the base URL where none is configured, with credentials; an error unless
    /// it answers below 400. The check is a path below the base URL or a URL of its origin.
    pub async fn health(&self) -> Result<(), ServerError> {
        let (request, target) = self.health_request()?;
        self.send_to(&request, &target).await.map(drop)
    }

    /// The URL of the health check without its query, which may carry a key.
    pub fn health_target(&self) -> Result<String, ServerError> {
        self.health_request().map(|(_, target)| without_query(&target))
    }

    fn health_request(&self) -> Result<(Request, Url), ServerError> {
        let refuse =
            |reason: &str| ServerError::Setting { setting: "http.healthCheck", reason: reason.to_owned() };
        let check = self.shared.health_check.as_deref().unwrap_or("/").trim();
        let request = Request::new(Method::GET, check);
        let target = if check.contains("://") {
            let target = self.wire().base_url.same_origin(check);
            target.ok_or_else(|| refuse("must be a path, or a URL of the base URL's origin without query"))?
        } else if check.contains('?') {
            return Err(refuse("must have no query"));
        } else {
            self.wire().base_url.target(&request)?
        };
        Ok((request, target))
    }

    /// The OAuth 2.0 token that requests carry now; one is asked for if there is none. `None` where
    /// authentication is of another kind.
    pub async fn access_token(&self) -> Result<Option<Secret>, ServerError> {
        match &self.shared.tokens {
            Some(tokens) => tokens.token(self.attempt_timeout).await.map(|token| Some(token.value.clone())),
            None => Ok(None),
        }
    }

    /// Whether `url` is of the origin of the base URL.
    pub fn serves(&self, url: &Url) -> bool {
        self.wire().base_url.origin_is(url)
    }

    /// A client of the server at `url`, which is another one: it learns neither credentials nor default headers nor
    /// who we are, and waits at no gate of ours. Only the proxy is the same, and who is told about requests.
    pub(super) fn stranger(&self, url: &Url) -> Result<Self, ServerError> {
        let wire = self.wire();
        let settings = Settings {
            proxy: wire.http.proxy().clone(),
            trace: wire.trace.clone(),
            ..Settings::new(BaseUrl::parse(&url.origin().ascii_serialization())?)
        };
        let gate = Arc::new(Gate::new(&Throttling::default())?);
        Ok(Self::new(settings, gate, None)?.with_attempt_timeout(self.attempt_timeout))
    }

    /// What lets others in at this server, now: its default headers and credentials, its trust and its proxy. An
    /// OAuth 2.0 token is asked for if there is none.
    pub async fn access(&self) -> Result<Access, ServerError> {
        let mut headers = HeaderMap::new();
        insert_all(&mut headers, &self.wire().default_headers);
        insert_all(&mut headers, &self.shared.credentials);
        if let Some(tokens) = &self.shared.tokens {
            let token = tokens.token(self.attempt_timeout).await?;
            insert_all(&mut headers, std::slice::from_ref(&token.header));
        }
        let tls = self.shared.tls.read()?;
        Ok(Access::new(self.wire().base_url.origin(), headers, tls, self.wire().http.proxy().clone()))
    }

    /// Takes the OAuth 2.0 token out of use, if there is one. The next request asks for another.
    pub fn invalidate_token(&self) {
        if let Some(tokens) = &self.shared.tokens {
            tokens.drop_token(None);
        }
    }

    /// Sends `request` to a URL that need not be of the server. Only its own origin gets credentials.
    ///
    /// A token that the server refuses (401) is replaced by a new one once; the server has not acted on that request.
    /// At the first 403 of a run or, outside of runs, of the client, it is replaced as well.
    pub(super) async fn send_to(&self, request: &Request, target: &Url) -> Result<Response, ServerError> {
        self.send_if(request, target, &[]).await
    }

    /// [`Self::send_to`] with conditions under which there is an answer other than 304.
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
        let token = tokens.token(self.attempt_timeout).await?;
        let outcome = self.send_with(request, target, conditions, std::slice::from_ref(&token.header)).await;
        let fresh = match outcome.as_ref().err().and_then(ServerError::status) {
            Some(StatusCode::UNAUTHORIZED) => {
                let path = self.wire().redaction.redact_with(&request.secrets, &request.path);
                tracing::debug!(path, "the server refuses the access token; asking for another");
                tokens.drop_token(Some(&token));
                Some(tokens.token(self.attempt_timeout).await?)
            }
            // The server has not acted on this request, either.
            Some(StatusCode::FORBIDDEN) => tokens.renewed(&token, &self.renewal, self.attempt_timeout).await,
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
        let (purpose, attempt_timeout) = (Purpose::Resource, self.attempt_timeout);
        let cancelled = self.cancelled.as_ref();
        let call = Call { request, target, credentials, conditions, purpose, attempt_timeout, cancelled };
        // Large, and part of the futures of everything that asks the server for something.
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
    let refuse = |what: &str| ServerError::Setting {
        setting: "http.defaultHeaders",
        reason: format!("\"{name}\" {what}"),
    };
    let header = HeaderName::try_from(name.trim()).map_err(|_| refuse("is not a header name"))?;
    let value = HeaderValue::try_from(value).map_err(|_| refuse("has a value that no header can carry"))?;
    Ok((header, value))
}
