//! Finds the declared resource that a resource of the server is, if any. Such a resource is not deleted, although Git no
//! longer declares it at the path of the candidate.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::address::{Address, comparable, stated_addresses, states_address};
use super::claims::{Claim, Claims, Compared, not_comparable};
use crate::metadata::OperationName;
use crate::path::{LogicalPath, PathNames};
use crate::payload::Value;
use crate::repository::Tree;
use crate::sync::model::{Observed, Resource, SyncError};
use crate::sync::observe::{Remote, desired_at, file_at};
use crate::sync::tasks::blocking;

/// The resources that were declared together with a candidate. Two resources of one revision are different if their
/// addresses differ. A resource that was declared only later may be the candidate, which a commit moved to another parent.
pub enum Beside {
    /// Unknown.
    Nothing,
    /// Those of this revision.
    In(Arc<dyn Tree>),
    /// Every declared resource. This compares less cautiously, so it is only for callers that delete nothing because of the
    /// answer.
    All,
}

impl Beside {
    async fn has(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        match self {
            Self::Nothing => Ok(false),
            Self::In(tree) => Ok(file_at(tree, path).await?.is_some()),
            Self::All => Ok(true),
        }
    }
}

/// Compares resources of the server with those that Git declares.
pub struct Claimants {
    /// The server with the rules of the target revision.
    remote: Arc<Remote>,
    pub claims: Claims,
    /// The candidates that Git moves to a place where the server has nothing, each with the path of the declared resource.
    moved: Mutex<HashMap<LogicalPath, LogicalPath>>,
}

/// A resource of the server: its names and addresses, as far as they are known.
struct Place<'a> {
    candidate: &'a Resource,
    observed: &'a Observed,
    at: &'a Resource,
    /// Its collection on the server.
    collection: String,
    address: Option<Address>,
    /// The address of its list, if only that shows it.
    listed: Option<Address>,
    /// All of its addresses, if metadata states them.
    addresses: Option<[Address; 3]>,
    alias: &'a str,
}

/// Why a declared resource may be the one of the server.
#[derive(PartialEq)]
enum Likeness {
    /// The same names in the same collection of the server, or the same address.
    Same,
    /// The same names and the same collection in Git, which has another address: the commit may rename a parent.
    Moved,
    /// Names that differ only in what some servers ignore, or that may be names of another kind: a path may be the name
    /// of a resource that Git declared by its id, or the other way round. The server decides.
    Alike,
}

impl Place<'_> {
    fn shares_collection(&self, claim: &Claim) -> bool {
        claim.collection == self.collection || self.listed.is_some() && claim.listed == self.listed
    }

    /// Returns why the declared resource may be this one; `None` if it is another one. It `is_beside` the candidate if Git
    /// declares it in the same collection.
    fn likeness(&self, claim: &Claim, is_beside: bool) -> Option<Likeness> {
        let (wanted, id) = (claim.wanted(), &self.at.identity.remote_id);
        let shown = self.observed.payload.as_ref();
        let shares_collection = self.shares_collection(claim);
        let is_same = if shares_collection {
            self.addresses.is_some() && claim.addresses == self.addresses
                || wanted.is(id, self.alias)
                || claim.rules.digest() != self.at.rules.digest()
                    && shown.is_some_and(|payload| claim.names(payload))
        } else {
            claim.address.is_some() && claim.address == self.address
        };
        let is_moved = is_beside && claim.collection != self.collection && wanted.is(id, self.alias);
        let is_alike = shares_collection
            && (wanted.is_like(id, self.alias) || shown.is_some_and(|payload| claim.has_name_in(payload)));
        match () {
            () if is_same => Some(Likeness::Same),
            () if is_moved => Some(Likeness::Moved),
            () if is_alike => Some(Likeness::Alike),
            () => None,
        }
    }
}

impl Claimants {
    pub fn new(remote: &Arc<Remote>) -> Self {
        Self { remote: Arc::clone(remote), claims: Claims::new(remote), moved: Mutex::default() }
    }

