use std::collections::BTreeMap;

use super::*;
use crate::contract::status::{CheckKind, CheckStatus, EndpointResult};
use crate::contract::{ProbeVia, Snapshot, Target, verify};

const NOW: i64 = 1_800_000_000;

fn document(version: &str) -> Document {
    let text = format!("pactoVersion: '1.0'\nservice: {{name: tides, version: {version}}}");
    Document::read(text.as_bytes(), None)
}

fn target() -> Target {
    let service = Some("tides".to_owned());
    Target { namespace: "team".to_owned(), service, workload: None, kind: None, probe: ProbeVia::Nothing }
}

fn origin() -> Origin {
    Origin { source: "inline".to_owned(), loaded: NOW, ..Origin::default() }
}

fn status(version: &str, former: Option<&ContractStatus>, now: i64) -> ContractStatus {
    let document = document(version);
    let contract = document.contract.clone().unwrap();
    let verification = verify(&contract, &target(), &BTreeMap::new(), &Snapshot::empty(now));
    loaded(&document, &origin(), Some(verification), former, now)
}

#[test]
fn an_earlier_version_is_a_new_entry_of_the_history() {
    let first = status("1.0.0", None, NOW);
    let second = status("2.0.0", Some(&first), NOW + 1);
    let third = status("1.0.0", Some(&second), NOW + 2);
    let same = status("1.0.0", Some(&third), NOW + 3);
    let versions: Vec<&str> = same.history.iter().map(|entry| entry.version.as_str()).collect();
    assert_eq!(versions, ["1.0.0", "2.0.0", "1.0.0"]);
}

#[test]
fn an_invalid_document_clears_the_results_and_keeps_the_history() {
    let before = status("1.0.0", None, NOW);
    assert_eq!(before.phase, Some(Phase::Degraded));
    let invalid = Document::read(b"pactoVersion: '2.0'", None);
    let after = loaded(&invalid, &origin(), None, Some(&before), NOW);
    assert_eq!((after.phase, after.gate), (Some(Phase::Invalid), Some(Gate::Closed)));
    assert!(after.checks.is_empty() && after.resources.is_none() && after.observed.is_none());
    assert_eq!(after.validation.unwrap().errors[0].code, "UNSUPPORTED_VERSION");
    assert_eq!(after.history, before.history);
    assert_eq!(unavailable(Some(&before)).history, before.history);
}

#[test]
fn times_move_only_with_changes() {
    let first = status("1.0.0", None, NOW);
    let again = settled(Some(&first), status("1.0.0", Some(&first), NOW + 60), NOW + 60);
    assert_eq!(again, first);
    let later = settled(Some(&first), status("1.0.0", Some(&first), NOW + 3600), NOW + 3600);
    assert_ne!(later.last_verified_time, first.last_verified_time);
    assert_eq!(later.checks, first.checks, "transition times are those of the first status");
    let changed = settled(Some(&first), status("1.1.0", Some(&first), NOW + 60), NOW + 60);
    assert_eq!(changed.last_verified_time.as_deref(), Some(time::format(NOW + 60).as_str()));
}

#[test]
fn the_transition_time_of_a_check_follows_its_status() {
    let first = status("1.0.0", None, NOW);
    let mut other = first.clone();
    other.checks[0].status = CheckStatus::True;
    let second = status("1.0.0", Some(&other), NOW + 5);
    assert_eq!(second.checks[0].last_transition_time.as_deref(), Some(time::format(NOW + 5).as_str()));
    assert_eq!(second.checks[1].last_transition_time, first.checks[1].last_transition_time);
}

#[test]
fn a_status_is_bounded() {
    let mut big = status("1.0.0", None, NOW);
    let long = "ü".repeat(1000);
    for check in &mut big.checks {
        (check.message, check.expected, check.observed) =
            (clip(&long, 512), clip(&long, 256), clip(&long, 256));
    }
    big.comparison = verify_comparison(&big);
    big.endpoints = vec![EndpointResult { error: clip(&long, 256), ..EndpointResult::default() }; 2];
    big.history = vec![big.history[0].clone(); 10];
    assert!(serde_json::to_vec(&big).unwrap().len() > MAX_STATUS);
    let fitted = fit(big);
    assert!(serde_json::to_vec(&fitted).unwrap().len() <= MAX_STATUS);
    assert_eq!(fitted.checks.len(), CheckKind::ALL.len());
}

fn verify_comparison(status: &ContractStatus) -> Vec<crate::contract::status::Comparison> {
    let of = |check: &crate::contract::status::Check| crate::contract::status::Comparison {
        expected: check.expected.clone(),
        ..Default::default()
    };
    status.checks.iter().map(of).collect()
}
