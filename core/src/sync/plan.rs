//! Deciding what to do, without doing anything.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::observe::Observation;
use super::prune::{self, PruneRefused};
use super::report::Failure;
use super::{Options, SyncError};
use crate::metadata::{Difference, Identity, Operation, Rendered, Rules, Scope};
use crate::path::LogicalPath;
use crate::payload::{self, Descriptor, Value};
use crate::repository::Revision;
use crate::server::{Body, Request};

/// Everything a run will do, as a value. It serialises to JSON; executing it decides nothing.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The commit it was made from, if the tree is one.
    pub revision: Option<Revision>,
    /// One action per observed resource, sorted by path.
    pub actions: Vec<Action>,
    /// Distinct desired resources selected.
    pub targeted: usize,
    /// What could not be read, rendered or observed.
    pub failures: Vec<Failure>,
    /// Set when pruning was refused as a whole; then no action deletes.
    pub prune_refused: Option<PruneRefused>,
}

/// What will be done to one resource, and why.
#[derive(Debug, Serialize)]
pub struct Action {
    /// The resource.
    pub path: LogicalPath,
    /// What will be done.
    pub step: Step,
    /// Why.
    pub reason: Reason,
    /// How the server departs from what is desired; empty unless the step is an update.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Where the server has the resource; what a declared resource occupies is never deleted.
    #[serde(skip)]
    pub(super) address: String,
    /// The request to send; `None` for a skip.
    #[serde(skip)]
    pub(super) call: Option<Call>,
}

/// What an action does on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// It was declared once and is not any more.
    Undeclared,
}

/// A request ready to be sent.
///
/// The body is encoded while planning: it is smaller than the payload, and what cannot be encoded fails
/// before anything is sent.
#[derive(Debug)]
pub(super) struct Call {
    pub request: Request,
    /// Sent once when a create is answered with 409: the resource exists after all.
    pub on_conflict: Option<Request>,
}

/// One desired resource with its rules.
#[derive(Clone, Debug)]
pub struct Desired {
    /// Where it is declared.
    pub path: LogicalPath,
    /// How it is stored.
    pub descriptor: Descriptor,
    /// What it should be.
    pub payload: Arc<Value>,
    /// Its names.
    pub identity: Identity,
    /// The rules that govern it.
    pub rules: Arc<Rules>,
}

/// What the server has.
#[derive(Clone, Debug)]
pub enum Observed {
    /// Nothing.
    Absent,
    /// This.
    Present {
        /// The segment that addresses it on the server.
        remote_id: String,
        /// Its content.
        payload: Value,
    },
}

/// Decides what one desired resource needs. Pure: same input, same action. Fails if the payload cannot be
/// encoded for the wire.
pub fn decide(desired: &Desired, observed: &Observed, force: bool) -> Result<Action, SyncError> {
    let (step, reason, differences, remote_id) = match observed {
        Observed::Absent => (Step::Create, Reason::Missing, Vec::new(), &desired.identity.remote_id),
        Observed::Present { remote_id, payload } => {
            let differences = desired.rules.compare(&desired.payload, payload);
            match (differences.is_empty(), force) {
                (true, false) => (Step::Skip, Reason::Equal, differences, remote_id),
                (true, true) => (Step::Update, Reason::Forced, differences, remote_id),
                (false, _) => (Step::Update, Reason::Different, differences, remote_id),
            }
        }
    };
    let call = match step {
        Step::Skip | Step::Delete => None,
        Step::Update => {
            let update = rendered(desired, Operation::Update, remote_id);
            let body = body(desired, &update)?;
            Some(Call { request: Request { body, ..bare(update) }, on_conflict: None })
        }
        Step::Create => {
            let create = rendered(desired, Operation::Create, remote_id);
            let update = rendered(desired, Operation::Update, remote_id);
            let created = body(desired, &create)?;
            // One buffer serves both where they travel in one format.
            let updated =
                if update.content == create.content { created.clone() } else { body(desired, &update)? };
            Some(Call {
                request: Request { body: created, ..bare(create) },
                on_conflict: Some(Request { body: updated, ..bare(update) }),
            })
        }
    };
    let scope = Scope { path: &desired.path, remote_id, descriptor: None };
    let address = desired.rules.render(Operation::Get, scope).path;
    Ok(Action { path: desired.path.clone(), step, reason, differences, address, call })
}

fn rendered(desired: &Desired, operation: Operation, remote_id: &str) -> Rendered {
    let scope = Scope { path: &desired.path, remote_id, descriptor: Some(&desired.descriptor) };
    desired.rules.render(operation, scope)
}

/// The desired payload as the request carries it, if it carries one.
fn body(desired: &Desired, rendered: &Rendered) -> Result<Option<Body>, SyncError> {
    rendered.content.as_ref().map(|content| encode(&desired.path, content, &desired.payload)).transpose()
}

