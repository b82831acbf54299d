//! The address of a Vault server.

use std::fmt;

use http::Request;
use http::uri::PathAndQuery;
use url::Url;

use super::VaultError;
use super::settings::refuse;

/// The address of a Vault server, to which paths are appended.
#[derive(Clone)]
pub(super) struct Address(String);

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, VaultError> {
        let wrong = |reason: &str| refuse("address", reason.to_owned());
        let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url
            .filter(Url::has_host)
            .ok_or_else(|| wrong("must be an http:// or https:// URL with a host"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must not contain credentials; configure them in the login"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("must not have a query or a fragment"));
        }
        Ok(Self(url.as_str().trim_end_matches('/').to_owned()))
    }

    /// Returns the URL of a request, whose own address is a placeholder.
    pub(super) fn url<B>(&self, request: &Request<B>) -> Result<Url, VaultError> {
        let path = request.uri().path_and_query().map_or("", PathAndQuery::as_str);
        // The requests of `vaultrs` write an empty query.
        let path = path.trim_end_matches('?');
        Url::parse(&format!("{}/v1{path}", self.0)).map_err(|error| refuse("address", error.to_string()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
