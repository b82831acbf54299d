//! ManagedServer: checks that everything a connection needs is there. Nothing remote is contacted.

use std::sync::Arc;

use super::context::{Context, Guarded};
use super::error::Failure;
use super::frame::{self, Reconciler, Round};
use super::kind::{Key, Kind as _};
use super::outcome::Outcome;
use super::references::SecretReader;
use super::unsupported;
use crate::crd::ManagedServer;
use crate::directories;

/// Runs the controller until `context.stop`.
pub async fn run(context: Arc<Context>) {
    let wakeups = context.dependents::<ManagedServer>();
    let objects = context.caches.servers.clone();
    frame::run(ManagedServers, context, &objects, wakeups).await;
}

struct ManagedServers;

impl Reconciler for ManagedServers {
    type Kind = ManagedServer;

    async fn reconcile(&self, round: &mut Round<'_, ManagedServer>) -> Outcome {
        match check(round.context, &round.object).await {
            Ok(()) => Outcome::ready("every reference resolves"),
            Err(failure) => failure.into(),
        }
    }

    async fn cleanup(&self, context: &Context, object: &Guarded<ManagedServer>) -> Result<(), Failure> {
        let owner = ManagedServer::owner(&Key::of(kube::Resource::meta(object)));
        directories::remove_in_background(context.directories.cache(&owner))
            .await
            .map_err(|error| Failure::new(super::outcome::Reason::ReconcileFailed, error.to_string()))
    }

    fn forget(&self, _: &Context, _: &Key) {}
}

async fn check(context: &Context, object: &ManagedServer) -> Result<(), Failure> {
    unsupported::check_managed_server(object)?;
    let mut reader = SecretReader::new(&context.client, &object.key().namespace);
    for (field, reference) in object.spec.secret_refs() {
        reader.value(&field, reference).await?;
    }
    Ok(())
}
