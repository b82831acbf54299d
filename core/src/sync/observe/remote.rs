//! Reads one resource of the managed server.
//!
//! APIs differ: some assign ids, have aliases in the paths of parents, or can only list a collection. [`judge`] decides
//! what the answers mean.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::lists::List;
use super::other_id::{Read, is_another, is_at_other_id, is_not_found, rejects_address};
use super::parents::is_below_number;
use super::server::{Place, Remote};
use http::StatusCode;

use crate::error::{Categorized, Category};
use crate::metadata::inference::is_collection;
use crate::metadata::{Entries, Entry, Identity, MetadataError, Rules};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::{self, RepositoryError, Tree};
use crate::server::ServerError;
use crate::sync::model::{
    Address, Doubt, ListAnswer, Observed, Question, Resource, SyncError, Verdict, Wanted, judge,
};
use crate::sync::tasks::blocking;

/// The most memory that a former payload may need, which is read only for its id.
const FORMER: usize = 4 << 20;

/// The object at a path of the server.
#[derive(Debug)]
pub enum Found {
    /// A resource.
    Resource(Box<Observed>),
    /// A collection.
    Collection(Members),
}

/// The members of a collection.
#[derive(Debug, Default)]
pub struct Members {
    /// The entries of the list, by the path of each member.
    pub entries: BTreeMap<LogicalPath, Entry>,
    /// Whether the server has further pages, and metadata does not state how to request them.
    pub partial: bool,
    /// The number of entries without a name, and therefore without a path.
    pub nameless: usize,
    /// The aliases that cannot be part of a path, such as `..`.
    pub pathless: Vec<String>,
    /// The members that the list shows and that could not be read.
    pub unread: Vec<(LogicalPath, SyncError)>,
    /// If the entries have the payloads of the list because reads of single members fail: the error of one.
    pub as_listed: Option<Box<SyncError>>,
    /// Whether the server does not know the list.
    pub unlisted: bool,
    /// The path of the collection on the server, if the ids of its parents differ from their names.
    pub located: Option<LogicalPath>,
}

impl Remote {
    /// Like [`Self::find`], but returns a collection as the array of its entries, and fails if the server does not know
    /// the list.
    pub async fn get(&self, path: &LogicalPath) -> Result<Observed, SyncError> {
        match self.find(path).await? {
            Found::Resource(observed) => Ok(*observed),
            Found::Collection(members) if members.unlisted => Err(SyncError::Absent(path.clone())),
            Found::Collection(members) => {
                let at = Resource::by_path(path.clone(), self.rules(path).await?)?;
                let payloads = members.entries.into_values().map(|entry| entry.payload);
                Ok(Observed::new(at, Some(Value::Array(payloads.collect()))))
            }
        }
    }

    /// Reads the resource or collection at `path`, if only the path is known. Fails with the server's answer if there
    /// is nothing.
    pub async fn find(&self, path: &LogicalPath) -> Result<Found, SyncError> {
        let rules = self.rules(path).await?;
        let read = match Resource::by_path(path.clone(), Arc::clone(&rules)) {
            Ok(resource) => self.read(&resource).await,
            Err(error) => self.unnamed(path, rules).await.and_then(|read| read.ok_or(error)),
        };
        let error = match read {
            Ok(observed) if observed.payload.is_some() => return Ok(Found::Resource(Box::new(observed))),
            Ok(_) | Err(SyncError::Absent(_)) => SyncError::Absent(path.clone()),
            // A read needs no proof that nothing exists, unless the credentials may hide it.
            Err(error) if error.is_lack_of_proof() && error.category() == Category::Auth => error,
            Err(error) if error.is_lack_of_proof() => SyncError::Absent(path.clone()),
            // If the path does not contain the names that a request needs, it may be a collection.
            Err(error @ SyncError::Metadata(_)) if error.is_unreadable() => error,
            Err(error) => return Err(error),
        };
        if !self.is_collection(path).await? {
            return Err(error);
        }
        match self.list(path).await {
            Ok(members) => Ok(Found::Collection(members)),
            Err(SyncError::Metadata(MetadataError::ListShape { .. })) => Err(error),
            Err(failed) if failed.category() != Category::NotFound => Err(failed),
            // A collection without a list is empty, unless its parent is missing too.
            Err(_) if self.lacks_parent(path).await? => Err(error),
            Err(_) => Ok(Found::Collection(Members { unlisted: true, ..Members::default() })),
        }
    }

