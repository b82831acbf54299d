//! Contracts of services, and the objects of a cluster that they are compared with.

use std::collections::BTreeSet;

use declarest_core::contract::report::{self, Origin};
use declarest_core::contract::{
    Cluster, Contract, Document, ObjectKind, ProbeVia, Severities, Target, observe, probe_requests, verify,
};
use serde_json::Value;

use super::utf8;

/// A contract with all fields that are compared.
const LARGE: &str = include_str!("../seeds/contract_document/large");
/// The limit that the API server has for a status, in bytes.
const MAX_STATUS: usize = 16 << 10;

/// A cluster in which each object that is asked for has the same content, or does not exist.
struct Monotonous(Option<Value>);

impl Cluster for Monotonous {
    async fn get(&self, _: ObjectKind, _: &str) -> Result<Option<Value>, String> {
        Ok(self.0.clone())
    }

    async fn list(
        &self,
        _: ObjectKind,
        _: Option<&declarest_core::contract::objects::Selector>,
        limit: usize,
    ) -> Result<Vec<Value>, String> {
        Ok(self.0.iter().take(limit).cloned().collect())
    }
}

pub fn document(data: &[u8]) {
    let alone = Document::read(data, None);
    assert_eq!(alone.contract.is_some(), alone.errors.is_empty(), "a contract has no errors");
    // In a bundle, the files that it names must exist.
    let bundled = Document::read(data, Some(&BTreeSet::new()));
    assert!(bundled.errors.len() >= alone.errors.len());
    assert!(alone.errors.iter().chain(&alone.warnings).all(|finding| !finding.message.is_empty()));
    compare(&alone, &Monotonous(None));
}

pub fn objects(data: &[u8]) {
    let Some(Ok(object)) = utf8(data).map(serde_json::from_str) else { return };
    compare(&Document::read(LARGE.as_bytes(), None), &Monotonous(Some(object)));
}

/// Compares a contract with a cluster, and checks the size of the status.
fn compare(document: &Document, cluster: &Monotonous) {
    let verified = document.contract.as_ref().map(|contract| verified(contract, cluster));
    let origin = Origin { source: "inline".to_owned(), image_ref: None, stale: false, loaded: 0 };
    let status = report::loaded(document, &origin, verified, None, 0);
    let written = serde_json::to_vec(&status).expect("a status can be written");
    assert!(written.len() < MAX_STATUS, "the status has {} bytes", written.len());
}

fn verified(contract: &Contract, cluster: &Monotonous) -> declarest_core::contract::Verification {
    let target = Target {
        namespace: "team".to_owned(),
        service: Some("shop".to_owned()),
        workload: None,
        kind: None,
        probe: ProbeVia::Service(None),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let snapshot = runtime.block_on(observe(contract, &target, cluster, 0));
    let severities = Severities::new();
    assert!(probe_requests(contract, &target, &severities, &snapshot).len() <= 2);
    verify(contract, &target, &severities, &snapshot)
}
