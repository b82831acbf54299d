//! What is told about requests and answers to whoever looks for a fault: redacted, and by rising detail.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{
    AUTHORIZATION, CONTENT_LOCATION, COOKIE, HeaderMap, HeaderName, HeaderValue, LINK, LOCATION,
    PROXY_AUTHORIZATION, SET_COOKIE,
};
use http::{Method, StatusCode};
use url::Url;

use super::wire::Redaction;
use crate::secrets::{Confidential, Redactor, Secret, excerpt, is_secret_name};

const REDACTED: &str = "<redacted>";
/// How much of a body is told with an error, in characters.
const ERROR_BODY: usize = 1024;
/// How much of a body is told with all else, in characters.
const BODY: usize = 4096;

/// The bodies of errors.
pub const ERRORS: u8 = 1;
/// Also what is asked, what is answered, how long it took and how requests are authenticated.
pub const LINES: u8 = 2;
/// Also headers and bodies, and where TLS settings come from.
pub const ALL: u8 = 3;

type Tell = dyn Fn(u8, &str) + Send + Sync;
type Hidden = dyn Fn() -> Redactor + Send + Sync;

/// Who is told about requests and answers, and how much.
#[derive(Clone)]
pub struct Trace {
    level: u8,
    reveal: bool,
    tell: Arc<Tell>,
    hidden: Option<Arc<Hidden>>,
}

impl Trace {
    /// Tells what is of at most this level, from 0 for nothing to [`ALL`], with its level. With `reveal`
    /// credentials are told as they are, except for those that token endpoints take and give.
    pub fn new(level: u8, reveal: bool, tell: impl Fn(u8, &str) + Send + Sync + 'static) -> Self {
        Self { level, reveal, tell: Arc::new(tell), hidden: None }
    }

    /// The same for who knows more secrets than the client: what `hidden` gives at the time takes them out of what is
    /// told, and out of the errors of the client, before it is cut off.
    #[must_use]
    pub fn hiding(self, hidden: impl Fn() -> Redactor + Send + Sync + 'static) -> Self {
        Self { hidden: Some(Arc::new(hidden)), ..self }
    }

    /// What takes out the secrets that only others know.
    pub(super) fn hidden(&self) -> Option<Redactor> {
        self.hidden.as_ref().map(|hidden| hidden())
    }

    fn tells(&self, level: u8) -> bool {
        self.level >= level
    }

    /// Tells a line of this level, if that is wanted.
    pub(super) fn line(&self, level: u8, text: impl FnOnce() -> String) {
        if self.tells(level) {
            (self.tell)(level, &text());
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("level", &self.level)
            .field("reveal", &self.reveal)
            .finish_non_exhaustive()
    }
}

/// A trace with what it must not tell.
pub(super) struct Teller<'a> {
    pub trace: &'a Trace,
    pub redaction: &'a Redaction,
    /// What of this request is secret besides.
    pub secrets: &'a [Secret],
    /// What else of its bodies is.
    pub confidential: &'a Confidential,
    /// Whether this is a read.
    pub looks: bool,
    /// Whether this is about a token, whose bodies are never told.
    pub token: bool,
}

impl Teller<'_> {
    pub fn request(&self, method: &Method, url: &Url, auth: &str, headers: &HeaderMap, body: Option<&[u8]>) {
        self.trace.line(LINES, || format!("{method} {} (auth: {auth})", self.url(url)));
        self.headers(">", headers);
        if let Some(body) = body {
            self.body(ALL, ">", body, BODY, self.confidential);
        }
    }

    pub fn answer(&self, status: StatusCode, took: Duration, headers: &HeaderMap, body: &[u8]) {
        self.trace.line(LINES, || format!("{status} in {} ms", took.as_millis()));
        self.headers("<", headers);
        // An error says what is wrong with a member, and not what is in it.
        let said = &Confidential::default();
        let confidential = if status.is_success() { self.confidential } else { said };
        if self.trace.tells(ALL) {
            self.body(ALL, "<", body, BODY, confidential);
        } else if self.is_failure(status) {
            let limit = if self.trace.tells(LINES) { BODY } else { ERROR_BODY };
            self.body(ERRORS, "<", body, limit, confidential);
        }
    }

    /// That what is looked for is not there is no failure.
    fn is_failure(&self, status: StatusCode) -> bool {
        let absent = self.looks && matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE);
        !absent && (status.is_client_error() || status.is_server_error())
    }

    fn headers(&self, direction: &str, headers: &HeaderMap) {
        for (name, value) in headers {
            self.trace.line(ALL, || format!("{direction} {name}: {}", self.header(name, value)));
        }
    }

    fn header<'v>(&self, name: &HeaderName, value: &'v HeaderValue) -> Cow<'v, str> {
        let text = String::from_utf8_lossy(value.as_bytes());
        if self.trace.reveal && !self.token {
            return text;
        }
        if *name == AUTHORIZATION || *name == PROXY_AUTHORIZATION {
            // The scheme is no secret (RFC 9110 section 11.4).
            return match text.split_once(' ') {
                Some((scheme, _)) => format!("{scheme} {REDACTED}").into(),
                None => REDACTED.into(),
            };
        }
        let cookie = *name == COOKIE || *name == SET_COOKIE;
        if value.is_sensitive() || cookie || is_secret_name(name.as_str()) {
            return REDACTED.into();
        }
        if *name == LINK || *name == LOCATION || *name == CONTENT_LOCATION {
            return self.redact(&without_query_values(&text)).into();
        }
        self.redact(&text).into()
    }

    fn redact(&self, text: &str) -> String {
        self.redaction.redact_with(self.secrets, text)
    }

    fn body(&self, level: u8, direction: &str, body: &[u8], limit: usize, confidential: &Confidential) {
        if self.token || body.is_empty() {
            return;
        }
        self.trace.line(level, || {
            let text = String::from_utf8_lossy(body);
            let text = if self.trace.reveal {
                text
            } else {
                self.redaction.redact_body(self.secrets, &text, confidential).into()
            };
            format!("{direction} {}", excerpt(text.trim(), limit))
        });
    }

    /// Without user and password, and with the names of query parameters only.
    fn url(&self, url: &Url) -> String {
        let mut shown = url.clone();
        let _ = (shown.set_username(""), shown.set_password(None));
        if self.trace.reveal && !self.token {
            return shown.into();
        }
        let names: Vec<_> = url.query_pairs().map(|(name, _)| format!("{name}={REDACTED}")).collect();
        shown.set_query(None);
        let path = self.redact(shown.as_str());
        if names.is_empty() { path } else { format!("{path}?{}", names.join("&")) }
    }
}

