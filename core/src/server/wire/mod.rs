//! Sends one request and reads its answer: the gate, attempts, redirects, limits.

mod outcome;
mod reason;
mod redirect;

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, LAST_MODIFIED, LINK, LOCATION};
use http::{Method, StatusCode};
use rustls::CertificateError;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Level, Span};
use url::Url;

use self::reason::reason;
use super::exchange_trace::ExchangeTrace;
use super::gate::{Caller, Refused};
use super::header::{Header, insert_all};
use super::observer::RequestObserver;
use super::redaction::Redaction;
use super::response::{Paging, strong_etag};
use super::trace::Trace;
use super::{BaseUrl, Gate, Request, Response, ServerError};
use crate::control::{one_line, unindented};
use crate::secrets::{Confidential, Secret, excerpt};
use crate::spans;
use crate::transport::exchange::{Clock, Collected, Exchange, collect, follow};
use crate::transport::retry::{self, Failure};
use crate::transport::{
    CONNECT_TIMEOUT, Connector, Refusal, causes, denial, host, is_proxy_refusal, refusal, untrusted,
};
use outcome::{Failed, conclude, lesson};
use redirect::Reach;

const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The largest successful answer that is read, in bytes after decompression.
pub(super) const BODY_LIMIT: usize = 32 << 20;
/// The largest answer of a token endpoint that is read.
const TOKEN_BODY_LIMIT: usize = 1 << 20;
/// The largest part of an error's body that is read, in bytes.
const ERROR_BODY_LIMIT: usize = 64 << 10;
/// The largest part of an error's body that is shown, in characters.
const EXCERPT: usize = 256;

/// The connections and settings that all requests of one client share.
pub(super) struct Wire {
    pub http: Connector,
    /// Whether a client certificate is configured.
    pub certified: bool,
    /// Whether redirects of reads may lead to another origin.
    pub cross_origin_redirects: bool,
    pub base_url: BaseUrl,
    /// Headers of every request to the origin of the base URL. A request may replace them.
    pub default_headers: Vec<Header>,
    pub redaction: Redaction,
    pub gate: Arc<Gate>,
    pub observer: Option<Arc<dyn RequestObserver>>,
    pub trace: Option<Trace>,
    /// The kind of authentication, for traces.
    pub auth: &'static str,
}

/// How long a request waits for its answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// The time of one attempt, from connecting to the last byte of the answer; waiting at the gate does not count.
    pub attempt: Duration,
    /// The highest number of attempts, including the first.
    pub attempts: u32,
}

/// One request with everything that is needed to send it.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub request: &'a Request,
    /// The URL; it may be outside the server.
    pub target: &'a Url,
    /// The headers that authenticate the request; sent only to the origin of the base URL.
    pub credentials: &'a [Header],
    /// Conditional headers (RFC 9110 section 13.1); sent to every target, also after a redirect.
    pub conditions: &'a [Header],
    /// The segments of the path that no redirect may replace.
    pub names: &'a [String],
    pub purpose: Purpose,
    pub patience: Patience,
    /// Ends the waits at the gate and between attempts. A request that has been sent is completed.
    pub cancelled: Option<&'a CancellationToken>,
}

impl Call<'_> {
    /// Returns the caller for the gate. A request with a cancellation token is part of a run. All requests wait for
    /// the access token, so the request for it waits like a request of a run.
    fn caller(self) -> Caller {
        if self.cancelled.is_some() || self.purpose == Purpose::Token { Caller::Run } else { Caller::Alone }
    }

    /// Returns the output of `waiting`; `None` if the request was cancelled.
    async fn waited<T>(self, waiting: impl Future<Output = T>) -> Option<T> {
        match self.cancelled {
            Some(cancelled) => cancelled.run_until_cancelled(waiting).await,
            None => Some(waiting.await),
        }
    }
}

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Resource,
    /// A request for a token. It may be repeated although it is a POST.
    Token,
}

