//! Git's smart HTTP protocol: each request of libgit2 is one HTTP request.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use bytes::Bytes;
use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use reqwest::{Body, Response};
use tempfile::SpooledTempFile;
use url::Url;

use super::super::{Remote, RemoteAuth, RepositoryError};
use super::failure::Way;
use super::negotiation::{NONE_KNOWN, Negotiation, Step};
use super::{Session, stopped, take};
use crate::error::with_causes;
use crate::transport::exchange::location;
use crate::transport::{client_builder, destinations};

/// Servers recognise Git clients by the prefix `git/`.
const AGENT: &str = concat!("git/2.0 (declarest ", env!("CARGO_PKG_VERSION"), ")");

/// The program of Git that a server runs for fetches.
const FETCH: &str = "git-upload-pack";

/// The number of redirects that the first request follows.
const MOST_REDIRECTS: usize = 5;

/// The size in bytes up to which a request is kept in memory. A larger one, which is the pack of a push, is kept in a
/// temporary file, because its length must be known before it is sent.
const KEPT_IN_MEMORY: usize = 1 << 20;

/// The size of the parts in bytes in which a request is sent from a file.
const PART: usize = 1 << 16;

/// The connection to one http or https remote.
pub(super) struct HttpTransport {
    exchange: Arc<Exchange>,
}

struct Exchange {
    session: Arc<Session>,
    client: reqwest::Client,
    /// The URL of the repository. The first request may be redirected to another one.
    repository: Mutex<Url>,
    negotiation: Mutex<Negotiation>,
}

/// One request and its answer.
struct HttpStream {
    exchange: Arc<Exchange>,
    state: State,
}

enum State {
    /// libgit2 is still writing the request.
    Request { program: &'static str, body: SpooledTempFile },
    /// The rest of a part of the answer, and further parts. Without further parts, the answer is not of the server.
    Answer { part: Bytes, rest: Option<Response> },
}

impl HttpTransport {
    pub fn new(session: &Arc<Session>) -> Result<Self, RepositoryError> {
        let remote = &session.remote;
        let action = || format!("prepare the connection to {}", remote.url);
        let client = client_builder(&remote.tls, &remote.proxy)
            // The content of requests and answers is compressed already.
            .no_gzip()
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| RepositoryError::Git { action: action(), reason: with_causes(&error) })?;
        let url = remote.url.http().ok_or_else(|| RepositoryError::Git {
            action: action(),
            reason: "it is not an http URL".to_owned(),
        })?;
        let repository = Mutex::new(url.clone());
        let exchange =
            Exchange { session: Arc::clone(session), client, repository, negotiation: Mutex::default() };
        Ok(Self { exchange: Arc::new(exchange) })
    }
}

impl SmartSubtransport for HttpTransport {
    fn action(&self, _url: &str, service: Service) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let program = program(service);
        let state = match service {
            Service::UploadPackLs | Service::ReceivePackLs => {
                let rest = self.exchange.session.run(self.exchange.discover(program));
                let rest = rest.map_err(|error| stopped(&error))?;
                State::Answer { part: Bytes::new(), rest: Some(rest) }
            }
            Service::UploadPack | Service::ReceivePack => {
                State::Request { program, body: SpooledTempFile::new(KEPT_IN_MEMORY) }
            }
        };
        Ok(Box::new(HttpStream { exchange: Arc::clone(&self.exchange), state }))
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

/// Returns the program of Git that a server runs for a service.
pub(super) fn program(service: Service) -> &'static str {
    match service {
        Service::UploadPackLs | Service::UploadPack => FETCH,
        Service::ReceivePackLs | Service::ReceivePack => "git-receive-pack",
    }
}

impl Exchange {
    fn remote(&self) -> &Remote {
        &self.session.remote
    }

    fn shown(&self) -> String {
        self.remote().url.to_string()
    }

    fn repository(&self) -> Url {
        self.repository.lock().clone()
    }