/// A rendered request without body.
pub(super) fn bare(rendered: Rendered) -> Request {
    let mut request = Request::new(rendered.method, rendered.path);
    request.accept = Some(rendered.accept.media_type.to_string());
    request
}

fn encode(path: &LogicalPath, content: &Descriptor, payload: &Value) -> Result<Body, SyncError> {
    let bytes = payload::encode(content.payload_type, payload).map_err(|source| SyncError::Encode {
        path: path.clone(),
        media_type: content.media_type.to_string(),
        source,
    })?;
    Ok(Body { media_type: content.media_type.to_string(), bytes: Bytes::from(bytes) })
}

/// The deletion of a resource that is not declared any more; `None` when the server has not got it.
pub(super) fn decide_prune(path: &LogicalPath, rules: &Rules, observed: &Observed) -> Option<Action> {
    let Observed::Present { remote_id, .. } = observed else { return None };
    let scope = Scope { path, remote_id, descriptor: None };
    let address = rules.render(Operation::Get, scope).path;
    let request = bare(rules.render(Operation::Delete, scope));
    Some(Action {
        path: path.clone(),
        step: Step::Delete,
        reason: Reason::Undeclared,
        differences: Vec::new(),
        address,
        call: Some(Call { request, on_conflict: None }),
    })
}

/// Drops deletions of what a declared resource occupies: after a rename in Git the old path and the new
/// one may stand for the same resource on the server.
fn spare_occupied(actions: &mut Vec<Action>) {
    let occupied: HashSet<String> = actions
        .iter()
        .filter(|action| action.step != Step::Delete)
        .map(|action| action.address.clone())
        .collect();
    actions.retain(|action| action.step != Step::Delete || !occupied.contains(&action.address));
}

impl Plan {
    /// Puts the decisions together: in path order, and without deletions when there are too many.
    pub(super) fn new(revision: Option<Revision>, observation: Observation, options: &Options) -> Self {
        let Observation { mut actions, targeted, failures, whole_scope, declared } = observation;
        actions.sort_by(|a, b| a.path.cmp(&b.path));
        spare_occupied(&mut actions);
        let doomed: Vec<LogicalPath> = actions
            .iter()
            .filter(|action| action.step == Step::Delete)
            .map(|action| action.path.clone())
            .collect();
        let prune_refused =
            prune::check(&doomed, declared, whole_scope, options.prune_limit, options.allow_empty);
        if prune_refused.is_some() {
            actions.retain(|action| action.step != Step::Delete);
        }
        Self { revision, actions, targeted, failures, prune_refused }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::metadata::Metadata;
    use crate::payload::{PayloadType, decode};

    fn parse(json: &str) -> Value {
        decode(PayloadType::Json, json.as_bytes()).unwrap()
    }

    fn desired(json: &str) -> Desired {
        let path = LogicalPath::parse("/shops/rio").unwrap();
        let rules = Metadata::conventions();
        let payload = parse(json);
        let identity = rules.identify(&path, Some(&payload)).unwrap();
        Desired {
            path,
            descriptor: Descriptor::from_extension(".json"),
            payload: Arc::new(payload),
            identity,
            rules,
        }
    }

    fn present(json: &str) -> Observed {
        Observed::Present { remote_id: "17".to_owned(), payload: parse(json) }
    }

    #[rstest]
    #[case(Observed::Absent, false, Step::Create, Reason::Missing, Some("POST /shops"))]
    #[case(present(r#"{"a":1,"id":17}"#), false, Step::Skip, Reason::Equal, None)]
    #[case(present(r#"{"a":1,"id":17}"#), true, Step::Update, Reason::Forced, Some("PUT /shops/17"))]
    #[case(present(r#"{"a":2}"#), false, Step::Update, Reason::Different, Some("PUT /shops/17"))]
    fn decisions(
        #[case] observed: Observed,
        #[case] force: bool,
        #[case] step: Step,
        #[case] reason: Reason,
        #[case] request: Option<&str>,
    ) {
        let action = decide(&desired(r#"{"a":1}"#), &observed, force).unwrap();
        let sent = action.call.map(|call| format!("{} {}", call.request.method, call.request.path));
        assert_eq!((action.step, action.reason, sent.as_deref()), (step, reason, request));
    }

    #[test]
    fn a_plan_serialises() {
        let action = decide(&desired(r#"{"a":1}"#), &present(r#"{"a":2}"#), false).unwrap();
        let observation = Observation {
            actions: vec![action],
            targeted: 1,
            failures: Vec::new(),
            whole_scope: true,
            declared: 1,
        };
        let plan = Plan::new(None, observation, &Options::default());
        insta::assert_snapshot!(serde_json::to_string(&plan).unwrap(), @r#"{"revision":null,"actions":[{"path":"/shops/rio","step":"update","reason":"different","differences":[{"path":"/a","change":"replace","desired":1,"observed":2}]}],"targeted":1,"failures":[],"prune_refused":null}"#);
    }
}
