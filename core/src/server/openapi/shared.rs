//! Parsed documents. Servers with the same document share it, and all documents share a part of the memory.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::OpenApiLoadError;
use crate::digest::sha256;
use crate::memory::{self, Pool, Shortage};
use crate::metadata::openapi::{OpenApi, OpenApiError};
use crate::payload::MAX_WEIGHT;

/// The documents in use, by their digests.
static IN_USE: OnceLock<Mutex<HashMap<String, Weak<OpenApi>>>> = OnceLock::new();

/// Returns the document in `bytes`, which is parsed if it is not in use. Errors name the `place` that it came from.
pub(super) async fn document(place: &str, bytes: Bytes) -> Result<Arc<OpenApi>, OpenApiLoadError> {
    let place = || place.to_owned();
    let lacking = |shortage| OpenApiLoadError::Memory { place: place(), shortage };
    // Only one document of unknown size is parsed at a time.
    let _turn = memory::turn().await;
    let documents = IN_USE.get_or_init(Mutex::default);
    let digest = sha256(Sha256::new_with_prefix(&bytes));
    let known = documents.lock().get(&digest).and_then(Weak::upgrade);
    if let Some(known) = known {
        return Ok(known);
    }
    let limit = memory::capacity(Pool::Artifacts).unwrap_or(MAX_WEIGHT).min(MAX_WEIGHT);
    // Parsing a large document takes long.
    let parsed = tokio::task::spawn_blocking(move || OpenApi::parse_within(&bytes, limit));
    let document = match parsed.await.map_err(|_| OpenApiLoadError::Interrupted(place()))? {
        Err(OpenApiError::TooHeavy) if limit < MAX_WEIGHT => {
            return Err(lacking(Shortage::TooLarge { pool: Pool::Artifacts, capacity: limit }));
        }
        parsed => parsed.map_err(|source| OpenApiLoadError::Document { place: place(), source })?,
    };
    let held = memory::reserve_now(Pool::Artifacts, document.weight()).map_err(lacking)?;
    let document = Arc::new(document.holding(held));
    let mut documents = documents.lock();
    documents.retain(|_, document| document.strong_count() > 0);
    documents.insert(digest, Arc::downgrade(&document));
    Ok(document)
}
