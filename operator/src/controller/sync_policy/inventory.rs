//! The inventory of a policy: the revisions that it attempted. It may prune resources that one of them declared.
//!
//! The mirror keeps these revisions as pins, below the policy's uid and the id of the inventory in the status. An
//! inventory that begins has another id, and the pins of the former one stay until the status with the new id is written.
//! So a status that is not written, or that another process has written since, has its own pins, and no others. All
//! functions block on Git and run on the blocking pool.

use std::collections::{BTreeSet, HashSet};

use declarest_core::digest::hex;
use declarest_core::error::Category;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{Mirror, RepositoryError, Revision};
use declarest_core::sync::{self, FailureReason, Report};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use sha2::{Digest as _, Sha256};

use crate::controller::error::{Failure, blocking};
use crate::controller::mirrors::Mirrors;
use crate::crd::sync_policy::SyncPolicySpec;
use crate::crd::{ManagedServer, ResourceRepository};

/// Maximum number of attempted revisions in the inventory until its base advances. It is safe to drop the oldest one:
/// resources that only this revision declared stay on the server.
const SEEN: usize = 100;
/// Maximum number of resources in `status.inventoryPending`. With more, the inventory keeps all of its revisions.
const PENDING: usize = 50;
/// The pins that do not belong to one inventory. They only keep commits for the next run.
const SHARED: [&str; 2] = ["attempted", "applied"];

/// The earlier revisions in the status of a policy.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// `status.inventoryOwner`.
    pub owner: Option<String>,
    /// `status.inventoryBaseRevision`.
    pub base: Option<Revision>,
    /// `status.inventoryPending`.
    pub pending: BTreeSet<LogicalPath>,
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
    /// All revisions since the base, newest first.
    pub seen: Vec<Revision>,
    /// Revisions before the base that declare `pending` resources, newest first.
    pub former: Vec<Revision>,
    /// The resources of former revisions that may still be pruned. The others were deleted, or found absent.
    pub pending: BTreeSet<LogicalPath>,
    /// The revision that was last applied without a failure.
    pub applied: Option<Revision>,
    /// Whether the earlier revisions have another owner, so that a difference to them has no meaning.
    pub is_new: bool,
}

/// Returns the identity of the owner of an inventory: a scope of a branch of a repository, and a server. The specs
/// must be expanded, because an environment variable can change each of them.
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
    /// Reads the inventory of a policy that is about to sync `target`, and pins its revisions. If the past is not of
    /// `owner`, it is dropped.
    ///
    /// Revisions that the mirror lacks are omitted. After a change of the repository's URL, the history starts again,
    /// and resources of the old one cannot be pruned.
    pub fn open(
        mirror: &Mirror,
        pins: &Pins,
        past: &Past,
        owner: &str,
        target: &Revision,
    ) -> Result<Self, RepositoryError> {
        // A new owner starts with an empty history.
        if past.owner.as_deref() != Some(owner) {
            pins.keep(mirror, "attempted", target)?;
            return Ok(Self {
                base: target.clone(),
                seen: vec![target.clone()],
                former: Vec::new(),
                pending: BTreeSet::new(),
                applied: None,
                is_new: true,
            });
        }
        // Collect the known revisions, newest first, and pin them.
        let base = known(mirror, past.base.as_ref())?.unwrap_or_else(|| target.clone());
        let applied = known(mirror, past.applied.as_ref())?;
        let mut seen = Vec::new();
        seen.extend(known(mirror, past.attempted.as_ref())?);
        for revision in mirror.series(&pins.seen())? {
            seen.extend(known(mirror, Some(&revision))?);
        }
        seen.push(base.clone());
        let mut distinct = HashSet::new();
        seen.retain(|revision| distinct.insert(revision.clone()));
        let mut former = Vec::new();
        for revision in mirror.series(&pins.former())? {
            former.extend(known(mirror, Some(&revision))?);
        }
        let pending = past.pending.clone();
        mirror.pin(&pins.base(), &base)?;
        pins.keep(mirror, "attempted", target)?;
        if let Some(applied) = &applied {
            pins.keep(mirror, "applied", applied)?;
        }
        Ok(Self { base, seen, former, pending, applied, is_new: false })
    }

    /// Returns all revisions, those since the base first.
    pub fn revisions(&self) -> Vec<Revision> {
        let former = self.former.iter().filter(|revision| !self.seen.contains(revision));
        self.seen.iter().chain(former).cloned().collect()
    }

    /// Returns whether `path` may be pruned if `revision` is the first of [`Self::revisions`] that declares it.
    pub fn owns(&self, path: &LogicalPath, revision: &Revision) -> bool {
        self.seen.contains(revision) || self.pending.contains(path)
    }

    /// Returns whether a run examines all that may be pruned, except for the pending resources, if it examines what was
    /// removed since `base`.
    pub fn is_settled_at(&self, base: &Revision) -> bool {
        self.seen == [base.clone()]
    }
}

