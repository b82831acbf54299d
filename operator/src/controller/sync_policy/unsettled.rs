//! Stores resources that never converge in the status, so that a new process of the operator knows them.

use declarest_core::path::LogicalPath;
use declarest_core::sync::{Recurrences, Report, Unsettled};

use crate::crd::SyncPolicyStatus;
use crate::crd::sync_policy::UnsettledResource;

/// Maximum number of resources in the status.
pub const NAMED: usize = 50;
/// Maximum number of pointers per resource in the status.
pub const POINTERS: usize = 20;
/// Maximum number of resources in the condition's message.
const SHOWN: usize = 3;

/// Returns the resources in `status`.
pub fn recorded(status: &SyncPolicyStatus) -> Recurrences {
    let recorded = status.unsettled_resources.iter().filter_map(|resource| {
        let unsettled = Unsettled {
            pointers: resource.pointers.clone(),
            digest: resource.digest.clone(),
            writes: u32::try_from(resource.writes).ok()?,
        };
        Some((LogicalPath::parse(&resource.path).ok()?, unsettled))
    });
    Recurrences::recorded(recorded)
}

/// Returns the resources of a run for the status; those that are no longer written come first.
pub fn to_status(report: &Report) -> Vec<UnsettledResource> {
    let Some(recurrences) = &report.recurrences else { return Vec::new() };
    let mut unsettled: Vec<_> = recurrences.unsettled().collect();
    unsettled.sort_by_key(|(_, unsettled)| std::cmp::Reverse(unsettled.writes));
    let named = unsettled.into_iter().take(NAMED).map(|(path, unsettled)| UnsettledResource {
        path: path.to_string(),
        pointers: unsettled.pointers.iter().take(POINTERS).cloned().collect(),
        digest: unsettled.digest.clone(),
        writes: i32::try_from(unsettled.writes).unwrap_or(i32::MAX),
        message: unsettled.message(path),
    });
    named.collect()
}

/// Returns the message of the condition.
pub fn message(resources: &[UnsettledResource]) -> String {
    let shown: Vec<&str> = resources.iter().take(SHOWN).map(|resource| resource.message.as_str()).collect();
    let more = if resources.len() > SHOWN { "; …" } else { "" };
    let noun = if resources.len() == 1 { "resource does not converge" } else { "resources do not converge" };
    format!("{} {noun}: {}{more}", resources.len(), shown.join("; "))
}
