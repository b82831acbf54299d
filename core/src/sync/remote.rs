//! The managed server as the engine sees it: resources to read, requests to send.
//!
//! Reading one resource copes with what APIs do: ids that only the server gives, aliases in the paths of
//! parents, collections that can only be listed.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::bulk::Bulk;
use super::knowledge::{Answer, Exchange, Transcript};
use super::lists::{ListOutcome, Lists, Members};
use super::resource::{Content, Observed, Resource, confidential, request};
use super::version::Version;
use super::{Session, SyncError, blocking};
use crate::error::{Categorized, Category};
use crate::metadata::inference::is_collection;
use crate::metadata::transform::Context;
use crate::metadata::{Entry, MetadataError, OperationName, Rules};
use crate::path::LogicalPath;
use crate::payload::{PayloadType, Value};
use crate::repository;
use crate::server::{Request, Response, ServerError};

/// What the server has at a path.
#[derive(Clone, Debug)]
pub enum Found {
    /// A resource.
    Resource(Box<Observed>),
    /// A collection.
    Collection(Members),
}

/// Reads and writes resources of one run.
pub struct Remote {
    pub(super) session: Session,
    pub(super) lists: Arc<Lists>,
    /// The collections whose lists wait for what is read here.
    pub(super) within: Vec<LogicalPath>,
    pub(super) bulk: Bulk,
    /// Where reads are noted, if somebody wants to know.
    transcript: Option<Arc<Transcript>>,
    /// Whether reads tell what they rest on, so that they can be repeated without a look at Git.
    proves: bool,
}

impl Remote {
    /// The server of `session`, of which nothing is known yet.
    pub fn new(session: &Session) -> Arc<Self> {
        Self::observing(session, Bulk::default(), None, false)
    }

    /// The server as a run looks at it: lists of `bulk` may answer for their members, and all that is read
    /// is noted in `transcript`, if there is one. What single reads rest on is told if it `proves`.
    pub(super) fn observing(
        session: &Session,
        bulk: Bulk,
        transcript: Option<Arc<Transcript>>,
        proves: bool,
    ) -> Arc<Self> {
        let (lists, within) = (Arc::default(), Vec::new());
        Arc::new(Self { session: session.clone(), lists, within, bulk, transcript, proves })
    }

    /// For a read that may only prove what a list says; it is noted once [`Self::adopt`] says so.
    pub(super) fn probing(&self) -> Arc<Self> {
        Arc::new(Self {
            session: self.session.clone(),
            lists: Arc::clone(&self.lists),
            within: self.within.clone(),
            bulk: Bulk::default(),
            transcript: self.transcript.as_ref().map(|_| Arc::default()),
            proves: false,
        })
    }

    /// Notes what `probe` read, too: the run depends on it.
    pub(super) fn adopt(&self, probe: &Self) {
        if let (Some(transcript), Some(probed)) = (&self.transcript, &probe.transcript) {
            transcript.append(probed);
        }
    }

    /// For reads that the list of `collection` waits for.
    pub(super) fn nested(&self, collection: &LogicalPath) -> Self {
        let within = self.within.iter().cloned().chain([collection.clone()]).collect();
        let transcript = self.transcript.clone();
        Self {
            session: self.session.clone(),
            lists: Arc::default(),
            within,
            bulk: Bulk::default(),
            transcript,
            proves: false,
        }
    }

    /// Sends a read, unless its answer is at hand.
    pub(super) async fn ask(&self, request: &Request) -> Result<Response, ServerError> {
        self.ask_guarded(request, request).await
    }

    /// [`Self::ask`], where `guarded` is the same request with what its answer may echo.
    async fn ask_guarded(&self, request: &Request, guarded: &Request) -> Result<Response, ServerError> {
        let answer = match self.session.answers.take(request) {
            Some(answer) => answer,
            None => self.session.client.send(guarded).await,
        };
        if let Some(transcript) = &self.transcript {
            transcript.note(request, &answer);
        }
        answer
    }

    /// The rules of `path`. Looking for documents blocks, so this happens on the blocking pool.
    pub(super) async fn rules(&self, path: &LogicalPath) -> Result<Arc<Rules>, SyncError> {
        let (metadata, path) = (Arc::clone(&self.session.metadata), path.clone());
        blocking(path.clone(), move || Ok(metadata.rules(&path)?)).await
    }

    /// [`Self::find`], where a collection's value is the array of its entries.
    pub async fn get(self: &Arc<Self>, path: &LogicalPath) -> Result<Observed, SyncError> {
        match self.find(path).await? {
            Found::Resource(observed) => Ok(*observed),
            Found::Collection(members) => {
                let at = Resource::by_path(path.clone(), self.rules(path).await?)?;
                let payloads = members.entries.into_values().map(|entry| entry.payload);
                Ok(Observed::new(at, Some(Value::Array(payloads.collect()))))
            }
        }
    }

