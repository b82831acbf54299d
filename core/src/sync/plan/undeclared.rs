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

use super::address::{comparable, has_unfilled_address, is_unfilled};
use super::claimants::{Beside, Claimants};
use super::claims::{Claim, Compared, not_comparable};
use super::decide;
use crate::metadata::document::OnRemove;
use crate::metadata::{Entry, OperationName, Rules};
use crate::path::{LogicalPath, is_within};
use crate::repository::{self, Revision, Tree};
use crate::server::Request;
use crate::sync::model::{Action, Candidate, Doubt, Kept, Observed, Resource, SyncError, Wanted, is_alike};
use crate::sync::observe::Remote;
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
    /// If nothing could be decided about a candidate: each path that it depends on, with the path of the candidate.
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
    claimants: Claimants,
    found: Mutex<Pruning>,
}

impl Candidates {
    pub fn new(remote: &Arc<Remote>) -> Self {
        let (remotes, found) = Default::default();
        let claimants = Claimants::new(remote);
        Self { remote: Arc::clone(remote), remotes, claimants, found }
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
        Pruning { moved: self.claimants.take_moved(), ..std::mem::take(&mut *self.found.lock()) }
    }

    async fn fate(
        &self,
        remote: &Remote,
        declared: &Resource,
        declared_in: Option<Arc<dyn Tree>>,
    ) -> Result<Fate, SyncError> {
        let observed = match remote.read_doomed(declared).await {
            Err(SyncError::Undecided(path, Doubt::AnotherAlias(shown))) => {
                if let Some(namesake) = self.namesake(declared, &shown).await? {
                    return Ok(Fate::Kept(kept_as(&declared.path, namesake)));
                }
                let kept = self.kept_by_metadata(declared).await?;
                return kept.map(Fate::Kept).ok_or_else(|| {
                    SyncError::NotDeleted(format!(
                        "{path}: its id addresses a resource with another alias (\"{shown}\"), which is not deleted; state \
                         resource.onRemove: keep for its path"
                    ))
                });
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
        if let Some(path) = self.claimants.find(declared, &observed, &beside).await? {
            return Ok(Fate::Kept(kept_as(&declared.path, path)));
        }
        let resolved = declared.rules.resolved();
        if let Some(kept) = self.kept_by_metadata(declared).await? {
            return Ok(Fate::Kept(kept));
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
        if let Some(path) = self.declared_below(declared, &deletion).await? {
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

    /// Returns why metadata keeps a resource: that of the commit that declared it last, or of the target revision, because
    /// users state it when a plan shows the deletion.
    async fn kept_by_metadata(&self, declared: &Resource) -> Result<Option<Kept>, SyncError> {
        let (then, now) = (&declared.rules, &self.remote.rules(&declared.path).await?);
        let both = [then, now].map(|rules| rules.resolved()).into_iter();
        let keeping = both.filter(|resolved| *resolved.on_remove() == OnRemove::Keep);
        // It is stated if one of them states it.
        if let Some(stated) = keeping.map(|resolved| resolved.on_remove.is_some()).max() {
            let reason = "metadata states resource.onRemove: keep, or resource.singleton".to_owned();
            return Ok(Some(Kept { stated, by_default: !stated, ..kept(&declared.path, reason) }));
        }
        // Only the reset of the former commit is sent.
        let resets = |rules: &Rules| matches!(rules.resolved().on_remove(), OnRemove::Reset(_));
        Ok((resets(now) && !resets(then)).then(|| {
            let reason = "the present metadata states a reset in resource.onRemove, and the commit that declared the \
                          resource last did not; to reset it, declare it once more, and remove it in a later commit";
            kept(&declared.path, reason.to_owned())
        }))
    }

    /// Decides about a deletion that the server may apply to a declared resource of another collection, too.
    async fn unless_shared(&self, declared: &Resource, deletion: Action) -> Result<Fate, SyncError> {
        let path = &declared.path;
        let twins = self.claimants.claims.twins(path).await?;
        if twins.is_empty() {
            return Ok(Fate::Needs(Box::new(deletion)));
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
        let claims = &self.claimants.claims;
        let Some(collection) = claims.all(&candidate.path).await?.get(&path) else { return Ok(None) };
        let Compared { claims, broken } = claims.of(&path, collection).await?;
        let namesake = claims.iter().find(|claim| claim.alias.as_deref() == Some(shown));
        match (namesake, broken) {
            (None, Some(why)) => Err(not_comparable(why)),
            (namesake, _) => Ok(namesake.map(|claim| claim.path.clone())),
        }
    }

    /// Returns the path of a declared resource whose address is the one that `deletion` removes or below it, if any.
    /// Metadata can address it there, wherever the repository has it.
    async fn declared_below(
        &self,
        candidate: &Resource,
        deletion: &Action,
    ) -> Result<Option<LogicalPath>, SyncError> {
        let Some(Request { method, path, query, body, .. }) = deletion.call().map(|call| &call.request)
        else {
            return Ok(None);
        };
        let names = candidate.rules.path_names();
        let removed = &comparable(path, names);
        // Servers of remote procedures have one path for all resources, which are named in the query or the body.
        let is_of_collection = || {
            candidate
                .evaluation()
                .is_ok_and(|it| is_within(&comparable(it.remote_collection(), names), removed))
        };
        let is_named = candidate.rules.names_in_query(OperationName::Delete);
        let is_procedure = body.is_some() || is_named || !query.is_empty() && is_of_collection();
        if *method != Method::DELETE || is_procedure {
            return Ok(None);
        }
        // Resources with the same rules may have one path for all deletions, and their names elsewhere.
        let is_deleted_at = |claim: &&Claim| {
            let deletion = claim.addresses.as_ref().map(|[_, _, deletion]| deletion);
            claim.rules.digest() != candidate.rules.digest()
                && deletion.is_some_and(|deletion| is_within(&deletion.path, removed))
        };
        let is_below = |claim: &&Claim| {
            let is_within = |path: &str| is_within(path, removed);
            is_within(&claim.collection)
                || claim.address.as_ref().is_some_and(|at| is_within(&at.path))
                || is_deleted_at(claim)
        };
        let claims = &self.claimants.claims;
        let collections = claims.all(&candidate.path).await?.iter();
        for (collection, declared) in collections.filter(|(_, declared)| declared.addressed) {
            let Compared { claims, broken } = claims.of(collection, declared).await?;
            if let Some(claim) = claims.iter().find(is_below) {
                return Ok(Some(claim.path.clone()));
            }
            if let Some(why) = broken {
                return Err(not_comparable(why));
            }
        }
        Ok(None)
    }

    /// Returns the path at which the target revision declares the member of a list with the path `path`, if any.
    pub async fn declared_at(
        &self,
        path: &LogicalPath,
        entry: &Entry,
    ) -> Result<Option<LogicalPath>, SyncError> {
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
        let Some(listed) = listed else { return Ok(Some(path.clone())) };
        // The ids of its parents may differ from their names.
        let located = self.remote.located(&path.collection()).await?;
        let moved = located.child(path.name()).ok().filter(|moved| moved != path);
        let at = moved.map_or_else(|| listed.clone(), |moved| listed.moved(moved));
        let observed = Observed::new(at, Some(entry.payload.clone()));
        let claimant = self.claimants.find(&listed, &observed, &Beside::All).await;
        claimant.map_err(|error| incomparable(path, error))
    }

    /// Fails if another declared resource than `declared` is the `observed` one.
    pub async fn check_sole(&self, declared: &Resource, observed: &Observed) -> Result<(), SyncError> {
        let claimant = self.claimants.find(declared, observed, &Beside::Nothing).await;
        if let Some(other) = claimant.map_err(|error| incomparable(&declared.path, error))? {
            return Err(SyncError::Claimed(declared.path.clone(), other.to_string()));
        }
        Ok(())
    }

    /// Returns the path at which Git declares the `observed` resource, if the server also shows it there. So a duplicate,
    /// which only has the same name, can be deleted.
    pub async fn declared_as(
        &self,
        resource: &Resource,
        observed: &Observed,
    ) -> Result<Option<LogicalPath>, SyncError> {
        let Some(path) = self.claimants.find(resource, observed, &Beside::Nothing).await? else {
            return Ok(None);
        };
        let is_shown = matches!(self.claimants.shows(&path, observed).await, Ok(Some(true)));
        Ok(is_shown.then_some(path))
    }

    /// Fails if another declared resource is the `observed` one, as far as both can be compared: a copied file may have the
    /// names of the original.
    pub async fn check_copy(&self, declared: &Resource, observed: &Observed) -> Result<(), SyncError> {
        match self.claimants.find(declared, observed, &Beside::All).await {
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
        Arc::clone(remotes.entry(revision.clone()).or_insert_with(|| self.remote.at_revision(tree)))
    }
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
    let Some(alias) = observed.other_alias(&Wanted::of_doomed(declared)) else { return Ok(()) };
    Err(SyncError::Undecided(declared.path.clone(), Doubt::AnotherAlias(alias)))
}
