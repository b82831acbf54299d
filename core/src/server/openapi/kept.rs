//! Documents stored in a directory, so that they are available after a restart even if their source is not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::header::Header;
use super::{FetchedOpenApi, OpenApiSource, Place, shared};
use crate::digest::sha256;
use crate::repository::{Mode, write_atomically};

/// The file of the document, as it was fetched.
const DOCUMENT: &str = "document";
/// The file that describes the document. It is written last, so that a document without a matching one is not used.
const PROVENANCE: &str = "provenance.json";

/// The origin and the digest of a stored document.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Provenance {
    /// The digest of the URL. The URL itself may hold a key.
    source: String,
    /// The digest of the document.
    digest: String,
    conditions: Vec<(String, String)>,
}

/// A stored document that is not parsed yet.
pub(super) struct Stored {
    bytes: Bytes,
    digest: String,
    source: OpenApiSource,
    conditions: Vec<Header>,
    file: PathBuf,
}

impl Stored {
    /// Returns the document in `directory`, if it came from `source`. Blocks.
    pub fn read(directory: &Path, source: &OpenApiSource) -> Option<Self> {
        let provenance: Provenance =
            serde_json::from_slice(&fs::read(directory.join(PROVENANCE)).ok()?).ok()?;
        if provenance.source != digest_of(source)? {
            return None;
        }
        let file = directory.join(DOCUMENT);
        let header = |(name, value): (String, String)| {
            Some((name.parse::<HeaderName>().ok()?, value.parse::<HeaderValue>().ok()?))
        };
        let conditions = provenance.conditions.into_iter().filter_map(header).collect();
        let bytes = fs::read(&file).ok()?.into();
        Some(Self { bytes, digest: provenance.digest, source: source.clone(), conditions, file })
    }

    /// Returns the document if it is complete.
    pub async fn restore(self) -> Option<FetchedOpenApi> {
        let Self { bytes, digest, source, conditions, file } = self;
        let document = shared::document(DOCUMENT, bytes).await.ok()?;
        let is_whole = document.digest() == digest;
        is_whole.then(|| FetchedOpenApi { document, source, conditions, file: Some(file) })
    }
}

impl FetchedOpenApi {
    /// Stores the document, whose text is `bytes`, in `directory`. Blocks.
    pub(super) fn keep(&mut self, bytes: &[u8], directory: &Path) -> io::Result<()> {
        let Some(source) = digest_of(&self.source) else { return Ok(()) };
        fs::create_dir_all(directory)?;
        let conditions = self
            .conditions
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        let digest = self.document.digest().to_owned();
        let provenance = Provenance { source, digest, conditions: conditions.collect() };
        let file: PathBuf = directory.join(DOCUMENT);
        write_atomically(&file, bytes, Mode::Private)?;
        let provenance = serde_json::to_vec(&provenance)?;
        write_atomically(&directory.join(PROVENANCE), &provenance, Mode::Private)?;
        self.file = Some(file);
        Ok(())
    }
}

/// Returns the digest of a URL. Documents from files are not stored.
fn digest_of(source: &OpenApiSource) -> Option<String> {
    match &source.0 {
        Place::Url(url) => Some(sha256(Sha256::new_with_prefix(url.as_str()))),
        Place::File(_) => None,
    }
}
