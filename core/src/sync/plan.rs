//! Deciding what to do, without doing anything.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::call::Call;
use super::observe::Observation;
use super::prune::{self, PruneRefused};
use super::recurrence::{Known, Mark, Recurrences, Shown};
use super::report::Failure;
use super::resource::{Observed, Resource};
use super::{Intent, Options, SyncError, saved};
use crate::metadata::{Comparison, Difference};
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::repository::Revision;
use crate::secrets::DeclaredSecrets;

/// Everything a run will do, as a value. It serialises to JSON; executing it decides nothing.
#[derive(Debug, Serialize)]
pub struct Plan {
    /// The commit it was made from, if the tree is one.
    pub revision: Option<Revision>,
    /// One action per observed resource, sorted by path, but for those that are only counted.
    pub actions: Vec<Action>,
    /// Resources that are equal and not among `actions`: in a plan for a whole scope, unless it is
    /// [sealable](Options::sealable), keeps [what was compared](Options::keep_compared), or may delete.
    pub unchanged: usize,
    /// Distinct desired resources selected.
    pub targeted: usize,
    /// What could not be read, rendered or observed.
    pub failures: Vec<Failure>,
    /// Set when pruning was refused as a whole; then no action deletes.
    pub prune_refused: Option<PruneRefused>,
    /// Selected resources that the tree does not hold, should their desired state be needed once more.
    #[serde(skip)]
    pub(super) given: HashMap<LogicalPath, Resource>,
    /// What earlier runs saw of what does not converge.
    #[serde(skip)]
    pub(super) recurrences: Option<Arc<Recurrences>>,
    /// Whether all was selected that the scope declares.
    #[serde(skip)]
    pub(super) whole_scope: bool,
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
    /// How the server departs from what is desired, without declared secrets; empty unless the step is an
    /// update.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// What was compared, without declared secrets, if [`Options::keep_compared`] asks for it.
    #[serde(skip)]
    pub compared: Option<Box<Comparison>>,
    /// Where the server has the resource: what a declared resource occupies is never deleted. Known only where
    /// a plan may delete.
    #[serde(skip)]
    pub(super) address: Option<Box<str>>,
    /// The request to send; `None` for a skip, and for a creation whose request is made when it is sent.
    #[serde(skip)]
    pub(super) call: Option<Box<Call>>,
    /// Stands for the difference, where recurrences are watched.
    #[serde(skip)]
    pub(super) mark: Option<Mark>,
    /// Whether the last run corrected the same difference.
    #[serde(skip)]
    pub(super) again: bool,
    /// Stands for all of it, secrets included, if [`Options::sealable`] asks for it.
    #[serde(skip)]
    pub(super) content: Option<Box<[u8; 32]>>,
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
    /// It was declared once and is not any more.
    Undeclared,
    /// Somebody asked for just this.
    Requested,
    /// It differs as it did right after each of the last updates: the server does not keep what it is sent.
    Unsettled,
}

/// Decides what one desired resource needs. Pure: same input, same action. Fails if metadata does not fit
/// the payload, or if it cannot be encoded for the wire.
pub fn decide(desired: &Resource, observed: &Observed, force: bool) -> Result<Action, SyncError> {
    let Some(payload) = &observed.payload else {
        return Ok(Action::new(desired.path.clone(), Step::Create, Reason::Missing)
            .with(Call::create(desired, &observed.at)?));
    };
    let differences = desired.evaluation()?.compare(payload)?;
    let action = match (differences.is_empty(), force) {
        (true, false) => return Ok(Action::new(desired.path.clone(), Step::Skip, Reason::Equal)),
        (true, true) => Action::new(desired.path.clone(), Step::Update, Reason::Forced),
        (false, _) => Action::new(desired.path.clone(), Step::Update, Reason::Different),
    };
    Ok(Action { differences, ..action.with(Call::update(desired, observed)?) })
}

