//! Loading the `OpenAPI` document of a managed server.

mod kept;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{Method, StatusCode};
use tokio::io::AsyncReadExt;
use url::Url;

use super::client::BODY_LIMIT;
use super::wire::Header;
use super::{Client, Request, Response, ServerError};
use crate::error::{Categorized, Category};
use crate::metadata::openapi::{OpenApi, OpenApiError};

/// Where a document is.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenApiSource(Place);

#[derive(Clone, PartialEq, Eq)]
enum Place {
    File(PathBuf),
    Url(Url),
}

/// Why there is no document.
///
/// Places are named without the query of a URL, which may carry a key.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenApiLoadError {
    /// The setting names neither a file nor an https URL.
    #[error("http.openapi: {reason}")]
    Source {
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be read.
    #[error("cannot read the OpenAPI document {file}: {source}")]
    File {
        /// The file.
        file: PathBuf,
        /// Why not.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// The file is larger than a document may be.
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
        /// What failed.
        #[source]
        source: ServerError,
    },
    /// What is there is no document.
    #[error("{place}: {source}")]
    Document {
        /// The file or URL.
        place: String,
        /// What is wrong with it.
        #[source]
        source: OpenApiError,
    },
    /// The thread that reads the document failed.
    #[error("reading the OpenAPI document {place} was interrupted")]
    Interrupted {
        /// The file or URL.
        place: String,
    },
}

impl Categorized for OpenApiLoadError {
    /// Who must not read the document lacks credentials, a document that is not there is not found; any other
    /// answer but the document may be another one later.
    fn category(&self) -> Category {
        match self {
            Self::Source { .. } | Self::TooLarge { .. } => Category::Validation,
            Self::File { .. } => Category::NotFound,
            Self::Fetch { source, .. } => match source.status() {
                Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Category::Auth,
                Some(StatusCode::NOT_FOUND) => Category::NotFound,
                Some(_) => Category::Transport,
                None => source.category(),
            },
            Self::Document { source, .. } => source.category(),
            Self::Interrupted { .. } => Category::Internal,
        }
    }
}

impl OpenApiSource {
    /// The file or https URL that `http.openapi` names. A URL that is not https is refused, on loopback too:
    /// whoever sits in between would decide which requests are made.
    pub fn parse(text: &str) -> Result<Self, OpenApiLoadError> {
        let refuse = |reason: String| Err(OpenApiLoadError::Source { reason });
        let text = text.trim();
        if text.is_empty() {
            return refuse("is blank; name a file or an https URL, or remove it".to_owned());
        }
        let Some(scheme) = scheme(text) else { return Ok(Self(Place::File(PathBuf::from(text)))) };
        if !scheme.eq_ignore_ascii_case("https") {
            return refuse(format!(
                "scheme \"{scheme}\" is not supported; use https, or a file without scheme"
            ));
        }
        Self::url(text)
    }

    /// An http or https URL. With http, whoever sits in between decides which requests are made: that is for
    /// those who configure the server itself to accept.
    pub fn url(text: &str) -> Result<Self, OpenApiLoadError> {
        let refuse = |reason: String| Err(OpenApiLoadError::Source { reason });
        let url = match Url::parse(text.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => url,
            Ok(url) => return refuse(format!("scheme \"{}\" is not http or https", url.scheme())),
            Err(error) => return refuse(format!("not a URL: {error}")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse(
                "user and password do not belong into the URL; configure authentication".to_owned(),
            );
        }
        Ok(Self(Place::Url(url)))
    }
}

/// The scheme of a URL; one letter is the drive of a file.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    (is_scheme && (is_web || rest.starts_with("//"))).then_some(scheme)
}

impl OpenApiSource {
    /// The URL; `None` for a file.
    pub fn as_url(&self) -> Option<&Url> {
        match &self.0 {
            Place::Url(url) => Some(url),
            Place::File(_) => None,
        }
    }
}

impl fmt::Display for OpenApiSource {
    /// The file, or the URL without its query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::File(file) => write!(f, "{}", file.display()),
            Place::Url(url) => {
                let mut url = url.clone();
                url.set_query(None);
                url.set_fragment(None);
                write!(f, "{url}")
            }
        }
    }
}

impl fmt::Debug for OpenApiSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenApiSource({self})")
    }
}

/// A document as it was fetched, to ask later whether it has changed.
#[derive(Clone)]
pub struct FetchedOpenApi {
    /// The document.
    pub document: Arc<OpenApi>,
    source: OpenApiSource,
    /// What to ask with (RFC 9110 section 13.1); nothing where the server stated neither tag nor time.
    conditions: Vec<Header>,
    file: Option<PathBuf>,
}

impl FetchedOpenApi {
    /// The file that it is kept in, if it is ([`OpenApiLoader::keeping`]).
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether it came from `source`.
    pub fn is_of(&self, source: &OpenApiSource) -> bool {
        self.source == *source
    }

    /// The document that a loader that was [keeping](OpenApiLoader::keeping) left in `directory`, if it came from
    /// `source`.
    pub async fn kept(directory: PathBuf, source: OpenApiSource) -> Option<Self> {
        // Large documents take long to read.
        let restored = tokio::task::spawn_blocking(move || Self::restore(&directory, &source)).await;
        restored.ok().flatten()
    }

