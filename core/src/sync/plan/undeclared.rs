//! What was declared once and is not declared now: whether the server still has it, and whether it may go.
//!
//! Two paths can mean one resource: after a rename the old path is undeclared, and the new one declares the same
//! resource, whether that can be read just now or not. So nothing goes before all declared resources that may be the
//! same one were compared with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::decide;
use crate::metadata::{Entry, OperationName, Stated};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::{self, ResourceFile, Revision, Tree};
use crate::sync::model::{Action, Candidate, Doubt, Kept, Observed, Resource, Session, SyncError, Wanted};
use crate::sync::observe::{Remote, desired};
use crate::sync::tasks::blocking;

/// What becomes of a candidate for deletion.
#[derive(Debug)]
pub enum Fate {
    /// The server does not have it.
    Gone,
    /// It goes.
    Doomed(Box<Action>),
    /// It stays: Git declares it under another path (`occupied`), or something below it.
    Kept {
        /// What stays, and why.
        kept: Kept,
        /// Whether it is the resource of another path.
        occupied: bool,
    },
}

/// The candidates of one run.
pub struct Candidates {
    /// The session of the target revision.
    declared: Claims,
    /// The server by the rules of the revisions that declared candidates.
    remotes: Mutex<HashMap<Revision, Arc<Remote>>>,
}

impl Candidates {
    pub fn new(remote: &Arc<Remote>) -> Self {
        Self { declared: Claims::new(remote), remotes: Mutex::default() }
    }

    /// Decides on one candidate.
    pub async fn decide(&self, candidate: Candidate) -> Result<Fate, SyncError> {
        let remote = self.remote(candidate.declared_in.as_ref());
        let declared = name(&remote.server.session, candidate).await?;
        let observed = remote.read_doomed(&declared).await?;
        if observed.payload.is_none() {
            return Ok(Fate::Gone);
        }
        let kept = |reason: String, occupied| {
            let path = declared.path.clone();
            tracing::info!(%path, reason, "not pruned");
            Ok(Fate::Kept { kept: Kept { path, reason }, occupied })
        };
        if let Some(path) = self.declared.claimant(&declared, &observed).await? {
            return kept(format!("Git declares the same resource at {path}"), true);
        }
        check_alias(&declared, &observed)?;
        let (session, path) = (self.declared.session().clone(), declared.path.clone());
        // Deleting a parent may take its children along, on the server.
        let is_parent = move || Ok(repository::declares_at_least(session.tree.as_ref(), &path, 1)?);
        if blocking(declared.path.clone(), is_parent).await? {
            return kept("Git declares resources below it".to_owned(), false);
        }
        match decide::prune(&declared, &observed)? {
            Some(action) => Ok(Fate::Doomed(Box::new(action))),
            None => Ok(Fate::Gone),
        }
    }

    /// Fails if another declared resource than `declared` is what was `observed`, or if that is to be deleted and has
    /// another alias.
    pub async fn check_sole(
        &self,
        declared: &Resource,
        observed: &Observed,
        is_doomed: bool,
    ) -> Result<(), SyncError> {
        match self.declared.claimant(declared, observed).await? {
            None if is_doomed => check_alias(declared, observed),
            None => Ok(()),
            Some(other) => Err(SyncError::Claimed(declared.path.clone(), other.to_string())),
        }
    }

    /// The server by the rules of `tree`, or of the session's own one.
    fn remote(&self, tree: Option<&Arc<dyn Tree>>) -> Arc<Remote> {
        let Some((tree, revision)) = tree.and_then(|tree| Some((tree, tree.revision()?))) else {
            return Arc::clone(&self.declared.remote);
        };
        let mut remotes = self.remotes.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            let session = self.declared.session();
            let metadata = Arc::new(session.metadata.of(Arc::clone(tree)));
            Remote::new(&Session { tree: Arc::clone(tree), metadata, ..session.clone() })
        };
        Arc::clone(remotes.entry(revision.clone()).or_insert_with(made))
    }
}

