//! Addresses: the base URL of a server and the requests below it.

use std::fmt;

use http::Method;
use http::header::{HeaderName, HeaderValue};
use url::Url;

use super::ServerError;

/// The base URL of a managed server. No request built from it leaves its origin or its path.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

/// One request to a managed server. Its path is unencoded text; encoding happens once, on sending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// The path below the base URL, unencoded: `/users/J D`.
    pub path: String,
    /// Query parameters; they replace those of the base URL with the same name.
    pub query: Vec<(String, String)>,
    /// Headers of the operation; they beat the server's default headers, but not its credentials.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The `Accept` header unless `headers` has one.
    pub accept: Option<String>,
    /// What is sent.
    pub body: Option<Body>,
}

/// An encoded request body.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// The `Content-Type` unless the request's headers have one.
    pub media_type: String,
    /// The bytes on the wire.
    pub bytes: bytes::Bytes,
}

impl Request {
    /// A request without query, headers or body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), query: Vec::new(), headers: Vec::new(), accept: None, body: None }
    }

    pub(super) fn refused(&self, reason: impl Into<String>) -> ServerError {
        ServerError::Request { method: self.method.clone(), path: self.path.clone(), reason: reason.into() }
    }

    /// The failure of a request that the server may have received.
    pub(super) fn failed(&self, reason: impl Into<String>) -> ServerError {
        let (method, path, reason) = (self.method.clone(), self.path.clone(), reason.into());
        ServerError::Transport { method, path, reason, sent: true }
    }

    /// The failure of a request that never left.
    pub(super) fn unsent(&self, reason: impl Into<String>) -> ServerError {
        let (method, path, reason) = (self.method.clone(), self.path.clone(), reason.into());
        ServerError::Transport { method, path, reason, sent: false }
    }
}

impl BaseUrl {
    /// Parses an http or https URL with a host. User information and fragments are refused: the first
    /// would be a credential in plain sight, the second is never sent.
    pub fn parse(text: &str) -> Result<Self, ServerError> {
        let refuse = |reason: String| Err(ServerError::BaseUrl { reason });
        let url = match Url::parse(text.trim()) {
            Ok(url) => url,
            Err(error) => return refuse(format!("not a URL: {error}")),
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(format!("scheme \"{}\" is not http or https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse(
                "user and password do not belong into the URL; configure authentication".to_owned(),
            );
        }
        if url.fragment().is_some() {
            return refuse("a fragment (#…) is never sent; remove it".to_owned());
        }
        Ok(Self(url))
    }

    /// The URL without its query, which may hold what is not for everybody's eyes.
    pub fn address(&self) -> String {
        let mut url = self.0.clone();
        url.set_query(None);
        url.into()
    }

    /// The path of the URL, unencoded like those of requests; `/` if it has none.
    pub fn path(&self) -> String {
        percent_decoded(self.0.path())
    }

    /// The URL that `request` goes to.
    pub(super) fn target(&self, request: &Request) -> Result<Url, ServerError> {
        let path = request.path.trim();
        if path.is_empty() {
            return Err(request.refused("the path is empty"));
        }
        if path.contains("://") {
            return Err(request.refused("the path must be relative to the base URL, without scheme"));
        }
        let mut url = self.0.clone();
        {
            let base: Vec<&str> = self.0.path().split('/').filter(|segment| !segment.is_empty()).collect();
            let added = path.split('/').filter(|segment| !segment.is_empty());
            let mut segments =
                url.path_segments_mut().map_err(|()| request.refused("the base URL cannot have a path"))?;
            segments.clear();
            for segment in base {
                // Already encoded in the base URL; decoding first keeps it from being encoded twice.
                segments.push(&percent_decoded(segment));
            }
            for segment in added {
                if matches!(segment, "." | "..") {
                    return Err(request.refused("the path must not contain \".\" or \"..\" segments"));
                }
                segments.push(segment);
            }
        }
        self.set_query(&mut url, &request.query);
        Ok(url)
    }

    /// `text` as a URL, if it is one of the same origin without query.
    pub(super) fn same_origin(&self, text: &str) -> Option<Url> {
        let url = Url::parse(text.trim()).ok()?;
        (self.origin_is(&url) && url.query().is_none()).then_some(url)
    }

    /// Whether `url` has the same scheme, host and port.
    pub(super) fn origin_is(&self, url: &Url) -> bool {
        self.0.origin() == url.origin()
    }

    fn set_query(&self, url: &mut Url, own: &[(String, String)]) {
        let mut pairs: Vec<(String, String)> = self
            .0
            .query_pairs()
            .filter(|(name, _)| own.iter().all(|(replaced, _)| replaced != name))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .chain(own.iter().cloned())
            .collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        url.set_query(None);
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
    }
}

fn percent_decoded(segment: &str) -> String {
    // A lone `%` or invalid UTF-8 cannot come out of a parsed URL path unencoded, so lossy never loses.
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

impl fmt::Display for BaseUrl {
    /// The URL without its query, which may carry a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.0.clone();
        url.set_query(None);
        write!(f, "{url}")
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BaseUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://h.test/api/?t=1", "users/J D", &[("q", "a&b")], "https://h.test/api/users/J%20D?q=a%26b&t=1")]
    #[case("https://h.test", "/a%2Fb", &[], "https://h.test/a%252Fb")]
    #[case("https://h.test/x%20y", "/a", &[], "https://h.test/x%20y/a")]
    #[case("https://h.test/api", "//users///7/", &[], "https://h.test/api/users/7")]
    #[case("https://h.test/?k=1&a=0", "/x", &[("k", "2")], "https://h.test/x?a=0&k=2")]
    #[case("https://h.test", "/a?b#c", &[], "https://h.test/a%3Fb%23c")]
    #[case("https://h.test/api", "/", &[], "https://h.test/api")]
    fn targets(
        #[case] base: &str,
        #[case] path: &str,
        #[case] query: &[(&str, &str)],
        #[case] expected: &str,
    ) {
        let mut request = Request::new(Method::GET, path);
        request.query = query.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(BaseUrl::parse(base).unwrap().target(&request).unwrap().as_str(), expected);
    }

    #[rstest]
    #[case("https://h.test", "/")]
    #[case("https://h.test/x%20y/?a=1", "/x y/")]
    fn paths_of_base_urls(#[case] base: &str, #[case] expected: &str) {
        assert_eq!(BaseUrl::parse(base).unwrap().path(), expected);
    }

    #[rstest]
    #[case("/a/../b")]
    #[case("./a")]
    #[case("")]
    #[case("https://evil.test/x")]
    fn paths_that_would_leave_the_base_are_refused(#[case] path: &str) {
        let base = BaseUrl::parse("https://h.test/api").unwrap();
        assert!(matches!(base.target(&Request::new(Method::GET, path)), Err(ServerError::Request { .. })));
    }

    #[rstest]
    #[case("ftp://h.test")]
    #[case("h.test")]
    #[case("https://u:p@h.test")]
    #[case("https://h.test/#x")]
    fn bad_base_urls(#[case] url: &str) {
        assert!(BaseUrl::parse(url).is_err());
    }
}
