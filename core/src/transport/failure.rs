//! The causes of failed HTTP requests, below the errors of the client library.

use std::error::Error;
use std::io;

use rustls::AlertDescription;
use url::Url;

use super::Denied;
use crate::error::with_causes;

/// Returns the causes of an error without its own text, which contains the URL and so possibly a key in its query.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    let text = error.source().map_or_else(|| "the request failed".to_owned(), with_causes);
    // The layers of the client library say nothing to users, except if there is no cause below them.
    let cause = text.strip_prefix("client error (Connect): ").unwrap_or(&text);
    cause.strip_prefix("tcp connect error: ").unwrap_or(cause).to_owned()
}

/// Returns the host of a URL, with its port if that is not the usual one.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns the denial of the destination among the causes of an error. Such requests are not repeated at once.
pub(crate) fn denial<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Denied> {
    cause(error)
}

/// Returns the error of type `E` among the causes of an error. An IO error skips the error inside it and names that
/// error's cause.
pub(crate) fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<E>() {
            return Some(found);
        }
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = inner.map(|inner| -> &(dyn Error + 'static) { inner }).or_else(|| cause.source());
    }
    None
}

/// A certificate that was rejected. Such requests are not repeated, because the cause is permanent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal<'a> {
    /// The certificate of the other side is not trusted.
    Theirs(&'a rustls::CertificateError),
    /// The other side rejected our certificate, or requires one.
    Ours(AlertDescription),
}

/// Returns the rejected certificate that caused a failure, if any.
pub(crate) fn refusal(error: &reqwest::Error) -> Option<Refusal<'_>> {
    match cause::<rustls::Error>(error)? {
        rustls::Error::InvalidCertificate(why) => Some(Refusal::Theirs(why)),
        rustls::Error::AlertReceived(alert) if concerns_client(*alert) => Some(Refusal::Ours(*alert)),
        _ => None,
    }
}

/// Returns the reason for which the certificate of the other side is rejected.
pub(crate) fn untrusted(why: &rustls::CertificateError) -> String {
    let why = why.to_string();
    // The type of this cause is private. `openssl req -x509` makes such certificates.
    let is_of_authority = why.contains("CaUsedAsEndEntity");
    let why = if is_of_authority {
        "it is that of an authority; the server needs one with basicConstraints=CA:FALSE"
    } else {
        &why
    };
    format!("its certificate is not trusted: {why}")
}

/// Whether a server sends this alert because of the client's certificate or its absence (RFC 8446 section 6.2). A
/// rejection of the server's certificate is not an alert that we receive.
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

/// The message of hyper-util, whose type is private, when a proxy rejects a tunnel with status 407.
const TUNNEL_REFUSED: &str = "proxy authorization required";

/// Whether a proxy requires other credentials for a tunnel. Without a tunnel, a proxy rejects a request with an
/// ordinary answer 407.
pub(crate) fn is_proxy_refusal(error: &reqwest::Error) -> bool {
    causes(error).contains(TUNNEL_REFUSED)
}
