//! A decided run and its inputs.

use std::sync::Arc;
use std::time::Duration;

use declarest_core::repository::Revision;
use declarest_core::sync::{Knowledge, Recurrences};

use super::decision::{Fingerprint, Trigger};
use super::inputs::Inputs;
use crate::crd::{Schedule, SyncPolicyStatus};

/// A decided run and its inputs.
pub struct RunPlan {
    pub inputs: Inputs,
    pub fingerprint: Fingerprint,
    pub trigger: Trigger,
    /// The commit to diff from; `None` compares the whole scope.
    pub base: Option<Revision>,
    pub schedule: Option<Schedule>,
    pub sync_interval: Duration,
    /// The fingerprint of the last run in this process.
    pub attempted: Option<Fingerprint>,
    /// Knowledge about the server from earlier runs of this process.
    pub knowledge: Arc<Knowledge>,
    /// The resources that do not converge, from the last run.
    pub recurrences: Recurrences,
}

impl RunPlan {
    /// Returns the number of consecutive failed runs; a changed input resets it.
    pub fn consecutive_failures(&self, status: &SyncPolicyStatus) -> i32 {
        let same = self.attempted.as_ref().is_none_or(|attempted| *attempted == self.fingerprint);
        if same { status.consecutive_failures } else { 0 }
    }
}
