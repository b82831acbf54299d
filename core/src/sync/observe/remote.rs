//! One resource of the managed server.
//!
//! Reading one copes with what APIs do: ids that only the server gives, aliases in the paths of parents, collections
//! that can only be listed. What the answers mean is decided by [`judge`].

use std::collections::BTreeMap;
use std::sync::Arc;

use super::lists::Lists;
use super::parents::{Parents, member};
use super::server::Server;
use crate::error::{Categorized, Category};
use crate::metadata::inference::is_collection;
use crate::metadata::{Entry, MetadataError, Rules};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::{self, Tree};
use crate::sync::model::{
    Address, Doubt, ListAnswer, Observed, Question, Resource, Session, SyncError, Transcript, Verdict,
    Wanted, judge,
};
use crate::sync::tasks::blocking;

/// What the server has at a path.
#[derive(Clone, Debug)]
pub enum Found {
    /// A resource.
    Resource(Box<Observed>),
    /// A collection.
    Collection(Members),
}

/// The members of a collection.
#[derive(Clone, Debug)]
pub struct Members {
    /// What the list shows, by the path of each member.
    pub entries: BTreeMap<LogicalPath, Entry>,
    /// Whether the server says that there are more, and nothing says how to ask for them.
    pub partial: bool,
    /// How many entries have no name and so no path.
    pub nameless: usize,
}

/// Reads resources of one run.
pub struct Remote {
    pub(crate) server: Server,
    pub(crate) lists: Lists,
    parents: Arc<Parents>,
    former: Arc<Former>,
}

/// What earlier runs applied.
#[derive(Default)]
pub struct Former {
    /// The revision that was last applied without a failure.
    pub tree: Option<Arc<dyn Tree>>,
    /// What was declared before and is not declared now.
    pub payloads: Vec<Value>,
}

impl Remote {
    /// The server of `session`, of which nothing is known yet.
    pub fn new(session: &Session) -> Arc<Self> {
        Self::noting(session, None)
    }

