//! Why an HTTP request of ours failed, beneath what the client library says.

use std::error::Error;
use std::io;

use rustls::AlertDescription;

use crate::error::with_causes;

/// The causes of an error without its own text: that one names the URL, which may carry a query with a key.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    error.source().map_or_else(|| "the request failed".to_owned(), with_causes)
}

/// The TLS error in the causes of another one. An IO error does not name the error inside it as its cause, but
/// that one's cause.
pub(crate) fn tls_error(error: &reqwest::Error) -> Option<&rustls::Error> {
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

/// What certificates have to do with a failure. None of it mends itself, so no such request is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal<'a> {
    /// We do not trust the other side's certificate.
    Theirs(&'a rustls::CertificateError),
    /// The other side does not take our certificate, or misses one.
    Ours(AlertDescription),
}

/// The refused certificate behind a failure, if that is its cause.
pub(crate) fn refusal(error: &reqwest::Error) -> Option<Refusal<'_>> {
    match tls_error(error)? {
        rustls::Error::InvalidCertificate(why) => Some(Refusal::Theirs(why)),
        rustls::Error::AlertReceived(alert) if concerns_client(*alert) => Some(Refusal::Ours(*alert)),
        _ => None,
    }
}

/// Whether a server sends this alert because of a client's certificate or the lack of one (RFC 8446 section
/// 6.2; our own refusals of its certificate are no alerts that we receive).
fn concerns_client(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
    )
}

/// What hyper-util says, in a type that it does not export, when a proxy refuses a tunnel with status 407.
const TUNNEL_REFUSED: &str = "proxy authorization required";

/// Whether a proxy wants other credentials before it opens a tunnel. Its refusal of a request without tunnel is
/// an answer with status 407.
pub(crate) fn is_proxy_refusal(error: &reqwest::Error) -> bool {
    causes(error).contains(TUNNEL_REFUSED)
}