    /// Removes and returns the candidates that Git moves, each with the path of the declared resource.
    pub fn take_moved(&self) -> HashMap<LogicalPath, LogicalPath> {
        std::mem::take(&mut *self.moved.lock())
    }

    /// Returns the other path that declares the `observed` resource of `candidate`, if any.
    pub async fn find(
        &self,
        candidate: &Resource,
        observed: &Observed,
        beside: &Beside,
    ) -> Result<Option<LogicalPath>, SyncError> {
        let (at, _) = self.remote.with_template_values(observed.addressed()).await?;
        let evaluation = at.unobserved()?;
        let collection = comparable(evaluation.remote_collection(), at.rules.path_names());
        let rendered = Address::alone(&evaluation, &at.rules).ok().flatten();
        let read_at = observed.read_at.as_deref();
        let alias =
            observed.payload.as_ref().and_then(|payload| at.rules.identity().alias().evaluate(payload).ok());
        let place = Place {
            candidate,
            observed,
            at: &at,
            collection,
            address: rendered.map(|get| get.read_at(read_at, &at.rules)),
            listed: Address::of_list(&evaluation, &at.rules),
            addresses: stated_addresses(&at),
            alias: alias.as_ref().unwrap_or(&at.identity.alias),
        };
        let mut incomparable = None;
        for (path, declared) in self.claims.all(&candidate.path).await? {
            let is_beside = candidate.path.parent().as_ref() == Some(path);
            let has_address = declared.addressed || states_address(&at.rules);
            if !is_beside
                && !has_address
                && !may_be(path, declared.of_resource, evaluation.remote_collection())
            {
                continue;
            }
            let Compared { claims, broken } = self.claims.of(path, declared).await?;
            incomparable = incomparable.or_else(|| broken.as_deref().map(not_comparable));
            for claim in claims {
                let likeness = place.likeness(claim, is_beside).filter(|_| claim.path != candidate.path);
                let is_claimed = match likeness {
                    None => false,
                    Some(Likeness::Moved) => self.is_read_at(&claim.path, observed.place()).await?,
                    Some(Likeness::Alike) if self.shows(&claim.path, observed).await? != Some(true) => false,
                    Some(likeness) => !self.is_other(&place, claim, &likeness, beside).await?,
                };
                if is_claimed {
                    return Ok(Some(claim.path.clone()));
                }
            }
        }
        incomparable.map_or(Ok(None), Err)
    }

    /// Whether the declared resource is another one than that at this place, although they are alike.
    async fn is_other(
        &self,
        place: &Place<'_>,
        claim: &Claim,
        likeness: &Likeness,
        beside: &Beside,
    ) -> Result<bool, SyncError> {
        // A member that is read at the address of its parent is not the parent.
        let is_parent = place.candidate.path.is_within(&claim.path);
        if !is_parent && claim.collection != place.collection {
            return Ok(false);
        }
        let Some(collection) = claim.path.parent() else { return Ok(false) };
        if beside.has(&claim.path).await? {
            return Ok(is_parent
                || self.is_elsewhere(&collection, place).await?
                || *likeness == Likeness::Same
                    && claim.id.as_ref() != Some(&place.at.identity.remote_id)
                    && self.shows(&claim.path, place.observed).await? == Some(false));
        }
        Ok(matches!(beside, Beside::In(_))
            && !is_parent
            && self.is_elsewhere(&collection, place).await?
            && self.is_moved(place, &claim.path).await)
    }