    /// The answer's tag goes before its time, which is exact to the second only.
    fn new(document: OpenApi, source: OpenApiSource, answer: Option<&Response>) -> Self {
        let tag = answer.and_then(|answer| Some((IF_NONE_MATCH, answer.etag.clone()?)));
        let time = answer.and_then(|answer| Some((IF_MODIFIED_SINCE, answer.last_modified.clone()?)));
        Self {
            document: Arc::new(document),
            source,
            conditions: tag.or(time).into_iter().collect(),
            file: None,
        }
    }
}

impl fmt::Debug for FetchedOpenApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchedOpenApi").field("source", &self.source).finish_non_exhaustive()
    }
}

type Outcome = Result<FetchedOpenApi, OpenApiLoadError>;
type Flight = Shared<BoxFuture<'static, Outcome>>;

/// The document of one server, loaded when it is first asked for and kept as long as this lives. Clones share
/// it.
#[derive(Clone)]
pub struct OpenApiLoader {
    shared: Arc<Loading>,
}

struct Loading {
    client: Client,
    source: OpenApiSource,
    known: Option<FetchedOpenApi>,
    directory: Option<PathBuf>,
    /// The last attempt, which may be under way.
    flight: Mutex<Option<Flight>>,
}

impl OpenApiLoader {
    /// Nothing is read yet. A URL of the origin of the base URL is fetched by `client`: with its gate, its trust, its
    /// default headers and its credentials. Any other one is fetched as by anybody: the proxy is the same, and
    /// nothing else.
    pub fn new(client: Client, source: OpenApiSource) -> Self {
        Self::knowing(client, source, None)
    }

    /// The same, with what was fetched before: a server that says that it has not changed does not send it again.
    pub fn knowing(client: Client, source: OpenApiSource, known: Option<FetchedOpenApi>) -> Self {
        let known = known.filter(|known| known.source == source);
        Self {
            shared: Arc::new(Loading { client, source, known, directory: None, flight: Mutex::default() }),
        }
    }

    /// The same, but what is fetched from a URL is kept in `directory`, for [`FetchedOpenApi::kept`]. A directory
    /// that cannot be written to is no failure; a warning is logged.
    #[must_use]
    pub fn keeping(self, directory: PathBuf) -> Self {
        let Loading { client, source, known, .. } = &*self.shared;
        let (client, source, known) = (client.clone(), source.clone(), known.clone());
        let directory = Some(directory);
        Self { shared: Arc::new(Loading { client, source, known, directory, flight: Mutex::default() }) }
    }

    /// The document. Those who ask while it is loaded wait for the same attempt and share its outcome; a
    /// failure is not kept, so whoever asks later tries again. Must not be called while the caller holds a
    /// slot of the client's gate.
    pub async fn load(&self) -> Result<Arc<OpenApi>, OpenApiLoadError> {
        self.fetch().await.map(|fetched| fetched.document)
    }

    /// [`OpenApiLoader::load`], with what it takes to ask later whether the document has changed.
    pub async fn fetch(&self) -> Result<FetchedOpenApi, OpenApiLoadError> {
        let flight = self.flight();
        flight.await
    }

    fn flight(&self) -> Flight {
        // Nobody panics while holding the lock.
        let mut current = self.shared.flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = current.as_ref().filter(|flight| !matches!(flight.peek(), Some(Err(_)))) {
            return flight.clone();
        }
        let (client, source) = (self.shared.client.clone(), self.shared.source.clone());
        let (known, directory) = (self.shared.known.clone(), self.shared.directory.clone());
        // On a task of its own: whoever asked may stop waiting, and must not leave it holding a slot.
        let place = source.to_string();
        let loading = tokio::spawn(async move { load(&client, &source, known, directory).await });
        let flight =
            async move { loading.await.unwrap_or_else(|_| Err(OpenApiLoadError::Interrupted { place })) };
        let flight = flight.boxed().shared();
        *current = Some(flight.clone());
        flight
    }
}

impl fmt::Debug for OpenApiLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenApiLoader").field("source", &self.shared.source).finish_non_exhaustive()
    }
}

async fn load(
    client: &Client,
    source: &OpenApiSource,
    known: Option<FetchedOpenApi>,
    directory: Option<PathBuf>,
) -> Outcome {
    let (bytes, answer) = match &source.0 {
        Place::File(file) => (read(file).await?, None),
        Place::Url(url) => {
            let conditions = known.as_ref().map_or(&[][..], |known| &known.conditions);
            let answer = fetch(client, url, source, conditions).await?;
            match known {
                Some(known) if answer.status == StatusCode::NOT_MODIFIED => return Ok(known),
                _ => (answer.body.clone(), Some(answer)),
            }
        }
    };
    let (place, of) = (source.to_string(), source.clone());
    // Large documents take long to read.
    let parsed = tokio::task::spawn_blocking(move || {
        let mut fetched = FetchedOpenApi::new(OpenApi::parse(&bytes)?, of, answer.as_ref());
        if let Some(directory) = directory
            && let Err(error) = fetched.keep(&bytes, &directory)
        {
            tracing::warn!(%error, directory = %directory.display(), "cannot keep the OpenAPI document");
        }
        Ok(fetched)
    });
    match parsed.await {
        Ok(parsed) => parsed.map_err(|source| OpenApiLoadError::Document { place, source }),
        Err(_) => Err(OpenApiLoadError::Interrupted { place }),
    }
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
    request.accept = Some("application/json, application/yaml, */*;q=0.8".to_owned());
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
