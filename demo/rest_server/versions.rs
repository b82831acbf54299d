//! Entity tags: who changes a resource may ask for the version that it saw (RFC 9110 §13.1.1).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue};

/// The strong entity tag of a resource, by its text.
fn tag(resource: &[u8]) -> Option<HeaderValue> {
    let mut hasher = DefaultHasher::new();
    resource.hash(&mut hasher);
    HeaderValue::from_str(&format!("\"{:x}\"", hasher.finish())).ok()
}

/// Whether `headers` ask for no version, or for that of `resource`.
pub fn admits(headers: &HeaderMap, resource: Option<&[u8]>) -> bool {
    headers.get(IF_MATCH).is_none_or(|wanted| resource.and_then(tag).as_ref() == Some(wanted))
}

/// States the version of `resource`.
pub fn state(headers: &mut HeaderMap, resource: Option<&[u8]>) {
    if let Some(tag) = resource.and_then(tag) {
        headers.insert(ETAG, tag);
    }
}
