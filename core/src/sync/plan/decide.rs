//! Decides the action for one resource. Pure functions: the same input has the same action.

use std::borrow::Cow;
use std::sync::Arc;

use super::address::states_address;
use crate::metadata::document::OnRemove;
use crate::metadata::{Change, Comparison, Difference, MetadataError, OperationName};
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::secrets::{DeclaredSecrets, detect};
use crate::sync::model::{
    Action, Call, Doubt, Intent, Observed, Options, Reason, Resource, Sending, Step, SyncError, Wanted,
    WrittenValues, is_alike,
};
use crate::sync::plan::{saved, unsent};

/// Returns the action for one desired resource. Fails if metadata does not fit the payload, or if the payload cannot be
/// encoded.
pub fn decide(desired: &Resource, observed: &Observed, force: bool) -> Result<Action, SyncError> {
    possible(converge(desired, observed, force, None)?)
}

fn possible(action: Action) -> Result<Action, SyncError> {
    match action.sending {
        Sending::Impossible(error) => Err(*error),
        _ => Ok(action),
    }
}

fn converge(
    desired: &Resource,
    observed: &Observed,
    force: bool,
    written: Option<&WrittenValues>,
) -> Result<Action, SyncError> {
    let action = |step, reason| Action::new(desired.path.clone(), step, reason);
    let Some(payload) = &observed.payload else {
        if desired.rules.resolved().singleton {
            return Ok(action(Step::Update, Reason::Different).sending(update(desired, observed)));
        }
        return Ok(action(Step::Create, Reason::Missing).sending(Call::create_first(desired, &observed.at)));
    };
    check_id(desired, observed)?;
    let present = with_present_id(desired, observed);
    if let Cow::Owned(renumbered) = &present {
        renumbered.rules.check_kept_id(&desired.path)?;
    }
    let desired = &*present;
    let mut differences = desired.evaluation()?.compare(payload)?;
    if let Some(written) = written {
        let is_due = |(at, value): &(&Pointer, &Value)| written.is_current(desired, at, value) != Some(true);
        let due = desired.write_only().filter(is_due);
        differences.extend(due.map(|(pointer, _)| Difference::write_only(pointer)));
    }
    let reason = match (differences.is_empty(), force) {
        (true, false) => return Ok(action(Step::Skip, Reason::Equal)),
        (true, true) => Reason::Forced,
        (false, _) => Reason::Different,
    };
    let call = update(desired, observed)
        .and_then(|call| unsent::checked(call, desired, observed, &differences, written, force))
        .map_err(|error| match error {
            SyncError::Metadata(MetadataError::MissingAttributes { .. }) if payload.is_null() => {
                SyncError::NothingShown(desired.path.clone(), Box::new(error))
            }
            error => error,
        });
    Ok(Action { differences, ..action(Step::Update, reason) }.sending(call))
}

/// Returns `desired` with the id of the server if it was found by its alias. An id in Git that no resource has is ignored,
/// unless it is also the alias, which may change.
fn with_present_id<'r>(desired: &'r Resource, observed: &Observed) -> Cow<'r, Resource> {
    let found = &observed.at.identity.remote_id;
    let is_stale =
        || !desired.rules.identity().is_one() && Wanted::of(desired).id.is_some_and(|id| id != found);
    match &observed.payload {
        Some(payload) if is_stale() => Cow::Owned(desired.renumbered(found, payload)),
        _ => Cow::Borrowed(desired),
    }
}

/// Fails if the server shows another resource at the address of the only name of `desired`, which its payload states: some
/// servers ignore parts of names.
fn check_id(desired: &Resource, observed: &Observed) -> Result<(), SyncError> {
    let Some(payload) = &observed.payload else { return Ok(()) };
    let (rules, wanted) = (&desired.rules, Wanted::of(desired));
    let has_other_names =
        rules.identity().any_explicit() || rules.resolved().singleton || states_address(rules);
    let Some(id) = wanted.id.filter(|_| !has_other_names) else { return Ok(()) };
    let shown = rules.identity().id().evaluate(payload).unwrap_or_default();
    if shown.is_empty() || is_alike(&shown, id) || shown == wanted.name {
        return Ok(());
    }
    Err(SyncError::Undecided(desired.path.clone(), Doubt::AnotherId(id.to_owned(), shown)))
}

