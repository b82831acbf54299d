//! What a run did.

use std::cell::LazyCell;

use serde::Serialize;

use super::{FailureReason, Recurrences, Stop, SyncError};
use crate::control::visible;
use crate::error::Category;
use crate::path::LogicalPath;
use crate::secrets::SecretReader;

/// The result of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// What was counted.
    pub stats: Stats,
    /// What failed, sorted by path.
    pub failures: Vec<Failure>,
    /// Resources that do not converge and are left alone, sorted by path, also those that earlier runs found.
    pub unsettled: Vec<Failure>,
    /// What the next run is to know of what does not converge, if that is watched.
    #[serde(skip)]
    pub recurrences: Option<Recurrences>,
    /// Set when pruning was refused as a whole.
    pub prune_refused: Option<PruneRefused>,
    /// What was not pruned because Git declares it under another path, sorted by path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// Why the run ended early, if it did.
    pub stopped: Option<String>,
    /// The category of the failures that made it give up, if it gave up by itself.
    pub aborted_by: Option<Category>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Default)]
pub enum Outcome {
    /// Everything selected is in its desired state.
    #[default]
    Succeeded,
    /// The run completed and some resources failed.
    PartiallyFailed,
    /// The run was ended early.
    Failed,
}

/// Numbers of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Distinct desired resources selected; prune targets do not count.
    pub targeted: usize,
    /// Targeted resources confirmed in their desired state: created, updated or unchanged.
    pub applied: usize,
    /// Of those, created.
    pub created: usize,
    /// Of those, updated.
    pub updated: usize,
    /// Of those, equal already.
    pub unchanged: usize,
    /// Resources that differ and were left alone, in observe-only mode.
    pub drifted: usize,
    /// Remote resources deleted.
    pub pruned: usize,
    /// Targeted but not applied, plus failed deletions.
    pub failed: usize,
}

/// One resource that is not in its desired state.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The resource.
    pub path: LogicalPath,
    /// What was being done to it.
    pub operation: &'static str,
    /// The bounded reason.
    pub reason: FailureReason,
    /// What happened and what to do, for people; never holds a secret.
    pub message: String,
}

/// Nothing was pruned, because it would have been too much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PruneRefused {
    /// How many resources would have been deleted.
    pub count: usize,
    /// The first of them.
    pub paths: Vec<LogicalPath>,
    /// Why that is too much, and what allows it.
    pub why: String,
}

/// A path that Git does not declare, whose resource stays on the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The path.
    pub path: LogicalPath,
    /// Why it stays.
    pub reason: String,
    /// Whether it is the resource of another path that Git declares, and not only has something below it.
    #[serde(skip)]
    pub occupied: bool,
}

/// The operation of a failed deletion; retries must know it from a failed apply.
pub const PRUNE: &str = "prune";

/// The operation of a failure that may hide further resources; only a look at everything can retry it.
pub const LIST: &str = "list";

impl Failure {
    /// A failure of `operation` on `path`.
    pub fn new(path: LogicalPath, operation: &'static str, error: &SyncError) -> Self {
        let message = visible(&error.to_string()).into_owned();
        Self { path, operation, reason: error.reason(), message }
    }
}

/// Takes all that `secrets` has read out of the messages: the failure of one resource may show the secret of another.
pub(crate) fn hide<'f>(failures: impl IntoIterator<Item = &'f mut Failure>, secrets: &SecretReader) {
    // Most runs fail nowhere and need none.
    let redactor = LazyCell::new(|| secrets.redactor());
    for failure in failures {
        failure.message = redactor.redact(&failure.message);
    }
}

impl Report {
    /// The report with its outcome. Each failure counts on top of what `stats` counts as failed.
    pub(crate) fn concluded(mut self, recurrences: Option<Recurrences>, stop: &Stop) -> Self {
        self.failures.sort_by(|a, b| a.path.cmp(&b.path));
        self.stats.failed += self.failures.len();
        self.unsettled = recurrences.as_ref().map(Recurrences::held).unwrap_or_default();
        (self.recurrences, self.aborted_by) = (recurrences, stop.aborted_by());
        self.stopped = stop.reason().map(str::to_owned);
        self.outcome = match (self.stopped.is_some(), self.failures.is_empty() && self.unsettled.is_empty()) {
            (true, _) => Outcome::Failed,
            (false, true) => Outcome::Succeeded,
            (false, false) => Outcome::PartiallyFailed,
        };
        self
    }
}

impl Outcome {
    /// The spelling used in status fields.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::PartiallyFailed => "PartiallyFailed",
            Self::Failed => "Failed",
        }
    }
}
