//! What a run works with, and what it is asked to do.

use std::sync::Arc;

use super::{Answers, Knowledge, Recurrences};
use crate::metadata::Metadata;
use crate::repository::Tree;
use crate::secrets::SecretReader;
use crate::server::Client;

/// Everything one run works with: one revision, one server, one set of compiled rules.
#[derive(Clone)]
pub struct Session {
    /// The desired state.
    pub tree: Arc<dyn Tree>,
    /// The rules of that revision.
    pub metadata: Arc<Metadata>,
    /// The managed server.
    pub client: Client,
    /// What earlier runs learned about it, and where this one adds what it learns.
    pub knowledge: Arc<Knowledge>,
    /// What the server answered just before.
    pub answers: Arc<Answers>,
    /// Where the values of placeholders come from; without a store a placeholder fails its resource.
    pub secrets: SecretReader,
}

impl Session {
    /// A session that knows nothing of earlier ones, and has no secret store.
    pub fn new(tree: Arc<dyn Tree>, metadata: Arc<Metadata>, client: Client) -> Self {
        let (knowledge, answers) = Default::default();
        Self { tree, metadata, client, knowledge, answers, secrets: SecretReader::new(None) }
    }
}

/// Whether a run writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Differences are corrected.
    #[default]
    Apply,
    /// Differences are reported as drift.
    Observe,
}

/// How much of what exists is read by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Each resource; a list may only show that it does not exist.
    #[default]
    Each,
    /// What the list of its collection does not show as equal, or shows in part only.
    Bulk,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// Brings each resource to its desired state, and touches what is equal only by force.
    #[default]
    Converge,
    /// Creates each resource; that it exists already is an error of the server's.
    Create,
    /// Updates each resource, whether it differs or not.
    Update,
    /// Deletes each resource; that it does not exist is an error.
    Delete,
}

/// How many deletions in one run are too many (`sync.pruneLimit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneLimit {
    /// At most so many.
    Count(usize),
    /// At most this share, in percent, of what the policy owns.
    Percent(u8),
}

impl Default for PruneLimit {
    fn default() -> Self {
        Self::Percent(50)
    }
}

/// What a run may do.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, off by default")]
pub struct Options {
    /// Whether anything is written.
    pub mode: Mode,
    /// How the server is looked at, where the selection is the whole scope.
    pub reading: Reading,
    /// Whether the scope was never looked at before, so that much of it may be missing.
    pub first: bool,
    /// What is done with each selected resource.
    pub intent: Intent,
    /// Update resources that are equal, too.
    pub force: bool,
    /// Whether actions keep what was compared, which takes the memory of all payloads.
    pub keep_compared: bool,
    /// Whether the plan can become a [`SavedPlan`](crate::sync::SavedPlan), which takes a digest of each action.
    pub sealable: bool,
    /// How many deletions are too many.
    pub prune_limit: PruneLimit,
    /// Whether a scope that declares nothing any more may be pruned to nothing.
    pub allow_empty: bool,
    /// What the last run saw of what does not converge; `None` watches nothing.
    pub recurrences: Option<Arc<Recurrences>>,
}

impl Options {
    /// A list cannot stand for a read whose payload is needed.
    pub(crate) fn effective_reading(&self) -> Reading {
        if self.needs_payloads() { Reading::Each } else { self.reading }
    }

    /// Whether actions need what was read, and not only whether it is equal.
    pub(crate) fn needs_payloads(&self) -> bool {
        self.force || self.keep_compared || self.sealable || self.intent != Intent::Converge
    }
}