/// What has another alias is not deleted for its id alone, which may be that of another resource.
fn check_alias(declared: &Resource, observed: &Observed) -> Result<(), SyncError> {
    match observed.other_alias(&Wanted::of(declared)) {
        None => Ok(()),
        Some(alias) => Err(SyncError::Undecided(declared.path.clone(), Doubt::AnotherAlias(alias))),
    }
}

/// The resource as it was declared.
async fn name(session: &Session, Candidate { path, payload, .. }: Candidate) -> Result<Resource, SyncError> {
    let session = session.clone();
    blocking(path.clone(), move || {
        let rules = session.metadata.rules(&path)?;
        // What was declared before may not fit the defaults; it only has to name the resource.
        let payload = rules.resolved().with_defaults(payload.clone()).unwrap_or(payload);
        Resource::named(path, rules, payload)
    })
    .await
}

/// Which declared resource a resource of the server belongs to.
struct Claims {
    remote: Arc<Remote>,
    /// All that the tree declares, by collection.
    files: OnceCell<BTreeMap<LogicalPath, Arc<Files>>>,
    names: Mutex<HashMap<LogicalPath, Arc<OnceCell<Vec<Claim>>>>>,
}

/// What is declared in one collection.
struct Files {
    members: Vec<ResourceFile>,
    /// Whether metadata states where some of them are on the server.
    addressed: bool,
    /// Why some of them cannot be read.
    broken: Option<String>,
}

/// A declared resource, as far as it takes to recognise it.
struct Claim {
    path: LogicalPath,
    /// Its collection on the server.
    collection: String,
    /// The path and query of its read.
    address: Option<(String, Vec<(String, String)>)>,
    id: Option<String>,
    alias: Option<String>,
}

impl Claim {
    fn is(&self, entry: &Entry) -> bool {
        let wanted = Wanted {
            id: self.id.as_deref(),
            name: self.path.name(),
            alias: self.alias.as_deref(),
            states_alias: false,
            one_name: false,
            by_path: false,
            by_members: false,
        };
        wanted.is(entry)
    }
}

impl Claims {
    fn new(remote: &Arc<Remote>) -> Self {
        Self { remote: Arc::clone(remote), files: OnceCell::new(), names: Mutex::default() }
    }

    fn session(&self) -> &Session {
        &self.remote.server.session
    }

    /// The path, other than its own, that declares what was `observed` of `candidate`.
    async fn claimant(
        &self,
        candidate: &Resource,
        observed: &Observed,
    ) -> Result<Option<LogicalPath>, SyncError> {
        let at = observed.addressed();
        let collection = at.evaluation()?.remote_collection().to_owned();
        let rendered = at.evaluation()?.render(OperationName::Get).ok();
        let read_at = observed.read_at.as_deref();
        let address = rendered.map(|get| (read_at.map_or(get.path, str::to_owned), get.query));
        let entry = live_entry(&at, observed.payload.as_ref());
        let files = self.files.get_or_try_init(|| self.all_files(&candidate.path)).await?;
        let stated = states_address(&at);
        for (declared, files) in files {
            if !files.addressed && !stated && !may_be(declared, &collection) {
                continue;
            }
            if let Some(broken) = &files.broken {
                return Err(not_deleted(broken));
            }
            let cell = {
                let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
                Arc::clone(names.entry(declared.clone()).or_default())
            };
            let named = cell.get_or_try_init(|| self.claims(declared, files)).await;
            let claims = named.map_err(|error: SyncError| not_deleted(&error.to_string()))?;
            let claims = claims.iter().filter(|claim| claim.path != candidate.path);
            for claim in claims {
                let same = if claim.collection == collection {
                    claim.is(&entry)
                } else {
                    claim.address.is_some() && claim.address == address
                };
                if same {
                    return Ok(Some(claim.path.clone()));
                }
            }
        }
        Ok(None)
    }

