//! Differences that the request of an update does not contain, because the transforms of the update remove them.

use std::sync::Arc;

use crate::metadata::{Change, Difference, OperationName};
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::sync::model::{Call, Observed, Resource, SyncError, WrittenValues, abridged};

/// Notes the changed write-only attributes that `call` does not contain. Unless the update is `forced`, fails if it contains
/// none of the `differences`: it would change nothing, and each later run would send it again.
pub fn checked(
    mut call: Call,
    desired: &Resource,
    observed: &Observed,
    differences: &[Difference],
    written: Option<&WrittenValues>,
    forced: bool,
) -> Result<Call, SyncError> {
    let update = desired.rules.resolved().operation(OperationName::Update);
    if update.transforms.is_empty() {
        return Ok(call);
    }
    // Without a record, the server may have the desired value of a write-only attribute.
    let mut may_be_equal = false;
    for (attribute, value) in desired.write_only() {
        match written.map(|written| written.is_current(desired, attribute, value)) {
            Some(Some(false)) => {
                let other = attribute.remove(desired.payload.as_ref().clone());
                if is_also_for(&call, &with(desired, other), observed) {
                    call.unsent.push(attribute.clone());
                }
            }
            Some(None) => may_be_equal = true,
            _ => {}
        }
    }
    let places: Vec<Pointer> =
        differences.iter().map(|difference| Pointer::parse(&difference.path).unwrap_or_default()).collect();
    // A server may remove what an update does not contain, and derive what it shows from what it does not show. The address
    // alone may have an effect.
    let removes = differences.iter().any(|difference| difference.change == Change::Add);
    let is_action = update.path.is_some() && is_empty(&call);
    let may_hide = || has_hidden(&desired.payload, observed.payload.as_ref(), &Pointer::default(), &places);
    if forced || places.is_empty() || may_be_equal || removes || is_action || may_hide() {
        return Ok(call);
    }
    match unchanged(desired, observed, &places) {
        Some(unchanged) if is_also_for(&call, &unchanged, observed) => {
            let places: Vec<_> = places.iter().map(ToString::to_string).collect();
            Err(SyncError::NotSent(desired.path.clone(), abridged(&places)))
        }
        _ => Ok(call),
    }
}

fn with(desired: &Resource, payload: Value) -> Resource {
    Resource { payload: Arc::new(payload), ..desired.clone() }
}

/// Returns `desired` with the members of the server at these places; `None` if it still differs, because the steps of the
/// comparison move members.
fn unchanged(desired: &Resource, observed: &Observed, places: &[Pointer]) -> Option<Resource> {
    let shown = observed.payload.as_ref()?;
    let mut payload = desired.payload.as_ref().clone();
    for place in places {
        let member = Pointer::from_token(place.tokens().first()?);
        payload = match member.get(shown) {
            Some(shown) => member.put(payload, shown.clone()),
            None => member.remove(payload),
        };
    }
    let unchanged = with(desired, payload);
    let is_equal = unchanged.evaluation().ok()?.compare(shown).ok()?.is_empty();
    is_equal.then_some(unchanged)
}

/// Whether `call` is also the request that makes `other` of the `observed` resource.
fn is_also_for(call: &Call, other: &Resource, observed: &Observed) -> bool {
    // Addresses may contain attributes, too.
    let at = Resource { payload: Arc::clone(&other.payload), ..observed.at.clone() };
    let at = at.with_remote_id(&observed.at.identity.remote_id);
    let observed = Observed { at, ..observed.clone() };
    let Ok(Call { request: other, .. }) = Call::update(other, &observed) else { return false };
    let request = &call.request;
    (&request.path, &request.query, &request.headers, &request.body)
        == (&other.path, &other.query, &other.headers, &other.body)
}

fn is_empty(call: &Call) -> bool {
    call.request.body.as_ref().is_none_or(|body| [&b"{}"[..], b""].contains(&&*body.bytes))
}

/// Whether `desired` has members beside those at `places` that the server does not show, so that they may differ.
fn has_hidden(desired: &Value, shown: Option<&Value>, at: &Pointer, places: &[Pointer]) -> bool {
    if places.iter().any(|place| at.tokens().starts_with(place.tokens())) {
        return false;
    }
    let Some(shown) = shown else { return true };
    desired.as_object().is_some_and(|members| {
        members.iter().any(|(name, member)| has_hidden(member, shown.get(name), &at.child(name), places))
    })
}