    /// Reads the resource or collection at `path`, of which nothing else is known. Fails with the server's
    /// answer if there is nothing.
    pub async fn find(self: &Arc<Self>, path: &LogicalPath) -> Result<Found, SyncError> {
        let rules = self.rules(path).await?;
        let read = match Resource::by_path(path.clone(), Arc::clone(&rules)) {
            Ok(resource) => self.read(&resource).await,
            Err(error) => self.get_unnamed(path, rules, error).await,
        };
        let error = match read {
            Ok(observed) if observed.payload.is_some() => return Ok(Found::Resource(Box::new(observed))),
            Ok(_) => SyncError::Absent { path: path.clone() },
            // A path that does not tell what a request needs may be that of a collection.
            Err(error @ SyncError::Metadata(_)) if error.is_unreadable() => error,
            Err(error) => return Err(error),
        };
        if !self.is_collection(path).await? {
            return Err(error);
        }
        match self.list(path).await {
            Ok(members) => Ok(Found::Collection(members)),
            Err(SyncError::Metadata(MetadataError::ListShape { .. })) => Err(error),
            Err(failed) if failed.category() == Category::NotFound => self.empty_or(path, error).await,
            Err(failed) => Err(failed),
        }
    }

    /// A collection without list is empty, unless what should hold it is missing too.
    async fn empty_or(self: &Arc<Self>, path: &LogicalPath, error: SyncError) -> Result<Found, SyncError> {
        let parent = path.parent().filter(|parent| !parent.is_root());
        if let Some(parent) = parent {
            let holder = Resource::by_path(parent.clone(), self.rules(&parent).await?)?;
            if self.read_at(&holder).await.is_err_and(|error| error.category() == Category::NotFound) {
                return Err(error);
            }
        }
        Ok(Found::Collection(Members { entries: BTreeMap::new(), partial: false }))
    }

    /// Whether `path` is that of a collection: the repository has a directory there that is no resource,
    /// metadata names it as one, or the server's document describes it as one.
    async fn is_collection(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        let (tree, metadata) = (Arc::clone(&self.session.tree), Arc::clone(&self.session.metadata));
        let path = path.clone();
        blocking(path.clone(), move || {
            let directory = tree.entries(path.relative())?.is_some();
            if directory && repository::resource_file(tree.as_ref(), &path)?.is_none() {
                return Ok(true);
            }
            let declared = match path.parent() {
                Some(parent) => metadata.child_collections(&parent)?.iter().any(|name| name == path.name()),
                None => false,
            };
            Ok(declared || metadata.api().is_some_and(|api| is_collection(api.document(), &path)))
        })
        .await
    }

    /// Reads a resource whose names cannot be told from its path: it must be on the list.
    async fn get_unnamed(
        self: &Arc<Self>,
        path: &LogicalPath,
        rules: Arc<Rules>,
        error: SyncError,
    ) -> Result<Observed, SyncError> {
        let Some(entry) = self.listed(path, path.name()).await.ok().flatten() else { return Err(error) };
        let payload = Arc::new(entry.payload.clone());
        let identity = rules.identify(path, &payload)?;
        let (descriptor, secrets) = (None, Arc::default());
        let resource = Resource { path: path.clone(), rules, identity, payload, descriptor, secrets };
        self.read_listed(&resource, &entry).await
    }

    /// Reads one resource. Absence is an answer and no error.
    pub async fn read(self: &Arc<Self>, wanted: &Resource) -> Result<Observed, SyncError> {
        match self.read_at(wanted).await {
            Ok(mut content) => {
                let proof = content.proof.take();
                self.check_unique(wanted).await?;
                Ok(Observed { proof, ..Observed::found(wanted.clone(), content) })
            }
            // Boxed, as it needs much more room than the one read that is mostly all.
            Err(error) => Box::pin(self.search(wanted, error)).await,
        }
    }

    /// Looks for a resource elsewhere than where it should be, which ended in `error`.
    async fn search(self: &Arc<Self>, wanted: &Resource, error: SyncError) -> Result<Observed, SyncError> {
        if error.is_unreadable() {
            // Some servers answer 400 or 405 where they cannot read a single resource. If the list does
            // not help either, what they said first is what the user should see.
            return match self.listed(&wanted.path, &wanted.identity.remote_id).await {
                Ok(Some(entry)) => self.read_listed(wanted, &entry).await,
                Ok(None) | Err(_) => Err(error),
            };
        }
        if error.category() != Category::NotFound {
            return Err(error);
        }
        if let Some(entry) = self.listed_as_named(wanted).await {
            return self.read_listed(wanted, &entry).await;
        }
        let moved = self.read_by_ids(wanted).await?;
        if moved.payload.is_some() {
            return Ok(moved);
        }
        // Where its parents have other ids than names, that is where its siblings are.
        match self.find_sibling(&moved.at).await? {
            Some(entry) => self.read_listed(&moved.at, &entry).await,
            None => Ok(moved),
        }
    }

