//! Why an HTTP request of ours failed, beneath what the client library says.

use std::error::Error;
use std::io;

use crate::error::with_causes;

/// The causes of an error without its own text: that one names the URL, which may carry a query with a key.
pub fn causes(error: &reqwest::Error) -> String {
    error.source().map_or_else(|| "the request failed".to_owned(), with_causes)
}

/// The TLS error in the causes of another one. An IO error does not name the error inside it as its cause, but
/// that one's cause.
pub fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = inner.map(|inner| -> &(dyn Error + 'static) { inner }).or_else(|| cause.source());
    }
    None
}
