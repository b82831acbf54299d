//! Headers that are added to requests.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::ServerError;

/// A header that is added to requests.
pub(super) type Header = (HeaderName, HeaderValue);

pub(super) fn insert_all(headers: &mut HeaderMap, added: &[Header]) {
    for (name, value) in added {
        headers.insert(name.clone(), value.clone());
    }
}

/// Returns `text` as the value of a header. `what` names the text in the error.
pub(super) fn sensitive(text: &str, setting: &'static str, what: &str) -> Result<HeaderValue, ServerError> {
    let mut value = HeaderValue::try_from(text).map_err(|_| ServerError::Setting {
        setting,
        reason: format!("{what} contains characters that a header cannot carry (such as a line break)"),
    })?;
    value.set_sensitive(true);
    Ok(value)
}
