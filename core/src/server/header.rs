//! Headers that are added to requests.

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING};

use super::ServerError;

/// A header that is added to requests.
pub(super) type Header = (HeaderName, HeaderValue);

/// The headers that describe the transfer of a body. Only the HTTP client knows it, so these are never added.
const OF_TRANSFER: [HeaderName; 3] = [CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER];

pub(super) fn insert_all(headers: &mut HeaderMap, added: &[Header]) {
    for (name, value) in added.iter().filter(|(name, _)| !OF_TRANSFER.contains(name)) {
        headers.insert(name.clone(), value.clone());
    }
}

/// Returns `text` as the value of a header. `what` names the text in the error.
pub(super) fn sensitive(text: &str, setting: &'static str, what: &str) -> Result<HeaderValue, ServerError> {
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        let reason = format!("{what} contains characters that a header cannot carry (such as a line break)");
        ServerError::setting(setting, reason)
    })?;
    value.set_sensitive(true);
    Ok(value)
}
