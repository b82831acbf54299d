//! The failure of one resource, as the report shows it.

use std::cell::LazyCell;

use serde::Serialize;

use super::{Doubt, FailureReason, SyncError};
use crate::control::visible;
use crate::path::LogicalPath;
use crate::secrets::SecretReader;
use crate::server::ServerError;

/// One resource that is not in its desired state.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The resource.
    pub path: LogicalPath,
    /// The failed operation.
    pub operation: &'static str,
    /// The reason, one of a fixed set.
    pub reason: FailureReason,
    /// The fault and the correction; never holds a secret.
    pub message: String,
    /// The status of the server, if it decided the failure.
    #[serde(skip)]
    pub http_status: Option<u16>,
    /// Whether something that the run writes later may be missing.
    #[serde(skip)]
    pub may_pass: bool,
    /// Whether an answer that cannot be used caused the failure. The declaration is not its cause.
    #[serde(skip)]
    pub is_of_answer: bool,
}

/// The operation of a failed deletion. Retries distinguish it from a failed apply.
pub const PRUNE: &str = "prune";
/// The operation of a failed deletion of a resource that is created again.
pub const REPLACE: &str = "replace";

/// The operation of a failure that may hide further resources. Only a full run can retry it.
pub const LIST: &str = "list";

impl Failure {
    /// Returns a failure of `operation` on `path`.
    pub fn new(path: LogicalPath, operation: &'static str, error: &SyncError) -> Self {
        let message = visible(&error.to_string()).into_owned();
        let http_status = error.http_status().map(|status| status.as_u16());
        let may_pass = error.may_lack_another();
        let is_of_answer = is_of_answer(error);
        Self { path, operation, reason: error.reason(), message, http_status, may_pass, is_of_answer }
    }

    /// Returns a failure that neither a request caused nor a later write of the run can remove.
    pub fn local(path: LogicalPath, operation: &'static str, reason: FailureReason, message: String) -> Self {
        let (http_status, may_pass, is_of_answer) = Default::default();
        Self { path, operation, reason, message, http_status, may_pass, is_of_answer }
    }

    /// Returns the message, with the path of the resource if the message does not contain it.
    pub fn with_path(&self) -> String {
        if self.message.contains(self.path.as_str()) {
            return self.message.clone();
        }
        format!("{}: {}", self.path, self.message)
    }
}

/// Whether an answer arrived that cannot be used. A status of 4xx, or a stated failure, may be about the declaration.
fn is_of_answer(error: &SyncError) -> bool {
    let is_unusable =
        |error: &ServerError| matches!(error, ServerError::Decode { .. } | ServerError::TooHeavy { .. });
    matches!(error, SyncError::Undecided(_, Doubt::NotAList(_, false)))
        || error.of_server().is_some_and(is_unusable)
}

/// Redacts the secrets that `secrets` has read: the failure of one resource may show the secret of another.
pub(crate) fn hide<'f>(failures: impl IntoIterator<Item = &'f mut Failure>, secrets: &SecretReader) {
    // Most runs have no failures and need no redactor.
    let redactor = LazyCell::new(|| secrets.redactor());
    for failure in failures {
        failure.message = redactor.redact(&failure.message);
    }
}
