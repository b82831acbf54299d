//! Decides about resources that are no longer declared: whether the server still has them, and whether they may be
//! deleted.
//!
//! Two paths can address one resource: after a rename, the old path is undeclared and the new one declares the same
//! resource, even if it cannot be read now. So a resource is deleted only after it was compared with all declared
//! resources that may be the same one.

use std::collections::HashMap;
use std::sync::Arc;

use http::Method;
use parking_lot::Mutex;

use super::address::{Address, has_unfilled_address, is_unfilled, stated_addresses, states_address};
use super::claims::{Claim, Claims, not_comparable};
use super::decide;
use crate::metadata::document::OnRemove;
use crate::metadata::{Entry, OperationName};
use crate::path::{LogicalPath, is_within};
use crate::payload::Value;
use crate::repository::{self, Revision, Tree};
use crate::server::Request;
use crate::sync::model::{
    Action, Candidate, Doubt, Kept, Observed, Resource, Session, SyncError, Wanted, is_alike,
};
use crate::sync::observe::{Remote, desired_at, file_at};
use crate::sync::tasks::{blocking, evaluated};

/// The decision for a declared resource or a candidate for deletion.
#[derive(Debug)]
pub enum Fate {
    /// The server does not have it.
    Gone,
    /// It needs this action.
    Needs(Box<Action>),
    /// It is kept: Git declares it under another path, Git declares resources below it, or metadata states so.
    Kept(Kept),
}

impl Fate {
    /// Whether the server does not have the resource.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Gone => true,
            Self::Needs(action) => action.is_missing(),
            Self::Kept(_) => false,
        }
    }
}

/// What the deletions of a plan need besides their actions.
#[derive(Debug, Default)]
pub struct Pruning {
    /// The candidates that the server has, in case a deletion is tried again.
    pub candidates: HashMap<LogicalPath, Candidate>,
    /// The paths that candidates depend on about which nothing could be decided, each with the candidate.
    pub needed: Vec<(LogicalPath, LogicalPath)>,
    /// The declared resources of other collections that deletions may delete, too, by the paths of the deleted ones.
    pub twins: HashMap<LogicalPath, Vec<LogicalPath>>,
    /// The candidates that Git declares at another address, where the server has nothing, each with the path of the
    /// declared resource, which is created first.
    pub moved: HashMap<LogicalPath, LogicalPath>,
}

impl Pruning {
    /// Adds that of a further plan of the same run.
    pub fn extend(&mut self, further: Self) {
        self.candidates.extend(further.candidates);
        self.needed.extend(further.needed);
        self.twins.extend(further.twins);
        self.moved.extend(further.moved);
    }
}

/// The candidates for deletion of one run.
pub struct Candidates {
    /// The server with the rules of the target revision.
    pub(super) remote: Arc<Remote>,
    /// The server with the rules of the revisions that declared candidates.
    remotes: Mutex<HashMap<Revision, Arc<Remote>>>,
    claims: Claims,
    found: Mutex<Pruning>,
}

/// The resources that were declared together with a candidate. If such a resource has another address, it is another
/// one. Otherwise it may be the candidate, which was moved to another parent.
enum Beside {
    /// Unknown.
    Nothing,
    /// Those of this revision.
    In(Arc<dyn Tree>),
    /// All. Nothing is deleted because of the answer.
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

impl Candidates {
    pub fn new(remote: &Arc<Remote>) -> Self {
        let (remotes, found) = Default::default();
        Self { remote: Arc::clone(remote), remotes, claims: Claims::new(remote), found }
    }

    /// Decides on one candidate.
    pub async fn decide(&self, candidate: Candidate) -> Result<Fate, SyncError> {
        let remote = self.remote(candidate.declared_in.as_ref());
        let (session, Candidate { path, payload, declared_in }) = (remote.session.clone(), candidate);
        let declared = blocking(path.clone(), move || {
            let rules = session.metadata.rules(&path)?;
            // The earlier payload may not fit the defaults. Only the names in it are needed.
            let payload = rules.resolved().with_defaults(payload.clone()).unwrap_or(payload);
            Resource::named(path, rules, payload)
        })
        .await?;
        let fate = match filled(&remote, declared.clone()).await {
            Ok(Some(filled)) => self.fate(&remote, &filled, declared_in).await,
            Ok(None) => Ok(Fate::Gone),
            Err(error) => Err(error),
        };
        let fate = match fate {
            // Only the payload without values names the resources that it refers to.
            Ok(Fate::Needs(deletion)) => declared
                .dependencies()
                .map(|depends_on| Fate::Needs(Box::new(Action { depends_on, ..*deletion }))),
            fate => fate,
        };
        if fate.is_err() {
            let needed = declared.depends_on().unwrap_or_default().into_iter();
            let needed = needed.map(|path| (path, declared.path.clone()));
            self.found.lock().needed.extend(needed);
        }
        fate
    }

