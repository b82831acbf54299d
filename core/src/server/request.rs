//! Addresses: the base URL of a server and the requests below it.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use url::Url;

use super::ServerError;
use super::error::Sent;
use crate::language::jq::Query;
use crate::proxy::ProxyUrl;
use crate::secrets::{Confidential, Secret};
use crate::transport::shown;

/// The base URL of a managed server. Requests built from it stay within its origin and below its path.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    url: Url,
    /// The URL to append paths to: without query, empty segments and trailing slash.
    root: Url,
    /// The query of requests without their own query.
    query: Option<String>,
}

/// One request to a managed server. Its path is unencoded text, which sending encodes once, unless it is `encoded`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// The path below the base URL: `/users/J D`.
    pub path: String,
    /// Whether the path is percent-encoded, and sent as it is.
    pub encoded: bool,
    /// Whether the server may act twice if the request arrives twice, although its method is idempotent (RFC 9110, section
    /// 9.2.2): a PUT of a collection may create another resource. Then it is not repeated once it was sent.
    pub once: bool,
    /// Query parameters; they replace those of the base URL with the same name.
    pub query: Vec<(String, String)>,
    /// Headers of the operation. They override the server's default headers, but not its credentials.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The `Accept` header unless `headers` has one.
    pub accept: Option<Box<str>>,
    /// The body to send.
    pub body: Option<Body>,
    /// A URL that replaces `path` and `query`: a link from an answer of the server. The request fails unless it has
    /// the base URL's origin and is below its path.
    pub link: Option<Box<Url>>,
    /// Further secrets that errors must not contain, because the server may echo them.
    pub secrets: Arc<[Secret]>,
    /// Status codes of 400 or more that are answers, not failures.
    pub answers: Arc<[u16]>,
    /// The condition by which an answer with a status of success states a failure.
    pub failed: Option<Query>,
    /// Members of the body, and of that of a successful answer, that texts must not show.
    pub confidential: Confidential,
}

/// An encoded request body. `Debug` shows its length instead of its content.
#[derive(Clone, PartialEq)]
pub struct Body {
    /// The `Content-Type` unless the request's headers have one.
    pub media_type: String,
    /// The bytes on the wire.
    pub bytes: bytes::Bytes,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({}, {} bytes)", self.media_type, self.bytes.len())
    }
}

impl Request {
    /// Returns a request without query, headers and body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            encoded: false,
            once: false,
            query: Vec::new(),
            headers: Vec::new(),
            accept: None,
            body: None,
            link: None,
            secrets: Arc::default(),
            answers: Arc::default(),
            failed: None,
            confidential: Confidential::default(),
        }
    }

    /// Returns the request for `reference` in an answer from `base` (RFC 3986, section 5).
    pub fn following(&self, base: &Url, reference: &str) -> Result<Self, ServerError> {
        let joined = base.join(reference.trim());
        let mut url = joined
            .map_err(|error| self.refused(format!("the link to the next page is not a URL: {error}")))?;
        url.set_fragment(None);
        Ok(Self { link: Some(Box::new(url)), ..self.clone() })
    }

    pub(super) fn refused(&self, reason: impl Into<String>) -> ServerError {
        ServerError::Request { method: self.method.clone(), path: self.path.clone(), reason: reason.into() }
    }

    /// Returns the error of a request that `proxy` rejected.
    pub(super) fn refused_by_proxy(&self, proxy: &ProxyUrl) -> ServerError {
        let (method, path, proxy) = (self.method.clone(), self.path.clone(), proxy.to_string());
        ServerError::ProxyCredentials { method, path, proxy }
    }

    /// Returns the error of a request that the server may have received.
    pub(super) fn failed(&self, reason: impl Into<String>) -> ServerError {
        let (method, path, reason) = (self.method.clone(), self.path.clone(), reason.into());
        ServerError::Transport { method, path, reason, sent: Sent::Unanswered }
    }

    /// Returns the error of a request that timed out.
    pub(super) fn timed_out(&self, timeout: Duration) -> ServerError {
        let (method, path) = (self.method.clone(), self.path.clone());
        let reason = format!("no complete answer within {} s", timeout.as_secs_f64());
        ServerError::Transport { method, path, reason, sent: Sent::TimedOut }
    }

    /// Returns the error of a request that was cancelled before it was sent.
    pub(super) fn cancelled(&self) -> ServerError {
        ServerError::Cancelled { method: self.method.clone(), path: self.path.clone() }
    }

    /// Returns the error of a request that was not sent.
    pub(super) fn unsent(&self, reason: impl Into<String>) -> ServerError {
        let (method, path, reason) = (self.method.clone(), self.path.clone(), reason.into());
        ServerError::Transport { method, path, reason, sent: Sent::No }
    }
}