impl Wire {
    /// Sends a request and reads the complete answer. Repeats it only if the server cannot act on it twice.
    pub async fn send(&self, call: Call<'_>) -> Result<Response, ServerError> {
        let mut attempt = 1;
        // An error after which the server may have acted is returned in place of a later error of an attempt that was
        // not sent.
        let mut received = None;
        loop {
            let Failed { error, failure } = match self.attempt(call, attempt).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            let is_idempotent = !call.request.once && retry::is_idempotent(&call.request.method);
            let repeatable = call.purpose == Purpose::Token || is_idempotent;
            let Some(pause) = retry::pause(repeatable, attempt, call.patience.attempts, &failure) else {
                return Err(received.filter(|_| error.is_unsent()).unwrap_or(error));
            };
            tracing::debug!(%error, attempt, ?pause, "request will be repeated");
            if error.may_be_done() {
                received = Some(error.clone());
            }
            if call.waited(tokio::time::sleep(pause)).await.is_none() {
                return Err(received.unwrap_or(error));
            }
            attempt += 1;
        }
    }

    /// Sends the request once.
    async fn attempt(&self, call: Call<'_>, attempt: u32) -> Result<Response, Failed> {
        let request = call.request;
        // Stage 1: pass the gate.
        let pass = match call.waited(self.gate.enter(call.caller())).await {
            Some(Ok(pass)) => pass,
            Some(Err(refused)) => return Err(self.redacted_failure(request, self.refused(request, refused))),
            None => return Err(self.redacted_failure(request, Failed::finally(request.cancelled()))),
        };
        if pass.held_back() {
            self.observe(|observer| observer.throttled(false));
        }
        // Stage 2: send the request, follow redirects, and read the answer.
        let started = Instant::now();
        let span = self.span(call, attempt);
        let outcome = self.exchange(call).instrument(span.clone()).await;
        let outcome = outcome.map_err(|failed| self.redacted_failure(request, failed));
        conclude(&span, &outcome);
        // Stage 3: return the slot. The outcome at another origin does not describe this server.
        match lesson(&outcome).filter(|_| self.base_url.origin_is(call.target)) {
            Some(lesson) => pass.settle(lesson),
            None => drop(pass),
        }
        if call.purpose == Purpose::Resource {
            self.notify(&request.method, &outcome, started.elapsed());
        }
        outcome
    }

    /// Returns the span of an attempt. It has no query, and no secret in its path.
    fn span(&self, call: Call<'_>, attempt: u32) -> Span {
        let (request, target) = (call.request, call.target);
        let path = || self.redaction.redact_with(&request.secrets, &request.path);
        tracing::span!(
            target: spans::TARGET,
            Level::INFO,
            "request",
            otel.name = request.method.as_str(),
            otel.kind = "client",
            http.request.method = request.method.as_str(),
            http.request.resend_count = attempt - 1,
            server.address = target.host_str(),
            server.port = target.port_or_known_default(),
            url.path = %spans::bounded(&path()),
            http.response.status_code = tracing::field::Empty,
            error.type = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        )
    }

    /// Redacts the error of `failed`.
    fn redacted_failure(&self, request: &Request, Failed { error, failure }: Failed) -> Failed {
        Failed { error: self.redacted(request, error), failure }
    }

    /// Returns `error` without the secrets of the client and of `request`.
    pub fn redacted(&self, request: &Request, error: ServerError) -> ServerError {
        error.with_texts(|text| one_line(&self.redaction.redact_with(&request.secrets, text)).into_owned())
    }

