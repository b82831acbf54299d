//! Sends requests to one managed server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LINK, LOCATION};
use http::{Method, StatusCode};
use url::Url;

use super::gate::{Answer, Outcome, Refused};
use super::response::strong_etag;
use super::{Auth, BaseUrl, Gate, Request, Response, ServerError};
use crate::proxy::Proxy;
use crate::secrets::Redactor;
use crate::transport::retry::{self, Failure};
use crate::transport::{CONNECT_TIMEOUT, Connector, Refusal, TlsSettings, causes, is_proxy_refusal, refusal};

/// [`Client::with_attempt_timeout`], where nothing else is said.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
const KEEPALIVE: Duration = Duration::from_secs(15);
const REDIRECTS: usize = 10;

/// The largest successful answer that is read, after decompression.
pub(super) const BODY_LIMIT: usize = 32 << 20;
/// How much of an error's body is read.
const ERROR_BODY_LIMIT: usize = 64 << 10;
/// How much of an error's body is told, in characters.
const EXCERPT: usize = 256;

/// What a client needs to know about its server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where requests go.
    pub base_url: BaseUrl,
    /// How they are authenticated.
    pub auth: Auth,
    /// Whom to trust, and who we are.
    pub tls: TlsSettings,
    /// The way there.
    pub proxy: Proxy,
    /// Headers of every request; operation headers and credentials beat them.
    pub default_headers: Vec<(String, String)>,
    /// A path that tells whether the server is well; the base URL itself when absent.
    pub health_check: Option<String>,
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
        }
    }
}

/// Hears about every attempt, for metrics. Called from request tasks; must not block.
pub trait RequestObserver: Send + Sync {
    /// An attempt ended: with a status, or without one when the server did not answer.
    fn completed(&self, method: &Method, status: Option<StatusCode>, elapsed: Duration);
    /// A request waited: at our own gate, or because the server asked for patience (429, 503).
    fn throttled(&self, by_server: bool);
}

/// A pooled client of one managed server; clones share connections and the gate.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    attempt_timeout: Duration,
}

struct Shared {
    http: Connector,
    /// Whether we present a certificate.
    certified: bool,
    base_url: BaseUrl,
    credentials: Vec<(HeaderName, HeaderValue)>,
    default_headers: Vec<(HeaderName, HeaderValue)>,
    health_check: Option<String>,
    redactor: Redactor,
    gate: Arc<Gate>,
    observer: Option<Arc<dyn RequestObserver>>,
}

/// An attempt that did not end in a successful answer.
struct Failed {
    error: ServerError,
    failure: Failure,
}

impl Failed {
    fn finally(error: ServerError) -> Self {
        Self { error, failure: Failure::Final }
    }
}

impl Client {
    /// Prepares connections; nothing is contacted yet. Everything that talks to the same server shares
    /// `gate`.
    pub fn new(
        settings: Settings,
        gate: Arc<Gate>,
        observer: Option<Arc<dyn RequestObserver>>,
    ) -> Result<Self, ServerError> {
        let connections = gate.max_concurrency();
        let certified = settings.tls.presents();
        let http = Connector::new(settings.tls, settings.proxy, move |builder| pooled(builder, connections))?;
        let default_headers = settings
            .default_headers
            .iter()
            .map(|(name, value)| default_header(name, value))
            .collect::<Result<_, _>>()?;
        let credentials = settings.auth.headers()?;
        gate.serves(&settings.base_url);
        Ok(Self {
            attempt_timeout: ATTEMPT_TIMEOUT,
            shared: Arc::new(Shared {
                http,
                certified,
                redactor: Redactor::new(&settings.auth.secrets()),
                credentials,
                base_url: settings.base_url,
                default_headers,
                health_check: settings.health_check,
                gate,
                observer,
            }),
        })
    }

    /// The base URL without its query, for telling servers apart.
    pub fn address(&self) -> String {
        self.shared.base_url.to_string()
    }

    /// The same client with other patience than 30 s for one attempt, from connecting to the last byte of the
    /// answer; waiting at the gate does not count.
    #[must_use]
    pub fn with_attempt_timeout(self, attempt_timeout: Duration) -> Self {
        Self { attempt_timeout, ..self }
    }

    /// The path of the base URL, unencoded; `/` if it has none.
    pub fn base_path(&self) -> String {
        self.shared.base_url.path()
    }

    /// How many requests the server's gate lets run at once now.
    pub fn concurrency(&self) -> usize {
        self.shared.gate.concurrency()
    }

    /// How many requests the gate may ever let run at once. With that many under way all that it allows is
    /// used, also after it has grown; the others wait their turn there.
    pub fn max_concurrency(&self) -> usize {
        self.shared.gate.max_concurrency()
    }

