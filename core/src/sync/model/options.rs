//! The options of a run.

use std::sync::Arc;

use super::{Progress, Recurrences};

/// Whether a run writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Differences are corrected.
    #[default]
    Apply,
    /// Differences are reported as drift.
    Observe,
}

/// The resources that are read by single requests, not by lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Each resource. A list may only prove that a resource does not exist.
    #[default]
    Each,
    /// Resources that differ in the list of their collection, or that the list does not show completely.
    Bulk,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// Brings each resource to its desired state. Equal resources are written only if `force` is set.
    #[default]
    Converge,
    /// Creates each resource. It is an error if the resource exists.
    Create,
    /// Updates each resource, even if it is equal.
    Update,
    /// Deletes each resource. If it does not exist, this is an error.
    Delete,
}

/// The maximum number of deletions in one run (`sync.pruneLimit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneLimit {
    /// At most this number.
    Count(usize),
    /// At most this percentage of the resources that the policy owns.
    Percent(u8),
}

impl Default for PruneLimit {
    fn default() -> Self {
        Self::Percent(50)
    }
}

/// The options of a run.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, off by default")]
pub struct Options {
    /// Whether anything is written.
    pub mode: Mode,
    /// How the server is read, if the selection is the whole scope.
    pub reading: Reading,
    /// Whether this is the first run of the scope, so that many resources may be missing.
    pub first: bool,
    /// The purpose of the run.
    pub intent: Intent,
    /// Whether equal resources are updated too.
    pub force: bool,
    /// Whether actions keep the compared payloads, which needs memory for all of them.
    pub keep_compared: bool,
    /// Whether declared secrets are shown in differences and compared payloads.
    pub show_secrets: bool,
    /// Whether the plan can become a [`SavedPlan`](crate::sync::SavedPlan), which needs a digest of each action.
    pub sealable: bool,
    /// The maximum number of deletions.
    pub prune_limit: PruneLimit,
    /// Whether all resources may be deleted if the scope no longer declares any.
    pub allow_empty: bool,
    /// Resources that did not converge in the last run; `None` watches nothing.
    pub recurrences: Option<Arc<Recurrences>>,
    /// The receiver of the progress.
    pub progress: Option<Arc<dyn Progress>>,
}

impl Options {
    /// Returns the reading that the other options allow: a list cannot replace a read whose payload is needed.
    pub(crate) fn effective_reading(&self) -> Reading {
        if self.needs_payloads() { Reading::Each } else { self.reading }
    }

    /// Whether actions need the observed payloads, and not only the result of the comparison.
    pub(crate) fn needs_payloads(&self) -> bool {
        self.force || self.keep_compared || self.sealable || self.intent != Intent::Converge
    }
}