    fn notify(&self, method: &Method, outcome: &Result<Response, Failed>, elapsed: Duration) {
        self.observe(|observer| {
            let status = outcome.as_ref().map_or_else(|failed| failed.error.status(), |r| Some(r.status));
            observer.completed(method, status, elapsed);
            if matches!(status, Some(StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)) {
                observer.throttled(true);
            }
        });
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

    /// Sends one request, follows redirects, and reads the answer.
    async fn exchange(&self, call: Call<'_>) -> Result<Response, Failed> {
        let (reach, clock) = (self.reach(call, call.target), Clock::start(call.patience.attempt));
        let mut sending = Sending { wire: self, call, reach, clock, sent: None };
        let answer = follow(&mut sending, &call.request.method, call.target).await?;
        self.check_word(call, answer.url(), sending.reach, answer.status())?;
        self.read(&mut sending, answer).await
    }

    /// Returns the HTTP client for a target at this distance. For another origin it is one without our client
    /// certificate and without the configured CAs.
    fn http(&self, reach: Reach) -> Result<reqwest::Client, Failed> {
        match reach {
            Reach::Home | Reach::Neighbour => Ok(self.http.client()),
            Reach::Stranger => self.http.stranger().map_err(|error| Failed::unsent(error.into())),
        }
    }

    /// Returns the error of a request without an answer.
    fn unanswered(&self, call: Call<'_>, url: &Url, reach: Reach, error: &reqwest::Error) -> Failed {
        let request = call.request;
        // Whether the TLS settings apply to the target.
        let known = reach != Reach::Stranger;
        let proxy = self.http.proxy().serving(url);
        if let Some(proxy) = proxy.filter(|_| is_proxy_refusal(error)) {
            return Failed::unsent(request.refused_by_proxy(proxy));
        }
        let way = proxy.map(|proxy| format!("through the proxy {proxy}: ")).unwrap_or_default();
        if let Some(denied) = denial(error) {
            return Failed::unsent(request.unsent(format!("{way}{denied}")));
        }
        let (reason, failure) = match refusal(error) {
            // The settings do not apply to other origins.
            Some(Refusal::Theirs(why @ CertificateError::UnknownIssuer)) if known => {
                (format!("{}; name its authority in http.tls", untrusted(why)), Failure::Certificate)
            }
            Some(Refusal::Theirs(why)) => (untrusted(why), Failure::Certificate),
            Some(Refusal::Ours(alert)) if self.certified && known => (
                format!("it refused the configured client certificate (TLS alert {alert:?})"),
                Failure::Certificate,
            ),
            Some(Refusal::Ours(alert)) => (
                format!("it requires a client certificate, but none is configured (TLS alert {alert:?})"),
                Failure::Certificate,
            ),
            None if error.is_connect() && proxy.is_none() => {
                (format!("cannot connect to {}: {}", host(url), causes(error)), Failure::Connect)
            }
            None if error.is_connect() => (causes(error), Failure::Connect),
            None => (causes(error), Failure::Interrupted),
        };
        let reason = self.redaction.redact(&format!("{way}{reason}"));
        // The request is not sent before the TLS handshake has succeeded.
        let sent = matches!(failure, Failure::Interrupted);
        let error = if sent { request.failed(reason) } else { request.unsent(reason) };
        let failure = match failure {
            Failure::Certificate if reach != Reach::Home => Failure::Final,
            failure => reach.blames(failure),
        };
        Failed { error, failure }
    }

    /// Returns an error if an HTTP proxy rejected its credentials. Without a tunnel it does so in its own answer (RFC
    /// 9110 section 15.5.8).
    fn check_proxy(&self, request: &Request, url: &Url, status: StatusCode) -> Result<(), Failed> {
        let proxy = self.http.proxy().serving(url).filter(|_| url.scheme() == "http");
        match proxy {
            Some(proxy) if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                Err(Failed::unsent(request.refused_by_proxy(proxy)))
            }
            _ => Ok(()),
        }
    }

    fn prepare(&self, call: Call<'_>, url: &Url, reach: Reach) -> Result<reqwest::Request, Failed> {
        let request = call.request;
        let mut prepared = reqwest::Request::new(request.method.clone(), url.clone());
        let headers = prepared.headers_mut();
        let value = |what: &str, text: &str| {
            let unusable = |_| request.refused(format!("{what} {text:?} cannot be sent in a header"));
            HeaderValue::try_from(text).map_err(|error| Failed::unsent(unusable(error)))
        };
        if let Some(accept) = &request.accept {
            headers.insert(ACCEPT, value("Accept", accept)?);
        }
        if let Some(body) = &request.body {
            headers.insert(CONTENT_TYPE, value("Content-Type", &body.media_type)?);
        }
        insert_all(headers, call.conditions);
        // After a redirect away from the base URL the request gets neither default headers nor credentials. The
        // credentials for a token endpoint are in the body.
        if call.purpose == Purpose::Resource && reach == Reach::Home {
            self.observe(|observer| observer.propagate(headers));
            insert_all(headers, &self.default_headers);
            insert_all(headers, &request.headers);
            insert_all(headers, call.credentials);
        }
        if let Some(body) = &request.body {
            *prepared.body_mut() = Some(body.bytes.clone().into());
        }
        Ok(prepared)
    }

