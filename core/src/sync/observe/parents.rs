//! Finds the addresses of the parents of a resource on the server: replaces their names by their ids.
//!
//! A segment of a path is looked up only if it is a member of a collection: the repository declares a resource there,
//! or the segment matches the `_` of a metadata document that states id or alias. All other segments belong to the API.

use std::collections::HashMap;
use std::sync::Arc;

use super::desired::{desired, desired_at};
use super::once::cell;
use super::server::{Namesakes, Place, Remote};
use crate::error::{Categorized, Category};
use crate::metadata::Entry;
use crate::path::LogicalPath;
use crate::repository;
use crate::sync::model::{
    Address, Doubt, Observed, Question, Resource, Session, SyncError, Verdict, Wanted, judge,
};
use crate::sync::tasks::blocking;

impl Remote {
    /// Reads a resource with others below it. These ask the same question if they are not found, so the address of a
    /// missing parent is read once.
    pub(super) async fn read_parent(&self, wanted: &Resource, doomed: bool) -> Result<Observed, SyncError> {
        let mut read = None;
        let look = async {
            let observed = Box::pin(self.observe(wanted, doomed)).await;
            let is_absent = observed.as_ref().is_ok_and(|observed| observed.payload.is_none());
            read = Some(observed);
            is_absent
        };
        let is_absent = *cell(&self.absent, &wanted.path).get_or_init(|| look).await;
        if !is_absent {
            // Most parents exist. Their cells would only need memory.
            self.absent.lock().remove(&wanted.path);
        }
        match read {
            Some(read) => read,
            None if is_absent => Ok(Observed::new(self.relocated(wanted).await?.0, None)),
            None => self.observe(wanted, doomed).await,
        }
    }

    /// Returns `path` with the ids of its members in the place of their names.
    pub(crate) async fn located(&self, path: &LogicalPath) -> Result<LogicalPath, SyncError> {
        let place = self.place(path).await;
        Ok(place.map_err(|source| SyncError::Parent(path.clone(), source))?.path)
    }

    /// Returns the place of the parent of `path`. Fails if Git declares a parent twice: what is below both would be written
    /// to one resource.
    async fn place_above(&self, path: &LogicalPath) -> Result<Place, SyncError> {
        let place = self.place(&path.collection()).await;
        let place = place.and_then(|place| place.claimed.clone().map_or(Ok(place), Err));
        place.map_err(|source| SyncError::Parent(path.clone(), source))
    }

    /// Returns `wanted` below the ids of its parents, and the place of its collection.
    pub(super) async fn relocated(&self, wanted: &Resource) -> Result<(Resource, Place), SyncError> {
        let path = &wanted.path;
        let place = self.place_above(path).await?;
        let Some(moved) = place.path.child(path.name()).ok().filter(|moved| moved != path) else {
            return Ok((wanted.clone(), place));
        };
        let seeded = wanted.seeded.then(|| Resource::by_path(moved.clone(), Arc::clone(&wanted.rules)));
        let at = match seeded {
            Some(Ok(seeded)) => Resource { declared: Some(path.clone()), ..seeded },
            // Its names are more than its path shows.
            Some(Err(_)) | None => wanted.moved(moved),
        };
        Ok((at, place))
    }

    /// Returns `wanted` below the ids of its parents, for a request that needs them.
    pub(crate) async fn addressed(&self, wanted: &Resource) -> Result<Resource, SyncError> {
        if !wanted.rules.names_ids() {
            return Ok(wanted.clone());
        }
        Ok(Box::pin(self.relocated(wanted)).await?.0)
    }

    /// Whether the parents of the resource at `path` have their names as ids, so that its path is its address.
    pub(super) async fn is_at_its_names(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        let Place { path: located, doubt, is_absent, .. } = self.place_above(path).await?;
        Ok(path.parent().is_none_or(|parent| parent == located) && doubt.is_none() && !is_absent)
    }

