//! Traces one request and its answer. Texts are redacted.

use std::borrow::Cow;
use std::time::Duration;

use http::header::{
    AUTHORIZATION, CONTENT_LOCATION, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, LINK,
    LOCATION, PROXY_AUTHORIZATION, SET_COOKIE,
};
use http::{Method, StatusCode};
use url::Url;

use super::redaction::Redaction;
use super::trace::{ALL, ERRORS, LINES, Trace};
use crate::payload::form;
use crate::secrets::{Confidential, Secret, excerpt, is_secret_name};

const REDACTED: &str = "<redacted>";
/// The largest part of a body that is shown at level [`ERRORS`], in characters.
const ERROR_BODY: usize = 1024;
/// The largest part of a body that is shown at higher levels, in characters.
const BODY: usize = 4096;

/// The trace of one exchange, with the secrets that it must not show.
pub(super) struct ExchangeTrace<'a> {
    pub trace: &'a Trace,
    pub redaction: &'a Redaction,
    /// Further secrets of this request.
    pub secrets: &'a [Secret],
    /// Confidential members of its bodies.
    pub confidential: &'a Confidential,
    /// Whether the request is a read.
    pub looks: bool,
    /// Whether the request is for a token. Its bodies are never shown.
    pub token: bool,
}

impl ExchangeTrace<'_> {
    pub fn request(&self, method: &Method, url: &Url, auth: &str, headers: &HeaderMap, body: Option<&[u8]>) {
        self.trace.line(LINES, || format!("{method} {} (auth: {auth})", self.url(url)));
        self.headers(">", headers);
        if let Some(body) = body {
            let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let is_form = media_type.is_some_and(form::is_form) && !self.trace.reveal;
            let form = is_form.then(|| self.confidential.redact_form(&String::from_utf8_lossy(body)));
            self.body(ALL, ">", form.as_ref().map_or(body, |form| form.as_bytes()), BODY, self.confidential);
        }
    }

    pub fn answer(&self, status: StatusCode, took: Duration, headers: &HeaderMap, body: &[u8]) {
        self.trace.line(LINES, || format!("{status} in {} ms", took.as_millis()));
        self.headers("<", headers);
        // An error describes the fault of a member, not its value.
        let said = &Confidential::default();
        let confidential = if status.is_success() { self.confidential } else { said };
        if self.trace.includes(ALL) {
            self.body(ALL, "<", body, BODY, confidential);
        } else if self.is_failure(status) {
            let limit = if self.trace.includes(LINES) { BODY } else { ERROR_BODY };
            self.body(ERRORS, "<", body, limit, confidential);
        }
    }

    /// Whether the status is an error. A read of an absent resource is not an error.
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
            // The scheme is not secret (RFC 9110 section 11.4).
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

    /// Returns `url` without user and password, and without the values of its query parameters.
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

/// Removes the values of query parameters from links. A server may put a key into the link to the next page.
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
    use std::sync::{Arc, Mutex};

    use rstest::rstest;

    use super::*;

    fn logged(level: u8, reveal: bool, token: bool) -> String {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let trace = Trace::new(level, reveal, move |level, line| {
            kept.lock().unwrap().push(format!("{level} {line}"));
        });
        let redaction = Redaction::new(&[Secret::from("canary-key".to_owned())], None);
        let confidential = &Confidential::default();
        let exchange_trace = ExchangeTrace {
            trace: &trace,
            redaction: &redaction,
            secrets: &[],
            confidential,
            looks: false,
            token,
        };
        let mut key = HeaderValue::from_static("canary-key");
        key.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, HeaderValue::from_static("Bearer canary-token")),
            (PROXY_AUTHORIZATION, HeaderValue::from_static("canary-proxy")),
            (HeaderName::from_static("x-key"), key),
            (HeaderName::from_static("x-tenant"), HeaderValue::from_static("blue")),
        ]);
        let url = Url::parse("https://user:canary-pass@h.test/x?key=canary-query&b=").unwrap();
        exchange_trace.request(&Method::PUT, &url, "oauth2", &headers, Some(b"{\"echo\": \"canary-key\"}"));
        let headers = HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static("sid=canary-cookie"))]);
        exchange_trace.answer(
            StatusCode::BAD_REQUEST,
            Duration::from_millis(7),
            &headers,
            b" no canary-key \n",
        );
        let lines = lines.lock().unwrap();
        lines.join("\n")
    }

    #[test]
    fn detail_rises_with_the_level() {
        assert_eq!(logged(0, false, false), "");
        insta::assert_snapshot!(logged(1, false, false), @"1 < no <redacted>");
        insta::assert_snapshot!(logged(2, false, false), @r"
        2 PUT https://h.test/x?key=<redacted>&b=<redacted> (auth: oauth2)
        2 400 Bad Request in 7 ms
        1 < no <redacted>
        ");
        insta::assert_snapshot!(logged(3, false, false), @r#"
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
    fn reveal_shows_secrets() {
        let logged = logged(3, true, false);
        for secret in ["canary-key", "canary-token", "canary-proxy", "canary-query", "canary-cookie"] {
            assert!(logged.contains(secret), "{logged}");
        }
        assert!(!logged.contains("canary-pass"), "{logged}");
    }

    #[rstest]
    #[case(false)]
    #[case(true)]
    fn tokens_are_never_shown(#[case] reveal: bool) {
        let logged = logged(3, reveal, true);
        assert!(!logged.contains("canary") && logged.contains("PUT https://h.test/x"), "{logged}");
    }

    #[test]
    fn long_bodies_are_cut() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let trace = Trace::new(1, false, move |_, line| kept.lock().unwrap().push(line.to_owned()));
        let redaction = Redaction::new(&[], None);
        let (secrets, confidential, token) = (&[], &Confidential::default(), false);
        let exchange_trace = ExchangeTrace {
            trace: &trace,
            redaction: &redaction,
            secrets,
            confidential,
            looks: false,
            token,
        };
        let body = "é".repeat(2000);
        exchange_trace.answer(StatusCode::BAD_GATEWAY, Duration::ZERO, &HeaderMap::new(), body.as_bytes());
        assert_eq!(*lines.lock().unwrap(), [format!("< {}…", "é".repeat(ERROR_BODY))]);
    }
}