    async fn read(
        &self,
        sending: &mut Sending<'_>,
        mut answer: reqwest::Response,
    ) -> Result<Response, Failed> {
        let (call, request) = (sending.call, sending.call.request);
        let status = answer.status();
        let url = answer.url().clone();
        let is_answer = request.answers.contains(&status.as_u16());
        // 304 is an answer only to a condition.
        let is_unasked = status == StatusCode::NOT_MODIFIED && call.conditions.is_empty();
        let failed = (status.is_client_error() || status.is_server_error() || is_unasked) && !is_answer;
        let limit = match call.purpose {
            _ if failed => ERROR_BODY_LIMIT,
            Purpose::Resource => BODY_LIMIT,
            Purpose::Token => TOKEN_BODY_LIMIT,
        };
        let body = sending.body(&mut answer, limit, failed).await?;
        if let Some(exchange_trace) = self.exchange_trace(call) {
            let elapsed = sending.sent.map(|sent| sent.elapsed()).unwrap_or_default();
            exchange_trace.answer(status, elapsed, answer.headers(), &body);
        }
        if failed {
            let error = self.rejection(request, status, &body);
            let asked = retry::asked_patience(answer.headers());
            let is_locked = error.states_a_lock() && !request.method.is_safe();
            let failure =
                if is_locked { Failure::Locked(status, asked) } else { Failure::Status(status, asked) };
            return Err(Failed { error, failure });
        }
        let headers = answer.headers();
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Response {
            method: request.method.clone(),
            path: self.path_of(request),
            status,
            content_type: text(CONTENT_TYPE),
            location: text(LOCATION),
            etag: strong_etag(headers),
            last_modified: headers.get(LAST_MODIFIED).cloned(),
            detour: self.detour(call, &url),
            url,
            links: headers.get_all(LINK).iter().map(lossy).collect(),
            paging: Paging::of(status, headers),
            body,
        })
    }

    /// Returns the path of `request` without secrets. If it is not encoded, a plain search finds them.
    fn path_of(&self, request: &Request) -> String {
        let is_there = |secret: &Secret| request.path.contains(secret.expose());
        if (request.encoded && !request.secrets.is_empty()) || request.secrets.iter().any(is_there) {
            return self.redaction.redact_with(&request.secrets, &request.path);
        }
        request.path.clone()
    }

    /// Returns the error of an answer with this status and body.
    pub(super) fn rejection(&self, request: &Request, status: StatusCode, body: &[u8]) -> ServerError {
        self.rejection_without(request, status, body, &Confidential::default())
    }

    /// The same for an answer that may be that of a resource, without these members.
    pub(super) fn rejection_without(
        &self,
        request: &Request,
        status: StatusCode,
        body: &[u8],
        confidential: &Confidential,
    ) -> ServerError {
        let (method, path) = (request.method.clone(), request.path.clone());
        ServerError::Status { method, path, status, excerpt: self.excerpt(request, body, confidential) }
    }

    fn excerpt(&self, request: &Request, body: &[u8], confidential: &Confidential) -> String {
        let text = String::from_utf8_lossy(body);
        // Redact before cutting: the redactor could not recognise the beginning of a secret.
        let text = self.redaction.redact_body(&request.secrets, text.trim(), confidential);
        if text.is_empty() {
            return "<empty>".to_owned();
        }
        let line = |text: &str| one_line(&unindented(text)).into_owned();
        // The beginning of a long answer may be the same for all answers.
        let reason = if text.chars().count() > EXCERPT { reason(&text) } else { None };
        match reason {
            Some(reason) => excerpt(&format!("{} …", line(reason.trim_end())), EXCERPT).into_owned(),
            None => excerpt(&line(&text), EXCERPT).into_owned(),
        }
    }

    fn exchange_trace<'a>(&'a self, call: Call<'a>) -> Option<ExchangeTrace<'a>> {
        let token = call.purpose == Purpose::Token;
        let (redaction, secrets) = (&self.redaction, &*call.request.secrets);
        let confidential = &call.request.confidential;
        let looks = call.request.method == Method::GET;
        self.trace.as_ref().map(|trace| ExchangeTrace {
            trace,
            redaction,
            secrets,
            confidential,
            looks,
            token,
        })
    }

    pub fn observe(&self, notify: impl FnOnce(&dyn RequestObserver)) {
        if let Some(observer) = &self.observer {
            notify(observer.as_ref());
        }
    }
}

/// An exchange of an attempt: its requests, and its distance from the base URL.
struct Sending<'a> {
    wire: &'a Wire,
    call: Call<'a>,
    reach: Reach,
    clock: Clock,
    /// The time when the last request was sent; `None` before the first.
    sent: Option<Instant>,
}

