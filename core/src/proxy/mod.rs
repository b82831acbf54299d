//! Proxy settings: their sources, and the targets that use a proxy.
//!
//! Settings are layers of the same type, [`Proxy`]: the environment, and one block per component over it.
//! [`Proxy::resolve`] returns the effective settings of each component. The module neither connects nor reads the
//! environment; the caller passes a function for that.

mod no_proxy;

use std::fmt;

use percent_encoding::percent_decode_str;
use url::Url;

pub use no_proxy::{NoProxy, NoProxyError, is_loopback};

use crate::error::categories;
use crate::secret::{Secret, basic_pair};

/// Proxy settings: one layer, or the result of several.
///
/// `A` is the type of the credentials. A caller that reads credentials late uses a reference to them here, and
/// replaces it by [`Proxy::try_map_auth`] if [`Proxy::serving`] shows that the proxy is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "`no_proxy` is the usual name of this setting")]
pub struct Proxy<A = ProxyCredentials> {
    http: Option<ProxyUrl>,
    https: Option<ProxyUrl>,
    no_proxy: Option<NoProxy>,
    auth: Option<A>,
}

/// The address of a proxy, and the credentials in it.
///
/// `Display` omits the credentials, so it may be shown anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl {
    /// A URL without userinfo.
    url: Url,
    userinfo: Option<ProxyCredentials>,
}

/// User and password for a proxy (RFC 7617).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyCredentials {
    /// The user.
    pub username: String,
    /// The password.
    pub password: Secret,
}

/// The connection to a target through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Via<'a> {
    /// The proxy, without userinfo.
    pub url: &'a Url,
    /// The credentials for the proxy, if any.
    pub credentials: Option<&'a ProxyCredentials>,
}

/// Proxy settings that cannot be used. Values are not shown if they may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// A proxy URL is not a valid URL.
    #[error("{0} must be an http:// or https:// URL with a host")]
    Url(String),
    /// A proxy URL has a path, query or fragment. It may be the rest of a user or password with a `/`, `?` or `#`,
    /// whose beginning would be used as the host.
    #[error(
        "{0} must not have a path, query or fragment; \
         percent-encode user and password (/ is %2F, ? is %3F, # is %23, @ is %40)"
    )]
    Beyond(String),
    /// A block has credentials in a URL and in `auth`.
    #[error("{0} contains credentials in addition to the auth block; remove one of them")]
    CredentialsTwice(String),
    /// An entry of the list of exceptions is invalid.
    #[error("{field}: {source}")]
    NoProxy {
        /// The field.
        field: String,
        /// The entry.
        source: NoProxyError,
    },
}

categories!(ProxyError: Validation);

impl<A> Default for Proxy<A> {
    /// Returns settings without a proxy.
    fn default() -> Self {
        Self { http: None, https: None, no_proxy: None, auth: None }
    }
}

/// The text fields of a proxy block. Blank ones count as not set.
#[derive(Clone, Copy, Default)]
pub struct ProxyFields<'a> {
    /// The proxy for http targets.
    pub http: Option<&'a str>,
    /// The proxy for https targets.
    pub https: Option<&'a str>,
    /// The targets without a proxy, see [`NoProxy`].
    pub no_proxy: Option<&'a str>,
}

impl<A> Proxy<A> {
    /// Parses the block of a component. `name` is the field of the block, for errors.
    pub fn parse(name: &str, fields: ProxyFields<'_>, auth: Option<A>) -> Result<Self, ProxyError> {
        let url = |key: &str, text: Option<&str>| -> Result<Option<ProxyUrl>, ProxyError> {
            let field = format!("{name}.{key}");
            let Some(text) = set(text) else { return Ok(None) };
            let url = ProxyUrl::parse(&field, text)?;
            if auth.is_some() && url.userinfo.is_some() {
                return Err(ProxyError::CredentialsTwice(field));
            }
            Ok(Some(url))
        };
        let (http, https) = (url("http", fields.http)?, url("https", fields.https)?);
        let no_proxy = set(fields.no_proxy).map(str::parse).transpose();
        let no_proxy =
            no_proxy.map_err(|source| ProxyError::NoProxy { field: format!("{name}.noProxy"), source })?;
        Ok(Self { http, https, no_proxy, auth })
    }