    async fn lacks_parent(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        let Some(parent) = path.parent().filter(|parent| !parent.is_root()) else { return Ok(false) };
        let rules = self.rules(&parent).await?;
        Ok(is_not_found(&self.read_at(&Resource::by_path(parent, rules)?).await))
    }

    /// Whether `path` is a collection: the repository has a directory there that is not a resource, metadata declares
    /// it, or the `OpenAPI` document describes it.
    async fn is_collection(&self, path: &LogicalPath) -> Result<bool, SyncError> {
        let (session, path) = (self.session.clone(), path.clone());
        blocking(path.clone(), move || {
            let is_resource = repository::resource_file(session.tree.as_ref(), &path)?.is_some();
            if is_resource || session.tree.entries(path.relative())?.is_some() {
                return Ok(!is_resource);
            }
            let (metadata, parent) = (&session.metadata, path.collection());
            let declared = metadata.child_collections(&parent)?.iter().any(|name| name == path.name());
            Ok(declared || metadata.api().is_some_and(|api| is_collection(api.document(), &path)))
        })
        .await
    }

    /// Reads a resource whose names cannot be taken from its path, if the list shows it.
    async fn unnamed(&self, path: &LogicalPath, rules: Arc<Rules>) -> Result<Option<Observed>, SyncError> {
        let Some(collection) = path.parent() else { return Ok(None) };
        // The ids of its parents may differ from their names, and a name may be the id of another parent.
        let collection = self.located(&collection).await?;
        let name = rules.path_names().decode(path.name());
        let wanted = Wanted { name: &name, alias: Some(&name), ..Wanted::default() };
        let list = self.listed(&collection).await.answer;
        let question = Question { wanted, ..Question::default() };
        let entry = match judge(&question, Address::NotAsked, &list) {
            Verdict::Present(entry) => entry,
            Verdict::Absent(_) => return Err(SyncError::Absent(path.clone())),
            Verdict::Here | Verdict::Unknown(_) => return Ok(None),
        };
        let Ok(at) = collection.child(path.name()) else { return Ok(None) };
        let declared = (at != *path).then(|| path.clone());
        let named = Resource::named(at, rules, entry.payload.clone())?;
        self.read_listed(&Resource { seeded: true, declared, ..named }, entry).await.map(Some)
    }

    /// Lists the collection at `path`. If the list only shows names, reads each member. Two members with the same path
    /// are a conflict.
    pub async fn list(&self, path: &LogicalPath) -> Result<Members, SyncError> {
        self.list_without(path, &|_, _| false).await?.all_read()
    }

    /// Like [`Self::list`], but neither reads nor returns the members that `excludes` states, and returns those that could
    /// be read if others could not.
    pub async fn list_without(
        &self,
        path: &LogicalPath,
        excludes: &(dyn Fn(&LogicalPath, &Entry) -> bool + Send + Sync),
    ) -> Result<Members, SyncError> {
        let rules = self.rules(path).await?;
        let by_names = if rules.names_ids() { None } else { Some(self.read_list(path).await) };
        let (located, list) = match by_names {
            None => {
                let located = self.located(path).await?;
                let list = self.read_list(&located).await?;
                (located, list)
            }
            // The ids of its parents may differ from their names.
            Some(Err(error @ SyncError::Server(_)))
                if error.category() == Category::NotFound || error.may_reject_name() =>
            {
                let located = self.located(path).await.unwrap_or_else(|_| path.clone());
                let list = if located == *path { Err(error) } else { self.read_list(&located).await };
                (located, list?)
            }
            Some(list) => (path.clone(), list?),
        };
        let List { entries: Entries { named: listed, nameless, .. }, doubt, .. } = list;
        let (mut named, mut unread, mut pathless) = (Vec::new(), Vec::new(), Vec::new());
        for entry in listed {
            match entry.path(path, rules.path_names()) {
                Ok(member) if excludes(&member, &entry) => {}
                Ok(member) => named.push((member, entry)),
                Err(_) => pathless.push(entry.alias),
            }
        }
        // An entry is not what a read of the member shows.
        if rules.lists_names() || rules.reads_from_list() {
            let count = named.len();
            (named, unread) = self.read_members(path, &located, named).await?;
            if named.is_empty() && !unread.is_empty() {
                return Err(unread.swap_remove(0).1);
            }
            if named.is_empty() && count > 0 && !rules.reads_from_list() {
                return Err(SyncError::NoMembers(path.clone(), count));
            }
        }
        let mut entries = BTreeMap::new();
        for (at, entry) in named {
            let id = entry.remote_id.clone();
            if let Some(Entry { alias, remote_id, .. }) = entries.insert(at, entry) {
                let (collection, ids) = (path.clone(), [remote_id, id]);
                return Err(MetadataError::DuplicateAlias { collection, alias, ids }.into());
            }
        }
        let (partial, located) =
            (matches!(doubt, Some(Doubt::Cut)), Some(located).filter(|located| located != path));
        Ok(Members { entries, partial, nameless, pathless, unread, located, ..Members::default() })
    }

