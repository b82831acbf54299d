//! Sends probes: one GET request, or one gRPC health check (grpc/health/v1/health.proto).
//!
//! A probe has no credentials, no client certificate and no headers of the user. It reaches only the origin of its
//! request, and reads at most 4 KiB of an answer.

use std::error::Error;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use url::Url;

use super::model::Protocol;
use super::request::ProbeRequest;
use super::snapshot::{ProbeAnswer, ProbeKind, Probed};
use crate::error::with_causes;
use crate::proxy::Proxy;
use crate::transport::exchange::location;
use crate::transport::{Names, TlsConfig, TransportError, failure_of, named_client_builder, shown};

/// The time limit of a probe with its redirects and its retry.
const TIME: Duration = Duration::from_secs(5);
/// The wait before a refused connection is tried once more.
const PAUSE: Duration = Duration::from_millis(100);
/// The bytes of an answer that are read.
const MAX_BODY: usize = 4 << 10;
/// The number of redirects that are followed.
const MAX_REDIRECTS: usize = 3;

/// The path of the health check.
const HEALTH_CHECK: &str = "/grpc.health.v1.Health/Check";
/// An empty message with its frame: not compressed, length zero.
const EMPTY_MESSAGE: [u8; 5] = [0; 5];
/// The status of an answer to a call that is not implemented.
const UNIMPLEMENTED: &str = "12";

/// Sends probes with the trust of one server.
pub struct Prober {
    http: Client,
    grpc: Client,
    tls: TlsConfig,
    names: Names,
    limit: Duration,
}

impl Prober {
    /// Creates a prober that trusts the CAs of `tls`. Hosts are resolved by `names`.
    pub fn new(tls: &TlsConfig, names: &Names) -> Result<Self, TransportError> {
        let tls = tls.without_identity();
        let client = |grpc: bool| {
            let builder = named_client_builder(&tls, &Proxy::default(), names)
                .user_agent(concat!("declarest/", env!("CARGO_PKG_VERSION")))
                .redirect(Policy::none())
                .pool_max_idle_per_host(0);
            let builder = if grpc { builder.http2_prior_knowledge() } else { builder };
            builder.build().map_err(|error| TransportError::Client(with_causes(&error)))
        };
        let (http, grpc) = (client(false)?, client(true)?);
        Ok(Self { http, grpc, tls, names: names.clone(), limit: TIME })
    }

    /// Whether the prober trusts the CAs of `tls`.
    pub fn is_for(&self, tls: &TlsConfig) -> bool {
        self.tls.trusts_like(tls)
    }

    /// Sends a probe. It takes at most five seconds.
    pub async fn send(&self, request: &ProbeRequest) -> Probed {
        let started = Instant::now();
        let mut status = None;
        let work = tokio::time::timeout(self.limit, self.answer(request, &mut status)).await;
        let answer = work.unwrap_or(ProbeAnswer::Timeout);
        let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Probed { url: shown(&request.url), status, latency_ms, answer }
    }

    /// Sends probes at the same time.
    pub async fn send_all(&self, requests: &[ProbeRequest]) -> Vec<(ProbeKind, Probed)> {
        join_all(requests.iter().map(async |request| (request.kind, self.send(request).await))).await
    }

    async fn answer(&self, request: &ProbeRequest, status: &mut Option<u16>) -> ProbeAnswer {
        // Resolve the host first: a name that is not known says nothing about the service.
        if let Err(error) = self.names.check(&request.url).await {
            let host = request.url.host_str().unwrap_or_default();
            return ProbeAnswer::Unresolved(format!("the host {host} cannot be reached: {error}"));
        }
        let result = match request.protocol {
            Protocol::Grpc => self.check(&request.url, status).await,
            Protocol::Http | Protocol::Event => self.get(&request.url, request.kind, status).await,
        };
        result.unwrap_or_else(|error| failed(&error))
    }

