//! Downloads archives of bundles. Credentials of a managed server are only sent to its own origin.

mod challenge;
mod credentials;
mod registry;
mod tags;

use std::future::Future;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ACCEPT, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::redirect::Policy;
use reqwest::{Body, Client, ClientBuilder, Request, RequestBuilder, Response};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use url::Url;

use super::cache::Condition;
use super::{BundleError, archive};
use crate::digest::sha256;
use crate::error::with_causes;
use crate::transport::exchange::{Clock, Collected, Exchange, collect, follow};
use crate::transport::{Access, causes, host, shown};

pub(super) use credentials::Credentials;
pub(super) use registry::{Artifact, BUNDLE_LAYER, LayerRule, Registry};

/// The headers that are also sent to the targets of redirects to other origins.
const PUBLIC: [HeaderName; 3] = [ACCEPT, IF_MODIFIED_SINCE, IF_NONE_MATCH];

/// The limits of a download.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// The maximum time for an archive from a web server.
    pub http: Duration,
    /// The maximum time for all registry requests of one reference.
    pub registry: Duration,
    /// The maximum size of a compressed archive, in bytes.
    pub archive: u64,
    /// The maximum number of redirects of one request.
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let (http, registry) = (Duration::from_mins(1), Duration::from_mins(2));
        Self { http, registry, archive: archive::MAX_TOTAL, redirects: 10 }
    }
}

/// Returns a client for [`ask`].
pub(super) fn client(builder: ClientBuilder) -> Result<Client, BundleError> {
    let builder = builder
        .user_agent(concat!("declarest/", env!("CARGO_PKG_VERSION")))
        // The archive is itself gzip, and some servers declare that as a content encoding.
        .no_gzip()
        .redirect(Policy::none());
    builder.build().map_err(|error| BundleError::Client(with_causes(&error)))
}

/// A downloaded archive.
pub(super) struct Downloaded {
    pub digest: String,
    pub condition: Option<Condition>,
}

/// Downloads the archive at `url` to the new file `to`. Returns `None` if the server responds to `condition` that the
/// archive has not changed. Requests to the origin of `access` use its credentials.
pub(super) async fn archive(
    client: &Client,
    access: Option<&Access>,
    url: &Url,
    condition: Option<&Condition>,
    to: &Path,
    limits: &Limits,
) -> Result<Option<Downloaded>, BundleError> {
    let deadline = Deadline::after(limits.http);
    let condition = condition.and_then(header_of);
    let request = request(client, access, url)?;
    let request = match &condition {
        Some((name, value)) => request.header(name, value),
        None => request,
    };
    let answer = deadline.keep(url, ask(request, client, url, limits)).await?;
    if condition.is_some() && answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let answer = check(answer, url)?;
    let condition = condition_of(answer.headers());
    let digest = save(answer, url, to, limits.archive, deadline).await?;
    Ok(Some(Downloaded { digest, condition }))
}

/// Downloads the body at `url`, of at most the size of an archive. Requests to the origin of `access` use its
/// credentials.
pub(super) async fn body(
    client: &Client,
    access: Option<&Access>,
    url: &Url,
    limits: &Limits,
) -> Result<Bytes, BundleError> {
    let deadline = Deadline::after(limits.http);
    let request = request(client, access, url)?;
    let answer = check(deadline.keep(url, ask(request, client, url, limits)).await?, url)?;
    let limit = usize::try_from(limits.archive).unwrap_or(usize::MAX);
    read(answer, url, limit, deadline).await
}

fn request(client: &Client, access: Option<&Access>, url: &Url) -> Result<RequestBuilder, BundleError> {
    Ok(match access.filter(|access| access.covers(url)) {
        Some(access) => {
            self::client(access.client_builder())?.get(url.clone()).headers(access.headers().clone())
        }
        None => client.get(url.clone()),
    })
}

/// Sends a request, follows redirects, and returns the response, whatever its status. After a redirect to another
/// origin, the requests are sent by `others`, and only with the headers in [`PUBLIC`].
async fn ask(
    request: RequestBuilder,
    others: &Client,
    url: &Url,
    limits: &Limits,
) -> Result<Response, BundleError> {
    let (client, request) = request.build_split();
    let request = request.map_err(|error| broken(url, error))?;
    // The builder has moved a user name and a password from the URL to a header.
    let (method, first) = (request.method().clone(), request.url().clone());
    let redirects = limits.redirects;
    follow(&mut Asking { client: &client, others, request, url, redirects, followed: 0 }, &method, &first)
        .await
}

/// The requests of a download.
struct Asking<'a> {
    client: &'a Client,
    others: &'a Client,
    request: Request,
    /// The URL that errors name.
    url: &'a Url,
    /// The number of redirects that are followed.
    redirects: usize,
    followed: usize,
}