    /// Asks for the refs of the repository, and follows redirects.
    async fn discover(&self, program: &str) -> Result<Response, RepositoryError> {
        let mut url = below(&self.repository(), "info/refs");
        url.query_pairs_mut().append_pair("service", program);
        for _ in 0..=MOST_REDIRECTS {
            let request = self.client.request(Method::GET, url.clone());
            let answer = self.send(&url, request).await?;
            if !answer.status().is_redirection() {
                self.check_type(&url, &answer, &format!("application/x-{program}-advertisement"))?;
                *self.repository.lock() = above(url, "/info/refs");
                return Ok(answer);
            }
            url = self.redirected(&url, &answer)?;
        }
        Err(self.way(&url).network("it redirects too often"))
    }

    /// Returns the answer to a request of libgit2, which may be one that is not sent.
    async fn answer(
        &self,
        program: &'static str,
        mut body: SpooledTempFile,
    ) -> Result<State, RepositoryError> {
        if program == FETCH {
            let request = content(&mut body).map_err(|error| self.unreadable(&error))?;
            let step = self.negotiation.lock().step(request);
            let Step::Sent(request) = step else {
                return Ok(State::Answer { part: Bytes::from_static(NONE_KNOWN), rest: None });
            };
            let length = request.len() as u64;
            let rest = self.post(program, length, request.into()).await?;
            return Ok(State::Answer { part: Bytes::new(), rest: Some(rest) });
        }
        let length = length(&mut body).map_err(|error| self.unreadable(&error))?;
        let rest = self.post(program, length, parts(body)).await?;
        Ok(State::Answer { part: Bytes::new(), rest: Some(rest) })
    }

    fn unreadable(&self, error: &io::Error) -> RepositoryError {
        RepositoryError::Git {
            action: format!("read the request to {}", self.shown()),
            reason: error.to_string(),
        }
    }

    /// Sends a request with a body of `length` bytes. Only the first request may be redirected.
    async fn post(&self, program: &str, length: u64, body: Body) -> Result<Response, RepositoryError> {
        let url = below(&self.repository(), program);
        let request = self
            .client
            .request(Method::POST, url.clone())
            .header(CONTENT_TYPE, format!("application/x-{program}-request"))
            .header(ACCEPT, format!("application/x-{program}-result"))
            .header(CONTENT_LENGTH, length)
            .body(body);
        let answer = self.send(&url, request).await?;
        if answer.status().is_redirection() {
            return Err(self.way(&url).network("it redirects a request that must not be repeated"));
        }
        self.check_type(&url, &answer, &format!("application/x-{program}-result"))?;
        Ok(answer)
    }