    /// The resource on the list of its collection, if metadata names it there as its path does. No id can
    /// then take the place of its name, and its parents are addressed well, or there would be no such list.
    async fn listed_as_named(self: &Arc<Self>, wanted: &Resource) -> Option<Entry> {
        if !wanted.rules.identity().any_explicit() {
            return None;
        }
        let entry = self.listed(&wanted.path, wanted.path.name()).await.ok().flatten()?;
        (entry.remote_id == wanted.path.name()).then_some(entry)
    }

    /// The resource on the list of its collection. An absence that the list cannot prove is an error.
    async fn find_sibling(self: &Arc<Self>, wanted: &Resource) -> Result<Option<Entry>, SyncError> {
        match self.listed(&wanted.path, &wanted.identity.remote_id).await {
            Err(SyncError::PartialList { .. }) if wanted.rules.states_id(&wanted.payload) => Ok(None),
            found => found,
        }
    }

    /// Reads what a list showed by the names it showed; where the server cannot, the entry itself is the
    /// content.
    async fn read_listed(self: &Arc<Self>, wanted: &Resource, entry: &Entry) -> Result<Observed, SyncError> {
        let at = wanted.with_remote_id(&entry.remote_id);
        match self.read_at(&wanted.as_listed(entry)).await {
            Ok(content) => Ok(Observed::found(at, content)),
            Err(error) if error.category() == Category::NotFound || error.is_unreadable() => {
                Ok(Observed::new(at, Some(entry.payload.clone())))
            }
            Err(error) => Err(error),
        }
    }

    /// Puts ids in the place of aliases, from the last segment upwards, wherever metadata says that the two
    /// differ, and reads what is there. Without success the result tells how far the parents were resolved.
    async fn read_by_ids(self: &Arc<Self>, wanted: &Resource) -> Result<Observed, SyncError> {
        let mut tried = HashSet::from([wanted.path.clone()]);
        let mut at = wanted.clone();
        // The seed of a path holds its segments, which would hide those of the new one.
        let is_seed = *wanted.payload == wanted.rules.seed(&wanted.path);
        while let Some((path, remote_id)) = self.substitute(&at.path, &mut tried).await? {
            let rules = self.rules(&path).await?;
            let names_itself = path.name() != at.path.name();
            at = if is_seed { Resource::by_path(path, rules)? } else { at.moved(path, rules) };
            if names_itself {
                at = at.with_remote_id(&remote_id);
            }
            match self.read_at(&at).await {
                Ok(content) => return Ok(Observed::found(at, content)),
                Err(error) if error.category() == Category::NotFound || error.is_unreadable() => {}
                Err(error) => return Err(error),
            }
        }
        // What does not exist yet keeps its own name; only its parents are resolved.
        let parent = at.path.parent().unwrap_or_else(LogicalPath::root);
        let path = parent.child(wanted.path.name()).unwrap_or_else(|_| wanted.path.clone());
        if path == wanted.path {
            return Ok(Observed::new(wanted.clone(), None));
        }
        let rules = self.rules(&path).await?;
        Ok(Observed::new(wanted.moved(path, rules), None))
    }

    /// `path` with one segment replaced by the id that the list of its collection gives for it, and that id;
    /// `None` when no replacement is left that was not tried.
    async fn substitute(
        self: &Arc<Self>,
        path: &LogicalPath,
        tried: &mut HashSet<LogicalPath>,
    ) -> Result<Option<(LogicalPath, String)>, SyncError> {
        let prefixes = std::iter::once(path.clone()).chain(path.ancestors());
        for prefix in prefixes.filter(|prefix| !prefix.is_root()) {
            if !self.rules(&prefix).await?.identity().any_explicit() {
                continue;
            }
            let entry = match self.listed(&prefix, prefix.name()).await {
                Ok(Some(entry)) => entry,
                Err(error) if error.category() == Category::Conflict => return Err(error),
                // Without the id of a parent, everything below it would seem to be absent.
                Err(error @ SyncError::List { refused: false, .. }) if error.category() != Category::Auth => {
                    return Err(error);
                }
                Ok(None) | Err(_) => continue,
            };
            let collection = prefix.parent().unwrap_or_else(LogicalPath::root);
            let Ok(mut replaced) = collection.child(&entry.remote_id) else { continue };
            for segment in path.segments().skip(prefix.segments().count()) {
                replaced = replaced.child(segment).unwrap_or(replaced);
            }
            if tried.insert(replaced.clone()) {
                return Ok(Some((replaced, entry.remote_id)));
            }
        }
        Ok(None)
    }