    /// The same, where all that is read is noted in `transcript`, if there is one.
    pub(crate) fn noting(session: &Session, transcript: Option<Arc<Transcript>>) -> Arc<Self> {
        let server = Server { session: session.clone(), transcript };
        let reads = Arc::new(|lists: Lists, path: LogicalPath| -> futures::future::BoxFuture<'static, _> {
            let (parents, former) = Default::default();
            let nested = Arc::new(Self { server: lists.server.clone(), lists, parents, former });
            Box::pin(async move { Ok(nested.get(&path).await?.payload.unwrap_or_default()) })
        });
        let lists = Lists::new(server.clone(), reads);
        Arc::new(Self { server, lists, parents: Arc::default(), former: Arc::default() })
    }

    /// The same for a run that follows others.
    pub(crate) fn following(self: Arc<Self>, former: Former) -> Arc<Self> {
        let (server, lists) = (self.server.clone(), self.lists.clone());
        Arc::new(Self { server, lists, parents: Arc::clone(&self.parents), former: Arc::new(former) })
    }

    /// The same for a read that is only noted once [`Self::adopt`] says so. What is known of lists and parents is
    /// shared.
    pub(crate) fn probing(&self) -> Arc<Self> {
        let transcript = self.server.transcript.as_ref().map(|_| Arc::default());
        let server = Server { transcript, ..self.server.clone() };
        let lists = self.lists.noted_by(server.clone());
        let (parents, former) = (Arc::clone(&self.parents), Arc::clone(&self.former));
        Arc::new(Self { server, lists, parents, former })
    }

    /// Notes what `probe` read, too: the run depends on it.
    pub(crate) fn adopt(&self, probe: &Self) {
        if let (Some(transcript), Some(probed)) = (&self.server.transcript, &probe.server.transcript) {
            transcript.append(probed);
        }
    }

    /// [`Self::find`], where a collection's value is the array of its entries.
    pub async fn get(self: &Arc<Self>, path: &LogicalPath) -> Result<Observed, SyncError> {
        match self.find(path).await? {
            Found::Resource(observed) => Ok(*observed),
            Found::Collection(members) => {
                let at = Resource::by_path(path.clone(), self.server.rules(path).await?)?;
                let payloads = members.entries.into_values().map(|entry| entry.payload);
                Ok(Observed::new(at, Some(Value::Array(payloads.collect()))))
            }
        }
    }

    /// Reads the resource or collection at `path`, of which nothing else is known. Fails with the server's
    /// answer if there is nothing.
    pub async fn find(self: &Arc<Self>, path: &LogicalPath) -> Result<Found, SyncError> {
        let rules = self.server.rules(path).await?;
        let read = match Resource::by_path(path.clone(), Arc::clone(&rules)) {
            Ok(resource) => self.read(&resource).await,
            Err(error) => self.get_unnamed(path, rules, error).await,
        };
        let error = match read {
            Ok(observed) if observed.payload.is_some() => return Ok(Found::Resource(Box::new(observed))),
            Ok(_) => SyncError::Absent(path.clone()),
            // A read needs no proof that nothing exists.
            Err(error) if error.is_lack_of_proof() => SyncError::Absent(path.clone()),
            // A path without the names that a request needs may be that of a collection.
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
            let holder = Resource::by_path(parent.clone(), self.server.rules(&parent).await?)?;
            if self.server.read_at(&holder).await.is_err_and(|error| error.category() == Category::NotFound) {
                return Err(error);
            }
        }
        Ok(Found::Collection(Members { entries: BTreeMap::new(), partial: false, nameless: 0 }))
    }

    /// Whether `path` is that of a collection: the repository has a directory there that is not a resource,
    /// metadata names it as one, or the server's document describes it as one.
    async fn is_collection(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        let (tree, metadata) =
            (Arc::clone(&self.server.session.tree), Arc::clone(&self.server.session.metadata));
        let path = path.clone();
        blocking(path.clone(), move || {
            if repository::resource_file(tree.as_ref(), &path)?.is_some() {
                return Ok(false);
            }
            if tree.entries(path.relative())?.is_some() {
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

    /// Reads a resource whose names cannot be taken from its path: it must be on the list.
    async fn get_unnamed(
        self: &Arc<Self>,
        path: &LogicalPath,
        rules: Arc<Rules>,
        error: SyncError,
    ) -> Result<Observed, SyncError> {
        let name = path.name();
        let wanted = Wanted { name, alias: Some(name), ..Wanted::default() };
        let question = Question { wanted, ..Question::default() };
        let Verdict::Present(entry) = self.by_list(path, &question, Address::NotAsked).await else {
            return Err(error);
        };
        let named = Resource::named(path.clone(), rules, entry.payload.clone())?;
        self.read_listed(&Resource { seeded: true, ..named }, &entry).await
    }

    /// Lists the collection at `path`: its members by their paths. Two members of one path are a conflict.
    pub async fn list(self: &Arc<Self>, path: &LogicalPath) -> Result<Members, SyncError> {
        let listed = self.lists.read(path).await?;
        let mut members = BTreeMap::new();
        for entry in listed.entries {
            let alias = entry.alias.clone();
            if members.insert(entry.path(path)?, entry).is_some() {
                return Err(MetadataError::DuplicateAlias { collection: path.clone(), alias }.into());
            }
        }
        Ok(Members {
            entries: members,
            partial: matches!(listed.doubt, Some(Doubt::Cut)),
            nameless: listed.nameless,
        })
    }

    /// `path` with the ids of its members in the place of their names.
    pub(crate) async fn located(&self, path: &LogicalPath) -> Result<LogicalPath, SyncError> {
        let located = self.parents.located(&self.lists, path).await;
        let place = located.map_err(|source| SyncError::Parent(path.clone(), source))?;
        Ok(place.path)
    }

    /// Reads one resource. Its absence is an answer if it is proven, else an error.
    pub async fn read(self: &Arc<Self>, wanted: &Resource) -> Result<Observed, SyncError> {
        self.observe(wanted, false).await
    }

    /// [`Self::read`] for a resource that is to be deleted.
    pub(crate) async fn read_doomed(self: &Arc<Self>, wanted: &Resource) -> Result<Observed, SyncError> {
        self.observe(wanted, true).await
    }

    async fn observe(self: &Arc<Self>, wanted: &Resource, doomed: bool) -> Result<Observed, SyncError> {
        // The address that its names give answers for most.
        match self.server.read_at(wanted).await {
            Ok(observed) if Wanted::of(wanted).one_name => Ok(observed),
            // Boxed, as it needs much more room than the one read that is mostly all.
            read => Box::pin(self.look_closer(wanted, read, doomed)).await,
        }
    }

    /// Decides on what the address of a resource answered, with the help of its parents and of its list.
    async fn look_closer(
        self: &Arc<Self>,
        wanted: &Resource,
        mut read: Result<Observed, SyncError>,
        doomed: bool,
    ) -> Result<Observed, SyncError> {
        // Where nothing is, its parents may have other ids than names.
        let (mut at, mut doubt) = (wanted.clone(), None);
        if read.as_ref().is_err_and(|error| error.category() == Category::NotFound) {
            // A list that shows it has parents that are addressed well.
            if wanted.rules.identity().any_explicit() {
                let question =
                    Question { wanted: Wanted::of(wanted), put_creates: false, is_known: false, doomed };
                let listed = self.by_list(&wanted.path, &question, Address::NotFound).await;
                if let Verdict::Present(entry) = listed {
                    return self.read_listed(wanted, &entry).await;
                }
            }
            let (moved, about_parents) = self.parents.relocated(&self.lists, wanted).await?;
            doubt = about_parents;
            if let Some(moved) = moved {
                at = moved;
                read = self.server.read_at(&at).await;
            }
        }
        let shown = read.as_ref().ok().and_then(|observed| observed.payload.as_ref());
        let alias = shown.and_then(|shown| at.rules.identity().alias().evaluate(shown).ok());
        let address = match &read {
            Ok(_) => Address::Found(alias.as_deref()),
            Err(error) if error.category() == Category::NotFound => Address::NotFound,
            Err(error) if error.is_unreadable() => Address::Unreadable,
            Err(_) => return read,
        };
        let put_creates = address == Address::NotFound && at.is_created_by_put();
        // A candidate for deletion was applied, or it would not be one.
        let is_known = doomed || self.is_known(wanted, address).await;
        let question = Question { wanted: Wanted::of(&at), put_creates, is_known, doomed };
        let not_listed = ListAnswer::Unknown(Doubt::NotListed);
        let verdict = match judge(&question, address, &not_listed).cloned() {
            // The list decides what the address leaves open.
            Verdict::Unknown(Doubt::NotListed) => self.by_list(&at.path, &question, address).await,
            verdict => verdict,
        };
        let verdict = match verdict {
            // There is no list below a parent that does not exist.
            Verdict::Unknown(..) if address == Address::NotFound && self.parent_is_absent(&at.path).await => {
                judge(&question, Address::NoParent, &not_listed).cloned()
            }
            verdict => verdict,
        };
        let verdict = match (verdict, doubt) {
            // What cannot be addressed for sure is not gone.
            (Verdict::Absent(_), Some(doubt)) if doomed => Verdict::Unknown(doubt),
            (verdict, _) => verdict,
        };
        match (verdict, read) {
            (Verdict::Here, read) => read,
            (Verdict::Present(entry), _) => self.read_listed(&at, &entry).await,
            // What the server said first is what the user should see.
            (_, Err(error)) if address == Address::Unreadable => Err(error),
            (Verdict::Absent(proof), _) => {
                tracing::debug!(path = %wanted.path, ?proof, "absent");
                Ok(Observed::new(at, None))
            }
            (Verdict::Unknown(doubt), _) => Err(SyncError::Undecided(wanted.path.clone(), doubt)),
        }
    }

    /// Whether a resource whose address shows another alias was applied under the same id before, at its path or at one
    /// that is not declared now.
    async fn is_known(&self, wanted: &Resource, address: Address<'_>) -> bool {
        let names = Wanted::of(wanted);
        let (Address::Found(Some(shown)), Some(id)) = (address, names.id) else { return false };
        if names.answers_to(shown) {
            return true;
        }
        let (former, wanted, id) = (Arc::clone(&self.former), wanted.clone(), id.to_owned());
        let known = blocking(wanted.path.clone(), move || {
            let has_id = |payload: &Value| {
                wanted.rules.identity().id().evaluate(payload).is_ok_and(|stated| stated == id)
            };
            if former.payloads.iter().any(has_id) {
                return Ok(true);
            }
            let Some(tree) = &former.tree else { return Ok(false) };
            let file = repository::resource_file(tree.as_ref(), &wanted.path)?;
            let payload = file.map(|file| repository::read_payload(tree.as_ref(), &file)).transpose()?;
            Ok(payload.as_ref().is_some_and(has_id))
        });
        known.await.unwrap_or(false)
    }

    async fn by_list(
        &self,
        path: &LogicalPath,
        question: &Question<'_>,
        address: Address<'_>,
    ) -> Verdict<Entry> {
        let Some(collection) = path.parent() else {
            return Verdict::Unknown(Doubt::NoList);
        };
        let read = |answer: &ListAnswer| judge(question, address, answer).cloned();
        self.lists.with(&collection, read).await
    }

    /// Whether the nearest parent that is a member of a collection surely does not exist.
    async fn parent_is_absent(self: &Arc<Self>, path: &LogicalPath) -> bool {
        for ancestor in path.ancestors().filter(|ancestor| !ancestor.is_root()) {
            match member(&self.server, &ancestor).await {
                Ok(None) => {}
                Ok(Some(parent)) => {
                    let known = self.parents.absence(&ancestor);
                    let look = async {
                        Box::pin(self.read(&parent)).await.is_ok_and(|observed| observed.payload.is_none())
                    };
                    return *known.get_or_init(|| look).await;
                }
                Err(_) => return false,
            }
        }
        false
    }

    /// Reads what a list showed by the names it showed; where the server cannot, the entry itself is the
    /// content.
    async fn read_listed(self: &Arc<Self>, wanted: &Resource, entry: &Entry) -> Result<Observed, SyncError> {
        let at = wanted.with_remote_id(&entry.remote_id);
        match self.server.read_at(&wanted.as_listed(entry)).await {
            Ok(observed) => Ok(Observed { at, ..observed }),
            Err(error) if error.category() == Category::NotFound || error.is_unreadable() => {
                Ok(Observed::new(at, Some(entry.payload.clone())))
            }
            Err(error) => Err(error),
        }
    }
}
