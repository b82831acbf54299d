//! The outcome of an attempt, and its meaning for the span and for the gate.

use http::StatusCode;
use tracing::Span;

use crate::error::Categorized as _;
use crate::server::gate::{Answer, Outcome};
use crate::server::{Response, ServerError};
use crate::spans;
use crate::transport::retry::Failure;

/// An attempt that did not end in a successful answer.
pub(super) struct Failed {
    pub error: ServerError,
    pub failure: Failure,
}

impl Failed {
    pub(super) fn finally(error: ServerError) -> Self {
        Self { error, failure: Failure::Final }
    }

    /// Returns the failure of an attempt that this process or its proxy refused.
    pub(super) fn unsent(error: ServerError) -> Self {
        Self { error, failure: Failure::Unsent }
    }

    /// Returns the failure to follow a redirect: the server has answered.
    pub(super) fn after_an_answer(self) -> Self {
        let failure = if matches!(self.failure, Failure::Unsent) { Failure::Final } else { self.failure };
        Self { failure, ..self }
    }
}

/// Records the outcome of an attempt in its span.
pub(super) fn conclude(span: &Span, outcome: &Result<Response, Failed>) {
    if span.is_disabled() {
        return;
    }
    let status =
        outcome.as_ref().map_or_else(|failed| failed.error.status(), |response| Some(response.status));
    if let Some(status) = status {
        span.record("http.response.status_code", status.as_u16());
    }
    if let Err(failed) = outcome {
        spans::failed(span, status.as_ref().map_or(failed.error.category().as_str(), StatusCode::as_str));
    }
}

/// Converts the outcome of an attempt for the gate; `None` if the attempt was not sent, so that it shows nothing about
/// the server.
pub(super) fn lesson(outcome: &Result<Response, Failed>) -> Option<Outcome<'_>> {
    let answer = |status, retry_after| Outcome::Answered(Answer { status, retry_after });
    Some(match outcome {
        Ok(response) => answer(response.status, None),
        Err(Failed { failure: Failure::Unsent, .. }) => return None,
        Err(Failed {
            failure: Failure::Status(status, retry_after) | Failure::Locked(status, retry_after),
            ..
        }) => answer(*status, *retry_after),
        Err(Failed { error: ServerError::Transport { reason, .. }, failure })
            if !matches!(failure, Failure::Final | Failure::Elsewhere) =>
        {
            Outcome::Failed(reason)
        }
        // An answer that is rejected here: too large, or a redirect that is not followed or leads nowhere.
        Err(_) => answer(StatusCode::OK, None),
    })
}