/// Links with the names of their query parameters only: what a server puts into the link to the next page may be a key
/// of ours or of its own.
fn without_query_values(text: &str) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(query) = rest.find('?') {
        shown.push_str(&rest[..=query]);
        rest = &rest[query + 1..];
        let end = rest.find(|c: char| matches!(c, '>' | '#' | '"') || c.is_whitespace());
        let (pairs, after) = rest.split_at(end.unwrap_or(rest.len()));
        let pairs = pairs.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) => Cow::from(format!("{name}={REDACTED}")),
            None => pair.into(),
        });
        shown.push_str(&pairs.collect::<Vec<_>>().join("&"));
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rstest::rstest;

    use super::*;

    fn told(level: u8, reveal: bool, token: bool) -> String {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let trace = Trace::new(level, reveal, move |level, line| {
            kept.lock().unwrap().push(format!("{level} {line}"));
        });
        let redaction = Redaction::new(&[Secret::from("canary-key".to_owned())], None);
        let confidential = &Confidential::default();
        let teller =
            Teller { trace: &trace, redaction: &redaction, secrets: &[], confidential, looks: false, token };
        let mut key = HeaderValue::from_static("canary-key");
        key.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, HeaderValue::from_static("Bearer canary-token")),
            (PROXY_AUTHORIZATION, HeaderValue::from_static("canary-proxy")),
            (HeaderName::from_static("x-key"), key),
            (HeaderName::from_static("x-tenant"), HeaderValue::from_static("blue")),
        ]);
        let url = Url::parse("https://user:canary-pass@h.test/x?key=canary-query&b=").unwrap();
        teller.request(&Method::PUT, &url, "oauth2", &headers, Some(b"{\"echo\": \"canary-key\"}"));
        let headers = HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static("sid=canary-cookie"))]);
        teller.answer(StatusCode::BAD_REQUEST, Duration::from_millis(7), &headers, b" no canary-key \n");
        let lines = lines.lock().unwrap();
        lines.join("\n")
    }

    #[test]
    fn detail_rises_with_the_level() {
        assert_eq!(told(0, false, false), "");
        insta::assert_snapshot!(told(1, false, false), @"1 < no <redacted>");
        insta::assert_snapshot!(told(2, false, false), @r"
        2 PUT https://h.test/x?key=<redacted>&b=<redacted> (auth: oauth2)
        2 400 Bad Request in 7 ms
        1 < no <redacted>
        ");
        insta::assert_snapshot!(told(3, false, false), @r#"
        2 PUT https://h.test/x?key=<redacted>&b=<redacted> (auth: oauth2)
        3 > authorization: Bearer <redacted>
        3 > proxy-authorization: <redacted>
        3 > x-key: <redacted>
        3 > x-tenant: blue
        3 > {"echo": "<redacted>"}
        2 400 Bad Request in 7 ms
        3 < set-cookie: <redacted>
        3 < no <redacted>
        "#);
    }

    #[test]
    fn what_is_revealed_is_asked_for() {
        let told = told(3, true, false);
        for secret in ["canary-key", "canary-token", "canary-proxy", "canary-query", "canary-cookie"] {
            assert!(told.contains(secret), "{told}");
        }
        assert!(!told.contains("canary-pass"), "{told}");
    }

    #[rstest]
    #[case(false)]
    #[case(true)]
    fn tokens_are_never_told(#[case] reveal: bool) {
        let told = told(3, reveal, true);
        assert!(!told.contains("canary") && told.contains("PUT https://h.test/x"), "{told}");
    }

    #[test]
    fn long_bodies_are_cut() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let trace = Trace::new(1, false, move |_, line| kept.lock().unwrap().push(line.to_owned()));
        let redaction = Redaction::new(&[], None);
        let (secrets, confidential, token) = (&[], &Confidential::default(), false);
        let teller =
            Teller { trace: &trace, redaction: &redaction, secrets, confidential, looks: false, token };
        let body = "é".repeat(2000);
        teller.answer(StatusCode::BAD_GATEWAY, Duration::ZERO, &HeaderMap::new(), body.as_bytes());
        assert_eq!(*lines.lock().unwrap(), [format!("< {}…", "é".repeat(ERROR_BODY))]);
    }
}
