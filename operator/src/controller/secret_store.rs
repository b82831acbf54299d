//! SecretStore: opens the store and checks that secrets can be read, before policies need them.

use std::sync::Arc;

use declarest_core::secrets::vault::VaultStore;
use declarest_core::secrets::{SecretStore as Store, StoreError};

use declarest_core::error::{Categorized as _, Category};

use super::backoff::{self, Backoff};
use super::context::{Context, Guarded};
use super::error::{self, Failure};
use super::frame::{self, Reconciler, Round};
use super::kind::{self, Key};
use super::outcome::{Notice, Outcome};
use super::pools::Pools;
use super::seeds;
use super::stores::unavailable;
use crate::crd::SecretStore;

/// A Vault that was ready stays ready until this number of consecutive checks failed, because a restart of Vault
/// must not stop all policies.
const MISSES: u32 = 3;

/// Runs the controller until `context.stop` is cancelled.
pub async fn run(context: Arc<Context>, pools: Arc<Pools>) {
    let wakeups = context.dependents::<SecretStore>();
    let objects = context.caches.stores.clone();
    frame::run(SecretStores { pools, misses: Backoff::default() }, context, &objects, wakeups).await;
}

struct SecretStores {
    pools: Arc<Pools>,
    /// Consecutive failed checks of each Vault.
    misses: Backoff,
}

impl Reconciler for SecretStores {
    type Kind = SecretStore;

    async fn reconcile(&self, round: &mut Round<'_, SecretStore>) -> Outcome {
        round.status.provider = round.object.spec.provider().map(str::to_owned);
        if round.object.spec.file.is_none() {
            round.status.resolved_path = None;
        }
        self.work(round).await.unwrap_or_else(Outcome::from)
    }

    /// Removes a file in the state directory that was created from a seed. Keeps a file without a seed, because it
    /// may be the only copy, and a file on a claim, because it belongs to the owner of the claim.
    async fn cleanup(&self, context: &Context, object: &Guarded<SecretStore>) -> Result<(), Failure> {
        let seeded = object.0.as_ref().ok().and_then(|object| object.spec.file.as_ref()?.seed_ref.as_ref());
        if seeded.is_none() {
            return Ok(());
        }
        let key = Key::of(kube::Resource::meta(object));
        error::remove(seeds::state_directory(context, &key)).await
    }

    fn forget(&self, _: &Context, key: &Key) {
        self.misses.reset(key);
        self.pools.stores.forget(key);
    }
}

impl SecretStores {
    async fn work(&self, round: &mut Round<'_, SecretStore>) -> Result<Outcome, Failure> {
        let (context, key) = (round.context, round.key());
        if round.object.spec.file.is_some() {
            // The claim may have been mounted, or the file may have been removed.
            self.pools.stores.forget(&key);
        }
        let opened = self.pools.stores.open(context, &round.object).await?;
        if let Some(file) = &opened.file {
            round.status.resolved_path = Some(file.path.display().to_string());
        }
        match &opened.store {
            Store::Vault(vault) => self.ask(round, vault).await,
            store => {
                let keys = store.list().await.map_err(|error| match &error {
                    StoreError::File(error) => seeds::failure(error),
                    error => Failure::internal(&error),
                })?;
                let note = opened.file.and_then(|file| file.note);
                Ok(decrypted(&round.object, keys.len(), note))
            }
        }
    }

    /// Logs in if necessary, and looks up the token.
    async fn ask(&self, round: &Round<'_, SecretStore>, vault: &VaultStore) -> Result<Outcome, Failure> {
        let key = round.key();
        let Err(error) = vault.init().await else {
            self.misses.reset(&key);
            return Ok(Outcome::ready("Vault accepted the login and has the secrets engine"));
        };
        if error.category() != Category::Transport {
            return Err(unavailable(&error));
        }
        let misses = self.misses.failed(&key, round.generation());
        if misses >= MISSES || !kind::is_ready(&round.object) {
            return Err(unavailable(&error));
        }
        tracing::warn!(%error, misses, "Vault did not respond");
        let message = format!(
            "Vault was ready but does not respond now ({misses} of {MISSES} consecutive checks failed): {error}"
        );
        Ok(Outcome::ready(message).with_requeue(backoff::jitter(backoff::delay(misses, None))))
    }
}

fn decrypted(object: &SecretStore, secrets: usize, note: Option<String>) -> Outcome {
    let file = object.spec.file.as_ref();
    let mut message = format!("the file can be decrypted; number of secrets: {secrets}");
    if let Some(note) = note {
        message = format!("{message}; {note}");
    }
    let ephemeral = file.is_some_and(|file| file.storage.is_none() && file.seed_ref.is_none());
    if !ephemeral {
        return Outcome::ready(message);
    }
    let warning = "the file is lost if the operator's state directory is lost; set spec.file.seedRef or \
                   spec.file.storage";
    let outcome = Outcome::ready(format!("{message}; {warning}"));
    // Publish the event once, not in each round.
    if kind::is_ready(object) {
        outcome
    } else {
        outcome.with_notice(Notice::warning("EphemeralStorage", warning))
    }
}
