//! Composes the status of a contract from its document, its checks and its former status.

use super::document::Document;
use super::finding::clip;
use super::status::{ContractStatus, Gate, HistoryEntry, MAX_FINDINGS, MAX_HISTORY, Phase, Validation};
use super::time;
use super::verify::{self, Verification};

/// The largest status, in bytes of JSON.
pub const MAX_STATUS: usize = 15 << 10;
/// A status that differs only in times is written again after this time, in seconds.
const REFRESH: i64 = 3600;
/// The longest source and name, in characters.
const MAX_TEXT: usize = 253;

/// The origin of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// `inline`, the URL without userinfo and query, or the image with its digest.
    pub source: String,
    /// The image without its digest.
    pub image_ref: Option<String>,
    /// Whether it is a former copy, because it could not be fetched again.
    pub stale: bool,
    /// The time when it was loaded, in seconds since 1970.
    pub loaded: i64,
}

/// Returns the status of a contract that was loaded. Without a `verification`, the document is not valid.
pub fn loaded(
    document: &Document,
    origin: &Origin,
    verification: Option<Verification>,
    former: Option<&ContractStatus>,
    now: i64,
) -> ContractStatus {
    let mut status = ContractStatus {
        phase: Some(Phase::Invalid),
        service_name: document.name.as_deref().map(|name| clip(name, MAX_TEXT)),
        version: document.version.as_deref().map(|version| clip(version, MAX_TEXT)),
        source: Some(clip(&origin.source, MAX_TEXT)),
        image_ref: origin.image_ref.as_deref().map(|image| clip(image, MAX_TEXT)),
        hash: Some(document.hash.clone()),
        stale: origin.stale,
        gate: Some(Gate::Closed),
        last_verified_time: Some(time::format(now)),
        validation: validation(document),
        history: former.map(|former| former.history.clone()).unwrap_or_default(),
        ..ContractStatus::default()
    };
    let Some(verification) = verification else { return fit(status) };
    let Verification { mut checks, resources, ports, endpoints, observed, comparison } = verification;
    for check in &mut checks {
        let before = former.and_then(|former| former.checks.iter().find(|before| before.kind == check.kind));
        check.last_transition_time = match before {
            Some(before) if before.status == check.status => before.last_transition_time.clone(),
            _ => Some(time::format(now)),
        };
    }
    let phase = verify::phase(&checks);
    status.phase = Some(phase);
    status.gate = Some(match phase {
        Phase::Invalid => Gate::Closed,
        _ => verify::gate(&checks, former.and_then(|former| former.gate)),
    });
    status.summary = Some(verify::summary(&checks));
    if phase != Phase::Reference {
        status.resources = Some(resources);
    }
    (status.ports, status.endpoints, status.observed) = (ports, endpoints, observed);
    (status.checks, status.comparison) = (checks, comparison);
    remember(&mut status, origin);
    fit(status)
}

/// Returns the status of a contract that could not be loaded.
pub fn unavailable(former: Option<&ContractStatus>) -> ContractStatus {
    ContractStatus {
        phase: Some(Phase::Invalid),
        gate: Some(Gate::Closed),
        last_verified_time: former.and_then(|former| former.last_verified_time.clone()),
        history: former.map(|former| former.history.clone()).unwrap_or_default(),
        ..ContractStatus::default()
    }
}

/// Returns `fresh`, or `former` if they differ only in the times of verifications within the last hour.
pub fn settled(former: Option<&ContractStatus>, fresh: ContractStatus, now: i64) -> ContractStatus {
    let Some(former) = former else { return fresh };
    let timeless = |status: &ContractStatus| {
        let mut status = ContractStatus { last_verified_time: None, ..status.clone() };
        for endpoint in &mut status.endpoints {
            endpoint.latency_ms = 0;
            endpoint.time.clear();
        }
        status
    };
    let verified = former.last_verified_time.as_deref().and_then(time::parse);
    let recent = verified.is_some_and(|verified| (0..REFRESH).contains(&(now - verified)));
    let same = timeless(former) == timeless(&fresh);
    // What could not be loaded has no new time.
    if same && (recent || fresh.last_verified_time == former.last_verified_time) {
        former.clone()
    } else {
        fresh
    }
}

fn validation(document: &Document) -> Option<Validation> {
    let first = |findings: &[super::finding::Finding]| findings.iter().take(MAX_FINDINGS).cloned().collect();
    let validation = Validation { errors: first(&document.errors), warnings: first(&document.warnings) };
    (validation != Validation::default()).then_some(validation)
}

/// Adds a version to the history if it differs from the newest one.
fn remember(status: &mut ContractStatus, origin: &Origin) {
    let (Some(service_name), Some(version), Some(hash)) =
        (status.service_name.clone(), status.version.clone(), status.hash.clone())
    else {
        return;
    };
    let newest = status.history.first();
    if newest.is_some_and(|newest| newest.version == version && newest.hash == hash) {
        return;
    }
    let source = status.source.clone().unwrap_or_default();
    let time = time::format(origin.loaded);
    status.history.insert(0, HistoryEntry { service_name, version, source, hash, time });
    status.history.truncate(MAX_HISTORY);
}

/// Shortens a status that is larger than [`MAX_STATUS`], the least important parts first.
fn fit(mut status: ContractStatus) -> ContractStatus {
    let reductions: [fn(&mut ContractStatus); 6] = [
        |status| {
            if let Some(validation) = &mut status.validation {
                validation.warnings.truncate(5);
            }
        },
        |status| status.comparison.clear(),
        |status| {
            if let Some(validation) = &mut status.validation {
                validation.errors.truncate(5);
            }
        },
        |status| {
            for check in &mut status.checks {
                check.expected = clip(&check.expected, 64);
                check.observed = clip(&check.observed, 64);
                check.message = clip(&check.message, 160);
            }
        },
        |status| status.observed = None,
        |status| status.history.truncate(1),
    ];
    for reduce in reductions {
        // A status can always be encoded; otherwise nothing has to be shortened.
        if serde_json::to_vec(&status).map_or(0, |json| json.len()) <= MAX_STATUS {
            break;
        }
        reduce(&mut status);
    }
    status
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