/// Decides what `options` intend with one resource. The action knows its address if it has to be `located`.
pub(super) fn decide_for(
    desired: &Resource,
    observed: &Observed,
    options: &Options,
    located: bool,
) -> Result<Action, SyncError> {
    let mut action = match options.intent {
        Intent::Converge => decide(desired, observed, options.force)?,
        Intent::Create => requested_create(desired, observed)?,
        Intent::Update => requested_update(desired, observed)?,
        Intent::Delete => {
            let absent = || SyncError::Absent { path: desired.path.clone() };
            let action = decide_prune(desired, observed)?.ok_or_else(absent)?;
            Action { reason: Reason::Requested, ..action }
        }
    };
    if located {
        action.address = Some(observed.addressed().address().into());
    }
    if options.keep_compared {
        let compared = desired.evaluation()?.comparison(observed.payload.as_ref())?;
        action.compared = Some(Box::new(compared));
    }
    if options.sealable {
        action.content = Some(Box::new(saved::content(&action)));
    }
    let secrets = secrets_of(desired, observed);
    let hides = conceal(&mut action, &secrets);
    if let Some(recurrences) = &options.recurrences
        && action.reason == Reason::Different
    {
        let mark = mark(recurrences, desired, &action, &secrets, hides);
        action.mark = Some(mark);
        match recurrences.known(&action.path, mark) {
            Known::New => {}
            Known::Again => action.again = true,
            Known::Held => {
                action = Action { step: Step::Skip, reason: Reason::Unsettled, call: None, ..action };
            }
        }
    }
    Ok(action)
}

/// How a resource that was just written differs, if it does.
pub(super) fn difference(
    recurrences: &Recurrences,
    desired: &Resource,
    observed: &Observed,
) -> Result<Option<Mark>, SyncError> {
    let mut action = decide(desired, observed, false)?;
    let secrets = secrets_of(desired, observed);
    let hides = conceal(&mut action, &secrets);
    let differs = action.reason == Reason::Different;
    Ok(differs.then(|| mark(recurrences, desired, &action, &secrets, hides)))
}

fn mark(
    recurrences: &Recurrences,
    desired: &Resource,
    action: &Action,
    secrets: &DeclaredSecrets,
    hides: bool,
) -> Mark {
    let differences = &action.differences;
    if secrets.is_empty() {
        return recurrences.mark(desired, &Shown { payload: &desired.payload, differences, hides });
    }
    let payload = &secrets.conceal(desired.payload.as_ref().clone());
    recurrences.mark(desired, &Shown { payload, differences, hides })
}

fn secrets_of(desired: &Resource, observed: &Observed) -> DeclaredSecrets {
    let mut secrets = DeclaredSecrets::of(desired.rules.resolved());
    secrets.add(&desired.secrets);
    if !secrets.is_empty() {
        secrets.learn(&desired.payload);
        observed.payload.iter().for_each(|payload| secrets.learn(payload));
    }
    secrets
}

/// Takes declared secrets out of what an action shows. That they differ stays visible. Tells whether the
/// differences held any.
fn conceal(action: &mut Action, secrets: &DeclaredSecrets) -> bool {
    if secrets.is_empty() {
        return false;
    }
    let conceal = |differences: &mut Vec<Difference>| {
        let mut hides = false;
        for difference in differences {
            // What compare made is a pointer.
            let at = Pointer::parse(&difference.path).unwrap_or_default();
            for side in [&mut difference.desired, &mut difference.observed] {
                let shown = secrets.conceal_at(&at, side.clone());
                hides |= shown != *side;
                *side = shown;
            }
        }
        hides
    };
    let hides = conceal(&mut action.differences);
    if let Some(compared) = &mut action.compared {
        compared.desired = secrets.conceal(std::mem::take(&mut compared.desired));
        compared.observed = compared.observed.take().map(|observed| secrets.conceal(observed));
        conceal(&mut compared.differences);
    }
    hides
}

/// Nothing to do for `desired`, which the server has at `at`.
pub(super) fn unchanged(desired: &Resource, at: &Resource, located: bool) -> Action {
    let address = located.then(|| at.address().into());
    Action { address, ..Action::new(desired.path.clone(), Step::Skip, Reason::Equal) }
}

/// A creation that stays one: the server says whether it is possible.
fn requested_create(desired: &Resource, observed: &Observed) -> Result<Action, SyncError> {
    let call = Call::create(desired, &observed.at)?;
    Ok(Action::new(desired.path.clone(), Step::Create, Reason::Requested).with(call))
}

/// An update, also of what is equal, and of what the server seems not to have: it says whether it is possible.
fn requested_update(desired: &Resource, observed: &Observed) -> Result<Action, SyncError> {
    Ok(Action::new(desired.path.clone(), Step::Update, Reason::Requested)
        .with(Call::update(desired, observed)?))
}

/// The deletion of a resource that is not declared any more; `None` when the server has not got it.
pub(super) fn decide_prune(declared: &Resource, observed: &Observed) -> Result<Option<Action>, SyncError> {
    let Some((call, at)) = Call::delete(declared, observed)? else { return Ok(None) };
    let action = Action::new(declared.path.clone(), Step::Delete, Reason::Undeclared).with(call);
    Ok(Some(Action { address: Some(at.address().into()), ..action }))
}