/// Returns the request that updates the `observed` resource. Fails if the payload does not state its alias: the address of
/// the update has it, and the server may remove it.
fn update(desired: &Resource, observed: &Observed) -> Result<Call, SyncError> {
    let call = Call::update(desired, observed)?;
    let missing = desired.rules.identity().missing_in(&desired.payload, true);
    // The path of a singleton is its name.
    let needs_names = desired.payload.as_object().is_some() && !desired.rules.resolved().singleton;
    if missing.is_empty() || !needs_names {
        return Ok(call);
    }
    let (path, missing) = (desired.path.clone(), missing.join(", "));
    let operation = OperationName::Update;
    Err(MetadataError::MissingAttributes { path, operation, missing, only_id: false }.into())
}

/// Returns the action for one resource according to `options`. With a record, write-only attributes that it does not show
/// as written differ.
pub fn decide_for(
    desired: &Resource,
    observed: &Observed,
    options: &Options,
    written: Option<&WrittenValues>,
) -> Result<Action, SyncError> {
    let mut action = match options.intent {
        Intent::Converge => {
            let action = converge(desired, observed, options.force, written)?;
            if must_replace(desired, &action, written) {
                replacement(desired, observed, action)?
            } else {
                action
            }
        }
        // The resource is absent, or cannot be read; then the server decides.
        Intent::Create => requested(desired, Step::Create, Call::create(desired, &observed.at)),
        Intent::Update => {
            check_id(desired, observed)?;
            requested(desired, Step::Update, update(desired, observed))
        }
        Intent::Delete => match prune(desired, observed)? {
            Some(action) => Action { reason: Reason::Requested, ..action },
            // A deletion that is a reset has nothing to change.
            None if observed.payload.is_some() => {
                Action::new(desired.path.clone(), Step::Skip, Reason::Equal)
            }
            None => return Err(SyncError::Absent(desired.path.clone())),
        },
    };
    if options.keep_compared {
        let desired = with_present_id(desired, observed);
        let compared = desired.evaluation()?.comparison(observed.payload.as_ref())?;
        action.compared = Some(Box::new(compared));
    }
    if options.sealable {
        action.content = Some(Box::new(saved::content(&action)));
    }
    let mut secrets = desired.rules.resolved().declared_secrets();
    secrets.add(&desired.secrets);
    // Payloads are shown only together with differences.
    let differs = |compared: &Comparison| !compared.differences.is_empty();
    let is_shown = !action.differences.is_empty() || action.compared.as_deref().is_some_and(differs);
    let hides_secrets = is_shown && !options.show_secrets;
    if hides_secrets {
        // The server may show secrets that metadata does not declare.
        observed.payload.iter().for_each(|payload| secrets.add(&detect(payload)));
    }
    if !secrets.is_empty() {
        secrets.learn(&desired.payload);
        observed.payload.iter().for_each(|payload| secrets.learn(payload));
    }
    let hides = hides_secrets && {
        // Files may have such secrets, too, and plans are shown to others.
        let mut shown = secrets.clone();
        shown.add(&detect(&desired.payload));
        shown.learn(&desired.payload);
        observed.payload.iter().for_each(|payload| shown.learn(payload));
        conceal(&mut action, &shown)
    };
    if let Some(recurrences) = &options.recurrences
        && matches!(action.reason, Reason::Different | Reason::Replaced)
    {
        let concealed = (!secrets.is_empty()).then(|| secrets.conceal(desired.payload.as_ref().clone()));
        let payload = concealed.as_ref().unwrap_or(&desired.payload);
        let mark = recurrences.mark(desired, payload, &action, hides);
        if recurrences.holds(&action.path, &mark) {
            (action.step, action.reason) = (Step::Skip, Reason::Unsettled);
            action.sending = Sending::Nothing;
        }
        action.mark = Some(mark);
    }
    Ok(action)
}

/// Whether `action` is an update that cannot correct all differences, so that the resource is replaced.
fn must_replace(desired: &Resource, action: &Action, written: Option<&WrittenValues>) -> bool {
    action.step == Step::Update && fixed(desired, &action.differences, written).next().is_some()
}

/// Returns the `differences` that an update cannot correct, according to metadata, if the resource may be deleted. A
/// write-only attribute counts only if the record has another value of it: without a record, the server may have the desired
/// value. A deferred attribute that the server does not show was left out by the create.
fn fixed<'d>(
    desired: &Resource,
    differences: &'d [Difference],
    written: Option<&WrittenValues>,
) -> impl Iterator<Item = &'d Difference> {
    let resolved = desired.rules.resolved();
    let has_changed = move |at: &Pointer| {
        let value = at.get(&desired.payload);
        written.zip(value).and_then(|(written, value)| written.is_current(desired, at, value)) == Some(false)
    };
    let may_be_deleted = *resolved.on_remove() == OnRemove::Delete;
    differences.iter().filter(move |difference| {
        let at = Pointer::parse(&difference.path).unwrap_or_default();
        let is_left_out = difference.change == Change::Remove && desired.defers(&at);
        if !may_be_deleted || is_left_out {
            return false;
        }
        let is_shown = !resolved.write_only_attributes.contains(&at);
        let is_fixed = resolved.replace_on.iter().any(|fixed| {
            // A part of a write-only attribute has no record of its own.
            at.tokens().starts_with(fixed.tokens()) || is_shown && fixed.tokens().starts_with(at.tokens())
        });
        is_fixed && (is_shown || has_changed(&at))
    })
}

