//! Failures of a round of work, each with the reason that its object will show.

use declarest_core::error::{Categorized, Category};

use super::outcome::{Outcome, Reason};

/// A failure that ends a round of work. Its message becomes the Ready condition's, so it names the field,
/// path or Secret at fault and never holds a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub reason: Reason,
    pub message: String,
}

impl Failure {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    pub fn spec_invalid(message: impl Into<String>) -> Self {
        Self::new(Reason::SpecInvalid, message)
    }

    pub fn dependency_invalid(message: impl Into<String>) -> Self {
        Self::new(Reason::DependencyInvalid, message)
    }

    /// The reason for an error of the Kubernetes API that no code treats specially.
    pub fn api(action: &str, error: &kube::Error) -> Self {
        let cause = match error {
            kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
            other => other.to_string(),
        };
        Self::new(Reason::ReconcileFailed, format!("cannot {action}: {cause}"))
    }

    /// Maps an error of the core by its category: what a change of the spec cures is `invalid`, refused
    /// credentials are `auth`, the rest is `unavailable` and tried again.
    pub fn from_category(
        error: &impl Categorized,
        invalid: Reason,
        auth: Reason,
        unavailable: Reason,
    ) -> Self {
        let reason = match error.category() {
            Category::Validation | Category::NotFound => invalid,
            Category::Auth => auth,
            Category::Transport => unavailable,
            Category::Conflict | Category::Internal => Reason::ReconcileFailed,
        };
        Self::new(reason, error.to_string())
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::new(failure.reason, failure.message)
    }
}
