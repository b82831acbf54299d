//! What a policy may prune: what a revision declared that this policy attempted.
//!
//! The mirror keeps these revisions as pins, below the policy's uid. Everything here blocks on Git and runs on
//! the blocking pool.

use std::collections::HashSet;

use declarest_core::digest::hex;
use declarest_core::repository::{Mirror, RepositoryError, Revision};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use sha2::{Digest as _, Sha256};

use crate::controller::context::Context;
use crate::controller::error::Failure;
use crate::controller::outcome::Reason;
use crate::crd::sync_policy::SyncPolicySpec;
use crate::crd::{ManagedServer, ResourceRepository};

/// Attempted revisions that stay in the inventory until its base advances. To drop the oldest one is safe: what
/// only that one declared stays on the server.
const SEEN: usize = 100;

/// The revisions of its past that a policy has on record in status.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// `status.inventoryOwner`.
    pub owner: Option<String>,
    /// `status.inventoryBaseRevision`.
    pub base: Option<Revision>,
    /// `status.lastAppliedRepoRevision`.
    pub applied: Option<Revision>,
    /// `status.lastAttemptedRepoRevision`.
    pub attempted: Option<Revision>,
}

/// The revisions whose declarations a policy may prune.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// The revision that the inventory begins at.
    pub base: Revision,
    /// All of them, newest first.
    pub seen: Vec<Revision>,
    /// The revision that was last applied without a failure.
    pub applied: Option<Revision>,
    /// Whether the past belongs to somewhere else, so that no difference to it means anything here.
    pub is_new: bool,
}

/// Stands for what an inventory belongs to: a scope of a branch of a repository, and a server. The specs are
/// expanded: a variable of the environment can change each of them.
pub fn owner(policy: &SyncPolicySpec, repository: &ResourceRepository, server: &ManagedServer) -> String {
    let uid = |meta: &ObjectMeta| meta.uid.clone().unwrap_or_default();
    let git = repository.spec.git.as_ref();
    let parts = [
        uid(&repository.metadata),
        git.map_or_else(String::new, |git| git.url.clone()),
        git.map_or_else(String::new, |git| git.branch.clone()),
        uid(&server.metadata),
        server.name_any(),
        server.spec.http.base_url.clone(),
        policy.source.path.clone(),
        policy.source.recursive.to_string(),
    ];
    let digest = Sha256::digest(parts.join("\0"));
    hex(&digest[..16])
}

impl Inventory {
    /// Reads the inventory of a policy that is about to work on `target`, and pins what it rests on. The past of
    /// another owner than `owner` is dropped; a past without an owner may be of any.
    ///
    /// A revision that the mirror lacks is left out: after a change of the repository's URL history begins
    /// anew, and nothing of the old one can be pruned.
    pub fn open(
        mirror: &Mirror,
        pins: &Pins,
        past: &Past,
        owner: &str,
        target: &Revision,
    ) -> Result<Self, RepositoryError> {
        if past.owner.as_deref() != Some(owner) {
            pins.keep(mirror, "attempted", target)?;
            pins.advance(mirror, target)?;
            return Ok(Self {
                base: target.clone(),
                seen: vec![target.clone()],
                applied: None,
                is_new: true,
            });
        }
        let base = known(mirror, past.base.as_ref())?.unwrap_or_else(|| target.clone());
        let applied = known(mirror, past.applied.as_ref())?;
        let mut seen = Vec::new();
        seen.extend(known(mirror, past.attempted.as_ref())?);
        for revision in mirror.series(&pins.seen())? {
            seen.extend(known(mirror, Some(&revision))?);
        }
        seen.extend(applied.clone());
        seen.push(base.clone());
        let mut distinct = HashSet::new();
        seen.retain(|revision| distinct.insert(revision.clone()));
        pins.keep(mirror, "base", &base)?;
        pins.keep(mirror, "attempted", target)?;
        if let Some(applied) = &applied {
            pins.keep(mirror, "applied", applied)?;
        }
        Ok(Self { base, seen, applied, is_new: false })
    }
}

/// The revision, if the mirror has it. Trouble with reading is an error: an inventory that is forgotten is
/// forgotten for good.
fn known(mirror: &Mirror, revision: Option<&Revision>) -> Result<Option<Revision>, RepositoryError> {
    let Some(revision) = revision else { return Ok(None) };
    match mirror.tree(revision) {
        Ok(_) => Ok(Some(revision.clone())),
        Err(RepositoryError::RevisionMissing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The pins of one policy.
#[derive(Clone, Debug)]
pub struct Pins {
    uid: String,
}

impl Pins {
    pub fn of(policy: &ObjectMeta) -> Self {
        Self { uid: policy.uid.clone().unwrap_or_default() }
    }

    /// The series of attempted revisions.
    fn seen(&self) -> String {
        format!("{}/seen", self.uid)
    }

    fn keep(&self, mirror: &Mirror, role: &str, revision: &Revision) -> Result<(), RepositoryError> {
        mirror.pin(&format!("{}/{role}", self.uid), revision)
    }

    /// Adds a revision to the inventory that begins at `base`: from now on the policy writes what it declares.
    pub fn attempt(
        &self,
        mirror: &Mirror,
        base: Option<&str>,
        target: &Revision,
    ) -> Result<(), RepositoryError> {
        if base == Some(target.as_str()) && mirror.series(&self.seen())?.is_empty() {
            return Ok(());
        }
        mirror.pin_newest(&self.seen(), target, SEEN)
    }

    /// Keeps what was applied, so that the next run can compare with it.
    pub fn applied(&self, mirror: &Mirror, target: &Revision) -> Result<(), RepositoryError> {
        self.keep(mirror, "applied", target)
    }

    /// Begins the inventory anew at `target`, at which nothing of the past is left to prune.
    pub fn advance(&self, mirror: &Mirror, target: &Revision) -> Result<(), RepositoryError> {
        self.keep(mirror, "base", target)?;
        mirror.unpin_below(&self.seen())
    }
}

/// Removes the pins of a policy that is being deleted, from whichever mirror holds them.
pub async fn unpin_everywhere(context: &Context, policy: &ObjectMeta) -> Result<(), Failure> {
    let Pins { uid } = Pins::of(policy);
    let namespace = policy.namespace.clone().unwrap_or_default();
    let mirrors = context.mirrors.of_namespace(&namespace);
    let unpinned =
        tokio::task::spawn_blocking(move || mirrors.iter().try_for_each(|mirror| mirror.unpin_below(&uid)));
    match unpinned.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::new(Reason::ReconcileFailed, error.to_string())),
        Err(error) => Err(Failure::new(Reason::ReconcileFailed, error.to_string())),
    }
}
