//! What is done to one resource, and why.

use serde::{Deserialize, Serialize};

use super::{Call, Failure, Mark, PRUNE, SyncError};
use crate::metadata::{Comparison, Difference};
use crate::path::LogicalPath;

/// What will be done to one resource, and why.
#[derive(Debug, Serialize)]
pub struct Action {
    /// The resource.
    pub path: LogicalPath,
    /// What will be done.
    pub step: Step,
    /// Why.
    pub reason: Reason,
    /// How the server departs from what is desired, without declared secrets; empty unless the step is an
    /// update.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// What was compared, without declared secrets, if [`Options::keep_compared`](super::options::Options::keep_compared)
    /// asks for it.
    #[serde(skip)]
    pub compared: Option<Box<Comparison>>,
    /// What is sent.
    #[serde(skip)]
    pub(crate) sending: Sending,
    /// Stands for the difference, where recurrences are watched.
    #[serde(skip)]
    pub(crate) mark: Option<Mark>,
    /// Stands for all of it, secrets included, if [`Options::sealable`](super::options::Options::sealable) asks for it.
    #[serde(skip)]
    pub(crate) content: Option<Box<[u8; 32]>>,
}

/// What an action sends.
#[derive(Debug)]
pub enum Sending {
    /// Nothing.
    Nothing,
    /// This request.
    Ready(Box<Call>),
    /// A create, whose request is made when it is sent: a first sync would otherwise hold all payloads and secrets.
    WhenSent,
    /// Nothing, because no request can be made. The run reports why.
    Impossible(Box<SyncError>),
}

/// What an action does on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Makes the resource exist.
    Create,
    /// Replaces its content.
    Update,
    /// Removes it.
    Delete,
    /// Nothing.
    Skip,
}

/// Why an action was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The server does not have it.
    Missing,
    /// The server has something else.
    Different,
    /// It is equal, and updates are forced.
    Forced,
    /// It is equal.
    Equal,
    /// It was declared once and is not declared now.
    Undeclared,
    /// The caller asked for exactly this.
    Requested,
    /// It differs as it did right after each of the last updates: the server does not keep what it is sent.
    Unsettled,
}

impl Action {
    pub(crate) fn new(path: LogicalPath, step: Step, reason: Reason) -> Self {
        let (differences, sending) = (Vec::new(), Sending::Nothing);
        Self { path, step, reason, differences, compared: None, sending, mark: None, content: None }
    }

    /// The same, sending `call`, or nothing where that cannot be made.
    pub(crate) fn sending(self, call: Result<Call, SyncError>) -> Self {
        let impossible = |error| Sending::Impossible(Box::new(error));
        Self { sending: call.map_or_else(impossible, |call| Sending::Ready(Box::new(call))), ..self }
    }

    /// That it failed because of `error`.
    pub(crate) fn failed(&self, error: &SyncError) -> Failure {
        let operation = match self.step {
            Step::Create => "create",
            Step::Update => "update",
            Step::Delete if self.reason == Reason::Requested => "delete",
            Step::Delete => PRUNE,
            Step::Skip => "read",
        };
        Failure::new(self.path.clone(), operation, error)
    }

    /// Why its request cannot be made.
    pub(crate) fn impossible(&self) -> Option<&SyncError> {
        if let Sending::Impossible(error) = &self.sending { Some(error) } else { None }
    }

    /// Whether its request cannot be made; the plan says why among its failures.
    pub fn is_impossible(&self) -> bool {
        self.impossible().is_some()
    }

    /// The request that it holds.
    pub(crate) fn call(&self) -> Option<&Call> {
        if let Sending::Ready(call) = &self.sending { Some(call) } else { None }
    }

    pub(crate) fn into_call(self) -> Option<Box<Call>> {
        if let Sending::Ready(call) = self.sending { Some(call) } else { None }
    }
}