    /// Returns the settings of the environment: `HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY` and their lower-case
    /// spellings. Upper case takes precedence, and blank variables count as not set. `variable` reads one of them.
    ///
    /// A proxy without a scheme is an http proxy, as usual for these variables.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let read = |name: &str| {
            let spellings = [name.to_owned(), name.to_lowercase()];
            spellings.iter().find_map(|name| {
                let value = variable(name).filter(|value| !value.trim().is_empty())?;
                Some((name.clone(), value.trim().to_owned()))
            })
        };
        let url = |name: &str| -> Result<Option<ProxyUrl>, ProxyError> {
            let Some((field, text)) = read(name) else { return Ok(None) };
            let text = if text.contains("://") { text } else { format!("http://{text}") };
            ProxyUrl::parse(&field, &text).map(Some)
        };
        let no_proxy = read("NO_PROXY").map(|(_, text)| NoProxy::parse_known(&text));
        Ok(Self { http: url("HTTP_PROXY")?, https: url("HTTPS_PROXY")?, no_proxy, auth: None })
    }

    /// Whether no field is set. An empty block disables proxies for its component.
    pub fn is_empty(&self) -> bool {
        self.no_proxy.is_none() && self.auth.is_none() && !self.has_url()
    }

    /// Whether there is a proxy for any target.
    pub fn has_url(&self) -> bool {
        self.http.is_some() || self.https.is_some()
    }

    /// Returns the proxy for a target; `None` if the connection is direct. Loopback is always direct.
    pub fn serving(&self, target: &Url) -> Option<&ProxyUrl> {
        let proxy = match target.scheme() {
            "http" => self.http.as_ref(),
            "https" => self.https.as_ref(),
            _ => None,
        }?;
        let excepted = self.no_proxy.as_ref().is_some_and(|list| list.matches(target));
        (!excepted && !is_loopback(target)).then_some(proxy)
    }

    /// Returns the settings without the credentials of `auth`.
    #[must_use]
    pub fn without_auth<B>(self) -> Proxy<B> {
        let Self { http, https, no_proxy, auth: _ } = self;
        Proxy { http, https, no_proxy, auth: None }
    }

    /// Converts the credentials of `auth`.
    pub fn try_map_auth<B, E>(self, map: impl FnOnce(A) -> Result<B, E>) -> Result<Proxy<B>, E> {
        let Self { http, https, no_proxy, auth } = self;
        Ok(Proxy { http, https, no_proxy, auth: auth.map(map).transpose()? })
    }
}

impl<A: Clone> Proxy<A> {
    /// Returns these settings over `base`, field by field. Empty settings disable proxies. Credentials of these
    /// settings also replace those in the URLs of `base`.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        if self.is_empty() {
            return Self::default();
        }
        let inherited = |url: &Option<ProxyUrl>| {
            let url = url.clone()?;
            Some(if self.auth.is_some() { ProxyUrl { userinfo: None, ..url } } else { url })
        };
        Self {
            http: self.http.clone().or_else(|| inherited(&base.http)),
            https: self.https.clone().or_else(|| inherited(&base.https)),
            no_proxy: self.no_proxy.clone().or_else(|| base.no_proxy.clone()),
            auth: self.auth.clone().or_else(|| base.auth.clone()),
        }
    }

    /// Returns the effective settings of each component, from the environment and the components' blocks in their
    /// order of precedence. A component without a block uses the settings of the first component whose block results
    /// in a proxy, else those of the environment. A block that is not empty but results in no proxy is put over these
    /// settings.
    pub fn resolve<const N: usize>(environment: &Self, blocks: [Option<Self>; N]) -> [Self; N] {
        let own = blocks.map(|block| block.map(|block| block.over(environment)));
        let first = own.iter().flatten().find(|settings| settings.has_url());
        let shared = first.unwrap_or(environment).clone();
        own.map(|settings| match settings {
            None => shared.clone(),
            Some(settings) if settings.is_empty() || settings.has_url() => settings,
            Some(settings) => settings.over(&shared),
        })
    }
}

impl Proxy {
    /// Returns the connection to a target; `None` if it is direct.
    pub fn route(&self, target: &Url) -> Option<Via<'_>> {
        let proxy = self.serving(target)?;
        Some(Via { url: &proxy.url, credentials: proxy.userinfo.as_ref().or(self.auth.as_ref()) })
    }
}

impl Proxy {
    /// Returns the secrets in these settings, for the redactor, including the encoded values of basic authentication.
    pub fn secrets(&self) -> Vec<Secret> {
        let urls = [&self.http, &self.https].into_iter().flatten();
        let credentials = urls.filter_map(|url| url.userinfo.as_ref()).chain(self.auth.as_ref());
        credentials
            .flat_map(|login| [login.password.clone(), basic_pair(&login.username, &login.password)])
            .collect()
    }
}

impl ProxyUrl {
    fn parse(field: &str, text: &str) -> Result<Self, ProxyError> {
        // Checked before parsing: the URL parser would use the text before a `/` as host and port.
        let authority = text.split_once("://").map(|(_, rest)| rest.trim_end_matches('/'));
        if authority.is_some_and(|authority| authority.contains(['/', '\\', '?', '#'])) {
            return Err(ProxyError::Beyond(field.to_owned()));
        }
        Self::of(text).ok_or_else(|| ProxyError::Url(field.to_owned()))
    }

    fn of(text: &str) -> Option<Self> {
        let mut url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        url.host()?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().ok().map(String::from);
        let userinfo = match (url.username(), url.password()) {
            ("", None) => None,
            (username, password) => Some(ProxyCredentials {
                username: decoded(username)?,
                password: decoded(password.unwrap_or_default())?.into(),
            }),
        };
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        Some(Self { url, userinfo })
    }

    /// Returns the address without userinfo.
    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.origin().ascii_serialization().as_str())
    }
}

/// Returns the trimmed text, if it is not blank.
fn set(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