    async fn place(&self, path: &LogicalPath) -> Result<Place, Arc<SyncError>> {
        let Some(parent) = path.parent() else {
            return Ok(Place { path: path.clone(), doubt: None, is_absent: false, claimed: None });
        };
        let place =
            cell(&self.places, path).get_or_init(|| Box::pin(self.place_below(&parent, path))).await.clone();
        if let Ok(Place { path: located, .. }) = &place
            && located != path
        {
            self.note_declared(located.clone(), path.clone());
        }
        place
    }

    async fn place_below(&self, parent: &LogicalPath, path: &LogicalPath) -> Result<Place, Arc<SyncError>> {
        let Place { path: above, doubt, is_absent, mut claimed } = Box::pin(self.place(parent)).await?;
        let at = |segment: &str, doubt: Option<Doubt>| {
            let located = above.child(segment).or_else(|_| above.child(path.name()));
            let path = located.map_err(|_| SyncError::Absent(path.clone()))?;
            Ok(Place { path, doubt, is_absent, claimed: None })
        };
        let Some(member) = self.member(path).await? else {
            return Ok(Place { claimed, ..at(path.name(), doubt)? });
        };
        let names = member.rules.path_names();
        let place = |name: &str, doubt: Option<Doubt>| {
            // A name can be written in several ways.
            if name == member.name() { at(path.name(), doubt) } else { at(&names.encode(name), doubt) }
        };
        // A candidate for deletion must not be below a parent that only has the name of its directory.
        let wanted = Wanted::sought(&member, self.current.is_some());
        let stated = wanted.id.unwrap_or(wanted.name);
        let is_named_by_members = wanted.by_members && wanted.id.is_none() && !member.seeded;
        if wanted.one_name && !is_named_by_members {
            if stated != wanted.name {
                claimed = claimed.or(self.check_sole(&member).await.err());
            }
            return Ok(Place { claimed, ..place(stated, doubt)? });
        }
        let list = self.listed(&above).await.of(&member);
        let post_creates = member.gets_its_id_by_post();
        let found = match judge(
            &Question { wanted, post_creates, ..Question::default() },
            Address::NotAsked,
            &list,
        ) {
            Verdict::Present(entry) if self.is_of_another(&member, entry).await => {
                let why = Doubt::AnotherAlias(entry.alias.clone());
                Err(Arc::new(SyncError::Undecided(path.clone(), why)))
            }
            Verdict::Present(entry) => {
                claimed = claimed.or(self.check_sole(&member).await.err());
                place(&entry.remote_id, doubt)
            }
            // Without the id of a parent, all resources below it would seem to be absent.
            Verdict::Unknown(why) if is_failure(&why) => {
                Err(Arc::new(SyncError::Undecided(path.clone(), why)))
            }
            // The name may not be the id.
            Verdict::Unknown(why) => place(stated, doubt.or_else(|| wanted.id.is_none().then_some(why))),
            Verdict::Absent(_) => Ok(Place { is_absent: true, ..place(stated, doubt)? }),
            Verdict::Here => place(stated, doubt),
        };
        found.map(|found| Place { claimed, ..found })
    }

    /// Whether the id that the payload of a declared parent states is that of an entry with another alias: then what is
    /// below it belongs to another resource, unless the parent is renamed.
    async fn is_of_another(&self, member: &Resource, entry: &Entry) -> bool {
        let wanted = Wanted::of(member);
        let states_both = !member.seeded && wanted.id.is_some() && wanted.alias.is_some();
        states_both && entry.states.alias && !self.is_known(member, Address::Found(Some(&entry.alias))).await
    }

    /// Fails if Git declares another resource with a name of the declared parent `member`: what is below both would be
    /// written to one resource. Candidates for deletion are compared with all declared resources instead.
    async fn check_sole(&self, member: &Resource) -> Result<(), Arc<SyncError>> {
        let Some(collection) = member.path.parent().filter(|_| !member.seeded && self.current.is_none())
        else {
            return Ok(());
        };
        let look = || async {
            let (session, collection) = (self.session.clone(), collection.clone());
            blocking(collection.clone(), move || namesakes(&session, &collection)).await.map_err(Arc::new)
        };
        let found = cell(&self.namesakes, &collection).get_or_init(look).await.clone()?;
        let Some(other) = found.get(&member.path) else { return Ok(()) };
        Err(Arc::new(SyncError::Claimed(member.path.clone(), other.to_string())))
    }

