//! The dependencies of a policy: checks that they are ready, and computes their fingerprint.

use std::collections::BTreeSet;

use declarest_core::digest::hex;
use kube::{Resource as _, ResourceExt as _};
use sha2::{Digest as _, Sha256};

use super::SYNC_REQUEST;
use super::decision::{ConfigHash, Fingerprint};
use crate::controller::conditions;
use crate::controller::context::Context;
use crate::controller::contracts;
use crate::controller::error::Failure;
use crate::controller::kind::{Key, Kind, is_ready};
use crate::controller::outcome::Reason;
use crate::crd::{ManagedServer, ManagedServerSpec, ResourceRepository, SecretStore, SyncPolicy};

/// The objects that a policy refers to, all ready.
pub struct Inputs {
    /// Not expanded.
    pub repository: ResourceRepository,
    /// Expanded. It must never be written back or shown.
    pub server: ManagedServer,
    /// Expanded. It must never be written back or shown.
    pub store: Option<SecretStore>,
    /// The commit that the repository is at.
    pub revision: String,
}

impl Inputs {
    /// Finds the dependencies and checks that each is ready in its current generation.
    pub fn gather(context: &Context, policy: &SyncPolicy) -> Result<Self, Failure> {
        // Find the dependencies.
        let Key { namespace, .. } = policy.key();
        let spec = &policy.spec;
        let name = &spec.resource_repository_ref.name;
        let repository = context.caches.repositories.get(&namespace, name);
        let repository =
            repository.ok_or_else(|| missing("ResourceRepository", name, "resourceRepositoryRef"))?;
        let name = &spec.managed_server_ref.name;
        let server = context.caches.servers.get(&namespace, name);
        let server = server.ok_or_else(|| missing("ManagedServer", name, "managedServerRef"))?;
        let store = match &spec.secret_store_ref {
            None => None,
            Some(reference) => {
                let store = context.caches.stores.get(&namespace, &reference.name);
                Some(store.ok_or_else(|| missing("SecretStore", &reference.name, "secretStoreRef"))?)
            }
        };
        // Check that they are ready.
        if !is_ready(&repository) && !serves_last_fetch(&repository) {
            return Err(not_ready(&repository));
        }
        if !is_ready(&server) {
            return Err(not_ready(&server));
        }
        if let Some(store) = store.as_ref().filter(|store| !is_ready(*store)) {
            return Err(not_ready(store));
        }
        if let Some(why) = contracts::closed(&server) {
            let message = format!("ManagedServer \"{name}\": {why}");
            return Err(Failure::new(Reason::DependencyNotReady, message));
        }
        let revision = repository.status.as_ref().and_then(|status| status.last_fetched_revision.clone());
        let Some(revision) = revision else { return Err(not_ready(&repository)) };
        // Expand their specs.
        let store = store.map(|store| context.expanded(&store)).transpose()?;
        Ok(Self { server: context.expanded(&server)?, repository, store, revision })
    }

    /// Returns the current fingerprint of the policy and its dependencies.
    pub fn fingerprint(&self, context: &Context, policy: &SyncPolicy) -> Fingerprint {
        let mut dependencies = Sha256::new();
        add_object(&mut dependencies, &self.repository);
        add_server(&mut dependencies, &self.server);
        if let Some(store) = &self.store {
            add_object(&mut dependencies, store);
        }
        let digests = self.server.status.as_ref().and_then(|status| status.artifact_digests.as_ref());
        dependencies.update(format!("{digests:?}"));
        let mut own = Sha256::new();
        add_object(&mut own, policy);
        Fingerprint {
            config: ConfigHash { policy: short_hex(own), dependencies: short_hex(dependencies) },
            secrets: context.secrets_hash::<SyncPolicy>(&policy.key()),
            request: policy.annotations().get(SYNC_REQUEST).cloned(),
            revision: self.revision.clone(),
        }
    }
}

/// The reasons of a failed fetch, and of a failure of the operator. A name of the spec that an earlier fetch used may have an
/// address that is denied now, and its Secret may be gone.
const FAILED_FETCH: [Reason; 5] = [
    Reason::FetchFailed,
    Reason::AuthFailed,
    Reason::DependencyInvalid,
    Reason::SpecInvalid,
    Reason::ReconcileFailed,
];

