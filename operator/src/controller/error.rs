//! Failures of a round, each with its condition reason.

use std::path::PathBuf;

use super::outcome::{Outcome, Reason};
use crate::directories;

/// A failure that ends a round. Its message becomes that of the Ready condition. It names the field, path
/// or Secret at fault and never holds a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub reason: Reason,
    pub message: String,
    /// A more specific event than that of the reason.
    pub event: Option<&'static str>,
}

impl Failure {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), event: None }
    }

    /// Adds a more specific event.
    #[must_use]
    pub fn with_event(self, event: &'static str) -> Self {
        Self { event: Some(event), ..self }
    }

    /// Returns the failure of this process or its disk.
    pub fn internal(error: &impl std::fmt::Display) -> Self {
        Self::new(Reason::ReconcileFailed, error.to_string())
    }

    pub fn spec_invalid(message: impl Into<String>) -> Self {
        Self::new(Reason::SpecInvalid, message)
    }

    pub fn dependency_invalid(message: impl Into<String>) -> Self {
        Self::new(Reason::DependencyInvalid, message)
    }

    /// Returns the failure of a request to the Kubernetes API without a more specific reason.
    pub fn api(action: &str, error: &kube::Error) -> Self {
        let cause = match error {
            kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
            other => other.to_string(),
        };
        Self::new(Reason::ReconcileFailed, format!("cannot {action}: {cause}"))
    }
}

/// Runs `work` on a thread that may block.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Failure::internal(&error)))
}

/// Removes a directory of a deleted object on a thread that may block. A directory that does not exist is not an error.
pub async fn remove(directory: PathBuf) -> Result<(), Failure> {
    blocking(move || directories::remove(&directory).map_err(|error| Failure::internal(&error))).await
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self { event: failure.event, ..Self::new(failure.reason, failure.message) }
    }
}