    /// Removes and returns what the deletions of the decided candidates need, without the candidates.
    pub fn take_found(&self) -> Pruning {
        std::mem::take(&mut *self.found.lock())
    }

    async fn fate(
        &self,
        remote: &Remote,
        declared: &Resource,
        declared_in: Option<Arc<dyn Tree>>,
    ) -> Result<Fate, SyncError> {
        let observed = match remote.read_doomed(declared).await {
            Err(SyncError::Undecided(path, Doubt::AnotherAlias(shown))) => {
                let namesake = self.namesake(declared, &shown).await?;
                let namesake = namesake.ok_or(SyncError::Undecided(path, Doubt::AnotherAlias(shown)))?;
                return Ok(Fate::Kept(kept_as(&declared.path, namesake)));
            }
            read => read?,
        };
        if observed.payload.is_none() {
            // The server may still create it.
            return match self.remote.session.knowledge.expected(declared) {
                Some(left) => Err(SyncError::UnderWay(declared.path.clone(), left.as_secs() + 1)),
                None => Ok(Fate::Gone),
            };
        }
        self.remote.session.knowledge.shown(declared);
        let kept = |reason| kept(&declared.path, reason);
        let kept_for_others = |reason: String| Kept { pending: true, ..kept(reason) };
        let beside = declared_in.map_or(Beside::Nothing, Beside::In);
        if let Some(path) = self.claimant(declared, &observed, &beside).await? {
            return Ok(Fate::Kept(kept_as(&declared.path, path)));
        }
        let resolved = declared.rules.resolved();
        if *resolved.on_remove() == OnRemove::Keep {
            let kept = kept("metadata states resource.onRemove: keep, or resource.singleton".to_owned());
            return Ok(Fate::Kept(Kept { stated: resolved.on_remove.is_some(), ..kept }));
        }
        check_alias(declared, &observed)?;
        let (session, path) = (self.remote.session.clone(), declared.path.clone());
        // The server may delete the children together with their parent, unless the parent is reset.
        let is_parent = move || Ok(repository::declares_at_least(session.tree.as_ref(), &path, 1)?);
        let resets = matches!(resolved.on_remove(), OnRemove::Reset(_));
        if !resets && blocking(declared.path.clone(), is_parent).await? {
            return Ok(Fate::Kept(kept_for_others("Git declares resources below it".to_owned())));
        }
        let read = remote.with_reader(declared);
        let deletion = evaluated(read, move |declared| decide::prune(declared, &observed)).await?;
        let Some(deletion) = deletion else { return Ok(Fate::Gone) };
        if deletion.call().is_some_and(|call| is_unfilled(&call.request)) {
            let reason =
                "its request has a placeholder or a reference, which only a declared resource can have";
            return Err(SyncError::NotDeleted(format!("{}: {reason}", declared.path)));
        }
        if let Some(path) = self.declared_below(&declared.path, &deletion).await? {
            return Ok(Fate::Kept(kept_for_others(format!(
                "Git declares {path}, which the server has at its address or below"
            ))));
        }
        if resets {
            Ok(Fate::Needs(Box::new(deletion)))
        } else {
            self.unless_shared(declared, deletion).await
        }
    }

    /// Decides about a deletion that the server may apply to a declared resource of another collection, too.
    async fn unless_shared(&self, declared: &Resource, deletion: Action) -> Result<Fate, SyncError> {
        let path = &declared.path;
        let twins = self.claims.twins(path).await?;
        if twins.is_empty() {
            return Ok(Fate::Needs(Box::new(deletion)));
        }
        // A commit after the one that declared it last can state this.
        if *self.remote.rules(path).await?.resolved().on_remove() == OnRemove::Keep {
            return Ok(Fate::Kept(kept(path, "metadata states resource.onRemove: keep".to_owned())));
        }
        let written = self.remote.session.written.as_ref();
        if let Some(deleted) = written.and_then(|written| written.shared(path, &declared.rules)) {
            return Err(SyncError::Shared(path.clone(), deleted));
        }
        self.found.lock().twins.insert(path.clone(), twins);
        Ok(Fate::Needs(Box::new(deletion)))
    }

