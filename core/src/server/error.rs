//! The errors of requests to a managed server.

use http::{Method, StatusCode};

use crate::error::{Categorized, Category, categories};
use crate::memory::Shortage;
use crate::transport::TransportError;

/// A failed request, or settings that do not allow any request.
///
/// Texts from the server are shortened and redacted. Credentials never appear.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServerError {
    /// The base URL cannot be used.
    #[error("base URL: {0}")]
    BaseUrl(String),
    /// A setting of the client cannot be used.
    #[error("{setting}: {reason}")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
        /// The fault.
        reason: String,
    },
    /// The TLS and proxy settings do not allow an HTTP client.
    #[error(transparent)]
    Connector(#[from] TransportError),
    /// A request that cannot be sent: its path leaves the base URL, or a header cannot be encoded.
    #[error("{method} {path}: {reason}")]
    Request {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The fault.
        reason: String,
    },
    /// The server answered with a status of 400 or more, or with a redirect that is not allowed.
    #[error("{method} {path}: remote request failed with status {status}: {excerpt}", status = .status.as_u16())]
    Status {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The answer's status.
        status: StatusCode,
        /// The first 256 characters of the body as one line, then `…` if there are more; `<empty>` for none.
        excerpt: String,
    },
    /// The server could not be reached, or its answer is incomplete.
    #[error("{method} {path}: {reason}")]
    Transport {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The cause.
        reason: String,
        /// Whether the server may have received the request.
        sent: Sent,
    },
    /// The token endpoint rejected the credentials, or its answer has no usable token.
    #[error("no access token from {url}: {reason}")]
    Token {
        /// The token endpoint, without its query.
        url: String,
        /// Its answer, or the fault in it.
        reason: String,
    },
    /// The token endpoint cannot be reached, or cannot answer now.
    #[error("no access token from {url}: {source}")]
    TokenUnavailable {
        /// The token endpoint, without its query.
        url: String,
        /// The cause.
        #[source]
        source: Box<ServerError>,
    },
    /// The proxy requires credentials, or rejected them (HTTP 407).
    #[error("{method} {path}: the proxy {proxy} rejected the credentials, or requires some")]
    ProxyCredentials {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The proxy, without credentials.
        proxy: String,
    },
    /// The request was not sent, because the server asked for a pause or could not be reached just before. If an
    /// earlier attempt may have arrived, its error is returned instead.
    #[error("{method} {path}: not contacted: {reason}")]
    NotContacted {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The cause and the time of the next attempt.
        reason: String,
    },
    /// The request was not sent, because its run was cancelled. If an earlier attempt may have arrived, its error is
    /// returned instead.
    #[error("{method} {path}: not sent: the run was cancelled")]
    Cancelled {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
    },
    /// The answer exceeds the size limit.
    #[error("{method} {path}: the answer is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The decoded answer needs too much memory.
    #[error("{method} {path}: the answer has too many values: decoded, it exceeds the limit of memory")]
    TooHeavy {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
    },
    /// The answer was not read completely, because the memory for it is not available.
    #[error("{method} {path}: the answer was not read: {shortage}")]
    Memory {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The cause.
        shortage: Shortage,
    },
    /// The answer cannot be decoded in its content type.
    #[error("{method} {path}: cannot decode the answer ({content_type}): {reason}")]
    Decode {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The answer's Content-Type, `no content type` for none.
        content_type: String,
        /// The fault.
        reason: String,
    },
    /// Too many requests already wait (`requestThrottling.queueSize`).
    #[error(
        "{method} {path}: queue_full: {waiting} requests wait already; raise requestThrottling.queueSize"
    )]
    QueueFull {
        /// The HTTP method.
        method: Method,
        /// The unencoded path.
        path: String,
        /// The configured queue size.
        waiting: usize,
    },
}

