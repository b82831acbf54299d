//! The other policies of a server that have other repositories. What they declare is not deleted: metadata may map the
//! paths of two policies to one collection of the server.

use std::sync::Arc;

use declarest_core::repository::Revision;
use declarest_core::sync::Neighbour;

use super::overlap::Claim;
use crate::controller::context::Context;
use crate::controller::error::{Failure, blocking};
use crate::controller::kind::Kind as _;
use crate::controller::pools::Pools;
use crate::crd::SyncPolicy;

/// Returns what the neighbours of a policy declare in the last fetched commits of their repositories. Those whose commit
/// cannot be read, or was not fetched since the start of the operator, are left out.
pub async fn of(context: &Context, pools: &Pools, policy: &SyncPolicy) -> Result<Arc<[Neighbour]>, Failure> {
    let Some(own) = Claim::of(policy).filter(|_| policy.spec.sync.prune) else { return Ok(Arc::default()) };
    let namespace = policy.key().namespace;
    let own_repository = &policy.spec.resource_repository_ref.name;
    let neighbours = context.caches.policies.select(&namespace, |other| {
        let claim = own.rival(other, &context.settings)?;
        let expanded = context.settings.expanded(other).ok()?;
        let repository = expanded.spec.resource_repository_ref.name;
        let is_neighbour =
            claim.name != own.name && claim.server == own.server && repository != *own_repository;
        is_neighbour.then_some((claim, repository))
    });
    let mut found = Vec::with_capacity(neighbours.len());
    for (Claim { name, scope, .. }, repository) in neighbours {
        let Some(repository) = context.caches.repositories.get(&namespace, &repository) else { continue };
        let fetched = repository.status.as_ref().and_then(|status| status.last_fetched_revision.as_deref());
        let revision = fetched.and_then(|revision| revision.parse::<Revision>().ok());
        let Some((revision, mirror)) = revision.zip(pools.mirrors.get(&repository.key())) else { continue };
        let Some(tree) = blocking(move || Ok(mirror.tree(&revision).ok())).await? else { continue };
        found.push(Neighbour { name: format!("SyncPolicy \"{name}\""), tree: Arc::new(tree), scope });
    }
    Ok(found.into())
}