    /// Sends one request, and returns an answer of success or a redirect.
    async fn send(&self, url: &Url, request: reqwest::RequestBuilder) -> Result<Response, RepositoryError> {
        let remote = self.remote();
        destinations::check_with_proxy(url, &remote.proxy)
            .map_err(|source| RepositoryError::Destination { url: self.shown(), source })?;
        let request = request.header(USER_AGENT, AGENT);
        let request = match &remote.auth {
            RemoteAuth::Basic { password: secret, .. } | RemoteAuth::Token { token: secret, .. } => {
                request.basic_auth(remote.user(), Some(secret.expose()))
            }
            RemoteAuth::None | RemoteAuth::Ssh { .. } => request,
        };
        let answer = request.send().await.map_err(|error| self.way(url).explain(&error))?;
        let url_shown = self.shown();
        match answer.status() {
            status if status.is_success() || status.is_redirection() => Ok(answer),
            StatusCode::PROXY_AUTHENTICATION_REQUIRED if remote.proxy.serving(url).is_some() => {
                Err(RepositoryError::ProxyCredentials(url_shown))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(match &remote.auth {
                RemoteAuth::None if answer.status() == StatusCode::UNAUTHORIZED => {
                    RepositoryError::CredentialsMissing { url: url_shown, configured: "none are configured" }
                }
                RemoteAuth::Ssh { .. } => RepositoryError::CredentialsMissing {
                    url: url_shown,
                    configured: "an SSH key is configured, which it does not accept",
                },
                _ => RepositoryError::CredentialsRejected(url_shown),
            }),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(RepositoryError::RemoteMissing(url_shown)),
            status => Err(self.way(url).network(&format!("it answered with status {status}"))),
        }
    }

    /// Returns the target of a redirect. Credentials go to the host of the remote only, and a redirect never leads
    /// from https to http.
    fn redirected(&self, from: &Url, answer: &Response) -> Result<Url, RepositoryError> {
        let target = location(from, answer)
            .filter(|target| matches!(target.scheme(), "http" | "https") && target.has_host());
        let target = target.ok_or_else(|| self.way(from).network("it redirects to an invalid URL"))?;
        if from.scheme() == "https" && target.scheme() == "http" {
            return Err(self.way(from).network("it redirects from https to http"));
        }
        let confidential = !matches!(self.remote().auth, RemoteAuth::None) || self.remote().tls.presents();
        if confidential && !is_same_server(from, &target) {
            let port = target.port_or_known_default().unwrap_or_default();
            let host = format!("{}:{port}", target.host_str().unwrap_or_default());
            return Err(RepositoryError::CredentialsElsewhere { url: self.shown(), host });
        }
        Ok(target)
    }

    /// Checks that the answer is of a Git server, and not for example a page for people.
    fn check_type(&self, url: &Url, answer: &Response, expected: &str) -> Result<(), RepositoryError> {
        let given =
            answer.headers().get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
        if given.split(';').next().unwrap_or_default().trim() == expected {
            return Ok(());
        }
        let reason = format!("it answered with content of type \"{given}\" instead of \"{expected}\"");
        Err(self.way(url).network(&reason))
    }

    fn way(&self, url: &Url) -> Way {
        Way {
            url: self.shown(),
            proxy: self.remote().proxy.serving(url).map(ToString::to_string),
            certified: self.remote().tls.presents(),
        }
    }
}

/// Whether two URLs have the same host and port, or the second one is the https equivalent at the standard port.
fn is_same_server(from: &Url, to: &Url) -> bool {
    let upgraded = from.scheme() == "http"
        && to.scheme() == "https"
        && (from.port_or_known_default(), to.port_or_known_default()) == (Some(80), Some(443));
    from.host() == to.host() && (from.origin() == to.origin() || upgraded)
}

/// Returns the URL of a path below a repository.
fn below(repository: &Url, path: &str) -> Url {
    let mut url = repository.clone();
    url.set_path(&format!("{}/{path}", repository.path().trim_end_matches('/')));
    url
}

/// Returns the URL of the repository from the URL of `path` below it.
fn above(mut url: Url, path: &str) -> Url {
    let repository = url.path().strip_suffix(path).unwrap_or(url.path()).to_owned();
    url.set_path(&repository);
    let others: Vec<_> = url.query_pairs().into_owned().filter(|(name, _)| name != "service").collect();
    url.set_query(None);
    if !others.is_empty() {
        url.query_pairs_mut().extend_pairs(others);
    }
    url
}

/// Returns the length of a file in bytes, and goes to its beginning.
fn length(file: &mut SpooledTempFile) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    Ok(length)
}

/// Returns the content of a file.
fn content(file: &mut SpooledTempFile) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// Returns a request body that is read from a file as it is sent.
fn parts(mut file: SpooledTempFile) -> Body {
    let parts = std::iter::from_fn(move || {
        let mut part = vec![0; PART];
        match file.read(&mut part) {
            Ok(0) => None,
            Ok(length) => {
                part.truncate(length);
                Some(Ok(part))
            }
            Err(error) => Some(Err(error)),
        }
    });
    Body::wrap_stream(futures::stream::iter(parts))
}

impl Write for HttpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Request { body, .. } => body.write(bytes),
            State::Answer { .. } => Err(io::Error::other("the request was already sent")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for HttpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (exchange, session) = (&self.exchange, &self.exchange.session);
        if let State::Request { program, body } = &mut self.state {
            let body = std::mem::replace(body, SpooledTempFile::new(0));
            self.state = session.run(exchange.answer(program, body))?;
        }
        let State::Answer { part, rest } = &mut self.state else { return Ok(0) };
        if part.is_empty()
            && let Some(rest) = rest
        {
            *part = session.run(async {
                let url = rest.url().clone();
                let next = rest.chunk().await.map_err(|error| exchange.way(&url).broken_off(&error))?;
                Ok(next.unwrap_or_default())
            })?;
            session.count(part)?;
        }
        Ok(take(part, buffer))
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
