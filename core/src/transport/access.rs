//! The access data for one origin.

use std::fmt;

use http::HeaderMap;
use url::Url;

use super::{TlsConfig, client_builder};
use crate::proxy::Proxy;

/// The access data for one origin: request headers, TLS settings and proxy.
///
/// It is for documents beside the API of a server. Nothing of it is sent to another origin.
#[derive(Clone)]
pub struct Access {
    origin: Url,
    headers: HeaderMap,
    tls: TlsConfig,
    proxy: Proxy,
}

impl Access {
    pub(crate) fn new(origin: Url, headers: HeaderMap, tls: TlsConfig, proxy: Proxy) -> Self {
        Self { origin, headers, tls, proxy }
    }

    /// Whether `url` has the same scheme, host and port.
    pub fn covers(&self, url: &Url) -> bool {
        self.origin.origin() == url.origin()
    }

    /// Returns the headers of a request.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns a builder for a client.
    pub(crate) fn client_builder(&self) -> reqwest::ClientBuilder {
        client_builder(&self.tls, &self.proxy)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access({})", self.origin.origin().ascii_serialization())
    }
}