/// Decides once more on what `action` is about, which was not as it was observed then; `None` where nothing
/// is left to delete.
pub(super) fn decide_again(
    action: (Step, Reason),
    desired: &Resource,
    observed: &Observed,
) -> Result<Option<Action>, SyncError> {
    match action {
        (Step::Delete, _) => decide_prune(desired, observed),
        (Step::Update, Reason::Requested) => requested_update(desired, observed).map(Some),
        (_, reason) => decide(desired, observed, reason == Reason::Forced).map(Some),
    }
}

impl Action {
    pub(super) fn new(path: LogicalPath, step: Step, reason: Reason) -> Self {
        Self {
            path,
            step,
            reason,
            differences: Vec::new(),
            compared: None,
            address: None,
            call: None,
            mark: None,
            again: false,
            content: None,
        }
    }

    fn with(self, call: Call) -> Self {
        Self { call: Some(Box::new(call)), ..self }
    }
}

/// Drops deletions of what a declared resource occupies: after a rename in Git the old path and the new
/// one may stand for the same resource on the server.
fn spare_occupied(actions: &mut Vec<Action>) {
    if actions.iter().all(|action| action.step != Step::Delete) {
        return;
    }
    let declared = actions.iter_mut().filter(|action| action.step != Step::Delete);
    let occupied: HashSet<Box<str>> = declared.filter_map(|action| action.address.take()).collect();
    let spared = |action: &Action| action.address.as_ref().is_some_and(|address| occupied.contains(address));
    actions.retain(|action| action.step != Step::Delete || !spared(action));
}

