//! HTTP clients: what trust, client certificates and proxies make of them, the same for managed servers, token
//! endpoints, documents and secret stores.
//!
//! A [`Connector`] makes clients and keeps them fit while the files behind their TLS settings are replaced.
//! [`client_builder`] is for whoever needs one client once. Both take the proxy from their caller; the environment
//! counts only as far as [`Proxy::from_environment`] was asked.

mod access;
mod connector;
mod failure;
pub(crate) mod retry;
mod tls;

use std::time::Duration;

use rustls::crypto::ring;
use url::Url;

pub use access::Access;
pub use connector::{Connector, TlsSettings};
pub(crate) use failure::{Refusal, causes, is_proxy_refusal, refusal};
pub use tls::{Pem, TlsConfig, TlsError, TlsFiles};

use crate::error::{Categorized, Category};
use crate::proxy::Proxy;

/// How long connecting may take, with the TLS handshake and a proxy's tunnel.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no HTTP client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The client cannot be built.
    #[error("cannot prepare an HTTP client: {reason}")]
    Client {
        /// What is wrong.
        reason: String,
    },
}

impl Categorized for TransportError {
    fn category(&self) -> Category {
        match self {
            Self::Tls(error) => error.category(),
            Self::Client { .. } => Category::Validation,
        }
    }
}

/// Begins a client: at least TLS 1.2, trust and client certificate of `tls`, connections through `proxy` where it
/// serves their target, and [`CONNECT_TIMEOUT`].
pub fn client_builder(tls: &TlsConfig, proxy: &Proxy) -> reqwest::ClientBuilder {
    // Refused if the process has chosen one already, which then counts.
    let _ = ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        // Not the one of the environment.
        .no_proxy()
        .tls_version_min(reqwest::tls::Version::TLS_1_2)
        .connect_timeout(CONNECT_TIMEOUT);
    let builder = tls.apply(builder);
    if proxy.has_url() { builder.proxy(through(proxy.clone())) } else { builder }
}

/// `proxy` as the HTTP library takes it. It is asked for each connection, with its credentials as userinfo, which
/// become `Proxy-Authorization` (RFC 9110 section 11.7.2).
pub fn through(proxy: Proxy) -> reqwest::Proxy {
    reqwest::Proxy::custom(move |target| address(&proxy, target))
}

fn address(proxy: &Proxy, target: &Url) -> Option<Url> {
    let via = proxy.route(target)?;
    let mut address = via.url.clone();
    if let Some(credentials) = via.credentials {
        // Refused only for URLs without host, which no proxy has.
        let _ = address.set_username(&credentials.username);
        let _ = address.set_password(Some(credentials.password.expose()));
    }
    Some(address)
}