    /// Sends `request` and reads the answer to its end, with the retries that cannot do a thing twice.
    pub async fn send(&self, request: &Request) -> Result<Response, ServerError> {
        self.send_to(request, &self.shared.base_url.target(request)?).await
    }

    /// Asks the health check, or the base URL where none is configured, with credentials; an error unless
    /// it answers below 400. The check is a path below the base URL or a URL of its origin.
    pub async fn health(&self) -> Result<(), ServerError> {
        let check = self.shared.health_check.as_deref().unwrap_or("/");
        let request = Request::new(Method::GET, check);
        let target = if check.contains("://") {
            self.shared.base_url.same_origin(check).ok_or_else(|| ServerError::Setting {
                setting: "http.healthCheck",
                reason: "must be a path, or a URL of the base URL's origin without query".to_owned(),
            })?
        } else {
            self.shared.base_url.target(&request)?
        };
        self.send_to(&request, &target).await.map(drop)
    }

    /// Sends `request` to a URL that need not be of the server. Only its own origin gets credentials.
    pub(super) async fn send_to(&self, request: &Request, target: &Url) -> Result<Response, ServerError> {
        let mut attempt = 1;
        // What the server may have acted on is told, and not that it was not asked again.
        let mut received = None;
        loop {
            let Failed { error, failure } = match self.attempt(request, target).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            let Some(pause) = retry::pause(&request.method, attempt, &failure) else {
                return Err(received.filter(|_| error.is_unsent()).unwrap_or(error));
            };
            tracing::debug!(%error, attempt, ?pause, "request will be repeated");
            if error.may_be_done() {
                received = Some(error);
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// Passes the gate and sends the request once.
    async fn attempt(&self, request: &Request, target: &Url) -> Result<Response, Failed> {
        let pass = match self.shared.gate.enter().await {
            Ok(pass) => pass,
            Err(refused) => return Err(self.refused(request, refused)),
        };
        if pass.held_back() {
            self.observe(|observer| observer.throttled(false));
        }
        let started = Instant::now();
        let outcome = tokio::time::timeout(self.attempt_timeout, self.exchange(request, target)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            let error =
                request.failed(format!("no complete answer within {} s", self.attempt_timeout.as_secs_f64()));
            Err(Failed { error, failure: Failure::Interrupted })
        });
        // What a server elsewhere does is no news of this one.
        if self.shared.base_url.origin_is(target) {
            pass.settle(lesson(request, &outcome));
        } else {
            drop(pass);
        }
        self.observe(|observer| {
            let status = outcome.as_ref().map_or_else(|failed| failed.error.status(), |r| Some(r.status));
            observer.completed(&request.method, status, started.elapsed());
            if matches!(status, Some(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)) {
                observer.throttled(true);
            }
        });
        outcome
    }

    fn refused(&self, request: &Request, refused: Refused) -> Failed {
        let (failure, reason) = match refused {
            Refused::QueueFull(waiting) => {
                return Failed::finally(ServerError::QueueFull {
                    method: request.method.clone(),
                    path: request.path.clone(),
                    waiting,
                });
            }
            Refused::AskedToWait { status, until } => {
                self.observe(|observer| observer.throttled(false));
                let (status, until) = (status.as_u16(), httpdate::fmt_http_date(until));
                (
                    Failure::Final,
                    format!("with status {status} the server asked for no requests until {until}"),
                )
            }
            Refused::Unreachable { failures, probe_in, cause } => {
                let probe = if probe_in.is_zero() {
                    "a probe is under way".to_owned()
                } else {
                    format!("the next probe is in {:.1} s", probe_in.as_secs_f64())
                };
                let reason = format!("the last {failures} attempts failed, {probe}; the last one: {cause}");
                (Failure::NotContacted(probe_in), reason)
            }
        };
        let (method, path) = (request.method.clone(), request.path.clone());
        Failed { error: ServerError::NotContacted { method, path, reason }, failure }
    }

    /// One request and its answer, redirects included.
    async fn exchange(&self, request: &Request, target: &Url) -> Result<Response, Failed> {
        let mut redirected: Option<Url> = None;
        for _ in 0..=REDIRECTS {
            let url = redirected.as_ref().unwrap_or(target);
            let sent = self.shared.http.client().execute(self.prepare(request, url)).await;
            let answer = sent.map_err(|error| self.unanswered(request, url, &error))?;
            self.check_proxy(request, url, answer.status())?;
            if !answer.status().is_redirection() || answer.status() == StatusCode::NOT_MODIFIED {
                self.check_word(request, url, target, answer.status())?;
                return self.read(request, answer).await;
            }
            redirected = Some(self.redirected(request, url, &answer)?);
        }
        Err(Failed::finally(request.failed(format!("more than {REDIRECTS} redirects"))))
    }

    /// What it means that no answer came.
    fn unanswered(&self, request: &Request, url: &Url, error: &reqwest::Error) -> Failed {
        let proxy = self.shared.http.proxy().serving(url);
        if let Some(proxy) = proxy.filter(|_| is_proxy_refusal(error)) {
            return Failed::finally(request.refused_by_proxy(proxy));
        }
        let way = proxy.map(|proxy| format!("through the proxy {proxy}: ")).unwrap_or_default();
        let (reason, failure) = match refusal(error) {
            Some(Refusal::Theirs(why)) => {
                (format!("its certificate is not trusted: {why}"), Failure::Certificate)
            }
            Some(Refusal::Ours(alert)) if self.shared.certified => (
                format!("it refused the configured client certificate (TLS alert {alert:?})"),
                Failure::Certificate,
            ),
            Some(Refusal::Ours(alert)) => (
                format!("it wants a client certificate, but none is configured (TLS alert {alert:?})"),
                Failure::Certificate,
            ),
            None if error.is_connect() => (causes(error), Failure::Connect),
            None => (causes(error), Failure::Interrupted),
        };
        let reason = self.shared.redactor.redact(&format!("{way}{reason}"));
        // Whom we do not trust, or who does not trust us, was told nothing.
        let sent = matches!(failure, Failure::Interrupted);
        let error = if sent { request.failed(reason) } else { request.unsent(reason) };
        Failed { error, failure }
    }

    /// A proxy that is asked without tunnel refuses credentials with an answer of its own (RFC 9110 section
    /// 15.5.8).
    fn check_proxy(&self, request: &Request, url: &Url, status: StatusCode) -> Result<(), Failed> {
        let proxy = self.shared.http.proxy().serving(url).filter(|_| url.scheme() == "http");
        match proxy {
            Some(proxy) if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                Err(Failed::finally(request.refused_by_proxy(proxy)))
            }
            _ => Ok(()),
        }
    }

    fn prepare(&self, request: &Request, url: &Url) -> reqwest::Request {
        let shared = &*self.shared;
        let mut prepared = reqwest::Request::new(request.method.clone(), url.clone());
        let headers = prepared.headers_mut();
        if let Some(accept) = request.accept.as_deref().and_then(|accept| HeaderValue::try_from(accept).ok())
        {
            headers.insert(ACCEPT, accept);
        }
        if let Some(body) = &request.body
            && let Ok(media_type) = HeaderValue::try_from(body.media_type.as_str())
        {
            headers.insert(CONTENT_TYPE, media_type);
        }
        // A redirect that left the origin gets neither default headers nor credentials.
        if shared.base_url.origin_is(url) {
            insert_all(headers, &shared.default_headers);
            insert_all(headers, &request.headers);
            insert_all(headers, &shared.credentials);
        }
        if let Some(body) = &request.body {
            *prepared.body_mut() = Some(body.bytes.clone().into());
        }
        prepared
    }

    /// Where a redirect leads, if it may be followed: reads anywhere but from https to http, writes only
    /// within the origin and only with method and body kept (307, 308).
    fn redirected(&self, request: &Request, from: &Url, answer: &reqwest::Response) -> Result<Url, Failed> {
        let status = answer.status();
        let refuse = |why: &str| {
            Failed::finally(request.failed(format!("redirect with status {} {why}", status.as_u16())))
        };
        let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let to = location
            .and_then(|location| from.join(location).ok())
            .ok_or_else(|| refuse("names no usable location"))?;
        if from.scheme() == "https" && to.scheme() != "https" {
            return Err(refuse("leads from https to http and is not followed"));
        }
        if matches!(request.method, Method::GET | Method::HEAD) {
            return Ok(to);
        }
        let keeps_method = matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if keeps_method && self.shared.base_url.origin_is(&to) {
            return Ok(to);
        }
        Err(refuse("is not followed for a write"))
    }

    /// What another server, to which a redirect of ours led, has not got or refuses is no word of ours: taken for
    /// it, what exists would be created again, and what is to be deleted would count as gone.
    fn check_word(
        &self,
        request: &Request,
        url: &Url,
        target: &Url,
        status: StatusCode,
    ) -> Result<(), Failed> {
        let elsewhere = self.shared.base_url.origin_is(target) && !self.shared.base_url.origin_is(url);
        if elsewhere && (status.is_client_error() || status.is_server_error()) {
            let (origin, status) = (url.origin().ascii_serialization(), status.as_u16());
            let reason = format!("redirected to {origin}, which answers with status {status}");
            return Err(Failed::finally(request.failed(reason)));
        }
        Ok(())
    }

    async fn read(&self, request: &Request, mut answer: reqwest::Response) -> Result<Response, Failed> {
        let status = answer.status();
        let url = answer.url().clone();
        let failed = status.is_client_error() || status.is_server_error();
        let limit = if failed { ERROR_BODY_LIMIT } else { BODY_LIMIT };
        let body = match collect(&mut answer, limit).await {
            Ok(Collected::Whole(body)) => body,
            Ok(Collected::Cut(body)) if failed => body,
            Ok(Collected::Cut(_)) => {
                return Err(Failed::finally(ServerError::TooLarge {
                    method: request.method.clone(),
                    path: request.path.clone(),
                    limit,
                }));
            }
            Err(error) => {
                let reason = format!("the answer broke off: {}", causes(&error));
                let error = request.failed(self.shared.redactor.redact(&reason));
                return Err(Failed { error, failure: Failure::Interrupted });
            }
        };
        if failed {
            let error = ServerError::Status {
                method: request.method.clone(),
                path: request.path.clone(),
                status,
                excerpt: self.excerpt(request, &body),
            };
            let failure = Failure::Status(status, retry::asked_patience(answer.headers()));
            return Err(Failed { error, failure });
        }
        let headers = answer.headers();
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Response {
            method: request.method.clone(),
            path: request.path.clone(),
            status,
            content_type: text(CONTENT_TYPE),
            location: text(LOCATION),
            etag: strong_etag(headers),
            url,
            links: headers.get_all(LINK).iter().map(lossy).collect(),
            body,
        })
    }

