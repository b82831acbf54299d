//! SecretStore: checks the spec.

use std::sync::Arc;

use super::context::{Context, Guarded};
use super::error::Failure;
use super::frame::{self, Reconciler, Round};
use super::kind::Key;
use super::outcome::Outcome;
use super::unsupported;
use crate::crd::SecretStore;

/// Runs the controller until `context.stop`.
pub async fn run(context: Arc<Context>) {
    let wakeups = context.dependents::<SecretStore>();
    let objects = context.caches.stores.clone();
    frame::run(SecretStores, context, &objects, wakeups).await;
}

struct SecretStores;

impl Reconciler for SecretStores {
    type Kind = SecretStore;

    async fn reconcile(&self, round: &mut Round<'_, SecretStore>) -> Outcome {
        round.status.provider = round.object.spec.provider().map(str::to_owned);
        match unsupported::check_secret_store(&round.object) {
            Ok(()) => Outcome::ready(""),
            Err(failure) => failure.into(),
        }
    }

    /// A store has nothing outside of its object.
    async fn cleanup(&self, _: &Context, _: &Guarded<SecretStore>) -> Result<(), Failure> {
        Ok(())
    }

    fn forget(&self, _: &Context, _: &Key) {}
}