    async fn get(
        &self,
        url: &Url,
        kind: ProbeKind,
        status: &mut Option<u16>,
    ) -> Result<ProbeAnswer, reqwest::Error> {
        let mut current = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut answer = persistent(|| self.http.get(current.clone()).send()).await?;
            *status = Some(answer.status().as_u16());
            if is_redirect(answer.status()) {
                match target_of(&current, &answer) {
                    Some(target) if target.origin() == url.origin() => current = target,
                    _ => return Ok(ProbeAnswer::Redirected),
                }
                continue;
            }
            if !answer.status().is_success() {
                return Ok(ProbeAnswer::Status);
            }
            let empty = kind == ProbeKind::Metrics && is_empty(&mut answer).await?;
            return Ok(ProbeAnswer::Healthy { empty });
        }
        Ok(ProbeAnswer::Redirected)
    }

    async fn check(&self, url: &Url, status: &mut Option<u16>) -> Result<ProbeAnswer, reqwest::Error> {
        let mut url = url.clone();
        url.set_path(HEALTH_CHECK);
        let send = || {
            let request = self.grpc.post(url.clone()).header(CONTENT_TYPE, "application/grpc");
            request.header(TE, "trailers").body(EMPTY_MESSAGE.to_vec()).send()
        };
        let answer = persistent(send).await?;
        *status = Some(answer.status().as_u16());
        if answer.status().is_redirection() {
            return Ok(ProbeAnswer::Redirected);
        }
        if answer.status() != StatusCode::OK {
            return Ok(ProbeAnswer::Status);
        }
        let mut code = code_of(answer.headers());
        let mut body = reqwest::Body::from(answer);
        let mut message = Vec::new();
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(data) => message.extend_from_slice(&data[..data.len().min(MAX_BODY - message.len())]),
                Err(other) => {
                    code = other.trailers_ref().and_then(code_of).or(code);
                }
            }
            if message.len() >= MAX_BODY {
                break;
            }
        }
        Ok(match code.as_deref() {
            Some("0") | None => serving(&Bytes::from(message)),
            Some(UNIMPLEMENTED) => ProbeAnswer::Unimplemented,
            Some(code) => ProbeAnswer::NotServing(format!("gRPC status {code}")),
        })
    }
}

/// Returns the results of probes that cannot be sent. They say nothing about the endpoints.
pub fn unsent(requests: &[ProbeRequest], reason: &str) -> Vec<(ProbeKind, Probed)> {
    let result = |request: &ProbeRequest| {
        let answer = ProbeAnswer::Unresolved(reason.to_owned());
        (request.kind, Probed { url: shown(&request.url), status: None, latency_ms: 0, answer })
    };
    requests.iter().map(result).collect()
}

/// Sends a request, and once more if the connection is refused, because a pod may just be replaced.
async fn persistent<F>(send: impl Fn() -> F) -> Result<Response, reqwest::Error>
where
    F: Future<Output = Result<Response, reqwest::Error>>,
{
    match send().await {
        Err(error) if is_refused(&error) => {
            tokio::time::sleep(PAUSE).await;
            send().await
        }
        result => result,
    }
}

fn is_refused(error: &(dyn Error + 'static)) -> bool {
    failure_of::<std::io::Error>(error).is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns the target of a redirect, if it has one that can be used.
fn target_of(from: &Url, answer: &Response) -> Option<Url> {
    location(from, answer).filter(|target| target.username().is_empty() && target.password().is_none())
}

async fn is_empty(answer: &mut Response) -> Result<bool, reqwest::Error> {
    while let Some(chunk) = answer.chunk().await? {
        if !chunk.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the gRPC status code among headers or trailers.
fn code_of(headers: &HeaderMap) -> Option<String> {
    let code = headers.get("grpc-status")?.to_str().ok()?;
    (code.len() <= 3 && code.bytes().all(|byte| byte.is_ascii_digit())).then(|| code.to_owned())
}

/// Reads a `HealthCheckResponse`: field 1 is the status, and 1 is SERVING.
fn serving(message: &Bytes) -> ProbeAnswer {
    let status = match message.as_ref() {
        // Without the field, it has its default.
        [0, 0, 0, 0, 0] => 0,
        [0, _, _, _, _, 0x08, status, ..] => *status,
        _ => return ProbeAnswer::NotServing("the answer is not a health check".to_owned()),
    };
    match status {
        1 => ProbeAnswer::Healthy { empty: false },
        2 => ProbeAnswer::NotServing("status NOT_SERVING".to_owned()),
        3 => ProbeAnswer::NotServing("status SERVICE_UNKNOWN".to_owned()),
        _ => ProbeAnswer::NotServing("status UNKNOWN".to_owned()),
    }
}

fn failed(error: &reqwest::Error) -> ProbeAnswer {
    if let Some(tls) = failure_of::<rustls::Error>(error) {
        return ProbeAnswer::TlsFailed(tls.to_string());
    }
    if error.is_timeout() {
        return ProbeAnswer::Timeout;
    }
    let cause = error.source().map_or_else(|| "the request failed".to_owned(), with_causes);
    ProbeAnswer::ConnectionFailed(cause)
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
