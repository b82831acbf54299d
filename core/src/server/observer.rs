//! Observes the requests of a client, for metrics and traces. An observer can also prevent requests.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};

/// Observes every attempt, for metrics. It is called from request tasks and must not block.
pub trait RequestObserver: Send + Sync {
    /// Called after an attempt, with the status if the server answered. Attempts at the token endpoint do not count.
    fn completed(&self, method: &Method, status: Option<StatusCode>, elapsed: Duration);
    /// Called when a request waited at the gate, or when the server asked to slow down (429, 503).
    fn throttled(&self, by_server: bool);
    /// Called just before a request is sent. If it returns false, the request is not sent, because this process may no
    /// longer act.
    fn may_send(&self) -> bool {
        true
    }
    /// Adds the headers that connect a request to the server with the trace of the current span. Configured headers
    /// replace them.
    fn propagate(&self, _headers: &mut HeaderMap) {}
    /// Called after a request for an OAuth 2.0 token; `had` is whether it succeeded.
    fn token_asked(&self, _need: TokenNeed, _had: bool) {}
}

/// The reason why a token is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenNeed {
    /// There was no token yet.
    First,
    /// The last token expires.
    Expired,
    /// The server answered 401 to the last token.
    Refused,
    /// The server answered 403 to the last token, which may be older than the permission that it lacks.
    Forbidden,
    /// [`Client::invalidate_token`](super::Client::invalidate_token) dropped the last token.
    Dropped,
}
