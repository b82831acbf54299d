//! The report of a run.

use std::collections::HashMap;

use serde::Serialize;

use super::{Failure, Recurrences, Stop};
use crate::error::Category;
use crate::path::LogicalPath;

/// The result of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// How the run ended.
    pub outcome: Outcome,
    /// The numbers of the run.
    pub stats: Stats,
    /// The failures, sorted by path.
    pub failures: Vec<Failure>,
    /// Resources that still differ after two or more writes, sorted by path, including those of earlier runs, without
    /// those in `failures`.
    pub unsettled: Vec<Failure>,
    /// Resources that differ although the server accepted an update of them in this run, or created them and cannot update
    /// them, sorted by path. They are not failures, because some servers need time, and others rewrite values. Empty if
    /// recurrences are watched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unconfirmed: Vec<Failure>,
    /// The resources that differ from Git, sorted by path, in mode `observe`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drifted: Vec<Drift>,
    /// The recurrences for the next run, if they are watched.
    #[serde(skip)]
    pub recurrences: Option<Recurrences>,
    /// The ids that the server assigned to resources that were created, as segments of paths.
    #[serde(skip)]
    pub ids: HashMap<LogicalPath, String>,
    /// Set if pruning was refused as a whole.
    pub prune_refused: Option<PruneRefused>,
    /// Resources that were not pruned, with the reason, sorted by path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// The reason if the run ended early.
    pub stopped: Option<String>,
    /// The category of the failures, if the run ended early because of failures.
    pub aborted_by: Option<Category>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Default, strum::IntoStaticStr)]
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
    /// Created resources among `applied`.
    pub created: usize,
    /// Updated resources among `applied`.
    pub updated: usize,
    /// Resources among `applied` that were equal already.
    pub unchanged: usize,
    /// Resources that differ, in mode `observe`.
    pub drifted: usize,
    /// Remote resources deleted.
    pub pruned: usize,
    /// Resources that were tried again, because the run wrote others after them.
    pub retried: usize,
    /// Targeted resources that were not applied, plus failed deletions.
    pub failed: usize,
}

/// A resource that differs from Git and was not written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// The path.
    pub path: LogicalPath,
    /// The operation that would make it equal: create, update, replace or prune.
    pub operation: &'static str,
    /// The places of the differences, as JSON Pointers.
    pub pointers: Vec<String>,
}

/// The refusal of all deletions because they exceed the limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PruneRefused {
    /// The number of resources to delete.
    pub count: usize,
    /// The first of them.
    pub paths: Vec<LogicalPath>,
    /// The exceeded limit, and the setting that allows the deletions.
    pub why: String,
}

/// A path that Git does not declare, whose resource stays on the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The path.
    pub path: LogicalPath,
    /// The reason why it is kept.
    pub reason: String,
    /// The other path at which Git declares the same resource.
    #[serde(skip)]
    pub declared_at: Option<LogicalPath>,
    /// Whether metadata states `resource.onRemove: keep`.
    #[serde(skip)]
    pub stated: bool,
    /// Whether it is kept because it is a singleton, and metadata states nothing else.
    #[serde(skip)]
    pub by_default: bool,
    /// Whether it may be deleted after Git no longer declares others.
    #[serde(skip)]
    pub pending: bool,
}

impl Kept {
    /// Returns a path whose resource stays for this reason.
    pub fn new(path: LogicalPath, reason: impl Into<String>) -> Self {
        Self {
            path,
            reason: reason.into(),
            declared_at: None,
            stated: false,
            by_default: false,
            pending: false,
        }
    }
}

impl Report {
    /// Returns the report with its outcome. Adds the failures to `stats.failed`.
    pub(crate) fn concluded(mut self, recurrences: Option<Recurrences>, stop: &Stop) -> Self {
        self.failures.sort_by(|a, b| a.path.cmp(&b.path));
        self.stats.failed += self.failures.len();
        self.unsettled = recurrences.as_ref().map(Recurrences::failures).unwrap_or_default();
        let failures = &self.failures;
        self.unsettled.retain(|it| failures.binary_search_by(|failure| failure.path.cmp(&it.path)).is_err());
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
    /// Returns the spelling of status fields.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
