//! The action for one resource: its step, reason, differences and request.

use serde::{Deserialize, Serialize};

use super::{Call, Failure, PRUNE, REPLACE, Resource, SyncError};
use crate::control::visible;
use crate::language::reference::{Reference, references};
use crate::language::referred::Unread;
use crate::metadata::document::OnRemove;
use crate::metadata::{Comparison, Difference};
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::secrets::Redactor;

/// The planned action for one resource, and its reason.
#[derive(Debug, Serialize)]
pub struct Action {
    /// The resource.
    pub path: LogicalPath,
    /// The effect on the server.
    pub step: Step,
    /// The reason.
    pub reason: Reason,
    /// The differences between desired and observed, without declared secrets; empty unless the step is an
    /// update.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// The resources and collections that are written before the resource, and deleted after it.
    #[serde(rename = "dependsOn", skip_serializing_if = "Option::is_none")]
    pub(crate) depends_on: Option<Box<Dependencies>>,
    /// The compared payloads, without declared secrets, if
    /// [`Options::keep_compared`](super::options::Options::keep_compared) asks for it.
    #[serde(skip)]
    pub compared: Option<Box<Comparison>>,
    /// The request.
    #[serde(skip)]
    pub(crate) sending: Sending,
    /// Identifies the differences if recurrences are watched.
    #[serde(skip)]
    pub(crate) mark: Option<Mark>,
    /// The digest of the action, secrets included, if [`Options::sealable`](super::options::Options::sealable) asks for
    /// it.
    #[serde(skip)]
    pub(crate) content: Option<Box<[u8; 32]>>,
}

/// What a resource depends on. Boxed in an action, because most resources depend on nothing.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Dependencies {
    pub paths: Vec<LogicalPath>,
    /// The number of paths that metadata states. They stand for everything below them, too. The others are those of
    /// references, each of which needs one resource.
    #[serde(skip)]
    pub stated: usize,
}

impl Resource {
    /// Returns the paths that the resource depends on: those that metadata states, and those that its payload and
    /// the templates of metadata refer to.
    pub fn depends_on(&self) -> Result<Vec<LogicalPath>, SyncError> {
        Ok(self.depends_on_by(|_| true)?.paths)
    }

    /// Returns those of them that are written before the resource. Deferred attributes are set after all other writes,
    /// so their references may form cycles.
    pub(crate) fn dependencies(&self) -> Result<Option<Box<Dependencies>>, SyncError> {
        let dependencies = self.depends_on_by(|at| !self.defers(at))?;
        Ok((!dependencies.paths.is_empty()).then(|| Box::new(dependencies)))
    }

    /// Returns what the resource depends on, with the references of its payload at the places that `counts`.
    fn depends_on_by(&self, counts: impl Fn(&Pointer) -> bool) -> Result<Dependencies, SyncError> {
        let mut paths = if self.rules.resolved().depends_on.is_empty() {
            Vec::new()
        } else {
            self.evaluation_with(Some(&Unread))?.dependencies()?
        };
        let stated = paths.len();
        // A malformed reference fails the resource when it is filled in.
        let referred = references(&self.payload).unwrap_or_default();
        let referred = referred.into_iter().filter(|(at, _)| counts(at)).map(|(_, reference)| reference);
        for Reference { path, .. } in referred.chain(self.template_references()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        Ok(Dependencies { paths, stated })
    }
}

/// Identifies the difference of one resource, as [`Unsettled::digest`](super::Unsettled::digest) does.
pub(crate) type Mark = Box<str>;

/// The request of an action.
#[derive(Debug)]
pub enum Sending {
    /// Nothing.
    Nothing,
    /// The request exists.
    Ready(Box<Call>),
    /// The deletion of a replacement, and the create that follows it and is made again when it is sent.
    Replacing(Box<(Call, Call)>),
    /// The request is made when it is sent: a create, because otherwise a first sync would hold all payloads and secrets;
    /// or a create or update that needs the value of a resource which the run creates. Holds the path on the server if it
    /// is known and differs.
    WhenSent(Option<Box<LogicalPath>>),
    /// The request is made when it is sent, because it needs the id of a parent that the server does not have. It is sent
    /// only if the run has created the parent.
    BelowNewParent(Box<NewParent>),
    /// The request cannot be made. The run reports this error.
    Impossible(Box<SyncError>),
}

/// The parent that the server does not have yet.
#[derive(Debug)]
pub struct NewParent {
    pub path: LogicalPath,
    /// The path of the created resource on the server, as far as it is known and differs.
    pub at: Option<LogicalPath>,
}

/// The effect of an action on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Creates the resource.
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
    /// The server has another content.
    Different,
    /// It is equal, and updates are forced.
    Forced,
    /// It is equal.
    Equal,
    /// It differs in an attribute that an update cannot change. It is deleted, and created again in the same run.
    Replaced,
    /// It was declared once and is not declared now.
    Undeclared,
    /// The caller asked for exactly this.
    Requested,
    /// It differs in the same way after each of the last updates: the server does not keep the desired state.
    Unsettled,
}