    async fn all_files(&self, path: &LogicalPath) -> Result<BTreeMap<LogicalPath, Arc<Files>>, SyncError> {
        let session = self.session().clone();
        blocking(path.clone(), move || {
            let listing = repository::resources(session.tree.as_ref(), &LogicalPath::root(), true)?;
            let mut files: BTreeMap<LogicalPath, Files> = BTreeMap::new();
            let empty = || Files { members: Vec::new(), addressed: false, broken: None };
            for file in listing.resources {
                let Some(collection) = file.path.parent() else { continue };
                let rules = session.metadata.rules(&file.path);
                let files = files.entry(collection).or_insert_with(empty);
                match rules {
                    Ok(rules) => files.addressed |= states(rules.resolved()),
                    Err(error) => files.broken = Some(SyncError::from(error).to_string()),
                }
                files.members.push(file);
            }
            for (path, error) in listing.broken {
                let collection = path.parent().unwrap_or(path);
                files.entry(collection).or_insert_with(empty).broken = Some(error.to_string());
            }
            Ok(files.into_iter().map(|(collection, files)| (collection, Arc::new(files))).collect())
        })
        .await
    }

    /// What is declared in `collection`. A resource that cannot be read is an error: it may be the one.
    async fn claims(&self, collection: &LogicalPath, files: &Arc<Files>) -> Result<Vec<Claim>, SyncError> {
        let located = self.remote.located(collection).await?;
        let (session, files) = (self.session().clone(), Arc::clone(files));
        blocking(collection.clone(), move || {
            let claim = |file: &ResourceFile| {
                let declared = desired(&session, file.clone())?;
                let moved = match located.child(declared.path.name()) {
                    Ok(path) if path != declared.path => {
                        let rules = session.metadata.rules(&path)?;
                        declared.moved(path, rules)
                    }
                    _ => declared,
                };
                let stated = states_address(&moved);
                let evaluation = moved.evaluation()?;
                let wanted = Wanted::of(&moved);
                let rendered = evaluation.render(OperationName::Get);
                // An address that metadata states decides whether it is the same resource.
                let rendered = if stated { Some(rendered?) } else { rendered.ok() };
                let address = rendered.map(|get| (get.path, get.query));
                Ok(Claim {
                    path: file.path.clone(),
                    collection: evaluation.remote_collection().to_owned(),
                    address,
                    id: wanted.id.map(str::to_owned),
                    alias: wanted.alias.map(str::to_owned),
                })
            };
            files.members.iter().map(claim).collect()
        })
        .await
    }
}

fn not_deleted(why: &str) -> SyncError {
    SyncError::NotDeleted(format!("a declared resource that may be the same one cannot be compared: {why}"))
}

/// The resource as a list would show it.
fn live_entry(at: &Resource, payload: Option<&Value>) -> Entry {
    let shown = payload.and_then(|payload| at.rules.identity().alias().evaluate(payload).ok());
    let states = Stated { id: true, alias: shown.is_some() };
    let alias = shown.unwrap_or_else(|| at.identity.alias.clone());
    Entry { alias, remote_id: at.identity.remote_id.clone(), payload: Value::Null, states }
}

fn states_address(resource: &Resource) -> bool {
    states(resource.rules.resolved())
}

/// Whether metadata states where a resource is on the server.
fn states(resolved: &crate::metadata::document::Resolved) -> bool {
    resolved.remote_collection_path.is_some()
        || [OperationName::Get, OperationName::Update, OperationName::Delete]
            .into_iter()
            .any(|operation| resolved.operation(operation).path.is_some())
}

/// Whether a collection whose address no metadata states may be `remote`: parents may have other ids than names.
fn may_be(collection: &LogicalPath, remote: &str) -> bool {
    let remote = remote.trim_matches('/');
    let depth = if remote.is_empty() { 0 } else { remote.split('/').count() };
    collection.segments().count() == depth
        && collection.segments().last() == remote.rsplit('/').next().filter(|name| !name.is_empty())
}
