//! What was declared once and is not any more: whether the server still has it, and whether it may go.
//!
//! Two paths can mean one resource, where ids are not the names of paths: after a rename the old path is undeclared,
//! and what it stood for is declared by the new one, whether that can be read just now or not.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::plan::{self, Action};
use super::remote::Remote;
use super::resource::Resource;
use super::{Candidate, Selection, Session, SyncError, blocking, desired};
use crate::path::LogicalPath;
use crate::repository::{self, ResourceFile};

/// The deletion of a candidate; `None` if the server has not got it, or if something declared needs it.
pub(super) async fn observe(
    remote: &Arc<Remote>,
    occupants: &Arc<Occupants>,
    candidate: Candidate,
) -> Result<Option<Action>, SyncError> {
    let declared = name(&remote.session, candidate).await?;
    let observed = match remote.look_for(&declared).await {
        Ok(observed) => observed,
        // The resource itself is not there, and a list that can never tell more is no ground for deleting.
        // One that failed is asked again in the next run.
        Err(SyncError::PartialList { .. } | SyncError::List { refused: true, .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    if observed.payload.is_none() {
        return Ok(None);
    }
    let (session, occupants) = (remote.session.clone(), Arc::clone(occupants));
    blocking(declared.path.clone(), move || {
        if occupants.need(&session, &declared)? || has_declared_children(&session, &declared.path)? {
            let path = &declared.path;
            tracing::info!(%path, "not pruned: Git still declares it under another path, or something below it");
            return Ok(None);
        }
        plan::decide_prune(&declared, &observed)
    })
    .await
}

/// The resource as it was declared.
async fn name(
    session: &Session,
    Candidate { path, payload, declared_in }: Candidate,
) -> Result<Resource, SyncError> {
    let session = session.clone();
    blocking(path.clone(), move || {
        let rules = match declared_in {
            Some(tree) => session.metadata.of(tree).rules(&path)?,
            None => session.metadata.rules(&path)?,
        };
        // What was declared before may not fit the defaults of today; it only has to name the resource.
        let payload = rules.resolved().with_defaults(payload.clone()).unwrap_or(payload);
        let identity = rules.identify(&path, &payload)?;
        let (payload, descriptor, secrets) = (Arc::new(payload), None, Arc::default());
        Ok(Resource { path, rules, identity, payload, descriptor, secrets })
    })
    .await
}

/// Deleting a parent may take its children along, on the server.
fn has_declared_children(session: &Session, path: &LogicalPath) -> Result<bool, SyncError> {
    Ok(repository::declares_at_least(session.tree.as_ref(), path, 1)?)
}

/// The ids that declared resources have on the server.
pub(super) struct Occupants {
    /// Declared resources that may have another id than the name of their path; `None`: any may.
    odd: Option<Vec<ResourceFile>>,
    /// Of the members of collections, once somebody asked.
    ids: Mutex<HashMap<LogicalPath, HashSet<String>>>,
}

impl Occupants {
    /// Where all ids were names at the revision that `selection` begins at, only what it selects may have another.
    pub fn of(session: &Session, selection: &Selection) -> Self {
        let plain = |revision| session.knowledge.names_are_ids(revision);
        let odd = match (session.tree.revision(), &selection.base) {
            (Some(revision), _) if plain(revision) => Some(Vec::new()),
            (_, Some(base)) if plain(base) && selection.broken.is_empty() => {
                Some(selection.resources.clone())
            }
            _ => None,
        };
        Self { odd, ids: Mutex::default() }
    }

    /// Whether a declared member of its collection has the id of `undeclared`. A member that cannot be read is an
    /// error: it may be the one. Blocks.
    fn need(&self, session: &Session, undeclared: &Resource) -> Result<bool, SyncError> {
        let Some(collection) = undeclared.path.parent() else { return Ok(false) };
        let mut known = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ids) = known.get(&collection) {
            return Ok(ids.contains(&undeclared.identity.remote_id));
        }
        let ids = self.ids_in(session, &collection)?;
        let needed = ids.contains(&undeclared.identity.remote_id);
        known.insert(collection, ids);
        Ok(needed)
    }

    fn ids_in(&self, session: &Session, collection: &LogicalPath) -> Result<HashSet<String>, SyncError> {
        let files = if let Some(odd) = &self.odd {
            odd.iter().filter(|file| collection.child_of(&file.path).is_some()).cloned().collect()
        } else {
            let members = repository::members(session.tree.as_ref(), collection)?;
            if let Some((_, error)) = members.broken.into_iter().next() {
                return Err(error.into());
            }
            members.resources
        };
        files.into_iter().map(|file| Ok(desired(session, file)?.identity.remote_id)).collect()
    }

    /// Remembers for later runs whether names are ids; `all` that is declared was noted in `names`, or only what
    /// this run is about.
    pub fn learn(&self, session: &Session, names: &Names, all: bool) {
        let Some(revision) = session.tree.revision() else { return };
        let plain = names.are_ids() && (all || self.odd.is_some());
        session.knowledge.note_names(plain.then_some(revision));
    }
}

/// Whether the names of resources are their ids.
#[derive(Default)]
pub(super) struct Names {
    some_are_not: AtomicBool,
}

impl Names {
    pub fn note(&self, path: &LogicalPath, desired: &Result<Resource, SyncError>) {
        if !desired.as_ref().is_ok_and(|desired| desired.identity.remote_id == path.name()) {
            self.some_are_not.store(true, Ordering::Relaxed);
        }
    }

    fn are_ids(&self) -> bool {
        !self.some_are_not.load(Ordering::Relaxed)
    }
}