    /// Returns the declared resource of the same collection that has the alias `shown`, which the server shows at the
    /// address of `candidate`, if the names differ only in what some servers ignore.
    async fn namesake(&self, candidate: &Resource, shown: &str) -> Result<Option<LogicalPath>, SyncError> {
        // Only then, all declared resources are needed.
        if !Wanted::of(candidate).alias.is_some_and(|alias| is_alike(alias, shown)) {
            return Ok(None);
        }
        let Some(path) = candidate.path.parent() else { return Ok(None) };
        let Some(collection) = self.claims.all(&candidate.path).await?.get(&path) else { return Ok(None) };
        let claims = self.claims.of(&path, collection).await?;
        Ok(claims.iter().find(|claim| claim.alias.as_deref() == Some(shown)).map(|claim| claim.path.clone()))
    }

    /// Returns the path of a declared resource whose address is the one that `deletion` removes or below it, if any.
    /// Metadata can address it there, wherever the repository has it.
    async fn declared_below(
        &self,
        path: &LogicalPath,
        deletion: &Action,
    ) -> Result<Option<LogicalPath>, SyncError> {
        let Some(Request { method, path: removed, query, body, .. }) =
            deletion.call().map(|call| &call.request)
        else {
            return Ok(None);
        };
        // Servers of remote procedures have one path for all resources.
        if *method != Method::DELETE || !query.is_empty() || body.is_some() {
            return Ok(None);
        }
        let is_below = |claim: &&Claim| {
            let is_within = |path: &str| is_within(path, removed);
            is_within(&claim.collection) || claim.address.as_ref().is_some_and(|at| is_within(&at.path))
        };
        for (collection, declared) in
            self.claims.all(path).await?.iter().filter(|(_, declared)| declared.addressed)
        {
            if let Some(claim) = self.claims.of(collection, declared).await?.iter().find(is_below) {
                return Ok(Some(claim.path.clone()));
            }
        }
        Ok(None)
    }

    /// Whether the target revision declares the member of a list with the path `path`, at this path or at another one.
    pub async fn declare(&self, path: &LogicalPath, entry: &Entry) -> Result<bool, SyncError> {
        let (session, member, listed) = (self.remote.session.clone(), path.clone(), entry.clone());
        let listed = blocking(path.clone(), move || {
            if repository::resource_file(session.tree.as_ref(), &member)?.is_some() {
                return Ok(None);
            }
            let rules = session.metadata.rules(&member)?;
            let Entry { payload, remote_id, .. } = listed;
            Ok(Some(Resource::named(member, rules, payload)?.with_remote_id(&remote_id)))
        })
        .await?;
        let Some(listed) = listed else { return Ok(true) };
        let observed = Observed::new(listed.clone(), Some(entry.payload.clone()));
        let claimant = self.claimant(&listed, &observed, &Beside::All).await;
        Ok(claimant.map_err(|error| incomparable(path, error))?.is_some())
    }

    /// Fails if another declared resource than `declared` is the `observed` one.
    pub async fn check_sole(&self, declared: &Resource, observed: &Observed) -> Result<(), SyncError> {
        let claimant = self.claimant(declared, observed, &Beside::Nothing).await;
        if let Some(other) = claimant.map_err(|error| incomparable(&declared.path, error))? {
            return Err(SyncError::Claimed(declared.path.clone(), other.to_string()));
        }
        Ok(())
    }

