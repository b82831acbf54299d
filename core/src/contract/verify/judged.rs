//! The result of one check.

use super::super::finding::clip;
use super::super::snapshot::{FoundWorkload, Read, Snapshot};
use super::super::status::{CheckStatus, Severity};

/// The longest expected or observed value, in characters.
const MAX_VALUE: usize = 256;
/// The longest message, in characters.
const MAX_MESSAGE: usize = 512;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    pub status: CheckStatus,
    pub reason: &'static str,
    pub message: String,
    pub expected: String,
    pub observed: String,
    /// The highest severity of this failure.
    pub at_most: Severity,
}

pub const NOT_DECLARED: &str = "NotDeclared";
pub const NOT_APPLICABLE: &str = "NotApplicable";
pub const DISABLED: &str = "Disabled";
pub const STARTING: &str = "Starting";
pub const OBSERVATION_FAILED: &str = "ObservationFailed";

impl Judged {
    /// The cluster matches the contract.
    pub fn matches(expected: impl Into<String>, observed: impl Into<String>) -> Self {
        Self::new(CheckStatus::True, "Match", &expected.into(), &observed.into())
    }

    /// The cluster differs. `what` is the subject of the message.
    pub fn differs(
        reason: &'static str,
        what: &str,
        expected: impl Into<String>,
        observed: impl Into<String>,
    ) -> Self {
        let mut judged = Self::new(CheckStatus::False, reason, &expected.into(), &observed.into());
        let Self { expected, observed, .. } = &judged;
        judged.message = clip(&format!("{what} expected {expected}, observed {observed}"), MAX_MESSAGE);
        judged
    }

    /// Matches if `is_match`, and differs otherwise.
    pub fn compared(is_match: bool, what: &str, expected: String, observed: String) -> Self {
        if is_match {
            Self::matches(expected, observed)
        } else {
            Self::differs("Mismatch", what, expected, observed)
        }
    }

    /// The contract does not declare what is checked.
    pub fn not_declared() -> Self {
        Self::unknown(NOT_DECLARED, "")
    }

    /// The check makes no sense for this target.
    pub fn not_applicable(message: &str) -> Self {
        Self::unknown(NOT_APPLICABLE, message)
    }

    /// The objects could not be read.
    pub fn failed(message: &str) -> Self {
        Self::unknown(OBSERVATION_FAILED, message)
    }

    pub fn unknown(reason: &'static str, message: &str) -> Self {
        let mut judged = Self::new(CheckStatus::Unknown, reason, "", "");
        judged.message = clip(message, MAX_MESSAGE);
        judged
    }

    #[must_use]
    pub fn expecting(mut self, expected: impl Into<String>) -> Self {
        self.expected = clip(&expected.into(), MAX_VALUE);
        self
    }

    /// Limits the severity to a warning.
    #[must_use]
    pub fn at_most_warning(self) -> Self {
        Self { at_most: Severity::Warning, ..self }
    }

    fn new(status: CheckStatus, reason: &'static str, expected: &str, observed: &str) -> Self {
        let (expected, observed) = (clip(expected, MAX_VALUE), clip(observed, MAX_VALUE));
        Self { status, reason, message: String::new(), expected, observed, at_most: Severity::Error }
    }
}

/// Returns the workload, or the result of a check that needs it.
pub fn workload(snapshot: &Snapshot) -> Result<&FoundWorkload, Judged> {
    match &snapshot.workload {
        Read::Found(workload) => Ok(workload),
        Read::Absent => Err(Judged::not_applicable("the workload does not exist")),
        Read::Failed(reason) => Err(Judged::failed(reason)),
    }
}

/// Returns a list for users: sorted, without duplicates, separated by commas.
pub fn listed<T: Ord + ToString>(values: impl IntoIterator<Item = T>) -> String {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort();
    values.dedup();
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