/// Returns the deletion of a resource that the run creates again. If the create cannot be made, the deletion is not sent.
fn replacement(desired: &Resource, observed: &Observed, update: Action) -> Result<Action, SyncError> {
    let delete = Action { step: Step::Delete, reason: Reason::Replaced, sending: Sending::Nothing, ..update };
    let Some(call) = Call::delete(desired, observed)? else { return Ok(delete) };
    match Call::create_first(desired, &observed.at) {
        Ok(create) => Ok(Action { sending: Sending::Replacing(Box::new((call, create))), ..delete }),
        // If the run first has to create a resource that it refers to, a further pass decides again.
        Err(error) => Ok(delete.sending(Err(error))),
    }
}

fn requested(desired: &Resource, step: Step, call: Result<Call, SyncError>) -> Action {
    Action::new(desired.path.clone(), step, Reason::Requested).sending(call)
}

/// Redacts declared secrets in the differences of an action, but not the fact that they differ. Returns whether the
/// differences contained secrets.
fn conceal(action: &mut Action, secrets: &DeclaredSecrets) -> bool {
    if secrets.is_empty() {
        return false;
    }
    let conceal = |differences: &mut Vec<Difference>| {
        let mut hides = false;
        for difference in differences {
            // The paths of differences are pointers.
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

/// Returns the deletion of a resource that is not declared now; `None` if the server does not have it.
pub fn prune(declared: &Resource, observed: &Observed) -> Result<Option<Action>, SyncError> {
    let action = Action::new(declared.path.clone(), Step::Delete, Reason::Undeclared);
    check_id(declared, observed)?;
    if let (OnRemove::Reset(payload), Some(shown)) =
        (declared.rules.resolved().on_remove(), &observed.payload)
    {
        let reset = Resource { payload: Arc::new(payload.clone()), ..declared.clone() };
        if reset.evaluation()?.compare(shown)?.is_empty() {
            return Ok(None);
        }
        let call = Call::update(&reset, observed)
            .map(|call| Call { declared: Some(Box::new(declared.clone())), ..call });
        return Ok(Some(action.sending(call)));
    }
    Ok(Call::delete(declared, observed)?.map(|call| action.sending(Ok(call))))
}

/// What a created resource needs after the create.
pub enum Correction {
    Nothing,
    Update(Box<Action>),
    /// It differs at these places, which an update cannot correct.
    Replacement(Vec<Difference>),
}

/// Returns what `desired` needs, which was just created and is shown as `observed`.
pub fn correct(desired: &Resource, observed: &Observed) -> Result<Correction, SyncError> {
    let action = converge(desired, observed, false, None)?;
    let fixed: Vec<Difference> = fixed(desired, &action.differences, None).cloned().collect();
    if !fixed.is_empty() {
        return Ok(Correction::Replacement(fixed));
    }
    let action = possible(action)?;
    Ok(if action.call().is_some() { Correction::Update(Box::new(action)) } else { Correction::Nothing })
}

/// Decides again on the resource of `action`, which has changed since the plan; `None` if there is nothing left to
/// delete. With a record, write-only attributes that it does not show as written differ.
pub fn decide_again(
    action: (Step, Reason),
    desired: &Resource,
    observed: &Observed,
    written: Option<&WrittenValues>,
) -> Result<Option<Action>, SyncError> {
    match action {
        (Step::Delete, Reason::Replaced) => {
            let now = converge(desired, observed, false, written)?;
            let action = Action::new(desired.path.clone(), Step::Delete, Reason::Replaced);
            if observed.payload.is_some() && !must_replace(desired, &now, written) {
                // A further pass decides about the other attributes.
                return Ok(Some(Action { step: Step::Skip, ..action }));
            }
            Ok(Call::delete(desired, observed)?.map(|call| action.sending(Ok(call))))
        }
        (Step::Delete, _) => prune(desired, observed),
        (Step::Update, Reason::Requested) => {
            possible(requested(desired, Step::Update, update(desired, observed))).map(Some)
        }
        (_, reason) => possible(converge(desired, observed, reason == Reason::Forced, written)?).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::Plan;
    use super::*;
    use crate::metadata::Metadata;
    use crate::path::LogicalPath;
    use crate::payload::{Descriptor, PayloadType, decode};
    use crate::sync::model::{PruneLimit, Scope};

    fn parse(json: &str) -> Value {
        decode(PayloadType::Json, json.as_bytes()).unwrap()
    }

    fn desired(json: &str) -> Resource {
        let path = LogicalPath::parse("/shops/rio").unwrap();
        let rules = Metadata::layered(Vec::new()).rules(&path).unwrap();
        let payload = parse(json);
        let descriptor = Some(Descriptor::from_extension(".json"));
        Resource { descriptor, ..Resource::named(path, rules, payload).unwrap() }
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
        let sent = action.call().map(|call| format!("{} {}", call.request.method, call.request.path));
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
        let action = decide_for(&desired, &observed(&desired, payload), &options, None).unwrap();
        let call = action.call().unwrap();
        let sent = format!("{} {}", call.request.method, call.request.path);
        assert_eq!((action.step, action.reason, sent.as_str()), (step, Reason::Requested, expected));
    }

    #[test]
    fn what_is_absent_cannot_be_deleted() {
        let desired = desired(r#"{"a":1}"#);
        let options = Options { intent: Intent::Delete, ..Options::default() };
        let refused = decide_for(&desired, &observed(&desired, None), &options, None);
        assert!(matches!(refused, Err(SyncError::Absent(_))));
    }

    fn everything() -> Scope {
        Scope { path: LogicalPath::root(), recursive: true }
    }

    #[test]
    fn requested_deletions_have_no_brakes() {
        let desired = desired(r#"{"a":1}"#);
        let options =
            Options { intent: Intent::Delete, prune_limit: PruneLimit::Count(0), ..Options::default() };
        let delete = || decide_for(&desired, &observed(&desired, Some("{}")), &options, None).unwrap();
        let actions = (0..20).map(|_| delete()).collect();
        let plan = Plan { actions, targeted: 20, scope: Some(everything()), ..Plan::default() };
        assert_eq!(plan.finished(&options).actions.len(), 20);
    }

    #[rstest]
    #[case(Some(r#"{"a":2,"id":17}"#), r#"{"a":2}"#)]
    #[case(None, "null")]
    fn what_was_compared_is_kept_on_demand(#[case] payload: Option<&str>, #[case] expected: &str) {
        let desired = desired(r#"{"a":1}"#);
        let options = Options { keep_compared: true, ..Options::default() };
        let action = decide_for(&desired, &observed(&desired, payload), &options, None).unwrap();
        let compared = action.compared.unwrap();
        assert_eq!(compared.desired, parse(r#"{"a":1}"#));
        assert_eq!(compared.observed.unwrap_or_default(), parse(expected));
        assert_eq!(compared.differences.len(), 1);
        let forgotten =
            decide_for(&desired, &observed(&desired, payload), &Options::default(), None).unwrap();
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
        let action = decide_for(&desired, &observed, &options, None).unwrap();
        assert_eq!((action.step, action.differences.len()), (Step::Update, 1));
        let shown = format!("{:?} {:?}", action.differences, action.compared);
        assert!(!shown.contains("canary"), "{shown}");
    }

    #[test]
    fn a_plan_of_very_many_actions_stays_small() {
        // 100,000 actions, most of which do nothing, have to fit into about ten MiB.
        assert!(size_of::<Action>() <= 104, "{} bytes", size_of::<Action>());
        assert!(size_of::<Call>() <= 344, "{} bytes", size_of::<Call>());
    }

    #[test]
    fn a_plan_serialises() {
        let desired = desired(r#"{"a":1}"#);
        let action = decide(&desired, &observed(&desired, Some(r#"{"a":2}"#)), false).unwrap();
        let plan = Plan {
            actions: vec![action],
            targeted: 1,
            scope: Some(everything()),
            declared: 1,
            ..Plan::default()
        };
        let plan = plan.finished(&Options::default());
        insta::assert_snapshot!(serde_json::to_string(&plan).unwrap(), @r#"{"revision":null,"actions":[{"path":"/shops/rio","step":"update","reason":"different","differences":[{"path":"/a","change":"replace","desired":1,"observed":2}]}],"unchanged":0,"targeted":1,"failures":[],"prune_refused":null}"#);
    }
}
