//! Loads the `OpenAPI` document of a managed server.

mod kept;
mod shared;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{Method, StatusCode};
use tokio::io::AsyncReadExt;
use url::Url;

use self::kept::Stored;
use super::header::Header;
use super::wire::BODY_LIMIT;
use super::{Client, Request, Response, ServerError};
use crate::error::{Category, categories};
use crate::memory::Shortage;
use crate::metadata::openapi::{OpenApi, OpenApiError};
use crate::transport::shown;

/// The location of a document.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenApiSource(Place);

#[derive(Clone, PartialEq, Eq)]
enum Place {
    File(PathBuf),
    Url(Url),
}

/// The reason why a document cannot be loaded.
///
/// Messages show a URL without its query, which may hold a key.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenApiLoadError {
    /// The setting names neither a file nor an https URL.
    #[error("http.openapi: {0}")]
    Source(String),
    /// The file cannot be read.
    #[error("cannot read the OpenAPI document {file}: {source}")]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The file exceeds the size limit.
    #[error("the OpenAPI document {file} is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// The limit in bytes.
        limit: usize,
    },
    /// The URL cannot be fetched.
    #[error("cannot fetch the OpenAPI document {url}: {source}")]
    Fetch {
        /// The URL.
        url: String,
        /// The cause.
        #[source]
        source: ServerError,
    },
    /// The file or the answer is not an `OpenAPI` document.
    #[error("{place}: {source}")]
    Document {
        /// The file or URL.
        place: String,
        /// The fault.
        #[source]
        source: OpenApiError,
    },
    /// The memory for the document is not available.
    #[error("{place}: {shortage}")]
    Memory {
        /// The file or URL.
        place: String,
        /// The cause.
        shortage: Shortage,
    },
    /// The thread that reads the document failed.
    #[error("reading the OpenAPI document {0} was interrupted")]
    Interrupted(String),
}

categories!(OpenApiLoadError {
    {
        Self::Fetch { source, .. } => match source.status() {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Category::Auth,
            Some(StatusCode::NOT_FOUND) => Category::NotFound,
            // Any other status may be temporary.
            Some(_) => Category::Transport,
            None => source.category(),
        },
    }
    .source: Document;
    Validation: Source, TooLarge;
    NotFound: File;
    Transport: Memory;
    Internal: Interrupted;
});

impl OpenApiSource {
    /// Returns the file or https URL that `http.openapi` names. URLs that are not https are rejected, even on
    /// loopback: an attacker on the path could change the requests by changing the document.
    pub fn parse(text: &str) -> Result<Self, OpenApiLoadError> {
        let refuse = |reason: String| Err(OpenApiLoadError::Source(reason));
        let text = text.trim();
        if text.is_empty() {
            return refuse("is blank; name a file or an https URL, or remove it".to_owned());
        }
        let Some(scheme) = scheme(text) else { return Ok(Self(Place::File(PathBuf::from(text)))) };
        if !scheme.eq_ignore_ascii_case("https") {
            return refuse(format!(
                "scheme \"{scheme}\" is not supported; use https, or a file without a scheme"
            ));
        }
        Self::url(text)
    }

    /// Returns an http or https URL. With http, an attacker on the path can change the document and so the requests.
    /// The administrator who configures the server accepts this.
    pub fn url(text: &str) -> Result<Self, OpenApiLoadError> {
        let refuse = |reason: String| Err(OpenApiLoadError::Source(reason));
        let url = match Url::parse(text.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => url,
            Ok(url) => return refuse(format!("scheme \"{}\" is not http or https", url.scheme())),
            Err(error) => return refuse(format!("not a URL: {error}")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("must not contain user and password; configure authentication".to_owned());
        }
        Ok(Self(Place::Url(url)))
    }
}

/// Returns the scheme of a URL. One letter is the drive of a file.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    (is_scheme && (is_web || rest.starts_with("//"))).then_some(scheme)
}

impl OpenApiSource {
    /// Returns the URL; `None` for a file.
    pub fn as_url(&self) -> Option<&Url> {
        match &self.0 {
            Place::Url(url) => Some(url),
            Place::File(_) => None,
        }
    }
}

impl fmt::Display for OpenApiSource {
    /// Writes the file, or the URL without its query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::File(file) => write!(f, "{}", file.display()),
            Place::Url(url) => f.write_str(&shown(url)),
        }
    }
}

impl fmt::Debug for OpenApiSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenApiSource({self})")
    }
}

/// A fetched document, with the validators that show later whether it has changed.
#[derive(Clone)]
pub struct FetchedOpenApi {
    /// The document.
    pub document: Arc<OpenApi>,
    source: OpenApiSource,
    /// Conditional headers (RFC 9110 section 13.1); empty if the server sent neither a tag nor a time.
    conditions: Vec<Header>,
    file: Option<PathBuf>,
}