impl Plan {
    /// Puts the decisions together: in path order, and without deletions when there are too many.
    pub(super) fn new(revision: Option<Revision>, observation: Observation, options: &Options) -> Self {
        let Observation { mut actions, unchanged, targeted, failures, whole_scope, declared } = observation;
        actions.sort_by(|a, b| a.path.cmp(&b.path));
        spare_occupied(&mut actions);
        let doomed: Vec<LogicalPath> = actions
            .iter()
            .filter(|action| action.step == Step::Delete && action.reason == Reason::Undeclared)
            .map(|action| action.path.clone())
            .collect();
        let prune_refused =
            prune::check(&doomed, declared, whole_scope, options.prune_limit, options.allow_empty);
        if prune_refused.is_some() {
            actions.retain(|action| action.step != Step::Delete);
        }
        Self {
            revision,
            actions,
            unchanged,
            targeted,
            failures,
            prune_refused,
            given: HashMap::new(),
            recurrences: options.recurrences.clone(),
            whole_scope,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::PruneLimit;
    use super::*;
    use crate::metadata::Metadata;
    use crate::payload::{Descriptor, PayloadType, Value, decode};

    fn parse(json: &str) -> Value {
        decode(PayloadType::Json, json.as_bytes()).unwrap()
    }

    fn desired(json: &str) -> Resource {
        let path = LogicalPath::parse("/shops/rio").unwrap();
        let rules = Metadata::conventions();
        let payload = parse(json);
        let identity = rules.identify(&path, &payload).unwrap();
        let descriptor = Some(Descriptor::from_extension(".json"));
        Resource { path, descriptor, payload: Arc::new(payload), identity, rules, secrets: Arc::default() }
    }

    fn observed(desired: &Resource, json: Option<&str>) -> Observed {
        let at = if json.is_some() { desired.with_remote_id("17") } else { desired.clone() };
        Observed::new(at, json.map(parse))
    }

    #[rstest]
    #[case(None, false, Step::Create, Reason::Missing, Some("POST /shops"))]
    #[case(Some(r#"{"a":1,"id":17}"#), false, Step::Skip, Reason::Equal, None)]
    #[case(Some(r#"{"a":1,"id":17}"#), true, Step::Update, Reason::Forced, Some("PUT /shops/17"))]
    #[case(Some(r#"{"a":2}"#), false, Step::Update, Reason::Different, Some("PUT /shops/17"))]
    fn decisions(
        #[case] payload: Option<&str>,
        #[case] force: bool,
        #[case] step: Step,
        #[case] reason: Reason,
        #[case] request: Option<&str>,
    ) {
        let desired = desired(r#"{"a":1}"#);
        let action = decide(&desired, &observed(&desired, payload), force).unwrap();
        let sent = action.call.map(|call| format!("{} {}", call.request.method, call.request.path));
        assert_eq!((action.step, action.reason, sent.as_deref()), (step, reason, request));
    }

    #[rstest]
    #[case(Intent::Create, None, Step::Create, "POST /shops")]
    #[case(Intent::Create, Some(r#"{"a":1}"#), Step::Create, "POST /shops")]
    #[case(Intent::Update, None, Step::Update, "PUT /shops/rio")]
    #[case(Intent::Update, Some(r#"{"a":1}"#), Step::Update, "PUT /shops/17")]
    #[case(Intent::Delete, Some(r#"{"a":1}"#), Step::Delete, "DELETE /shops/17")]
    fn requests(
        #[case] intent: Intent,
        #[case] payload: Option<&str>,
        #[case] step: Step,
        #[case] expected: &str,
    ) {
        let desired = desired(r#"{"a":1}"#);
        let options = Options { intent, ..Options::default() };
        let action = decide_for(&desired, &observed(&desired, payload), &options, false).unwrap();
        let call = action.call.unwrap();
        let sent = format!("{} {}", call.request.method, call.request.path);
        assert_eq!((action.step, action.reason, sent.as_str()), (step, Reason::Requested, expected));
    }

    #[test]
    fn what_is_absent_cannot_be_deleted() {
        let desired = desired(r#"{"a":1}"#);
        let options = Options { intent: Intent::Delete, ..Options::default() };
        let refused = decide_for(&desired, &observed(&desired, None), &options, false);
        assert!(matches!(refused, Err(SyncError::Absent { .. })));
    }

    #[test]
    fn requested_deletions_have_no_brakes() {
        let desired = desired(r#"{"a":1}"#);
        let options =
            Options { intent: Intent::Delete, prune_limit: PruneLimit::Count(0), ..Options::default() };
        let delete = || decide_for(&desired, &observed(&desired, Some("{}")), &options, false).unwrap();
        let observation = Observation {
            unchanged: 0,
            actions: (0..20).map(|_| delete()).collect(),
            targeted: 20,
            failures: Vec::new(),
            whole_scope: true,
            declared: 0,
        };
        assert_eq!(Plan::new(None, observation, &options).actions.len(), 20);
    }

    #[rstest]
    #[case(Some(r#"{"a":2,"id":17}"#), r#"{"a":2}"#)]
    #[case(None, "null")]
    fn what_was_compared_is_kept_on_demand(#[case] payload: Option<&str>, #[case] expected: &str) {
        let desired = desired(r#"{"a":1}"#);
        let options = Options { keep_compared: true, ..Options::default() };
        let action = decide_for(&desired, &observed(&desired, payload), &options, false).unwrap();
        let compared = action.compared.unwrap();
        assert_eq!(compared.desired, parse(r#"{"a":1}"#));
        assert_eq!(compared.observed.unwrap_or_default(), parse(expected));
        assert_eq!(compared.differences.len(), 1);
        let forgotten =
            decide_for(&desired, &observed(&desired, payload), &Options::default(), false).unwrap();
        assert!(forgotten.compared.is_none());
    }

    #[test]
    fn a_plan_shows_no_declared_secrets() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("shops/_");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("metadata.yaml"), "resource: {secretAttributes: [/pin]}").unwrap();
        let tree = crate::repository::DirTree::open(root.path()).unwrap();
        let mut desired = desired(r#"{"pin":"canary-1"}"#);
        desired.rules = Metadata::new(Arc::new(tree)).rules(&desired.path).unwrap();
        let observed = Observed::new(desired.clone(), Some(parse(r#"{"pin":"canary-2"}"#)));
        let options = Options { keep_compared: true, ..Options::default() };
        let action = decide_for(&desired, &observed, &options, false).unwrap();
        assert_eq!((action.step, action.differences.len()), (Step::Update, 1));
        let shown = format!("{:?} {:?}", action.differences, action.compared);
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_plan_of_very_many_actions_stays_small() {
        // 100,000 of them, most of which do nothing, have to fit into some ten MiB.
        assert!(size_of::<Action>() <= 96, "{} bytes", size_of::<Action>());
        assert!(size_of::<Call>() <= 304, "{} bytes", size_of::<Call>());
    }

    #[test]
    fn a_plan_serialises() {
        let desired = desired(r#"{"a":1}"#);
        let action = decide(&desired, &observed(&desired, Some(r#"{"a":2}"#)), false).unwrap();
        let observation = Observation {
            unchanged: 0,
            actions: vec![action],
            targeted: 1,
            failures: Vec::new(),
            whole_scope: true,
            declared: 1,
        };
        let plan = Plan::new(None, observation, &Options::default());
        insta::assert_snapshot!(serde_json::to_string(&plan).unwrap(), @r#"{"revision":null,"actions":[{"path":"/shops/rio","step":"update","reason":"different","differences":[{"path":"/a","change":"replace","desired":1,"observed":2}]}],"unchanged":0,"targeted":1,"failures":[],"prune_refused":null}"#);
    }
}
