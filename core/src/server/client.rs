//! Sends requests to one managed server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use url::Url;

use super::gate::Refused;
use super::response::{names_next_page, strong_etag};
use super::retry::{self, Failure};
use super::{Auth, BaseUrl, Gate, Request, Response, ServerError};
use crate::http_failure::{causes, tls_error};
use crate::secrets::{Redactor, Secret};

/// One attempt, from connecting to the last byte of the body; waiting at the gate does not count.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
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
    /// Whom to trust.
    pub tls: TlsSettings,
    /// Headers of every request; operation headers and credentials beat them.
    pub default_headers: Vec<(String, String)>,
    /// A path that tells whether the server is well; the base URL itself when absent.
    pub health_check: Option<String>,
}

/// Whom a client trusts. TLS 1.2 is the least.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// PEM certificates that replace the system's roots.
    pub ca_certificates: Option<Secret>,
    /// Accept any certificate: whoever sits in between can read and change everything.
    pub insecure_skip_verify: bool,
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
}

struct Shared {
    http: reqwest::Client,
    base_url: BaseUrl,
    credentials: Vec<(HeaderName, HeaderValue)>,
    default_headers: Vec<(HeaderName, HeaderValue)>,
    health_check: Option<String>,
    redactor: Redactor,
    gate: Arc<Gate>,
    observer: Option<Arc<dyn RequestObserver>>,
}

/// How one attempt ended when not in a successful answer.
enum Attempt {
    Retryable(Option<Duration>, ServerError),
    Final(ServerError),
}