    /// Where alias and id are different names, two resources may share one of them.
    async fn check_unique(self: &Arc<Self>, wanted: &Resource) -> Result<(), SyncError> {
        let identity = &wanted.identity;
        if !wanted.rules.identity().both_explicit() || identity.alias == identity.remote_id {
            return Ok(());
        }
        let Some(collection) = wanted.path.parent() else { return Ok(()) };
        let unique = self.with_list(&collection, |outcome| match outcome {
            ListOutcome::Listed(listing) | ListOutcome::Part(listing) => {
                listing.is_unique(&identity.remote_id, &identity.alias)
            }
            ListOutcome::NoList | ListOutcome::Failed { .. } => true,
        });
        if unique.await {
            return Ok(());
        }
        Err(SyncError::NotUnique {
            path: wanted.path.clone(),
            alias: identity.alias.clone(),
            remote_id: identity.remote_id.clone(),
        })
    }

    /// The entry that `name` means on the list of the collection of `path`.
    async fn listed(self: &Arc<Self>, path: &LogicalPath, name: &str) -> Result<Option<Entry>, SyncError> {
        let Some(collection) = path.parent() else { return Ok(None) };
        let found = self.with_list(&collection, |outcome| match outcome {
            ListOutcome::Listed(listing) => Ok(listing.find(path, name)?.cloned()),
            ListOutcome::Part(listing) => match listing.find(path, name)? {
                Some(entry) => Ok(Some(entry.clone())),
                None => Err(SyncError::PartialList { path: path.clone(), collection: collection.clone() }),
            },
            ListOutcome::NoList => Ok(None),
            ListOutcome::Failed { category, unauthorized, refused, message } => Err(SyncError::List {
                path: path.clone(),
                category: *category,
                unauthorized: *unauthorized,
                refused: *refused,
                message: message.clone(),
            }),
        });
        found.await
    }

    /// Whether a single read of `at` is all that tells whether it is as desired: no list says whether its names
    /// are its own, and no secret what is desired.
    fn proves(&self, at: &Resource) -> bool {
        self.proves && at.secrets.is_empty() && !at.rules.identity().both_explicit()
    }

    /// Reads the resource at exactly the address that its rules give.
    async fn read_at(&self, at: &Resource) -> Result<Content, SyncError> {
        let evaluation = at.evaluation()?;
        let confidential = confidential(at.rules.resolved(), &at.secrets);
        let request = Request { confidential, ..request(&evaluation, OperationName::Get, &Value::Null)? };
        let secrets = at.secret_texts();
        let response = if secrets.is_empty() {
            self.ask(&request).await?
        } else {
            // What is noted of a read must hold no secret.
            self.ask_guarded(&request, &Request { secrets: secrets.into(), ..request.clone() }).await?
        };
        let version = Version::of(&request, &response);
        let proof = self.proves(at).then(|| Answer::of_success(&response));
        let stored = at.descriptor.as_ref().map(|descriptor| descriptor.payload_type);
        // What was declared once is known by its payload alone.
        let text = || at.payload.as_str().map(|_| PayloadType::Text);
        let answer = response.decode(stored.or(at.rules.payload_type()).or_else(text))?;
        if !at.rules.runs_jq() {
            let payload = evaluation.transform(OperationName::Get, answer, Context::default())?;
            let proof = proof.map(|answer| Box::new(Exchange { request, answer }));
            return Ok(Content { payload, version, proof });
        }
        let resource = at.clone();
        blocking(at.path.clone(), move || {
            let payload = resource.evaluation()?.transform(OperationName::Get, answer, Context::default())?;
            Ok(Content { payload, version, proof: None })
        })
        .await
    }
}

impl SyncError {
    /// Whether the server said that there is nothing to delete.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Server(error) if error.is_gone())
    }

    /// Whether a single read is not possible this way: the server refuses the request as such, or its path
    /// cannot be rendered.
    pub(super) fn is_unreadable(&self) -> bool {
        match self {
            Self::Server(error @ ServerError::Status { .. }) => error.category() == Category::Validation,
            Self::Metadata(error) => matches!(
                error,
                MetadataError::Render { .. }
                    | MetadataError::Unusable { .. }
                    | MetadataError::Identity { .. }
            ),
            _ => false,
        }
    }
}