impl BaseUrl {
    /// Parses an http or https URL with a host. User information and fragments are rejected: the first would expose a
    /// credential, the second is never sent.
    pub fn parse(text: &str) -> Result<Self, ServerError> {
        let refuse = |reason: String| Err(ServerError::BaseUrl(reason));
        let url = match Url::parse(text.trim()) {
            Ok(url) => url,
            Err(error) => return refuse(format!("not a URL: {error}")),
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(format!("scheme \"{}\" is not http or https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("must not contain user and password; configure authentication".to_owned());
        }
        if url.fragment().is_some() {
            return refuse("a fragment (#…) is never sent; remove it".to_owned());
        }
        let mut root = url.clone();
        root.set_query(None);
        // Segments of the base URL are already encoded. Decoding them prevents a second encoding.
        let segments: Vec<_> = segments_of(url.path()).map(percent_decoded).collect();
        root.set_path("");
        append(&mut root, segments.iter().map(String::as_str), &RESERVED);
        let mut base = Self { url, root, query: None };
        let mut plain = base.root.clone();
        base.set_query(&mut plain, &[]);
        base.query = plain.query().map(str::to_owned);
        Ok(base)
    }

    /// Returns the URL as it was configured.
    pub(super) const fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the path of the URL, unencoded like the path of a request; `/` if it has none.
    pub fn path(&self) -> String {
        percent_decoded(self.url.path())
    }

    /// Returns the URL of `request`.
    pub(super) fn target(&self, request: &Request) -> Result<Url, ServerError> {
        if let Some(url) = &request.link {
            return self.linked(request, url);
        }
        let path = request.path.as_str();
        if path.trim().is_empty() {
            return Err(request.refused("the path is empty"));
        }
        if path.contains("://") {
            return Err(request.refused("the path must be relative to the base URL, without a scheme"));
        }
        // A URL has no percent-encoded dot segments: they are resolved like others (RFC 3986 section 6.2.2.2).
        let name = |segment| if request.encoded { percent_decoded(segment) } else { String::from(segment) };
        if segments_of(path).any(|segment| matches!(&*name(segment), "." | "..")) {
            return Err(request.refused("the path must not contain \".\" or \"..\" segments"));
        }
        let mut url = self.root.clone();
        if request.encoded {
            append_encoded(&mut url, segments_of(path));
        } else {
            append(&mut url, segments_of(path), &RESERVED_IN_NAMES);
        }
        if path.ends_with('/') && segments_of(path).next().is_some() {
            url.set_path(&format!("{}/", url.path()));
        }
        if request.query.is_empty() {
            url.set_query(self.query.as_deref());
        } else {
            self.set_query(&mut url, &request.query);
        }
        if !self.keeps(&url) {
            return Err(request.refused("the path must not lead above the base URL, as \"..\" does"));
        }
        Ok(url)
    }

    /// Returns `url` if it has this origin and is below this path. Parameters of the base URL that it does not name
    /// are added, because one of them may be a key.
    fn linked(&self, request: &Request, url: &Url) -> Result<Url, ServerError> {
        let shown = shown(url);
        let leaves = |why: &str| {
            let advice =
                "correct the external URL in the server's configuration, or set operations.list.pagination";
            Err(request.refused(format!("the next page, {shown}, is {why} {self}; {advice}")))
        };
        if !url.username().is_empty() || url.password().is_some() {
            return leaves("a URL with a user, unlike");
        }
        // Other origins and paths would receive the credentials.
        if !self.origin_is(url) {
            return leaves("not of the origin of");
        }
        if !self.keeps(url) {
            return leaves("not below");
        }
        let named: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
        let missing: Vec<_> =
            self.url.query_pairs().filter(|(name, _)| !named.iter().any(|named| named == name)).collect();
        let mut url = url.clone();
        if !missing.is_empty() {
            url.query_pairs_mut().extend_pairs(missing);
        }
        Ok(url)
    }

    /// Returns `text` as a URL, if it has the same origin and no query.
    pub(super) fn same_origin(&self, text: &str) -> Option<Url> {
        let url = Url::parse(text.trim()).ok()?;
        (self.origin_is(&url) && url.query().is_none()).then_some(url)
    }

    /// Returns the URL of the origin.
    pub(super) fn origin(&self) -> Url {
        let mut origin = self.root.clone();
        origin.set_path("");
        origin
    }

    /// Whether `url` has the same scheme, host and port.
    pub(super) fn origin_is(&self, url: &Url) -> bool {
        // Compared piece by piece, because `Url::origin` would copy both hosts.
        self.url.scheme() == url.scheme()
            && self.url.host_str() == url.host_str()
            && self.url.port_or_known_default() == url.port_or_known_default()
    }

    /// Whether the path of `url` is the base path or begins with its segments.
    pub(super) fn is_below(&self, url: &Url) -> bool {
        let mut segments = segments_of(url.path()).map(percent_decoded);
        segments_of(self.url.path()).map(percent_decoded).all(|base| segments.next() == Some(base))
    }

    /// Like [`Self::is_below`], also for servers that decode a path before they resolve it: no decoded segment is
    /// `..`, with or without parameters (RFC 3986 section 3.3).
    pub(super) fn keeps(&self, url: &Url) -> bool {
        let climbs = |segment: &str| {
            let decoded = percent_decoded(segment);
            decoded.split(['/', '\\']).any(|part| part.split(';').next() == Some(".."))
        };
        self.is_below(url) && !segments_of(url.path()).any(climbs)
    }

    fn set_query(&self, url: &mut Url, own: &[(String, String)]) {
        let mut pairs: Vec<(String, String)> = self
            .url
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
        // Every server decodes `%20`, but only those that decode queries as forms decode `+`, which is always a space here.
        let spaced = url.query().filter(|query| query.contains('+')).map(|query| query.replace('+', "%20"));
        if spaced.is_some() {
            url.set_query(spaced.as_deref());
        }
    }
}

/// Returns the values in the query of `url`. Each may be a key.
pub(super) fn query_secrets(url: &Url) -> impl Iterator<Item = Secret> {
    url.query_pairs().map(|(_, value)| Secret::from(value.into_owned()))
}

/// Characters that are encoded in a segment: those to which a URL path would give another meaning, and those that RFC
/// 3986 does not allow in a path.
const RESERVED: AsciiSet =
    CONTROLS.add(b'%').add(b'/').add(b'?').add(b'#').add(b'\\').add(b'[').add(b']').add(b'|').add(b'^');

/// Characters that are encoded in names. Some servers take what follows a semicolon as a parameter of the segment, and
/// answer for the resource with the rest of the name.
const RESERVED_IN_NAMES: AsciiSet = RESERVED.add(b';');

/// Appends unencoded segments to the path of `url`. `path_segments_mut` would drop line breaks and tabs instead of
/// encoding them, and so address another resource.
fn append<'s>(url: &mut Url, segments: impl Iterator<Item = &'s str>, reserved: &'static AsciiSet) {
    append_encoded(url, segments.map(|segment| utf8_percent_encode(segment, reserved)));
}

/// Appends percent-encoded segments to the path of `url`.
fn append_encoded(url: &mut Url, segments: impl Iterator<Item = impl fmt::Display>) {
    let mut path = url.path().trim_end_matches('/').to_owned();
    for segment in segments {
        // Writing to a text cannot fail.
        let _ = write!(path, "/{segment}");
    }
    url.set_path(&path);
}

pub(super) fn segments_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

pub(crate) fn percent_decoded(segment: &str) -> String {
    // The path of a parsed URL contains neither a lone `%` nor invalid UTF-8, so nothing is lost.
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

impl fmt::Display for BaseUrl {
    /// Writes the URL without its query, which may hold a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.url))
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
    #[case("https://h.test/api", "//users///7/", &[], "https://h.test/api/users/7/")]
    #[case("https://h.test/?k=1&a=0", "/x", &[("k", "2")], "https://h.test/x?a=0&k=2")]
    #[case("https://h.test", "/a?b#c", &[], "https://h.test/a%3Fb%23c")]
    #[case("https://h.test", "/a[1]|^b", &[], "https://h.test/a%5B1%5D%7C%5Eb")]
    #[case("https://h.test/api;v=1", "/a;v2", &[], "https://h.test/api;v=1/a%3Bv2")]
    #[case("https://h.test/api", "/", &[], "https://h.test/api")]
    #[case("https://h.test//api//v1/?b=2&a=x%20y", "/", &[], "https://h.test/api/v1?a=x%20y&b=2")]
    #[case("https://h.test/a%2Fb", "/c", &[], "https://h.test/a%2Fb/c")]
    #[case("https://h.test/a%0Ab", "/c\td/é", &[], "https://h.test/a%0Ab/c%09d/%C3%A9")]
    #[case("https://h.test", "/a/ana ", &[], "https://h.test/a/ana%20")]
    #[case("https://h.test", "/%2e%2E/a\\b", &[], "https://h.test/%252e%252E/a%5Cb")]
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
    #[case("/queues/%2F/q%231", Some("https://h.test/api/queues/%2F/q%231"))]
    #[case("//a//%252F/", Some("https://h.test/api/a/%252F/"))]
    #[case("/a/%2e%2E/b", None)]
    #[case("/a/.%2E", None)]
    #[case("/a/%2E%2E%2Fb", None)]
    #[case("/a/b%2F..%2F..%2Fc", None)]
    #[case("/..;/b", None)]
    #[case("/a%2Fb;c=d", Some("https://h.test/api/a%2Fb;c=d"))]
    fn encoded_paths_are_sent_as_they_are(#[case] path: &str, #[case] expected: Option<&str>) {
        let request = Request { encoded: true, ..Request::new(Method::GET, path) };
        let target = BaseUrl::parse("https://h.test/api").unwrap().target(&request);
        assert_eq!(target.as_ref().map(Url::as_str).ok(), expected);
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
    #[case(" ")]
    #[case("https://evil.test/x")]
    fn paths_that_leave_the_base_are_rejected(#[case] path: &str) {
        let base = BaseUrl::parse("https://h.test/api").unwrap();
        assert!(matches!(base.target(&Request::new(Method::GET, path)), Err(ServerError::Request { .. })));
    }

    #[rstest]
    #[case::query("?page=2", Ok("https://h.test/api/orders?page=2&k=1"))]
    #[case::path("/api/x?k=2", Ok("https://h.test/api/x?k=2"))]
    #[case::relative("others?a=b%20c&d", Ok("https://h.test/api/others?a=b%20c&d&k=1"))]
    #[case::absolute(" HTTPS://H.test:443/api/x#y ", Ok("https://h.test/api/x?k=1"))]
    #[case::base("/api", Ok("https://h.test/api?k=1"))]
    #[case::host("https://evil.test/api/x?t=1", Err("https://evil.test/api/x, is not of the origin of"))]
    #[case::network_path("//evil.test/api/x", Err("https://evil.test/api/x, is not of the origin of"))]
    #[case::backslashes("\\\\evil.test/api/x", Err("https://evil.test/api/x, is not of the origin of"))]
    #[case::scheme("http://h.test/api/x", Err("http://h.test/api/x, is not of the origin of"))]
    #[case::port("https://h.test:8443/api/x", Err("https://h.test:8443/api/x, is not of the origin of"))]
    #[case::user(
        "https://u:p@h.test/api/x",
        Err("https://h.test/api/x, is a URL with a user, unlike https://h.test/api/;")
    )]
    #[case::other_scheme("javascript:x", Err("javascript:x, is not of the origin of"))]
    #[case::path_outside("/apis/x?t=1", Err("https://h.test/apis/x, is not below https://h.test/api/;"))]
    #[case::dots("/api/../x", Err("https://h.test/x, is not below"))]
    #[case::encoded_dots("/api/%2e%2E/x", Err("https://h.test/x, is not below"))]
    #[case::no_url("https://", Err("the link to the next page is not a URL: empty host"))]
    fn links_stay_below_the_base(#[case] reference: &str, #[case] expected: Result<&str, &str>) {
        let base = BaseUrl::parse("https://h.test/api/?k=1").unwrap();
        let request = Request::new(Method::GET, "/orders");
        let linked = request.following(&base.target(&request).unwrap(), reference);
        let linked = linked.and_then(|linked| base.target(&linked));
        match (linked.map_err(|error| error.to_string()), expected) {
            (Ok(url), Ok(expected)) => assert_eq!(url.as_str(), expected),
            (Err(message), Err(expected)) => {
                assert!(message.starts_with("GET /orders: ") && message.contains(expected), "{message}");
                assert!(!message.contains("k=1") && !message.contains("t=1") && !message.contains(":p@"));
            }
            (linked, _) => panic!("{linked:?}"),
        }
    }

    #[rstest]
    #[case("https://h.test/other?q=1", true)]
    #[case("https://h.test:443/", true)]
    #[case("http://h.test/", false)]
    #[case("https://h.test:444/", false)]
    #[case("https://evil.test/", false)]
    #[case("https://h.test.evil.test/", false)]
    fn origins(#[case] url: &str, #[case] same: bool) {
        let base = BaseUrl::parse("https://H.test/api").unwrap();
        assert_eq!(base.origin_is(&Url::parse(url).unwrap()), same);
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