/// Returns the revision if the mirror has it. A read failure is an error, because a lost inventory cannot be restored.
fn known(mirror: &Mirror, revision: Option<&Revision>) -> Result<Option<Revision>, RepositoryError> {
    let Some(revision) = revision else { return Ok(None) };
    match mirror.tree(revision) {
        Ok(_) => Ok(Some(revision.clone())),
        Err(RepositoryError::RevisionMissing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The pins of one policy.
#[derive(Clone, Debug)]
pub struct Pins {
    uid: String,
    /// `status.inventoryID`.
    inventory: Option<String>,
}

impl Pins {
    pub fn of(policy: &ObjectMeta, inventory: Option<&String>) -> Self {
        Self { uid: policy.uid.clone().unwrap_or_default(), inventory: inventory.cloned() }
    }

    /// Returns the start of the names of the pins of the inventory. Before inventories had ids, it was the uid alone.
    fn prefix(&self) -> String {
        let Self { uid, inventory } = self;
        inventory.as_ref().map_or_else(|| uid.clone(), |inventory| format!("{uid}/{inventory}"))
    }

    /// Returns the name of the series of attempted revisions.
    fn seen(&self) -> String {
        format!("{}/seen", self.prefix())
    }

    /// Returns the name of the series of revisions before the base.
    fn former(&self) -> String {
        format!("{}/former", self.prefix())
    }

    /// Returns the name of the pin of the base.
    fn base(&self) -> String {
        format!("{}/base", self.prefix())
    }

    fn keep(&self, mirror: &Mirror, role: &str, revision: &Revision) -> Result<(), RepositoryError> {
        mirror.pin(&format!("{}/{role}", self.uid), revision)
    }

    /// Adds a revision to the inventory that begins at `base`. Call it when the status shows the inventory, and before the
    /// policy writes its resources.
    pub fn attempt(
        &self,
        mirror: &Mirror,
        base: Option<&str>,
        target: &Revision,
    ) -> Result<(), RepositoryError> {
        if let Err(error) = self.drop_others(mirror) {
            // They are not used, and the next run tries again.
            tracing::warn!(%error, "cannot remove the pins of former inventories");
        }
        if base == Some(target.as_str()) && mirror.series(&self.seen())?.is_empty() {
            return Ok(());
        }
        mirror.pin_newest(&self.seen(), target, SEEN)
    }

    /// Removes the pins of other inventories of the policy.
    fn drop_others(&self, mirror: &Mirror) -> Result<(), RepositoryError> {
        let (all, own) = (format!("{}/", self.uid), format!("{}/", self.prefix()));
        let is_other =
            |name: &str| !name.starts_with(&own) && !SHARED.iter().any(|role| name == format!("{all}{role}"));
        let pins = mirror.pins_below(&all)?;
        pins.iter().filter(|(name, _)| is_other(name)).try_for_each(|(name, _)| mirror.unpin(name))
    }

    /// Pins the applied revision, so that the next run can compare with it.
    pub fn applied(&self, mirror: &Mirror, target: &Revision) -> Result<(), RepositoryError> {
        self.keep(mirror, "applied", target)
    }

    /// Prepares a new inventory that begins at `target`, with the revisions before it that are `declaring` pending resources,
    /// newest first. Returns its id, with which it begins when the status has it.
    pub fn advance(
        &self,
        mirror: &Mirror,
        target: &Revision,
        declaring: &[Revision],
    ) -> Result<String, RepositoryError> {
        let id = new_id();
        let next = Self { uid: self.uid.clone(), inventory: Some(id.clone()) };
        // The last one is the newest of the series.
        for revision in declaring.iter().rev() {
            mirror.pin_newest(&next.former(), revision, SEEN)?;
        }
        // It is pinned here already, so that a full disk does not stop the next run.
        mirror.pin(&next.base(), target)?;
        Ok(id)
    }
}

/// Returns the id of a new inventory.
pub fn new_id() -> String {
    format!("{:016x}", fastrand::u64(..))
}

/// What a run that examines all resources to prune, except for `unexamined` ones, needs to advance the inventory.
pub struct Settling {
    /// The pending resources that the run does not examine.
    pub unexamined: Vec<LogicalPath>,
    /// The inventory before the run.
    pub inventory: Inventory,
    /// The candidates of the run, each with the revision that declares it.
    pub declared_in: Vec<(LogicalPath, Revision)>,
}

impl Settling {
    /// Returns the resources that a later run may prune, and the revisions that declare them. `None` if the run did not
    /// examine its candidates, or if they are too many for the status.
    pub fn left(&self, report: &Report) -> Option<(Vec<String>, Vec<Revision>)> {
        if report.outcome == sync::Outcome::Failed || report.prune_refused.is_some() {
            return None;
        }
        let kept = report.kept.iter().filter(|kept| kept.pending).map(|kept| &kept.path);
        let failed = report.failures.iter().filter(|failure| failure.operation == sync::PRUNE);
        let mut left: BTreeSet<&LogicalPath> =
            self.unexamined.iter().chain(kept).chain(failed.map(|failure| &failure.path)).collect();
        if left.len() > PENDING {
            return None;
        }
        // If their declarations are removed before they are corrected, older ones identify them.
        let unreadable = report.failures.iter().filter(|failure| is_unreadable(failure));
        let unreadable: Vec<_> = unreadable.map(|failure| &failure.path).take(PENDING - left.len()).collect();
        left.extend(&unreadable);
        let has_new = unreadable.iter().any(|path| !self.inventory.pending.contains(*path));
        let needs_former = !self.unexamined.is_empty() || !unreadable.is_empty();
        let declares = |revision: &Revision| {
            has_new
                || needs_former && self.inventory.former.contains(revision)
                || self.declared_in.iter().any(|(path, at)| at == revision && left.contains(path))
        };
        let declaring =
            self.inventory.revisions().into_iter().filter(|revision| declares(revision)).collect();
        Some((left.into_iter().map(LogicalPath::to_string).collect(), declaring))
    }
}

/// Returns whether the failure is that of a declaration, without a request: a file that is not valid, or several files.
fn is_unreadable(failure: &sync::Failure) -> bool {
    let is_local = failure.http_status.is_none() && failure.operation != sync::PRUNE;
    is_local && matches!(failure.reason, FailureReason::Category(Category::Validation | Category::Conflict))
}

/// Removes the pins of a policy that is being deleted from all mirrors of its namespace.
pub async fn unpin_everywhere(mirrors: &Mirrors, policy: &ObjectMeta) -> Result<(), Failure> {
    let Pins { uid, .. } = Pins::of(policy, None);
    let namespace = policy.namespace.clone().unwrap_or_default();
    let mirrors = mirrors.of_namespace(&namespace);
    blocking(move || {
        let unpinned = mirrors.iter().try_for_each(|mirror| mirror.unpin_below(&uid));
        unpinned.map_err(|error| Failure::internal(&error))
    })
    .await
}