/// Whether the server may have received a request that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The server has not received it.
    No,
    /// The connection broke; the server may have carried it out.
    Unanswered,
    /// The server did not answer in time; it may still carry it out.
    TimedOut,
}

impl ServerError {
    /// Returns the error of a setting that cannot be used.
    pub(super) fn setting(setting: &'static str, reason: impl Into<String>) -> Self {
        Self::Setting { setting, reason: reason.into() }
    }

    /// Returns the error with `redact` applied to each text that may come from a server or a payload.
    pub(super) fn with_texts(mut self, redact: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Self::Request { path, reason, .. }
            | Self::Transport { path, reason, .. }
            | Self::NotContacted { path, reason, .. }
            | Self::Decode { path, reason, .. } => {
                *path = redact(path);
                *reason = redact(reason);
            }
            Self::Status { path, excerpt, .. } => {
                *path = redact(path);
                *excerpt = redact(excerpt);
            }
            Self::ProxyCredentials { path, .. }
            | Self::Cancelled { path, .. }
            | Self::TooLarge { path, .. }
            | Self::TooHeavy { path, .. }
            | Self::Memory { path, .. }
            | Self::QueueFull { path, .. } => *path = redact(path),
            Self::BaseUrl(_)
            | Self::Setting { .. }
            | Self::Connector(_)
            | Self::Token { .. }
            | Self::TokenUnavailable { .. } => {}
        }
        self
    }

    /// Returns the status if a status decided the failure.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the answer states that the server has refused the request because the resource is locked for a time: 423 (RFC
    /// 4918 §11.3), or 409 with such words. Octavia calls a load balancer immutable while it is being changed.
    pub(super) fn states_a_lock(&self) -> bool {
        const WORDS: [&str; 7] = [
            "immutable and cannot be updated",
            "is locked",
            "is being ",
            "in progress",
            "inprogress",
            "pending_",
            "try again",
        ];
        let Self::Status { status, excerpt, .. } = self else { return false };
        *status == StatusCode::LOCKED || *status == StatusCode::CONFLICT && has_any(excerpt, &WORDS)
    }

    /// Whether the server refuses a request because it changes what cannot be changed, according to its words. A 409 with such
    /// words may be temporary.
    pub fn is_about_fixed_attributes(&self) -> bool {
        const WORDS: [&str; 6] = [
            "inequivalent", "immutable", "cannot be changed", "cannot change", "cannot be modified",
            "can't be changed",
        ];
        let Self::Status { status, excerpt, .. } = self else { return false };
        let is_rejection =
            (status.is_client_error() && *status != StatusCode::CONFLICT) || status.is_success();
        is_rejection && has_any(excerpt, &WORDS)
    }

    /// Whether the server reported that the resource does not exist (HTTP 404 and 410).
    pub fn is_gone(&self) -> bool {
        matches!(self.status(), Some(StatusCode::NOT_FOUND | StatusCode::GONE))
    }

    /// Whether the server reported that the resource has changed since the version in the request's condition (HTTP
    /// 412).
    pub fn is_outdated(&self) -> bool {
        self.status() == Some(StatusCode::PRECONDITION_FAILED)
    }

    /// Whether the server may have carried out the request in spite of the error: the answer was lost, or a gateway
    /// answered for the server.
    pub fn may_be_done(&self) -> bool {
        match self {
            Self::Transport { sent, .. } => *sent != Sent::No,
            Self::TooLarge { .. } | Self::Memory { .. } => true,
            // The statuses without a standard are those of nginx, Cloudflare and other gateways.
            Self::Status { status, .. } => {
                matches!(status.as_u16(), 499 | 502..=504 | 520..=527 | 530 | 598 | 599)
            }
            _ => false,
        }
    }

    /// Whether the server may still be working on the request: it did not answer in time, or a gateway reported that
    /// (HTTP 504, and 499, 522, 524, 598 and 599 of some gateways).
    pub fn may_still_be_done(&self) -> bool {
        let is_late = |status: StatusCode| matches!(status.as_u16(), 499 | 504 | 522 | 524 | 598 | 599);
        matches!(self, Self::Transport { sent: Sent::TimedOut, .. }) || self.status().is_some_and(is_late)
    }

    /// Whether the server was unreachable or overloaded (HTTP 408, 425, 429, 502, 503, 504).
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status.as_u16(), 408 | 425 | 429 | 502 | 503 | 504),
            Self::TooLarge { .. } | Self::Memory { .. } | Self::Cancelled { .. } => false,
            _ => self.category() == Category::Transport,
        }
    }

    /// Whether the server has not received this attempt.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(
            self,
            Self::NotContacted { .. }
                | Self::Cancelled { .. }
                | Self::QueueFull { .. }
                | Self::Token { .. }
                | Self::TokenUnavailable { .. }
                | Self::Transport { sent: Sent::No, .. }
        )
    }

    /// Whether the server reported that the resource already exists (HTTP 409). A full queue is another error.
    pub fn is_already_exists(&self) -> bool {
        self.status() == Some(StatusCode::CONFLICT)
    }
}