    /// Reads one resource. A proven absence is a result; otherwise, absence is an error.
    pub async fn read(&self, wanted: &Resource) -> Result<Observed, SyncError> {
        if self.parents.contains(&wanted.path) {
            return Box::pin(self.read_parent(wanted, false)).await;
        }
        self.observe(wanted, false).await
    }

    /// Returns `wanted` if the list of its collection shows it. Fails if several entries have its names.
    pub(crate) async fn read_member(&self, wanted: &Resource) -> Result<Option<Observed>, SyncError> {
        let Some(collection) = wanted.path.parent() else { return Ok(None) };
        let list = self.list_for(wanted, &collection).await;
        let question = Question { wanted: Wanted::of(wanted), ..Question::default() };
        match judge(&question, Address::NotAsked, &list) {
            Verdict::Present(entry) => self.read_listed(wanted, entry).await.map(Some),
            Verdict::Unknown(doubt @ Doubt::Several(_)) => Err(wanted.undecided(doubt)),
            _ => Ok(None),
        }
    }

    /// Reads a resource that was created with this id of [`Report::ids`](crate::sync::Report::ids). A server may not show
    /// it in lists yet.
    pub async fn read_created(&self, wanted: &Resource, id: &str) -> Result<Observed, SyncError> {
        let id = wanted.rules.path_names().decode(id);
        match self.read_at(&wanted.with_remote_id(&id)).await {
            Ok(observed) if observed.payload.is_some() => Ok(observed),
            _ => self.read(wanted).await,
        }
    }

    /// Returns what the server shows at the address with this id, which may be nothing; `None` if it does not answer that.
    pub(crate) async fn at_id(&self, wanted: &Resource, id: &str) -> Option<Option<Value>> {
        let at = if wanted.rules.identity().any_explicit() {
            wanted.with_remote_id(id)
        } else {
            let path = wanted.path.parent()?.child(&wanted.rules.path_names().encode(id)).ok()?;
            Resource::by_path(path, Arc::clone(&wanted.rules)).ok()?
        };
        let read = self.read_at(&at).await;
        if is_not_found(&read) { Some(None) } else { read.ok().map(|observed| observed.payload) }
    }

    /// Like [`Self::read`], for a resource that is to be deleted.
    pub(crate) async fn read_doomed(&self, wanted: &Resource) -> Result<Observed, SyncError> {
        if self.parents.contains(&wanted.path) {
            return Box::pin(self.read_parent(wanted, true)).await;
        }
        self.observe(wanted, true).await
    }

