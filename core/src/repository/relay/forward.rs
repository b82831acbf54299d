//! Forwards one request of libgit2 to the remote, and the answer back.

use std::sync::Arc;

use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER,
    USER_AGENT, WWW_AUTHENTICATE,
};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use reqwest::Body;
use sha2::{Digest, Sha256};
use url::{Position, Url};

use super::super::RepositoryError;
use super::super::remote::{Remote, origins};
use super::failure::{FirstFailure, Way};
use crate::error::with_causes;
use crate::transport::client_builder;

/// The request headers that are forwarded. Each connection has its own framing of the body, and `Expect` is answered
/// by the relay.
const REQUEST_HEADERS: [HeaderName; 6] = [
    ACCEPT,
    AUTHORIZATION,
    CONTENT_ENCODING,
    CONTENT_TYPE,
    HeaderName::from_static("git-protocol"),
    USER_AGENT,
];

/// The answer headers that are forwarded. The location of a redirect is translated.
const ANSWER_HEADERS: [HeaderName; 4] = [CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE];

/// An origin that requests may go to. The relay addresses it as `/TOKEN/SCHEME`: all origins have the remote's host,
/// so the scheme distinguishes them.
pub(super) struct Origin {
    /// Contains only scheme, host and port.
    url: Url,
    /// The proxy for this origin, without credentials.
    proxy: Option<String>,
}

impl Origin {
    fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// Returns the origin without a trailing slash.
    fn text(&self) -> &str {
        &self.url[..Position::BeforePath]
    }
}

/// Forwards requests to one remote.
pub(super) struct Forwarder {
    client: reqwest::Client,
    base: String,
    /// Compared as a digest, so that the duration of the comparison reveals nothing about the token.
    token: [u8; 32],
    origins: Vec<Origin>,
    /// The remote, without credentials.
    shown: String,
    certified: bool,
    pub failure: Arc<FirstFailure>,
}

impl Forwarder {
    /// Returns a forwarder. `base` is the address of the relay, up to and including the token.
    pub fn new(remote: &Remote, target: &Url, base: &str) -> Result<Self, String> {
        let origin = |url: Url| {
            let proxy = remote.proxy.serving(&url).map(ToString::to_string);
            Origin { url, proxy }
        };
        let token = base.rsplit('/').next().unwrap_or_default();
        Ok(Self {
            client: client(remote)?,
            base: base.to_owned(),
            token: Sha256::digest(token).into(),
            origins: origins(target).into_iter().map(origin).collect(),
            shown: remote.url.to_string(),
            certified: remote.tls.presents(),
            failure: Arc::default(),
        })
    }

    /// Answers 404 to requests without the token, and 502 if the remote has no answer that may be forwarded.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let Some((origin, target)) = self.target(request.uri()) else {
            return empty(StatusCode::NOT_FOUND);
        };
        match self.forward(request, origin, target).await {
            Ok(answer) => answer,
            Err(error) => {
                self.failure.keep(error);
                empty(StatusCode::BAD_GATEWAY)
            }
        }
    }

    /// Returns the target of a request to the relay.
    fn target(&self, uri: &Uri) -> Option<(&Origin, Url)> {
        let path = uri.path_and_query()?.as_str().strip_prefix('/')?;
        let (token, path) = path.split_once('/')?;
        let (scheme, path) = path.split_once('/')?;
        if Sha256::digest(token)[..] != self.token {
            return None;
        }
        let origin = self.origins.iter().find(|origin| origin.scheme() == scheme)?;
        let target = Url::parse(&format!("{}/{path}", origin.text())).ok()?;
        Some((origin, target))
    }

    async fn forward(
        &self,
        request: Request<Incoming>,
        origin: &Origin,
        target: Url,
    ) -> Result<Response<Body>, RepositoryError> {
        // Stage 1: send the request to the remote.
        let (head, body) = request.into_parts();
        let mut sent = reqwest::Request::new(head.method, target.clone());
        copy(&head.headers, sent.headers_mut(), &REQUEST_HEADERS);
        *sent.body_mut() = Some(Body::wrap(body));
        let way = self.way(origin);
        let answer = self.client.execute(sent).await.map_err(|error| way.explain(&error))?;
        let (head, body) = Response::<Body>::from(answer).into_parts();
        if head.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED && origin.proxy.is_some() {
            return Err(RepositoryError::ProxyCredentials { url: self.shown.clone() });
        }
        // Stage 2: translate the answer.
        let mut headers = HeaderMap::new();
        copy(&head.headers, &mut headers, &ANSWER_HEADERS);
        if let Some(location) = head.headers.get(LOCATION).filter(|_| head.status.is_redirection()) {
            let to = location.to_str().ok().and_then(|location| target.join(location).ok());
            let to = to.ok_or_else(|| way.network("it redirects to an invalid URL"))?;
            let translated = self.translated(origin.scheme(), &to)?.try_into();
            headers.insert(LOCATION, translated.map_err(|_| way.network("it redirects to an invalid URL"))?);
        }
        let failure = Arc::clone(&self.failure);
        let mut back = Response::new(Body::wrap(body.map_err(move |error| {
            failure.keep(way.broken_off(&error));
            error
        })));
        (*back.status_mut(), *back.headers_mut()) = (head.status, headers);
        Ok(back)
    }

    /// Returns the location of a redirect as an address of the relay. Other hosts, and http after https, are an
    /// error.
    pub fn translated(&self, from: &str, to: &Url) -> Result<String, RepositoryError> {
        let downgrade = from == "https" && to.scheme() != "https";
        let origin = self.origins.iter().find(|origin| origin.url.origin() == to.origin() && !downgrade);
        let translated = origin.map(|origin| {
            let path = &to[Position::BeforePath..Position::AfterQuery];
            format!("{}/{}{path}", self.base, origin.scheme())
        });
        translated.ok_or_else(|| {
            let port = to.port_or_known_default().unwrap_or_default();
            RepositoryError::CredentialsElsewhere {
                url: self.shown.clone(),
                host: format!("{}:{port}", to.host_str().unwrap_or_default()),
            }
        })
    }

    fn way(&self, origin: &Origin) -> Way {
        Way { url: self.shown.clone(), proxy: origin.proxy.clone(), certified: self.certified }
    }

    /// Returns the error of the connection between libgit2 and the relay.
    pub fn network(&self, reason: &str) -> RepositoryError {
        RepositoryError::Network { url: self.shown.clone(), reason: format!("the relay to it: {reason}") }
    }

    /// Replaces the relay's addresses with those of the remote.
    pub fn hide(&self, text: &str) -> String {
        let hidden = self.origins.iter().fold(text.to_owned(), |text, origin| {
            text.replace(&format!("{}/{}", self.base, origin.scheme()), origin.text())
        });
        let address = self.base.trim_start_matches("http://").split('/').next().unwrap_or_default();
        hidden.replace(&self.base, &self.shown).replace(address, &self.shown)
    }
}

/// Returns a client that forwards answers unchanged: without decompression and without following redirects.
fn client(remote: &Remote) -> Result<reqwest::Client, String> {
    let builder = client_builder(&remote.tls, &remote.proxy)
        .redirect(reqwest::redirect::Policy::none())
        .no_gzip()
        .no_brotli()
        // libgit2, which makes these requests, uses HTTP/1 only.
        .http1_only();
    builder.build().map_err(|error| with_causes(&error))
}

fn copy(from: &HeaderMap, to: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::from(""));
    *answer.status_mut() = status;
    answer
}