categories!(ServerError {
    {
        Self::Status { status, .. } => status_category(*status),
    }
    .0: Connector;
    .source: TokenUnavailable;
    Validation: BaseUrl, Setting, Request, TooHeavy, Decode;
    Auth: ProxyCredentials, Token;
    Conflict: QueueFull;
    Transport: Transport, NotContacted, Cancelled, TooLarge, Memory;
});

fn status_category(status: StatusCode) -> Category {
    match status.as_u16() {
        401 | 403 => Category::Auth,
        404 | 410 => Category::NotFound,
        409 | 412 => Category::Conflict,
        408 | 425 | 429 => Category::Transport,
        // An answer with a status of success that states a failure.
        200..=299 | 400..=499 => Category::Validation,
        _ => Category::Transport,
    }
}

/// Whether the text has one of these words, in any case.
fn has_any(text: &str, words: &[&str]) -> bool {
    let text = text.to_ascii_lowercase();
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::unauthorized(&[401, 403], Category::Auth)]
    #[case::gone(&[404, 410], Category::NotFound)]
    #[case::conflict(&[409, 412], Category::Conflict)]
    #[case::try_later(&[408, 425, 429], Category::Transport)]
    #[case::our_fault(&[400, 402, 405, 406, 407, 411, 413, 414, 415, 418, 421, 422, 423, 424, 426, 428, 431, 451, 499], Category::Validation)]
    #[case::not_followed(&[300, 301, 302, 303, 305, 307, 308], Category::Transport)]
    #[case::their_fault(&[500, 501, 502, 503, 504, 505, 507, 511, 520, 599, 600, 999], Category::Transport)]
    fn statuses_map_to_categories(#[case] statuses: &[u16], #[case] expected: Category) {
        for status in statuses {
            let status = StatusCode::from_u16(*status).unwrap();
            assert_eq!(status_category(status), expected, "{status}");
            let (method, path, excerpt) = (Method::GET, "/x".to_owned(), "<empty>".to_owned());
            let error = ServerError::Status { method, path, status, excerpt };
            assert_eq!(error.category(), expected);
            assert_eq!(error.is_gone(), matches!(status.as_u16(), 404 | 410));
            assert_eq!(error.is_already_exists(), status == StatusCode::CONFLICT);
            assert_eq!(error.is_outdated(), status == StatusCode::PRECONDITION_FAILED);
        }
    }

    #[test]
    fn a_full_queue_is_a_conflict_but_not_an_existing_resource() {
        let error = ServerError::QueueFull { method: Method::POST, path: "/x".to_owned(), waiting: 1 };
        assert_eq!(error.category(), Category::Conflict);
        assert!(!error.is_already_exists() && !error.may_be_done());
        assert!(error.to_string().contains("queue_full"), "{error}");
    }
}