impl Sending<'_> {
    /// Reads the body of an answer. Only that of a `failed` request may be cut at `limit`.
    async fn body(
        &mut self,
        answer: &mut reqwest::Response,
        limit: usize,
        failed: bool,
    ) -> Result<bytes::Bytes, Failed> {
        let request = self.call.request;
        match collect(answer, limit, &mut self.clock).await {
            Ok(Collected::Whole(body)) => Ok(body),
            // The mark lets the redactor find a secret whose end is cut off.
            Ok(Collected::Cut(body)) if failed => Ok([&body, "…".as_bytes()].concat().into()),
            Ok(Collected::Cut(_)) => {
                let (method, path) = (request.method.clone(), request.path.clone());
                Err(Failed::finally(ServerError::TooLarge { method, path, limit }))
            }
            Ok(Collected::Short(shortage)) => {
                let (method, path) = (request.method.clone(), request.path.clone());
                Err(Failed::finally(ServerError::Memory { method, path, shortage }))
            }
            Ok(Collected::Late) => Err(self.timed_out()),
            Err(error) => {
                let reason = format!("the answer is incomplete: {}", causes(&error));
                let error = request.failed(self.wire.redaction.redact(&reason));
                Err(Failed { error, failure: self.reach.blames(Failure::Interrupted) })
            }
        }
    }

    /// Sends the request to `url`, which is its target or that of a redirect.
    async fn send_to(&mut self, url: &Url) -> Result<reqwest::Response, Failed> {
        let Self { wire, call, reach, .. } = *self;
        let prepared = wire.prepare(call, url, reach)?;
        if let Some(exchange_trace) = wire.exchange_trace(call) {
            let body = prepared.body().and_then(reqwest::Body::as_bytes);
            exchange_trace.request(prepared.method(), url, wire.auth, prepared.headers(), body);
        }
        let http = wire.http(reach)?;
        // A redirect is another request to the server, so the rate counts it.
        let paces = self.sent.is_some() && reach != Reach::Stranger;
        if paces && self.clock.stop(call.waited(wire.gate.pace())).await.is_none() {
            return Err(Failed::unsent(call.request.cancelled()));
        }
        if wire.observer.as_ref().is_some_and(|observer| !observer.may_send()) {
            return Err(Failed::unsent(call.request.cancelled()));
        }
        self.sent = Some(Instant::now());
        let Some(answer) = self.clock.run(http.execute(prepared)).await else { return Err(self.timed_out()) };
        let answer = answer.map_err(|error| wire.unanswered(call, url, reach, &error))?;
        wire.check_proxy(call.request, url, answer.status())?;
        Ok(answer)
    }

    fn timed_out(&self) -> Failed {
        let error = self.call.request.timed_out(self.call.patience.attempt);
        Failed { error, failure: self.reach.blames(Failure::Interrupted) }
    }
}

impl Exchange for Sending<'_> {
    type Error = Failed;

    async fn send(&mut self, url: &Url) -> Result<reqwest::Response, Failed> {
        let redirected = self.sent.is_some();
        let sent = self.send_to(url).await;
        sent.map_err(|failed| if redirected { failed.after_an_answer() } else { failed })
    }

    fn redirect(&mut self, _: &Url, to: &Url, status: StatusCode) -> Result<(), Failed> {
        self.reach = self.reach.max(self.wire.reach(self.call, to));
        self.wire.check_reach(self.call, to, self.reach, status)?;
        self.wire.check_names(self.call, to, status)
    }

    fn refused(&self, reason: String) -> Failed {
        Failed::finally(self.call.request.failed(reason))
    }

    fn write_refused(&self, to: &Url, status: StatusCode) -> Failed {
        if self.call.purpose == Purpose::Token {
            let status = status.as_u16();
            return self
                .refused(format!("redirect with status {status} is not followed; correct the token URL"));
        }
        Failed::finally(self.wire.unfollowed_write(self.call.request, to, status))
    }
}

fn lossy(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Configures a pool for as many connections to one server as its gate admits.
pub(super) fn pooled(builder: reqwest::ClientBuilder, connections: usize) -> reqwest::ClientBuilder {
    builder
        .redirect(reqwest::redirect::Policy::none())
        // Every connection that the gate admits is kept. Servers commonly keep idle connections longer than this, so
        // the client closes them first.
        .pool_max_idle_per_host(connections)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        // One connection carries all requests, so a dead connection must be detected before they time out.
        .http2_keep_alive_interval(KEEPALIVE)
        .http2_keep_alive_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("declarest/", env!("CARGO_PKG_VERSION")))
}
