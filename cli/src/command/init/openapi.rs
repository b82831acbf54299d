//! Finds the `OpenAPI` document of a new server.

use std::fs;
use std::path::{Path, absolute};

use declarest_core::error::{Categorized as _, Category};
use declarest_core::repository::{Mode, write_atomically};
use declarest_core::server::{Client, OpenApiLoadError, OpenApiSource, ServerError, download};
use http::StatusCode;

use crate::error::Failure;

/// The usual paths of documents, below the base URL.
const USUAL: [&str; 6] =
    ["openapi.json", "openapi.yaml", "swagger.json", "v3/api-docs", "api-docs", "openapi/v3"];
/// The file for a document that is fetched without TLS.
const FILE: &str = "openapi";

/// A document that was read without an error.
pub enum Document {
    /// A file, or an https URL, which contexts can name.
    Named(String),
    /// The content of a document from a URL that contexts cannot name.
    Fetched(Vec<u8>),
}

/// Returns the document that is `given`, or one at a usual path of the server, which may be optional.
pub async fn find(
    given: Option<&str>,
    is_optional: bool,
    client: &Client,
) -> Result<Option<Document>, Failure> {
    let Some(given) = given.map(str::trim) else { return discover(is_optional, client).await };
    if let Some(source) = of_server(given, client) {
        return Ok(Some(Document::Fetched(download(client, &source).await?.to_vec())));
    }
    let source = OpenApiSource::parse(given)?;
    download(client, &source).await?;
    let setting = match source.as_url() {
        Some(_) => given.to_owned(),
        None => absolute(given).map_or_else(|_| given.to_owned(), |file| file.display().to_string()),
    };
    Ok(Some(Document::Named(setting)))
}

/// Fails if the server cannot be reached or refuses the credentials. Other answers are fine: the base URL may not exist.
pub async fn reach(client: &Client) -> Result<(), Failure> {
    match client.health().await {
        Err(error) if is_decisive(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether other requests would fail in the same way. Gateways answer unknown paths with 403.
fn is_decisive(error: &ServerError) -> bool {
    error.is_unreachable() || error.status() == Some(StatusCode::UNAUTHORIZED)
}

/// Returns the URL of a document of the server itself, if the server is used without TLS. The document is then as
/// trustworthy as the answers of the server.
fn of_server(text: &str, client: &Client) -> Option<OpenApiSource> {
    let url = OpenApiSource::url(text).ok()?;
    url.as_url().filter(|url| url.scheme() == "http" && client.serves(url))?;
    Some(url)
}

/// Requests the usual paths. Servers answer unknown paths with statuses such as 403 or 405, too.
async fn discover(is_optional: bool, client: &Client) -> Result<Option<Document>, Failure> {
    let base = client.address();
    let mut refused = None;
    for path in USUAL {
        let text = format!("{}/{path}", base.trim_end_matches('/'));
        let source = OpenApiSource::url(&text)?;
        match download(client, &source).await {
            Ok(_) if text.starts_with("https://") => return Ok(Some(Document::Named(text))),
            Ok(content) => return Ok(Some(Document::Fetched(content.to_vec()))),
            // Other paths would fail in the same way.
            Err(error) if matches!(&error, OpenApiLoadError::Fetch { source, .. } if is_decisive(source)) => {
                return Err(error.into());
            }
            Err(error) if matches!(error.category(), Category::Transport | Category::Auth) => {
                refused = refused.or(Some(error));
            }
            Err(_) => {}
        }
    }
    if is_optional {
        return Ok(None);
    }
    if let Some(error) = refused {
        return Err(error.into());
    }
    Err(Failure::new(
        Category::NotFound,
        format!(
            "OpenAPI document of {base} not found: none of the paths {} has one; name it with --openapi, or name a \
             metadata bundle with --bundle; without both, use --no-import and write metadata",
            USUAL.join(", ")
        ),
    ))
}

impl Document {
    /// Returns the setting of the context for a repository in `directory`.
    pub fn setting(&self, directory: &Path) -> String {
        match self {
            Self::Named(setting) => setting.clone(),
            Self::Fetched(content) => directory.join(file(content)).display().to_string(),
        }
    }

    /// Saves a fetched document to the repository. An existing file is kept.
    pub fn save(&self, directory: &Path) -> Result<(), Failure> {
        let Self::Fetched(content) = self else { return Ok(()) };
        let file = directory.join(file(content));
        let failed = Failure::io("write", &file);
        if fs::exists(&file).map_err(&failed)? {
            return Ok(());
        }
        write_atomically(&file, content, Mode::Shared).map_err(failed)
    }
}

fn file(content: &[u8]) -> String {
    let is_json = content.trim_ascii_start().starts_with(b"{");
    format!("{FILE}.{}", if is_json { "json" } else { "yaml" })
}