impl Client {
    /// Prepares connections; nothing is contacted yet. Everything that talks to the same server shares
    /// `gate`.
    pub fn new(
        settings: Settings,
        gate: Arc<Gate>,
        observer: Option<Arc<dyn RequestObserver>>,
    ) -> Result<Self, ServerError> {
        let http = trusting(&settings.tls)?
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_max_idle_per_host(gate.concurrency())
            .user_agent(concat!("declarest/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ServerError::Setting { setting: "http", reason: causes(&error) })?;
        let default_headers = settings
            .default_headers
            .iter()
            .map(|(name, value)| default_header(name, value))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            shared: Arc::new(Shared {
                http,
                redactor: Redactor::new(&settings.auth.secrets()),
                credentials: settings.auth.headers()?,
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
        self.shared.base_url.address()
    }

    /// The path of the base URL, unencoded; `/` if it has none.
    pub fn base_path(&self) -> String {
        self.shared.base_url.path()
    }

    /// How many requests the server's gate lets run at once.
    pub fn concurrency(&self) -> usize {
        self.shared.gate.concurrency()
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
        loop {
            match self.attempt(request, target, attempt).await {
                Ok(response) => return Ok(response),
                Err(Attempt::Final(error) | Attempt::Retryable(None, error)) => return Err(error),
                Err(Attempt::Retryable(Some(pause), error)) => {
                    tracing::debug!(%error, attempt, ?pause, "request will be repeated");
                    tokio::time::sleep(pause).await;
                    attempt += 1;
                }
            }
        }
    }

    async fn attempt(&self, request: &Request, target: &Url, attempt: u32) -> Result<Response, Attempt> {
        let shared = &*self.shared;
        let (_slot, waited) = shared.gate.enter().await.map_err(|refused| {
            Attempt::Final(match refused {
                Refused::QueueFull(waiting) => ServerError::QueueFull {
                    method: request.method.clone(),
                    path: request.path.clone(),
                    waiting,
                },
                Refused::Closed => request.unsent("the client was closed"),
            })
        })?;
        if waited {
            self.observe(|observer| observer.throttled(false));
        }
        let started = Instant::now();
        let outcome = tokio::time::timeout(ATTEMPT_TIMEOUT, self.exchange(request, target, attempt)).await;
        let outcome = outcome.unwrap_or_else(|_| {
            let error = request.failed(format!("no complete answer within {} s", ATTEMPT_TIMEOUT.as_secs()));
            Err(Attempt::Retryable(retry::pause(&request.method, attempt, &Failure::Interrupted), error))
        });
        let status = match &outcome {
            Ok(response) => Some(response.status),
            Err(Attempt::Retryable(_, error) | Attempt::Final(error)) => error.status(),
        };
        self.observe(|observer| {
            observer.completed(&request.method, status, started.elapsed());
            if matches!(status, Some(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)) {
                observer.throttled(true);
            }
        });
        outcome
    }

    /// One request and its answer, redirects included.
    async fn exchange(&self, request: &Request, target: &Url, attempt: u32) -> Result<Response, Attempt> {
        let mut url = target.clone();
        for _ in 0..=REDIRECTS {
            let sent = self.shared.http.execute(self.prepare(request, &url)).await;
            let answer = sent.map_err(|error| {
                let failure = if error.is_connect() { Failure::Connect } else { Failure::Interrupted };
                let certificate = is_certificate_error(&error);
                let pause = if certificate { None } else { retry::pause(&request.method, attempt, &failure) };
                let reason = self.shared.redactor.redact(&causes(&error));
                let sent = !error.is_connect();
                Attempt::Retryable(pause, if sent { request.failed(reason) } else { request.unsent(reason) })
            })?;
            if !answer.status().is_redirection() || answer.status() == StatusCode::NOT_MODIFIED {
                return self.read(request, answer, attempt).await;
            }
            url = self.redirected(request, &url, &answer)?;
        }
        Err(Attempt::Final(request.failed(format!("more than {REDIRECTS} redirects"))))
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
    fn redirected(&self, request: &Request, from: &Url, answer: &reqwest::Response) -> Result<Url, Attempt> {
        let status = answer.status();
        let refuse = |why: &str| {
            Attempt::Final(request.failed(format!("redirect with status {} {why}", status.as_u16())))
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

    async fn read(
        &self,
        request: &Request,
        mut answer: reqwest::Response,
        attempt: u32,
    ) -> Result<Response, Attempt> {
        let status = answer.status();
        let headers = answer.headers().clone();
        let failed = status.is_client_error() || status.is_server_error();
        let limit = if failed { ERROR_BODY_LIMIT } else { BODY_LIMIT };
        let body = match collect(&mut answer, limit).await {
            Ok(Collected::Whole(body)) => body,
            Ok(Collected::Cut(body)) if failed => body,
            Ok(Collected::Cut(_)) => {
                return Err(Attempt::Final(ServerError::TooLarge {
                    method: request.method.clone(),
                    path: request.path.clone(),
                    limit,
                }));
            }
            Err(error) => {
                let pause = retry::pause(&request.method, attempt, &Failure::Interrupted);
                let reason = format!("the answer broke off: {}", causes(&error));
                return Err(Attempt::Retryable(pause, request.failed(self.shared.redactor.redact(&reason))));
            }
        };
        if failed {
            let error = ServerError::Status {
                method: request.method.clone(),
                path: request.path.clone(),
                status,
                excerpt: self.excerpt(&body),
            };
            let pause = retry::pause(&request.method, attempt, &Failure::Status(status, &headers));
            return Err(Attempt::Retryable(pause, error));
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Response {
            method: request.method.clone(),
            path: request.path.clone(),
            status,
            content_type: text(CONTENT_TYPE),
            location: text(LOCATION),
            etag: strong_etag(&headers),
            has_next_page: names_next_page(&headers),
            body,
        })
    }

    fn excerpt(&self, body: &[u8]) -> String {
        let text = self.shared.redactor.redact(String::from_utf8_lossy(body).trim());
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

enum Collected {
    Whole(Bytes),
    Cut(Bytes),
}

async fn collect(answer: &mut reqwest::Response, limit: usize) -> Result<Collected, reqwest::Error> {
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await? {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok(Collected::Cut(body.freeze()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Collected::Whole(body.freeze()))
}

fn trusting(tls: &TlsSettings) -> Result<reqwest::ClientBuilder, ServerError> {
    let refuse = |reason: String| ServerError::Setting { setting: "http.tls", reason };
    let mut builder = reqwest::Client::builder()
        .tls_version_min(reqwest::tls::Version::TLS_1_2)
        .tls_danger_accept_invalid_certs(tls.insecure_skip_verify);
    if let Some(pem) = &tls.ca_certificates {
        let roots = reqwest::Certificate::from_pem_bundle(pem.expose().as_bytes())
            .map_err(|error| refuse(format!("the CA certificates do not parse: {error}")))?;
        if roots.is_empty() {
            return Err(refuse("the CA certificates hold no PEM certificate".to_owned()));
        }
        builder = builder.tls_certs_only(roots);
    }
    Ok(builder)
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

fn is_certificate_error(error: &reqwest::Error) -> bool {
    matches!(tls_error(error), Some(rustls::Error::InvalidCertificate(_)))
}