    /// Fails if another declared resource is the `observed` one, as far as both can be compared: a copied file may have the
    /// names of the original.
    pub async fn check_copy(&self, declared: &Resource, observed: &Observed) -> Result<(), SyncError> {
        match self.claimant(declared, observed, &Beside::All).await {
            Ok(Some(other)) => Err(SyncError::Claimed(declared.path.clone(), other.to_string())),
            Ok(None) | Err(SyncError::NotDeleted(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the server with the rules of `tree`, or with those of the session.
    fn remote(&self, tree: Option<&Arc<dyn Tree>>) -> Arc<Remote> {
        let Some((tree, revision)) = tree.and_then(|tree| Some((tree, tree.revision()?))) else {
            return Arc::clone(&self.remote);
        };
        let mut remotes = self.remotes.lock();
        let made = || {
            let session = self.remote.session.clone();
            let metadata = Arc::new(session.metadata.of(Arc::clone(tree)));
            self.remote.at_revision(&Session { tree: Arc::clone(tree), metadata, ..session })
        };
        Arc::clone(remotes.entry(revision.clone()).or_insert_with(made))
    }

    /// Returns the other path that declares the `observed` resource of `candidate`, if any.
    async fn claimant(
        &self,
        candidate: &Resource,
        observed: &Observed,
        beside: &Beside,
    ) -> Result<Option<LogicalPath>, SyncError> {
        let (at, _) = self.remote.with_template_values(observed.addressed()).await?;
        let evaluation = at.evaluation()?;
        let collection = evaluation.remote_collection();
        let rendered = Address::alone(&evaluation, &at.rules).ok();
        let read_at = observed.read_at.as_deref();
        let address = rendered.map(|get| Address { path: read_at.map_or(get.path, str::to_owned), ..get });
        let shown = observed.payload.as_ref();
        let alias = shown.and_then(|payload| at.rules.identity().alias().evaluate(payload).ok());
        let shown_alias = alias.as_ref().unwrap_or(&at.identity.alias);
        let addresses = stated_addresses(&at);
        let listed = Address::of_list(&evaluation, &at.rules);
        let shares_collection =
            |claim: &Claim| claim.collection == collection || listed.is_some() && claim.listed == listed;
        let is_same = |claim: &Claim| {
            if shares_collection(claim) {
                addresses.is_some() && claim.addresses == addresses
                    || claim.wanted().is(&at.identity.remote_id, shown_alias)
                    || claim.rules.digest() != at.rules.digest()
                        && shown.is_some_and(|payload| claim.names(payload))
            } else {
                claim.address.is_some() && claim.address == address
            }
        };
        // Some servers ignore the case of letters and accents, so the server decides about names that differ only in them.
        let is_alike = |claim: &Claim| {
            shares_collection(claim) && claim.wanted().is_like(&at.identity.remote_id, shown_alias)
        };
        // A path may be the name of a resource that Git declared by its id, or the other way round.
        let may_be_named = |claim: &Claim| {
            shares_collection(claim) && shown.is_some_and(|payload| claim.has_name_in(payload))
        };
        for (path, declared) in self.claims.all(&candidate.path).await? {
            let is_beside = candidate.path.parent().as_ref() == Some(path);
            if !is_beside && !declared.addressed && !states_address(&at.rules) && !may_be(path, collection) {
                continue;
            }
            for claim in self.claims.of(path, declared).await? {
                let is_same = is_same(claim);
                // The same commit may rename a parent, which gives the collection another address.
                let is_moved = is_beside
                    && claim.collection != collection
                    && claim.wanted().is(&at.identity.remote_id, shown_alias);
                let is_possible = is_same || is_moved || is_alike(claim) || may_be_named(claim);
                if claim.path == candidate.path || !is_possible {
                    continue;
                }
                if is_moved && !is_same {
                    if self.is_read_at(&claim.path, read_at).await? {
                        return Ok(Some(claim.path.clone()));
                    }
                    continue;
                }
                if !is_same && self.shows(&claim.path, observed).await? != Some(true) {
                    continue;
                }
                // A member that is read at the address of its parent is not the parent.
                let is_parent = candidate.path.is_within(&claim.path);
                let is_other = (is_parent || claim.collection == collection)
                    && if beside.has(&claim.path).await? {
                        is_parent
                            || self.is_elsewhere(path, candidate, &at).await?
                            || is_same
                                && claim.id.as_ref() != Some(&at.identity.remote_id)
                                && self.shows(&claim.path, observed).await? == Some(false)
                    } else {
                        matches!(beside, Beside::In(_))
                            && !is_parent
                            && self.is_elsewhere(path, candidate, &at).await?
                            && self.is_moved(candidate, observed, &claim.path).await
                    };
                if !is_other {
                    return Ok(Some(claim.path.clone()));
                }
            }
        }
        Ok(None)
    }

    /// Whether a resource in `collection` with the names of `candidate`, which is `at` this place, is another one
    /// although both have the same collection on the server: the same metadata makes two addresses of the names of their
    /// parents, such as `/services/web1!http` and `/services/web2!http`.
    async fn is_elsewhere(
        &self,
        collection: &LogicalPath,
        candidate: &Resource,
        at: &Resource,
    ) -> Result<bool, SyncError> {
        let (Some(own), Some(place)) = (candidate.path.parent(), at.path.parent()) else { return Ok(false) };
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
        let read = if at.rules.reads_from_list() { OperationName::List } else { OperationName::Get };
        // Two ways to read one resource may have one address for its deletion.
        let differ = [read, OperationName::Delete].into_iter().all(|operation| {
            let address = |resource: &Resource| Address::of(&resource.evaluation()?, operation);
            matches!((address(at), address(&there)), (Ok(own), Ok(other)) if own != other)
        });
        Ok(lacking.is_none() && differ)
    }

    /// Whether the declared resource at `path` is read at the address `place`.
    async fn is_read_at(&self, path: &LogicalPath, place: Option<&str>) -> Result<bool, SyncError> {
        let read = self.read_declared(path).await?;
        let is_there = |read: Observed| read.payload.is_some() && read.read_at.as_deref() == place;
        Ok(place.is_some() && read.is_some_and(is_there))
    }

    /// Whether Git moves the `observed` resource of `candidate` to `path`, where the server is proven to have nothing, or
    /// has another resource, as an earlier run created it. In the first case, its deletion needs the create there.
    async fn is_moved(&self, candidate: &Resource, observed: &Observed, path: &LogicalPath) -> bool {
        let Ok(Some(read)) = self.read_declared(path).await else { return false };
        if read.payload.is_none() {
            self.found.lock().moved.insert(candidate.path.clone(), path.clone());
            return true;
        }
        shows_one(&read, observed) == Some(false)
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
    async fn shows(&self, path: &LogicalPath, observed: &Observed) -> Result<Option<bool>, SyncError> {
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

/// Returns the error of a comparison of the resource at `path` that is not to be deleted.
fn incomparable(path: &LogicalPath, error: SyncError) -> SyncError {
    match error {
        SyncError::NotDeleted(reason) => SyncError::Incomparable(path.clone(), reason),
        error => error,
    }
}

/// Returns the remark on the resource at `path` that it is kept for this reason.
fn kept(path: &LogicalPath, reason: String) -> Kept {
    tracing::info!(%path, reason, "not pruned");
    Kept::new(path.clone(), reason)
}

/// Returns the remark on the resource at `path` that Git declares it at `other`.
fn kept_as(path: &LogicalPath, other: LogicalPath) -> Kept {
    let kept = kept(path, format!("Git declares the same resource at {other}"));
    Kept { declared_at: Some(other), ..kept }
}

/// Returns the candidate with the values that its names and its address need. Returns `None` if its address contains the
/// value of a resource that does not exist: then it does not exist either.
async fn filled(remote: &Remote, declared: Resource) -> Result<Option<Resource>, SyncError> {
    let declared = remote.with_known_names(declared).await?;
    if !declared.holds_references || !has_unfilled_address(&declared) {
        return Ok(Some(declared));
    }
    let (declared, lacks) = match remote.filled(declared.clone()).await {
        Ok((filled, lacking)) => (filled, lacking.is_some()),
        Err(SyncError::Reference { why, .. }) if why.is_absence() => (declared, true),
        Err(error) => return Err(error),
    };
    Ok(Some(declared).filter(|declared| !lacks || !has_unfilled_address(declared)))
}

/// Fails if the resource has another alias: its id alone may be that of another resource.
pub fn check_alias(declared: &Resource, observed: &Observed) -> Result<(), SyncError> {
    let Some(alias) = observed.other_alias(&Wanted::of(declared)) else { return Ok(()) };
    Err(SyncError::Undecided(declared.path.clone(), Doubt::AnotherAlias(alias)))
}

/// Whether a collection without an address in metadata may be `remote`: the ids of parents may differ from their names.
fn may_be(collection: &LogicalPath, remote: &str) -> bool {
    let remote: Vec<&str> = remote.trim_matches('/').split_terminator('/').collect();
    collection.segments().count() == remote.len() && collection.segments().last() == remote.last().copied()
}