    /// Whether a resource in `collection` with the names of the candidate has another address than the candidate, although
    /// both have the same collection on the server: metadata may put the names of parents into the address, such as
    /// `/services/web1!http` and `/services/web2!http`.
    async fn is_elsewhere(&self, collection: &LogicalPath, place: &Place<'_>) -> Result<bool, SyncError> {
        let at = place.at;
        let (Some(own), Some(place)) = (place.candidate.path.parent(), at.path.parent()) else {
            return Ok(false);
        };
        if own == *collection {
            return Ok(false);
        }
        let located = self.remote.located(collection).await?;
        // An id and a name may stand for the same parent.
        if (located == *collection) != (place == own) {
            return Ok(false);
        }
        let (Ok(declared), Ok(there)) = (collection.child(at.path.name()), located.child(at.path.name()))
        else {
            return Ok(false);
        };
        let rules = self.remote.rules(&declared).await?;
        // Other templates can make two addresses for one resource.
        if rules.stated() != at.rules.stated() {
            return Ok(false);
        }
        let there = Resource { declared: Some(declared), rules, ..at.moved(there) };
        let (there, lacking) = self.remote.with_template_values(there).await?;
        let from_list = at.rules.reads_from_list();
        let read = if from_list { OperationName::List } else { OperationName::Get };
        // Two ways to read one resource may have one address for its deletion.
        let delete =
            (!from_list || !at.rules.observes(OperationName::Delete)).then_some(OperationName::Delete);
        let differ = std::iter::once(read).chain(delete).all(|operation| {
            let address = |resource: &Resource| Address::of(&resource.unobserved()?, operation);
            matches!((address(at), address(&there)), (Ok(own), Ok(other)) if own != other)
        });
        Ok(lacking.is_none() && differ)
    }

    /// Whether the declared resource at `path` is read at the address `place`.
    async fn is_read_at(&self, path: &LogicalPath, place: Option<String>) -> Result<bool, SyncError> {
        let read = self.read_declared(path).await?;
        let is_there = |read: Observed| read.payload.is_some() && read.place() == place;
        Ok(place.is_some() && read.is_some_and(is_there))
    }

    /// Whether the candidate and the declared resource at `path` are two resources: the server is proven to have nothing at
    /// `path` yet, or has another resource there, such as one that an earlier run created. In the first case the candidate
    /// is recorded, because it is deleted only after the create at `path`.
    async fn is_moved(&self, place: &Place<'_>, path: &LogicalPath) -> bool {
        let Ok(Some(read)) = self.read_declared(path).await else { return false };
        if read.payload.is_none() {
            self.moved.lock().insert(place.candidate.path.clone(), path.clone());
            return true;
        }
        shows_one(&read, place.observed) == Some(false)
    }

    /// Reads the resource that Git declares at `path`; `None` if there is none.
    async fn read_declared(&self, path: &LogicalPath) -> Result<Option<Observed>, SyncError> {
        let (session, at) = (self.remote.session.clone(), path.clone());
        let Some(declared) = blocking(path.clone(), move || desired_at(&session, &at)).await? else {
            return Ok(None);
        };
        let read = self.remote.read(&declared).await;
        read.map(Some).map_err(|error| not_comparable(&error.to_string()))
    }

    /// Whether the server shows the `observed` resource at the declared `path`, too, as [`shows_one`] decides.
    pub async fn shows(&self, path: &LogicalPath, observed: &Observed) -> Result<Option<bool>, SyncError> {
        let read = self.read_declared(path).await?;
        Ok(read.and_then(|read| shows_one(&read, observed)))
    }
}

/// Whether the server shows one resource in both reads: the same content or the same id. `None` if it shows nothing in one
/// of them, or no id.
fn shows_one(read: &Observed, observed: &Observed) -> Option<bool> {
    let (own, other) = read.payload.as_ref().zip(observed.payload.as_ref())?;
    let id = |payload: &Value| observed.at.rules.identity().id().evaluate(payload).ok();
    let has_same_id = || id(own).zip(id(other)).map(|(own, other)| own == other);
    if own == other { Some(true) } else { has_same_id() }
}

/// Whether a collection without an address in metadata may be `remote`: the ids of parents may differ from their names, and
/// it is a parent itself if it is `of_resource`.
fn may_be(collection: &LogicalPath, of_resource: bool, remote: &str) -> bool {
    let remote: Vec<&str> = remote.trim_matches('/').split_terminator('/').collect();
    // One of them may be percent-encoded.
    let name = |segment: Option<&str>| segment.map(|it| PathNames::PercentEncoded.decode(it).into_owned());
    let is_named = || name(collection.segments().last()) == name(remote.last().copied());
    collection.segments().count() == remote.len() && (of_resource || is_named())
}