impl FetchedOpenApi {
    /// Fetches the document of `source`. If it has not changed since `known`, the server does not send it again. A document
    /// from a URL is stored in `directory`, for [`Self::kept`]; if that fails, a warning is logged. `client` fetches a URL
    /// of the base URL's origin with its gate, TLS settings, default headers and credentials. For any other origin only
    /// the proxy is the same. The caller must not hold a slot of the client's gate.
    pub async fn fetch(
        client: &Client,
        source: OpenApiSource,
        known: Option<Self>,
        directory: Option<PathBuf>,
    ) -> Result<Self, OpenApiLoadError> {
        let known = known.filter(|known| known.is_of(&source));
        let (bytes, answer) = match &source.0 {
            Place::File(file) => (read(file).await?, None),
            Place::Url(url) => {
                let conditions = known.as_ref().map_or(&[][..], |known| &known.conditions);
                let answer = fetch(client, url, &source, conditions).await?;
                match known {
                    Some(known) if answer.status == StatusCode::NOT_MODIFIED => return Ok(known),
                    _ => (answer.body.clone(), Some(answer)),
                }
            }
        };
        let place = source.to_string();
        let document = shared::document(&place, bytes.clone()).await?;
        // Writing a large document takes long.
        let stored = tokio::task::spawn_blocking(move || {
            let mut fetched = Self::new(document, source, answer.as_ref());
            if let Some(directory) = directory
                && let Err(error) = fetched.keep(&bytes, &directory)
            {
                tracing::warn!(%error, directory = %directory.display(), "cannot store the OpenAPI document");
            }
            fetched
        });
        stored.await.map_err(|_| OpenApiLoadError::Interrupted(place))
    }

    /// Returns the file that the document is stored in, if any.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether the document came from `source`.
    pub fn is_of(&self, source: &OpenApiSource) -> bool {
        self.source == *source
    }

    /// Returns the document that [`Self::fetch`] stored in `directory`, if it came from `source`.
    pub async fn kept(directory: PathBuf, source: OpenApiSource) -> Option<Self> {
        let stored = tokio::task::spawn_blocking(move || Stored::read(&directory, &source)).await;
        stored.ok()??.restore().await
    }

    /// Prefers the entity tag to the time, which is exact to the second only.
    fn new(document: Arc<OpenApi>, source: OpenApiSource, answer: Option<&Response>) -> Self {
        let tag = answer.and_then(|answer| Some((IF_NONE_MATCH, answer.etag.clone()?)));
        let time = answer.and_then(|answer| Some((IF_MODIFIED_SINCE, answer.last_modified.clone()?)));
        Self { document, source, conditions: tag.or(time).into_iter().collect(), file: None }
    }
}

impl fmt::Debug for FetchedOpenApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedOpenApi").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Fetches a document once and checks it. Returns its bytes, for a caller that stores them.
pub async fn download(client: &Client, source: &OpenApiSource) -> Result<Bytes, OpenApiLoadError> {
    let bytes = match &source.0 {
        Place::File(file) => read(file).await?,
        Place::Url(url) => fetch(client, url, source, &[]).await?.body,
    };
    shared::document(&source.to_string(), bytes.clone()).await?;
    Ok(bytes)
}

async fn read(file: &Path) -> Result<bytes::Bytes, OpenApiLoadError> {
    let failed = |source| OpenApiLoadError::File { file: file.to_owned(), source: Arc::new(source) };
    let mut bytes = Vec::new();
    let open = tokio::fs::File::open(file).await.map_err(failed)?;
    open.take(BODY_LIMIT as u64 + 1).read_to_end(&mut bytes).await.map_err(failed)?;
    if bytes.len() > BODY_LIMIT {
        return Err(OpenApiLoadError::TooLarge { file: file.to_owned(), limit: BODY_LIMIT });
    }
    Ok(bytes.into())
}

async fn fetch(
    client: &Client,
    url: &Url,
    source: &OpenApiSource,
    conditions: &[Header],
) -> Result<Response, OpenApiLoadError> {
    let mut request = Request::new(Method::GET, url.path());
    request.accept = Some("application/json, application/yaml, */*;q=0.8".into());
    let answer = if client.serves(url) {
        client.send_if(&request, url, conditions).await
    } else {
        match client.stranger(url) {
            Ok(stranger) => stranger.send_if(&request, url, conditions).await,
            Err(error) => Err(error),
        }
    };
    answer.map_err(|error| OpenApiLoadError::Fetch { url: source.to_string(), source: error })
}

#[cfg(test)]
mod tests;