    pub(super) async fn observe(&self, wanted: &Resource, doomed: bool) -> Result<Observed, SyncError> {
        if wanted.rules.names_ids() {
            return Box::pin(self.observe_by_ids(wanted, doomed)).await;
        }
        // The name of a parent may be the id of another one, most probably if it is a number.
        if (doomed || is_below_number(&wanted.path)) && !Box::pin(self.is_at_its_names(&wanted.path)).await? {
            return Box::pin(self.observe_by_ids(wanted, doomed)).await;
        }
        // For most resources, the address of their names is sufficient.
        match self.read_by_either_id(wanted).await {
            Ok(observed) if is_by_name(wanted, &observed, doomed) && !is_at_other_id(wanted, &observed) => {
                Ok(observed)
            }
            // Its address contains the value of a resource that does not exist.
            Err(error) if error.lacks_reference() => {
                Ok(Observed::new(Box::pin(self.relocated(wanted)).await?.0, None))
            }
            read if wanted.rules.resolved().singleton => {
                Box::pin(self.search_singleton(wanted, read, doomed)).await
            }
            Ok(observed) if is_at_other_id(wanted, &observed) => {
                let doubt = Doubt::AnotherThere(wanted.identity.remote_id.clone());
                Err(SyncError::Undecided(wanted.path.clone(), doubt))
            }
            // Boxed, because these futures are much larger than the single read that is usually sufficient.
            read if is_not_found(&read) || rejects_address(&read) || rejects_name(wanted, &read) => {
                Box::pin(self.search(wanted, read, doomed)).await
            }
            read => Box::pin(self.judged(wanted, wanted.clone(), read, None, doomed)).await,
        }
    }

    /// Reads a resource whose requests need the ids of its parents.
    async fn observe_by_ids(&self, wanted: &Resource, doomed: bool) -> Result<Observed, SyncError> {
        let (at, Place { doubt, is_absent, .. }) = self.relocated(wanted).await?;
        // There is nothing below a parent that does not exist, and its name may be the id of another one.
        if is_absent && Box::pin(self.parent_is_absent(&wanted.path, doomed)).await {
            return Ok(Observed::new(at, None));
        }
        match self.read_by_either_id(&at).await {
            // Its address contains the value of a resource that does not exist.
            Err(error) if error.lacks_reference() => Ok(Observed::new(at, None)),
            read if wanted.rules.resolved().singleton => self.of_singleton(at, read, doomed).await,
            read => self.judged(wanted, at, read, doubt, doomed).await,
        }
    }

    /// Searches for a resource that is not at the address of its names.
    async fn search(&self, wanted: &Resource, read: Read, doomed: bool) -> Result<Observed, SyncError> {
        // If a list shows the resource, the addresses of its parents are correct.
        let collection = wanted.path.parent().filter(|_| wanted.rules.identity().any_explicit());
        if let Some(collection) = collection {
            let question = Question { wanted: Wanted::sought(wanted, doomed), doomed, ..Question::default() };
            let list = self.list_for(wanted, &collection).await;
            if let Verdict::Present(entry) = judge(&question, Address::NotFound, &list) {
                return self.read_listed(wanted, entry).await;
            }
        }
        // The ids of its parents may differ from their names.
        let (at, Place { doubt, .. }) = self.relocated(wanted).await?;
        let read = if at.path == wanted.path { read } else { self.read_by_either_id(&at).await };
        self.judged(wanted, at, read, doubt, doomed).await
    }

