//! Whether the storage of the workload is what the state of the service needs.

use super::super::model::{Contract, Durability, Scope, State, StateKind};
use super::super::snapshot::{FoundWorkload, Read, Snapshot};
use super::judged::{Judged, listed, workload};

/// The storage of the pods of a workload.
pub struct Storage<'w> {
    /// The claims of volumes.
    pub claims: Vec<&'w str>,
    /// The claim templates of a `StatefulSet`.
    pub templates: Vec<&'w str>,
    /// Whether a volume ends with the pod.
    pub ephemeral: bool,
}

impl<'w> Storage<'w> {
    pub fn of(found: &'w FoundWorkload) -> Self {
        let volumes = &found.template().spec.volumes;
        let claims = volumes.iter().filter_map(|volume| volume.claim.as_ref());
        let mut claims: Vec<&str> = claims.map(|claim| claim.name.as_str()).collect();
        claims.sort_unstable();
        claims.dedup();
        let templates = &found.object.spec.claim_templates;
        let templates = templates.iter().map(|template| template.metadata.name.as_str()).collect();
        let ephemeral = volumes.iter().any(|volume| volume.empty.is_some() || volume.ephemeral.is_some());
        Self { claims, templates, ephemeral }
    }

    fn is_persistent(&self) -> bool {
        !self.claims.is_empty() || !self.templates.is_empty()
    }

    fn text(&self) -> String {
        let claims = self.claims.iter().map(|name| format!("claim {name}"));
        let templates = self.templates.iter().map(|name| format!("claim template {name}"));
        let ephemeral = self.ephemeral.then(|| "ephemeral volume".to_owned());
        let all: Vec<String> = claims.chain(templates).chain(ephemeral).collect();
        if all.is_empty() { "no storage".to_owned() } else { listed(all) }
    }
}

/// `StateModelMatches`
pub fn state_matches(contract: &Contract, snapshot: &Snapshot) -> Judged {
    let Some(runtime) = &contract.runtime else { return Judged::not_declared() };
    let State { kind, scope, durability } = runtime.state;
    let expected = match (scope, durability) {
        (Scope::Local, Durability::Persistent) => "persistent local storage",
        (Scope::Shared, Durability::Persistent) => "persistent shared storage",
        (_, Durability::Ephemeral) => "ephemeral storage",
    };
    let found = match workload(snapshot) {
        Ok(found) => found,
        Err(judged) => return judged.expecting(expected),
    };
    let storage = Storage::of(found);
    let differs = |reason| Judged::differs(reason, "storage", expected, storage.text());
    // Without the claims, nothing else can be decided.
    for name in &storage.claims {
        match snapshot.claims.get(*name) {
            Some(Read::Absent) => {
                let observed = format!("claim {name} does not exist");
                return Judged::differs("ClaimNotFound", "storage", expected, observed);
            }
            Some(Read::Failed(reason)) => return Judged::failed(reason).expecting(expected),
            Some(Read::Found(_)) | None => {}
        }
    }
    let is_match = match (durability, scope) {
        (Durability::Ephemeral, _) => kind != StateKind::Stateless || !storage.is_persistent(),
        (Durability::Persistent, Scope::Local) => storage.is_persistent(),
        (Durability::Persistent, Scope::Shared) => {
            if !storage.is_persistent() {
                let message = "the workload has no claim; its state may be in an external store";
                return Judged::not_applicable(message).expecting(expected);
            }
            if !is_shared(&storage, found, snapshot) {
                return differs("ScopeMismatch");
            }
            true
        }
    };
    match (is_match, durability) {
        (true, _) => Judged::matches(expected, storage.text()),
        (false, Durability::Ephemeral) => differs("UnexpectedPersistentStorage"),
        (false, Durability::Persistent) => differs("MissingPersistentStorage"),
    }
}

/// Whether several pods can use the claims of the volumes together, or there is only one pod.
fn is_shared(storage: &Storage<'_>, found: &FoundWorkload, snapshot: &Snapshot) -> bool {
    let is_shared = |name: &&str| {
        let claim = snapshot.claims.get(*name).and_then(Read::found);
        let modes = claim.map(|claim| claim.spec.access_modes.as_slice()).unwrap_or_default();
        modes.iter().any(|mode| matches!(mode.as_str(), "ReadWriteMany" | "ReadOnlyMany"))
    };
    storage.claims.iter().any(is_shared) || found.desired().is_some_and(|desired| desired <= 1)
}