/// Returns whether the last fetch failed and an earlier fetch of the same spec can be used, so that drift is corrected
/// while Git is not available.
fn serves_last_fetch(repository: &ResourceRepository) -> bool {
    let failed_fetch = conditions::find(repository.conditions(), "Ready")
        .is_some_and(|ready| FAILED_FETCH.iter().any(|reason| reason.into_str() == ready.reason));
    let fetched = repository.status.as_ref().and_then(|status| status.last_fetched_generation);
    failed_fetch && fetched.is_some() && fetched == repository.meta().generation
}

fn missing(kind: &str, name: &str, field: &str) -> Failure {
    Failure::dependency_invalid(format!(
        "spec.{field}: there is no {kind} \"{name}\" in this namespace; create it or correct the name"
    ))
}

pub fn not_ready<K: Kind>(object: &K) -> Failure {
    let generation = object.meta().generation;
    let of_spec = |type_| {
        conditions::find(object.conditions(), type_).filter(|found| found.observed_generation == generation)
    };
    // The deletion is a new generation, of which no condition is.
    if object.meta().deletion_timestamp.is_some() {
        let finalizers = object.finalizers().join(", ");
        let message =
            format!("{} \"{}\" is being deleted; its finalizers: {finalizers}", K::NAME, object.name_any());
        return Failure::new(Reason::DependencyNotReady, message);
    }
    let in_progress = || of_spec("Reconciling").filter(|found| found.status == "True");
    let why = of_spec("Ready").or_else(in_progress).map_or_else(
        || "it was not reconciled yet".to_owned(),
        |found| format!("{}: {}", found.reason, found.message),
    );
    let message = format!("{} \"{}\" is not ready ({why})", K::NAME, object.name_any());
    Failure::new(Reason::DependencyNotReady, message)
}

/// Returns the Secrets that the server and the store of a policy refer to. Those of the repository affect no resource: a
/// new token fetches the same commits. The Secrets are read from the specs, because after a restart a policy may be
/// reconciled before its dependencies.
pub fn secret_names(context: &Context, policy: &SyncPolicy) -> BTreeSet<String> {
    let Key { namespace, .. } = policy.key();
    let spec = &policy.spec;
    let caches = &context.caches;
    let mut names = BTreeSet::new();
    add_secrets(context, caches.servers.get(&namespace, &spec.managed_server_ref.name), &mut names);
    if let Some(store) = &spec.secret_store_ref {
        add_secrets(context, caches.stores.get(&namespace, &store.name), &mut names);
    }
    names
}

fn add_secrets<K: Kind>(context: &Context, object: Option<K>, names: &mut BTreeSet<String>) {
    // An object that cannot be expanded is not ready, so its policies wait for it.
    let Some(expanded) = object.and_then(|object| context.expanded(&object).ok()) else { return };
    names.extend(expanded.secret_refs().into_iter().map(|(_, secret)| secret.name));
}

/// Adds the server without its contract, because a change of the contract alone changes no resource.
fn add_server(hash: &mut Sha256, server: &ManagedServer) {
    let spec = ManagedServerSpec { contract: None, ..server.spec.clone() };
    let uid = server.meta().uid.as_deref().unwrap_or_default();
    // A spec can always be encoded. Placeholders are expanded, and only the digest is kept.
    let spec = serde_json::to_string(&spec).unwrap_or_default();
    hash.update(format!("{}\0{uid}\0{spec}\n", ManagedServer::NAME));
}

fn add_object<K: Kind>(hash: &mut Sha256, object: &K) {
    let meta = object.meta();
    let uid = meta.uid.as_deref().unwrap_or_default();
    hash.update(format!("{}\0{uid}\0{}\n", K::NAME, meta.generation.unwrap_or_default()));
}

/// Returns 64 bits of a digest, which are enough to detect a change and short in the status.
fn short_hex(hash: Sha256) -> String {
    hex(&hash.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_dependency_that_is_being_deleted_is_named_with_its_finalizers() {
        let server: ManagedServer = serde_json::from_value(json!({
            "apiVersion": "declarest.io/v1alpha1", "kind": "ManagedServer",
            "metadata": {
                "name": "srv", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["example.com/hold"],
            },
            "spec": {"http": {"baseURL": "https://h"}},
        }))
        .unwrap();
        let expected = "ManagedServer \"srv\" is being deleted; its finalizers: example.com/hold";
        assert_eq!(not_ready(&server).message, expected);
    }
}