    /// Decides on the answer of `wanted` at the address `at`, and on the list of its collection. `about_parents` is the
    /// reason why the address may be wrong.
    async fn judged(
        &self,
        wanted: &Resource,
        at: Resource,
        read: Read,
        about_parents: Option<Doubt>,
        doomed: bool,
    ) -> Result<Observed, SyncError> {
        let names = Wanted::sought(&at, doomed);
        let alias = read.as_ref().ok().and_then(|observed| observed.alias(&names));
        let address = match &read {
            // Only an id that the payload states, or a name in the place of an id, may belong to another collection.
            Ok(observed) if (names.id.is_some() || names.has_only_its_name()) && observed.is_elsewhere() => {
                Address::Elsewhere(alias.as_deref())
            }
            Ok(_) => Address::Found(alias.as_deref()),
            Err(_) if is_not_found(&read) => Address::NotFound,
            Err(error) if self.failed_without_parent(&at, error, doomed).await => {
                return Ok(Observed::new(at, None));
            }
            Err(error) if error.is_unreadable() || rejects_name(&at, &read) => Address::Unreadable,
            Err(_) => return read,
        };
        let put_creates = address == Address::NotFound && at.is_created_by_put();
        // A candidate for deletion was applied before.
        let is_known = doomed || self.is_known(wanted, address).await;
        let mut question = Question { wanted: names, put_creates, is_known, doomed, ..Question::default() };
        let list;
        let not_listed = ListAnswer::Unknown(Doubt::NotListed);
        let mut verdict = judge(&question, address, &not_listed);
        // The list decides if the address does not.
        if matches!(verdict, Verdict::Unknown(Doubt::NotListed)) {
            verdict = match at.path.parent() {
                Some(collection) => {
                    list = self.list_for(&at, &collection).await;
                    // Only the entries of a list need it, so most reads do not render a create.
                    question.post_creates = at.gets_its_id_by_post();
                    judge(&question, address, &list)
                }
                None => Verdict::Unknown(Doubt::NoList),
            };
        }
        // If the address may be wrong, 404 does not prove that a resource to delete is absent.
        if let (Verdict::Absent(_), Some(doubt)) = (&verdict, about_parents.filter(|_| doomed)) {
            verdict = Verdict::Unknown(doubt);
        }
        // There is no list below a parent that does not exist, and no resource either.
        let is_open = address == Address::NotFound && matches!(verdict, Verdict::Unknown(_));
        if is_open && self.parent_is_absent(&at.path, doomed).await {
            verdict = judge(&question, Address::NoParent, &not_listed);
        }
        self.concluded(wanted, &at, read, address, verdict).await
    }

    /// Returns what `read` at `address` and the `verdict` on it show.
    async fn concluded(
        &self,
        wanted: &Resource,
        at: &Resource,
        read: Read,
        address: Address<'_>,
        verdict: Verdict<'_>,
    ) -> Result<Observed, SyncError> {
        // The server may reject a name in the place of an id. Then the list decides.
        let decides = rejects_name(at, &read)
            && !matches!(&verdict, Verdict::Unknown(doubt) if !doubt.is_about_entries());
        match (verdict, read) {
            (Verdict::Here, read) => read,
            (Verdict::Present(entry), _) => self.read_listed(at, entry).await,
            (Verdict::Absent(_), Err(SyncError::Server(error)))
                if address == Address::Unreadable && !decides && may_state_absence(&error) =>
            {
                Err(SyncError::RefusedRead(wanted.path.clone(), error))
            }
            // The first answer of the server is the error that helps users.
            (_, Err(error)) if address == Address::Unreadable && !decides => Err(error),
            (Verdict::Absent(proof), _) => {
                tracing::debug!(path = %wanted.path, ?proof, "absent");
                Ok(Observed::new(at.clone(), None))
            }
            (Verdict::Unknown(doubt), _) => Err(wanted.undecided(doubt)),
        }
    }

    /// Returns what the read of a singleton shows at the address of its names, or at that of the ids of its parents.
    async fn search_singleton(&self, wanted: &Resource, read: Read, doomed: bool) -> Read {
        if !is_not_found(&read) {
            return self.of_singleton(wanted.clone(), read, doomed).await;
        }
        let (at, _) = self.relocated(wanted).await?;
        let read = if at.path == wanted.path { read } else { self.read_at(&at).await };
        self.of_singleton(at, read, doomed).await
    }

    /// Returns what the read of a singleton at `at` shows. Its absence needs no proof, because it is never created.
    async fn of_singleton(&self, at: Resource, read: Read, doomed: bool) -> Read {
        match read {
            Err(error)
                if error.category() == Category::NotFound
                    || Box::pin(self.is_refused_without_parent(&at, &error, doomed)).await =>
            {
                Ok(Observed::new(at, None))
            }
            read => read,
        }
    }

    /// Whether the read of `at` failed with `error` because its parent is absent.
    async fn failed_without_parent(&self, at: &Resource, error: &SyncError, doomed: bool) -> bool {
        match error {
            // The list that shows the resource may not exist without its parent.
            SyncError::Undecided(..) => {
                at.rules.reads_from_list() && self.parent_is_absent(&at.path, doomed).await
            }
            _ => self.is_refused_without_parent(at, error, doomed).await,
        }
    }

    /// Whether the server refuses the read of `at`, and its parent is proven absent. Some servers answer 400, 403,
    /// 405, 422 or 500 for everything below a parent that does not exist.
    async fn is_refused_without_parent(&self, at: &Resource, error: &SyncError, doomed: bool) -> bool {
        error.is_refusal() && Box::pin(self.parent_is_absent(&at.path, doomed)).await
    }

