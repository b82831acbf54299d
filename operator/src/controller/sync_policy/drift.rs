//! Stores the differences that mode `observe` found in the status.

use declarest_core::sync::{Drift, Report};

use super::unsettled::{NAMED, POINTERS};
use crate::controller::outcome::{Fact, Truth};
use crate::crd::SyncPolicyStatus;
use crate::crd::sync_policy::DriftedResource;

/// Maximum number of resources, and of places of each, in the condition's message.
const SHOWN: usize = 3;

/// Returns the resources that differ, for the status.
pub fn to_status(report: &Report) -> Vec<DriftedResource> {
    let named = report.drifted.iter().take(NAMED);
    let drifted = |Drift { path, operation, pointers }: &Drift| DriftedResource {
        path: path.to_string(),
        operation: (*operation).to_owned(),
        pointers: pointers.iter().take(POINTERS).cloned().collect(),
    };
    named.map(drifted).collect()
}

/// Returns the condition `Drifted` of the last run.
pub fn condition(status: &SyncPolicyStatus) -> Option<Fact> {
    let count = usize::try_from(status.resource_stats?.drifted).ok().filter(|count| *count > 0)?;
    let shown = &status.drifted_resources[..status.drifted_resources.len().min(SHOWN)];
    let mut parts: Vec<String> = shown.iter().map(described).collect();
    if count > parts.len() {
        parts.push("…".to_owned());
    }
    let noun = if count == 1 { "resource differs" } else { "resources differ" };
    let message = format!("{count} {noun} from Git, not written (mode: observe): {}", parts.join("; "));
    Some(Fact { type_: "Drifted", truth: Truth::True, reason: "DriftObserved", message })
}

fn described(resource: &DriftedResource) -> String {
    let DriftedResource { path, operation, pointers } = resource;
    let mut places: Vec<&str> =
        pointers.iter().map(String::as_str).filter(|place| !place.is_empty()).take(SHOWN).collect();
    if places.is_empty() {
        return format!("{operation} {path}");
    }
    if pointers.len() > SHOWN {
        places.push("…");
    }
    format!("{operation} {path} at {}", places.join(", "))
}