impl Action {
    pub(crate) fn new(path: LogicalPath, step: Step, reason: Reason) -> Self {
        let (differences, sending) = (Vec::new(), Sending::Nothing);
        let (depends_on, compared, mark, content) = (None, None, None, None);
        Self { path, step, reason, differences, depends_on, compared, sending, mark, content }
    }

    /// Returns the paths that the action depends on.
    pub fn depends_on(&self) -> &[LogicalPath] {
        self.depends_on.as_deref().map_or(&[], |dependencies| &dependencies.paths)
    }

    /// Returns the action with `call` as its request, or with the error if the request cannot be made.
    pub(crate) fn sending(self, call: Result<Call, SyncError>) -> Self {
        let impossible = |error| Sending::Impossible(Box::new(error));
        Self { sending: call.map_or_else(impossible, |call| Sending::Ready(Box::new(call))), ..self }
    }

    /// Returns the name of the operation in reports: `create`, `update`, `delete`, `replace`, `prune` or `read`.
    pub fn operation(&self) -> &'static str {
        match self.step {
            Step::Create => "create",
            Step::Update => "update",
            Step::Delete if self.reason == Reason::Requested => "delete",
            Step::Delete if self.reason == Reason::Replaced => REPLACE,
            Step::Delete => PRUNE,
            Step::Skip => "read",
        }
    }

    /// Returns the JSON Pointers of its differences.
    pub fn pointers(&self) -> Vec<String> {
        self.differences.iter().map(|difference| difference.path.clone()).collect()
    }

    /// Returns the failure of the action because of `error`.
    pub(crate) fn failed(&self, error: &SyncError) -> Failure {
        Failure::new(self.path.clone(), self.operation(), error)
    }

    /// Returns the error if the request cannot be made.
    pub(crate) fn impossible(&self) -> Option<&SyncError> {
        if let Sending::Impossible(error) = &self.sending { Some(error) } else { None }
    }

    /// Whether the request cannot be made. The failures of the plan state the reason.
    pub fn is_impossible(&self) -> bool {
        self.impossible().is_some()
    }

    /// Whether the resource is created because the server does not have it.
    pub fn is_missing(&self) -> bool {
        self.step == Step::Create && self.reason == Reason::Missing
    }

    /// Whether the resource is deleted and created again.
    pub fn replaces(&self) -> bool {
        self.reason == Reason::Replaced
    }

    /// Whether the resource is reset instead of deleted.
    pub fn resets(&self) -> bool {
        let declared = self.call().and_then(|call| call.declared.as_ref());
        let on_remove = declared.map(|declared| declared.rules.resolved().on_remove());
        matches!(on_remove, Some(OnRemove::Reset(_))) && !self.replaces()
    }

    /// Returns method and path of each request that is known before the run, in their order, without secrets. A
    /// replacement has two, its deletion and its create.
    pub fn requests(&self) -> Vec<String> {
        let shown = |Call { request, .. }: &Call| {
            let path = Redactor::new(request.secrets.iter()).redact(&request.path);
            format!("{} {}", request.method, visible(&path))
        };
        self.call().into_iter().chain(self.recreation()).map(shown).collect()
    }

    /// Returns the attributes that the create leaves out and an update sets after all other writes.
    pub fn deferred(&self) -> &[Pointer] {
        self.recreation().or_else(|| self.call()).map_or(&[], |call| &call.deferred)
    }

    /// Returns the request if it exists.
    pub(crate) fn call(&self) -> Option<&Call> {
        match &self.sending {
            Sending::Ready(call) => Some(call),
            Sending::Replacing(calls) => Some(&calls.0),
            _ => None,
        }
    }

    /// Returns the create that follows the deletion of a replacement.
    pub(crate) fn recreation(&self) -> Option<&Call> {
        if let Sending::Replacing(calls) = &self.sending { Some(&calls.1) } else { None }
    }

    /// Returns the request of an action that was decided again, which replaces nothing.
    pub(crate) fn into_call(self) -> Option<Box<Call>> {
        if let Sending::Ready(call) = self.sending { Some(call) } else { None }
    }
}