    /// Whether a resource whose address shows another alias was applied under the same id before, at its path or at a
    /// path that is no longer declared.
    pub(super) async fn is_known(&self, wanted: &Resource, address: Address<'_>) -> bool {
        let names = Wanted::of(wanted);
        let (Address::Found(Some(shown)) | Address::Elsewhere(Some(shown)), Some(id)) = (address, names.id)
        else {
            return false;
        };
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
            Ok(former_payload(tree.as_ref(), &wanted.path)?.as_ref().is_some_and(has_id))
        });
        known.await.unwrap_or(false)
    }

    /// Whether the revision that was last applied declares `wanted` at its path with the same names.
    pub(crate) async fn was_declared(&self, wanted: &Resource) -> bool {
        let Some(tree) = self.former.tree.clone() else { return false };
        let wanted = wanted.clone();
        let has_names = move || {
            let Some(payload) = former_payload(tree.as_ref(), &wanted.path)? else { return Ok(false) };
            Ok(wanted.rules.identify(&wanted.path, &payload).is_ok_and(|former| former == wanted.identity))
        };
        blocking(LogicalPath::root(), has_names).await.unwrap_or(false)
    }

    /// Reads the resource of a list entry by the names in the entry. Fails if the answer shows another one.
    pub(super) async fn read_at_entry(
        &self,
        wanted: &Resource,
        entry: &Entry,
    ) -> Result<Observed, SyncError> {
        let identity = Identity { alias: entry.alias.clone(), remote_id: entry.remote_id.clone() };
        // A name without members has no values for templates.
        let payload = match &entry.payload {
            Value::Object(members) if members.is_empty() => Arc::clone(&wanted.payload),
            shown => Arc::new(shown.clone()),
        };
        let listed = Resource { identity, payload, ..wanted.clone() };
        match self.read_entry_by_either_id(&listed, wanted).await? {
            observed if !wanted.rules.lists_names() && is_another(&observed, &listed.identity) => {
                let doubt = Doubt::AnotherThere(entry.remote_id.clone());
                Err(SyncError::Undecided(wanted.path.clone(), doubt))
            }
            observed => Ok(observed),
        }
    }

    /// Reads the resource of a list entry by the names in the entry. If it cannot be read, the entry is the content.
    async fn read_listed(&self, wanted: &Resource, entry: &Entry) -> Result<Observed, SyncError> {
        let at = wanted.with_remote_id(&entry.remote_id);
        match self.read_at_entry(wanted, entry).await {
            Ok(observed) => Ok(Observed { at, ..observed }),
            Err(SyncError::Absent(_)) if wanted.rules.reads_from_list() => Ok(Observed::new(at, None)),
            Err(error)
                if !wanted.rules.lists_names()
                    && (error.category() == Category::NotFound || error.is_unreadable()) =>
            {
                let shown = wanted.rules.as_read(Cow::Borrowed(&entry.payload)).into_owned();
                Ok(Observed::new(at, Some(shown)))
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the payload of the resource at `path` in an earlier revision, if it is declared there.
fn former_payload(tree: &dyn Tree, path: &LogicalPath) -> Result<Option<Value>, RepositoryError> {
    let file = repository::resource_file(tree, path)?;
    file.map(|file| repository::read_payload_within(tree, &file, FORMER)).transpose()
}

/// Whether `wanted` has only one name, and the answer at its address shows no other one.
fn is_by_name(wanted: &Resource, observed: &Observed, doomed: bool) -> bool {
    let names = Wanted::sought(wanted, doomed);
    names.one_name && observed.other_alias(&names).is_none()
}

/// Whether some servers answer with this status to the read of a resource that they do not have.
fn may_state_absence(error: &ServerError) -> bool {
    matches!(error.status(), Some(StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY))
}

/// Whether the server may not accept the name of `at`, which is in the place of an unknown id.
fn rejects_name(at: &Resource, read: &Read) -> bool {
    read.as_ref().is_err_and(SyncError::may_reject_name) && Wanted::of(at).id.is_none()
}
