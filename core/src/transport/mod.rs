//! HTTP clients with trusted CAs, client certificates and proxies, for managed servers, token endpoints, documents
//! and secret stores.
//!
//! A [`Connector`] creates clients, and renews them when the files of their TLS settings are replaced.
//! [`client_builder`] is for a single client. Both get the proxy from their caller. The environment is used only
//! through [`Proxy::from_environment`]. The module `exchange` follows redirects and limits bodies.

mod access;
mod connector;
pub mod destinations;
pub(crate) mod exchange;
mod failure;
pub(crate) mod field_text;
mod link;
pub(crate) mod retry;
mod tls;

use std::time::Duration;

use rustls::crypto::ring;
use url::Url;

pub use access::Access;
pub use connector::{Connector, TlsSettings};
pub use destinations::{Denied, Destinations, HostPattern, InvalidHostPattern, Names};
pub(crate) use failure::{
    Refusal, cause as failure_of, causes, denial, host, is_proxy_refusal, refusal, untrusted,
};
pub use link::NextLink;
pub(crate) use link::next_link;
pub use tls::{Pem, TlsConfig, TlsError, TlsFiles};

use crate::error::categories;
use crate::proxy::Proxy;

/// The time limit of connecting, including the TLS handshake and the tunnel of a proxy.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why there is no HTTP client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The destination is not allowed.
    #[error(transparent)]
    Destination(#[from] Denied),
    /// The client cannot be built.
    #[error("cannot prepare an HTTP client: {0}")]
    Client(String),
}

categories!(TransportError {
    .0: Tls;
    Validation: Destination, Client;
});

/// Returns a builder with at least TLS 1.2, the CAs and the client certificate of `tls`, the `proxy` for the targets
/// that use it, and [`CONNECT_TIMEOUT`]. Its clients connect to allowed [`Destinations`] only. They do not check IP
/// addresses in URLs; call [`destinations::check`] before a request to another host.
pub fn client_builder(tls: &TlsConfig, proxy: &Proxy) -> reqwest::ClientBuilder {
    let builder = unrestricted_client_builder(tls, proxy);
    match destinations::resolver() {
        Some(resolver) => builder.dns_resolver(resolver),
        None => builder,
    }
}

/// Returns the same, with hosts resolved by `names`.
pub(crate) fn named_client_builder(tls: &TlsConfig, proxy: &Proxy, names: &Names) -> reqwest::ClientBuilder {
    unrestricted_client_builder(tls, proxy).dns_resolver(names.clone())
}

/// Returns the same without the restriction to [`Destinations`], for a host that the administrator of the process
/// chose.
pub fn unrestricted_client_builder(tls: &TlsConfig, proxy: &Proxy) -> reqwest::ClientBuilder {
    // Fails if the process has already chosen a provider, which is then used.
    let _ = ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        // Do not use the proxy of the environment.
        .no_proxy()
        .tls_version_min(reqwest::tls::Version::TLS_1_2)
        .connect_timeout(CONNECT_TIMEOUT);
    let builder = tls.apply(builder);
    if proxy.has_url() { builder.proxy(through(proxy.clone())) } else { builder }
}

/// Returns a URL for messages: without userinfo, query and fragment, which may be secret.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Fails only for URLs that cannot have userinfo.
    let _ = (url.set_username(""), url.set_password(None));
    url.into()
}

/// Converts `proxy` for the HTTP library, which asks for it per connection. The credentials are its userinfo, and
/// become `Proxy-Authorization` (RFC 9110 section 11.7.2).
fn through(proxy: Proxy) -> reqwest::Proxy {
    reqwest::Proxy::custom(move |target| address(&proxy, target))
}

fn address(proxy: &Proxy, target: &Url) -> Option<Url> {
    let via = proxy.route(target)?;
    let mut address = via.url.clone();
    if let Some(credentials) = via.credentials {
        // Fails only for URLs without a host, and proxies have one.
        let _ = address.set_username(&credentials.username);
        let _ = address.set_password(Some(credentials.password.expose()));
    }
    Some(address)
}