    /// Whether the nearest parent of `path` that is a member of a collection is proven absent.
    pub(crate) async fn parent_is_absent(&self, path: &LogicalPath, doomed: bool) -> bool {
        let Ok(Some(parent)) = self.nearest_parent(path).await else { return false };
        self.is_absent(&parent, doomed).await
    }

    /// Whether the resource `parent` is proven absent. The first caller reads it.
    async fn is_absent(&self, parent: &Resource, doomed: bool) -> bool {
        let look = || async {
            Box::pin(self.observe(parent, doomed)).await.is_ok_and(|observed| observed.payload.is_none())
        };
        *cell(&self.absent, &parent.path).get_or_init(look).await
    }

    /// Whether the nearest parent of `path` that is a member of a collection exists.
    pub(super) async fn has_parent(&self, path: &LogicalPath) -> bool {
        let Ok(Some(parent)) = self.nearest_parent(path).await else { return false };
        let observed = Box::pin(self.observe(&parent, false)).await;
        observed.is_ok_and(|observed| observed.payload.is_some())
    }

    /// Returns the nearest parent of `path` that is a member of a collection, if it is proven absent. Unless `asks`, it is
    /// not requested if the lists of collections show all parents.
    pub(crate) async fn absent_parent(&self, path: &LogicalPath, asks: bool) -> Option<LogicalPath> {
        if !asks && !self.place_above(path).await.is_ok_and(|place| place.is_absent) {
            return None;
        }
        let parent = self.nearest_parent(path).await.ok()??;
        self.is_absent(&parent, false).await.then_some(parent.path)
    }

    /// Returns the nearest parent of `path` that is a member of a collection.
    async fn nearest_parent(&self, path: &LogicalPath) -> Result<Option<Resource>, SyncError> {
        for ancestor in path.ancestors().filter(|ancestor| !ancestor.is_root()) {
            if let Some(parent) = self.member(&ancestor).await? {
                return Ok(Some(parent));
            }
        }
        Ok(None)
    }

    /// Returns the resource at `path`, declared or by its path alone, if it is a member of a collection.
    pub(super) async fn member(&self, path: &LogicalPath) -> Result<Option<Resource>, SyncError> {
        let (session, path) = (self.session.clone(), path.clone());
        blocking(path.clone(), move || {
            if let Some(declared) = desired_at(&session, &path)? {
                return Ok(Some(declared));
            }
            if !session.metadata.binds(&path)? {
                return Ok(None);
            }
            let rules = session.metadata.rules(&path)?;
            match Resource::by_path(path, rules) {
                // Its names cannot be taken from its path.
                Err(error) if error.category() == Category::Validation => Ok(None),
                member => member.map(Some),
            }
        })
        .await
    }
}

/// Returns the members of `collection` that have a name of another member, each with the other one. Blocks.
fn namesakes(session: &Session, collection: &LogicalPath) -> Result<Namesakes, SyncError> {
    let mut named: HashMap<(&'static str, String), LogicalPath> = HashMap::new();
    let mut found = HashMap::new();
    for file in repository::members(session.tree.as_ref(), collection)?.resources {
        // A file that cannot be read fails on its own.
        let Ok(member) = desired(session, file) else { continue };
        for (kind, name) in Wanted::of(&member).claimed() {
            if let Some(other) = named.insert((kind, name.to_owned()), member.path.clone()) {
                found.insert(other.clone(), member.path.clone());
                found.insert(member.path.clone(), other);
            }
        }
    }
    Ok(Arc::new(found))
}

/// Whether the name of a parent of the resource at `path` is a number, like many ids.
pub(super) fn is_below_number(path: &LogicalPath) -> bool {
    path.ancestors().any(|parent| {
        let name = parent.name();
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Whether the list of a parent shows it several times, or failed.
fn is_failure(doubt: &Doubt) -> bool {
    match doubt {
        Doubt::Several(_) | Doubt::Moved(..) => true,
        Doubt::Failed(_) => doubt.category() != Category::Validation,
        _ => false,
    }
}