impl Exchange for Asking<'_> {
    type Error = BundleError;

    async fn send(&mut self, url: &Url) -> Result<Response, BundleError> {
        let mut request = Request::new(self.request.method().clone(), url.clone());
        *request.headers_mut() = self.request.headers().clone();
        let body = self.request.body().and_then(Body::as_bytes);
        *request.body_mut() = body.map(|body| body.to_vec().into());
        self.client.execute(request).await.map_err(|error| broken(self.url, error))
    }

    fn redirect(&mut self, from: &Url, to: &Url, _: StatusCode) -> Result<(), BundleError> {
        self.followed += 1;
        if self.followed > self.redirects {
            return Err(failed(self.url, format!("more than {} redirects", self.redirects)));
        }
        if from.origin() != to.origin() {
            self.client = self.others;
            let headers = self.request.headers();
            let public =
                PUBLIC.into_iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone())));
            *self.request.headers_mut() = public.collect();
        }
        Ok(())
    }

    fn refused(&self, reason: String) -> BundleError {
        failed(self.url, reason)
    }
}

/// Returns the precondition for the next request: the `ETag` of the response, otherwise its `Last-Modified`, which has
/// a precision of one second.
fn condition_of(headers: &HeaderMap) -> Option<Condition> {
    let stated = |stated: HeaderName, condition: HeaderName| {
        let value = headers.get(stated)?.to_str().ok()?.to_owned();
        Some(Condition { header: condition.as_str().to_owned(), value })
    };
    stated(ETAG, IF_NONE_MATCH).or_else(|| stated(LAST_MODIFIED, IF_MODIFIED_SINCE))
}

fn header_of(condition: &Condition) -> Option<(HeaderName, HeaderValue)> {
    Some((condition.header.parse().ok()?, condition.value.parse().ok()?))
}

/// The time by which work must be complete.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    clock: Clock,
    limit: Duration,
}

impl Deadline {
    fn after(limit: Duration) -> Self {
        Self { clock: Clock::start(limit), limit }
    }

    async fn keep<T>(
        self,
        url: &Url,
        work: impl Future<Output = Result<T, BundleError>>,
    ) -> Result<T, BundleError> {
        self.clock.run(work).await.unwrap_or_else(|| Err(self.missed(url)))
    }

    fn missed(self, url: &Url) -> BundleError {
        failed(url, format!("no complete response within {:?}", self.limit))
    }
}

fn check(answer: Response, url: &Url) -> Result<Response, BundleError> {
    let status = answer.status();
    if status.is_success() { Ok(answer) } else { Err(BundleError::Status { url: shown(url), status }) }
}

/// Writes the body of a response to the new file `to`, and returns its digest.
async fn save(
    mut answer: Response,
    url: &Url,
    to: &Path,
    limit: u64,
    deadline: Deadline,
) -> Result<String, BundleError> {
    // A cancelled download may still write to the old file, so remove it and create a new one.
    match tokio::fs::remove_file(to).await {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(BundleError::io("remove", to)(error));
        }
        _ => {}
    }
    let mut file = tokio::fs::File::create_new(to).await.map_err(BundleError::io("create", to))?;
    let mut digest = Sha256::new();
    let mut size = 0;
    let chunk = async |answer: &mut Response| answer.chunk().await.map_err(|error| broken(url, error));
    while let Some(chunk) = deadline.keep(url, chunk(&mut answer)).await? {
        size += chunk.len() as u64;
        if size > limit {
            return Err(too_large(url, limit));
        }
        digest.update(&chunk);
        file.write_all(&chunk).await.map_err(BundleError::io("write", to))?;
    }
    file.flush().await.map_err(BundleError::io("write", to))?;
    Ok(sha256(digest))
}

/// Reads the body of a response before `deadline`. More than `limit` bytes are an error.
async fn read(
    mut answer: Response,
    url: &Url,
    limit: usize,
    deadline: Deadline,
) -> Result<Bytes, BundleError> {
    match collect(&mut answer, limit, &mut { deadline.clock }).await.map_err(|error| broken(url, error))? {
        Collected::Whole(body) => Ok(body),
        Collected::Cut(_) => Err(too_large(url, limit as u64)),
        Collected::Short(shortage) => Err(failed(url, shortage.to_string())),
        Collected::Late => Err(deadline.missed(url)),
    }
}

fn too_large(url: &Url, limit: u64) -> BundleError {
    BundleError::Archive { bundle: shown(url), reason: format!("the response is larger than {limit} bytes") }
}

fn failed(url: &Url, reason: impl Into<String>) -> BundleError {
    BundleError::Request { url: shown(url), reason: reason.into() }
}

/// Returns an error of the client without its own URL, which may have a key in its query.
fn broken(url: &Url, error: reqwest::Error) -> BundleError {
    let error = error.without_url();
    if error.is_connect() {
        return failed(url, format!("cannot connect to {}: {}", host(url), causes(&error)));
    }
    failed(url, with_causes(&error))
}