    fn excerpt(&self, request: &Request, body: &[u8]) -> String {
        let text = self.shared.redactor.redact(String::from_utf8_lossy(body).trim());
        let text = Redactor::new(request.secrets.iter()).redact_body(&text);
        if text.is_empty() { "<empty>".to_owned() } else { text.chars().take(EXCERPT).collect() }
    }

    fn observe(&self, tell: impl FnOnce(&dyn RequestObserver)) {
        if let Some(observer) = &self.shared.observer {
            tell(observer.as_ref());
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base_url", &self.shared.base_url).finish_non_exhaustive()
    }
}

fn lossy(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

enum Collected {
    Whole(Bytes),
    Cut(Bytes),
}

/// Reads a body. One that comes in a single piece is not copied.
async fn collect(answer: &mut reqwest::Response, limit: usize) -> Result<Collected, reqwest::Error> {
    // The server's word is taken for how much to expect, but not for more than we would read.
    let expected = answer.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    let Some(first) = answer.chunk().await? else { return Ok(Collected::Whole(Bytes::new())) };
    if first.len() > limit {
        return Ok(Collected::Cut(first.slice(..limit)));
    }
    let Some(second) = answer.chunk().await? else { return Ok(Collected::Whole(first)) };
    let mut body = BytesMut::with_capacity(expected.max(first.len() + second.len()).min(limit));
    body.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(chunk) = next {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok(Collected::Cut(body.freeze()));
        }
        body.extend_from_slice(&chunk);
        next = answer.chunk().await?;
    }
    Ok(Collected::Whole(body.freeze()))
}

/// What an attempt teaches about the server.
fn lesson<'a>(request: &Request, outcome: &'a Result<Response, Failed>) -> Outcome<'a> {
    let answer = |status, retry_after, length| {
        let write = !matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
        Outcome::Answered(Answer { status, retry_after, write, length })
    };
    match outcome {
        Ok(response) => answer(response.status, None, response.body.len()),
        Err(Failed { failure: Failure::Status(status, retry_after), .. }) => answer(*status, *retry_after, 0),
        Err(Failed { error: ServerError::Transport { reason, .. }, failure })
            if !matches!(failure, Failure::Final) =>
        {
            Outcome::Failed(reason)
        }
        // An answer that we do not take: too large, or a redirect that is not followed.
        Err(_) => answer(StatusCode::OK, None, usize::MAX),
    }
}

/// A client for as many connections to one server as its gate lets us use.
fn pooled(builder: reqwest::ClientBuilder, connections: usize) -> reqwest::ClientBuilder {
    builder
        .redirect(reqwest::redirect::Policy::none())
        // Every connection that the gate lets us use is kept, though not as long as servers commonly keep
        // theirs, so that we are the ones to close them.
        .pool_max_idle_per_host(connections)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        // One connection carries all requests, so its silent death must be noticed before they time out.
        .http2_keep_alive_interval(KEEPALIVE)
        .http2_keep_alive_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("declarest/", env!("CARGO_PKG_VERSION")))
}

fn default_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ServerError> {
    let refuse = |what: &str| ServerError::Setting {
        setting: "http.defaultHeaders",
        reason: format!("\"{name}\" {what}"),
    };
    let header = HeaderName::try_from(name.trim()).map_err(|_| refuse("is not a header name"))?;
    let value = HeaderValue::try_from(value).map_err(|_| refuse("has a value that no header can carry"))?;
    Ok((header, value))
}

fn insert_all(headers: &mut HeaderMap, added: &[(HeaderName, HeaderValue)]) {
    for (name, value) in added {
        headers.insert(name.clone(), value.clone());
    }
}
