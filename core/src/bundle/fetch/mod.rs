//! Downloads archives of bundles. Credentials of a managed server are only sent to its own origin.

mod challenge;
mod credentials;
mod registry;

use std::future::Future;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use http::header::{
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use reqwest::header::LOCATION;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use url::Url;

use super::cache::Condition;
use super::reference::shown;
use super::{BundleError, archive};
use crate::digest::sha256;
use crate::error::with_causes;
use crate::transport::Access;

pub(super) use registry::{Artifact, Registry};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REDIRECTS: usize = 10;

/// The limits of a download.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// The maximum time for an archive from a web server.
    pub http: Duration,
    /// The maximum time for all registry requests of one reference.
    pub registry: Duration,
    /// The maximum size of a compressed archive, in bytes.
    pub archive: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let (http, registry) = (Duration::from_mins(1), Duration::from_mins(2));
        Self { http, registry, archive: archive::MAX_TOTAL }
    }
}

/// Returns a client that uses only `proxies`, and ignores proxies of the environment.
pub(super) fn client(proxies: &[reqwest::Proxy]) -> Result<Client, BundleError> {
    let builder = Client::builder()
        .no_proxy()
        .tls_version_min(reqwest::tls::Version::TLS_1_2)
        .connect_timeout(CONNECT_TIMEOUT);
    let builder = proxies.iter().cloned().fold(builder, reqwest::ClientBuilder::proxy);
    finished(builder, false)
}

/// Returns a client with the TLS settings and proxy of `access`. It does not follow redirects to other origins.
fn known_client(access: &Access) -> Result<Client, BundleError> {
    finished(access.client_builder(), true)
}

fn finished(builder: reqwest::ClientBuilder, stays: bool) -> Result<Client, BundleError> {
    let builder = builder
        .user_agent(concat!("declarest/", env!("CARGO_PKG_VERSION")))
        // The archive is itself gzip, and some servers declare that as a content encoding.
        .no_gzip()
        .no_brotli()
        .redirect(Policy::custom(move |attempt| {
            let elsewhere =
                attempt.previous().last().is_some_and(|from| from.origin() != attempt.url().origin());
            if attempt.previous().last().is_some_and(|from| drops_encryption(from, attempt.url())) {
                attempt.error("a redirect leads from https to http")
            } else if attempt.previous().len() > REDIRECTS {
                attempt.error(format!("more than {REDIRECTS} redirects"))
            } else if stays && elsewhere {
                attempt.stop()
            } else {
                attempt.follow()
            }
        }));
    builder.build().map_err(|error| BundleError::Client { reason: with_causes(&error) })
}

/// Returns whether a redirect leads from HTTPS to an unencrypted connection.
fn drops_encryption(from: &Url, to: &Url) -> bool {
    from.scheme() == "https" && to.scheme() != "https"
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
    let answer = deadline.keep(url, ask(client, access, url, condition.as_ref())).await?;
    if condition.is_some() && answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let answer = check(answer, url)?;
    let condition = condition_of(answer.headers());
    let digest = save(answer, url, to, limits.archive, deadline).await?;
    Ok(Some(Downloaded { digest, condition }))
}

/// Requests an archive and returns the response, whatever its status. A redirect from the origin of `access` to
/// another origin is followed without credentials.
async fn ask(
    client: &Client,
    access: Option<&Access>,
    url: &Url,
    condition: Option<&(HeaderName, HeaderValue)>,
) -> Result<Response, BundleError> {
    let with = |request: RequestBuilder| match condition {
        Some((name, value)) => request.header(name, value),
        None => request,
    };
    let Some(access) = access.filter(|access| access.covers(url)) else {
        return with(client.get(url.clone())).send().await.map_err(|error| broken(url, error));
    };
    let known = known_client(access)?.get(url.clone()).headers(access.headers().clone());
    let answer = with(known).send().await.map_err(|error| broken(url, error))?;
    if !answer.status().is_redirection() || answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(answer);
    }
    let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let elsewhere = location.and_then(|location| answer.url().join(location).ok());
    let elsewhere = elsewhere.ok_or_else(|| failed(url, "a redirect has no usable Location header"))?;
    with(client.get(elsewhere)).send().await.map_err(|error| broken(url, error))
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
    at: Instant,
    limit: Duration,
}

impl Deadline {
    fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    async fn keep<T>(
        self,
        url: &Url,
        work: impl Future<Output = Result<T, BundleError>>,
    ) -> Result<T, BundleError> {
        tokio::time::timeout_at(self.at, work)
            .await
            .unwrap_or_else(|_| Err(failed(url, format!("no complete response within {:?}", self.limit))))
    }
}

/// Sends a request. A response without a success status is an error.
async fn send(request: RequestBuilder, url: &Url) -> Result<Response, BundleError> {
    check(request.send().await.map_err(|error| broken(url, error))?, url)
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

/// Reads the body of a response. More than `limit` bytes are an error.
async fn read(mut answer: Response, url: &Url, limit: usize) -> Result<Vec<u8>, BundleError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| broken(url, error))? {
        if chunk.len() > limit - body.len() {
            return Err(too_large(url, limit as u64));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn too_large(url: &Url, limit: u64) -> BundleError {
    BundleError::Archive { bundle: shown(url), reason: format!("the response is larger than {limit} bytes") }
}

fn failed(url: &Url, reason: impl Into<String>) -> BundleError {
    BundleError::Request { url: shown(url), reason: reason.into() }
}

/// Returns an error of the client without its own URL, which may have a key in its query.
fn broken(url: &Url, error: reqwest::Error) -> BundleError {
    failed(url, with_causes(&error.without_url()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://a.test", "http://a.test", true)]
    #[case("https://a.test", "https://b.test", false)]
    #[case("http://a.test", "http://b.test", false)]
    #[case("http://a.test", "https://a.test", false)]
    fn redirects_do_not_drop_encryption(#[case] from: &str, #[case] to: &str, #[case] drops: bool) {
        assert_eq!(drops_encryption(&from.parse().unwrap(), &to.parse().unwrap()), drops);
    }
}
