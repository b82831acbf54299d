//! Lists all collections of the server below a path.
//!
//! Names of collections come from metadata, the `OpenAPI` document and the directories of the repository. The members of
//! a collection come from the server, and collections below them are listed in the same way.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use declarest_core::error::{Categorized as _, Category};
use declarest_core::metadata::{MetadataError, OperationName, inference};
use declarest_core::path::LogicalPath;
use declarest_core::repository;
use declarest_core::sync::{Members, SyncError};
use tokio::task::JoinSet;

use super::item::Exclusions;
use super::read::Unplaced;
use crate::error::Failure;
use crate::workspace::Workspace;

/// The collections below a path.
#[derive(Default)]
pub struct Crawl {
    /// The collections that were listed, sorted by path.
    pub listed: Vec<Listed>,
    /// The collections that could not be listed, by their patterns.
    pub unlisted: BTreeMap<String, Unlisted>,
    /// The patterns of the collections that the server does not have.
    pub absent: BTreeSet<String>,
    /// The patterns of the collections whose members do not all have a name of their own.
    pub unnamed: BTreeSet<String>,
    /// The singletons that metadata names.
    pub singletons: Vec<Place>,
    /// Members that lists show, and that do not exist according to reads of them.
    pub gone: BTreeSet<LogicalPath>,
}

/// A collection of the server.
pub struct Listed {
    pub at: Place,
    /// Its members, without excluded ones and resources below them.
    pub members: Members,
    /// The members that were removed because they are not directly below the collection.
    pub unplaced: Unplaced,
}

/// A path, and its form with `_` in place of the names of members.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub path: LogicalPath,
    pub pattern: String,
}

/// Collections of one pattern that could not be listed.
pub struct Unlisted {
    /// Their paths.
    pub paths: BTreeSet<LogicalPath>,
    /// The first one.
    at: LogicalPath,
    /// Its failures.
    pub failure: Failure,
}

impl Place {
    fn child(&self, name: &str, pattern: &str) -> Result<Self, Failure> {
        let above = self.pattern.trim_end_matches('/');
        Ok(Self { path: self.path.child(name)?, pattern: format!("{above}/{pattern}") })
    }

    /// Whether the path is that of a member of another collection.
    fn is_member(&self) -> bool {
        self.pattern.ends_with("/_")
    }

    /// Whether the path is below a member of another collection.
    fn is_nested(&self) -> bool {
        self.pattern.split('/').any(|segment| segment == "_")
    }
}

/// Lists the collection at `path`, if it is one, and all collections below it. A failed list is recorded, and the others
/// continue.
pub async fn crawl(
    workspace: &Workspace<'_>,
    path: &LogicalPath,
    exclusions: &Exclusions,
) -> Result<Crawl, Failure> {
    let mut crawl = Crawl::default();
    let mut absent = BTreeMap::new();
    let mut level = BTreeSet::from([Place { path: path.clone(), pattern: path.as_str().to_owned() }]);
    let (mut seen, mut literal) = (BTreeSet::new(), BTreeSet::new());
    while !level.is_empty() {
        let mut next = BTreeSet::new();
        let (mut collections, mut declared) = (Vec::new(), BTreeMap::new());
        for place in level {
            if exclusions.cover(&place.path, "", "") || !seen.insert(place.path.clone()) {
                continue;
            }
            let names = below(workspace, &place, literal.contains(&place.path))?;
            if is_collection(workspace, &place.path)? {
                let (members, others) = split(workspace, &place, names)?;
                literal.extend(others.iter().map(|other| other.path.clone()));
                next.extend(others);
                declared.insert(place.path.clone(), members);
                collections.push(place);
            } else {
                next.extend(names);
                if is_singleton(workspace, &place.path) {
                    crawl.singletons.push(place);
                }
            }
        }
        for (place, list) in lists(workspace, collections, exclusions).await? {
            match list {
                Ok(members) => next.extend(crawl.add(workspace, place, members)?),
                Err(error) => {
                    // Without credentials or a connection, the lists below declared members would fail, too.
                    let is_answer = !matches!(error.category(), Category::Auth | Category::Transport);
                    if is_answer {
                        next.extend(declared.remove(&place.path).unwrap_or_default());
                    }
                    // Most members are not collections, and servers answer such requests with any status.
                    if is_answer && place.is_member() {
                        continue;
                    }
                    if error.category() != Category::NotFound {
                        crawl.note_names(&place, &error);
                        crawl.fail(&place, error.into());
                    // A member without children may answer that a collection of the OpenAPI document does not exist.
                    } else if !place.is_nested() || workspace.metadata.has_wildcard_child(&place.path)? {
                        absent.entry(place.pattern.clone()).or_insert((place, error));
                    }
                }
            }
        }
        level = next;
    }
    crawl.listed.sort_by(|a, b| a.at.cmp(&b.at));
    for (pattern, (place, error)) in absent {
        // If the server has none of the collections, the base URL may be wrong.
        if crawl.listed.is_empty() {
            crawl.fail(&place, error.into());
        } else if !crawl.listed.iter().any(|listed| listed.at.pattern == pattern) {
            crawl.absent.insert(pattern);
        }
    }
    Ok(crawl)
}

impl Crawl {
    /// Adds a list. Returns the collections below its members.
    fn add(
        &mut self,
        workspace: &Workspace<'_>,
        at: Place,
        mut members: Members,
    ) -> Result<BTreeSet<Place>, Failure> {
        self.fail_unread(&at, &mut members);
        let unplaced = Unplaced::take(&at.path, &mut members);
        let lacks_alias = members.entries.values().any(|entry| entry.states.id && !entry.states.alias);
        if !unplaced.is_empty() || members.nameless > 0 || lacks_alias {
            self.unnamed.insert(at.pattern.clone());
        }
        let mut found = BTreeSet::new();
        for member in members.entries.keys() {
            let member = at.child(member.name(), "_")?;
            if has_members(workspace, &member.path)? {
                found.insert(member);
            } else {
                found.extend(below(workspace, &member, false)?);
            }
        }
        self.listed.push(Listed { at, members, unplaced });
        Ok(found)
    }

    /// Records the collection if the names of its members are the reason why it could not be listed.
    fn note_names(&mut self, at: &Place, error: &SyncError) {
        if let SyncError::Metadata(
            MetadataError::DuplicateAlias { .. }
            | MetadataError::EntryPath { .. }
            | MetadataError::AnonymousEntry { .. },
        ) = error
        {
            self.unnamed.insert(at.pattern.clone());
        }
    }

    /// Records a failure. Of several collections with one pattern, only the failures of the first one are shown.
    pub fn fail(&mut self, at: &Place, failure: Failure) {
        match self.unlisted.entry(at.pattern.clone()) {
            Entry::Vacant(place) => {
                let paths = BTreeSet::from([at.path.clone()]);
                place.insert(Unlisted { paths, at: at.path.clone(), failure });
            }
            Entry::Occupied(known) => {
                let Unlisted { paths, at: first, failure: shown } = known.into_mut();
                paths.insert(at.path.clone());
                if *first == at.path {
                    let message = format!("{}; {}", shown.message(), failure.message());
                    *shown = Failure::new(shown.category(), message);
                }
            }
        }
    }

    /// Records the members that could not be read, and removes them.
    pub fn fail_unread(&mut self, at: &Place, members: &mut Members) {
        let is_gone = |(_, error): &mut (_, SyncError)| matches!(error, SyncError::Absent(_));
        self.gone.extend(members.unread.extract_if(.., is_gone).map(|(member, _)| member));
        let mut unread = std::mem::take(&mut members.unread).into_iter();
        let Some((member, first)) = unread.next() else { return };
        let more = if unread.len() == 0 { String::new() } else { format!("; and {} more", unread.len()) };
        let message = format!("{member} could not be read: {first}{more}");
        self.fail(at, Failure::new(first.category(), message));
    }

    /// Removes the collections that no request can change according to the `OpenAPI` document, except `wanted` and those
    /// with metadata of their own. Returns their patterns.
    pub fn take_read_only(
        &mut self,
        workspace: &Workspace<'_>,
        wanted: &LogicalPath,
    ) -> Result<BTreeSet<String>, Failure> {
        let mut read_only = BTreeSet::new();
        let Some(api) = workspace.metadata.api() else { return Ok(read_only) };
        let listed = self.listed.iter().map(|listed| (&listed.at.pattern, &listed.at.path));
        let unlisted = self.unlisted.iter().map(|(pattern, unlisted)| (pattern, &unlisted.at));
        for (pattern, path) in listed.chain(unlisted) {
            if path != wanted
                && inference::is_read_only(api.document(), pattern)
                && !workspace.metadata.has_document(path)?
            {
                read_only.insert(pattern.clone());
            }
        }
        self.listed.retain(|listed| !read_only.contains(&listed.at.pattern));
        self.unlisted.retain(|pattern, _| !read_only.contains(pattern));
        Ok(read_only)
    }
}

/// Lists collections, without excluded members. The budget of the server limits how many requests run at once.
async fn lists(
    workspace: &Workspace<'_>,
    collections: Vec<Place>,
    exclusions: &Exclusions,
) -> Result<Vec<(Place, Result<Members, SyncError>)>, Failure> {
    let (remote, exclusions) = (workspace.remote()?, Arc::new(exclusions.clone()));
    let mut tasks = JoinSet::new();
    for place in collections {
        let (remote, exclusions) = (Arc::clone(&remote), Arc::clone(&exclusions));
        tasks.spawn(async move {
            let list = remote
                .list_without(&place.path, &|member, entry| exclusions.cover_entry(member, entry))
                .await;
            (place, list)
        });
    }
    let mut listed = tasks.join_all().await;
    listed.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(listed)
}

/// Returns the paths with a literal name one level below `place`. If the place itself is `literal`, such as an operation
/// beside the members of a collection, metadata of members does not describe it.
fn below(workspace: &Workspace<'_>, place: &Place, literal: bool) -> Result<BTreeSet<Place>, Failure> {
    let metadata = &workspace.metadata;
    let described = if literal {
        metadata.own_child_collections(&place.path)?
    } else {
        metadata.child_collections(&place.path)?
    };
    let mut names: BTreeSet<String> = described.into_iter().collect();
    if let Some(api) = workspace.metadata.api() {
        names.extend(inference::children(api.document(), &place.path).into_iter().map(str::to_owned));
    }
    let paths = names.iter().filter(|name| place.path.child(name).is_ok());
    paths.map(|name| place.child(name, name)).collect()
}

/// Splits the names below a collection: into its members that the repository declares, and others. The list of the
/// server shows which members exist.
fn split(
    workspace: &Workspace<'_>,
    collection: &Place,
    names: BTreeSet<Place>,
) -> Result<(BTreeSet<Place>, BTreeSet<Place>), Failure> {
    let (mut members, mut others) = (BTreeSet::new(), BTreeSet::new());
    for place in names {
        if repository::resource_file(workspace.tree.as_ref(), &place.path)?.is_some() {
            members.insert(collection.child(place.path.name(), "_")?);
        } else {
            others.insert(place);
        }
    }
    Ok((members, others))
}

/// Returns whether the resource at `path` is a collection, too: a document describes its members, or one document describes
/// all levels below a collection, and the repository has members of the resource.
fn has_members(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<bool, Failure> {
    Ok(workspace.metadata.has_document(path)?
        || workspace.metadata.rules(path)?.of_descendants()
            && !repository::members(workspace.tree.as_ref(), path)?.resources.is_empty())
}

/// Returns whether `path` is a collection according to metadata, the `OpenAPI` document or the repository. The root is
/// not, because few servers list their collections there. Singletons have no list, unless metadata states its path.
fn is_collection(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<bool, Failure> {
    if path.is_root() {
        return Ok(false);
    }
    if holds_singletons(workspace, path) {
        return Ok(false);
    }
    let api = workspace.metadata.api().filter(|_| !is_singleton(workspace, path));
    let described = api.is_some_and(|api| inference::is_collection(api.document(), path));
    if described || workspace.metadata.has_wildcard_child(path)? {
        return Ok(true);
    }
    let members = repository::members(workspace.tree.as_ref(), path)?.resources;
    Ok(members.iter().any(|member| !is_singleton(workspace, &member.path)))
}

/// Whether metadata states that the members of `path` are singletons, and no list of them. If a document is not valid, the
/// list fails, and its failure is recorded.
fn holds_singletons(workspace: &Workspace<'_>, path: &LogicalPath) -> bool {
    // No document is for a member with this name.
    let rules = path.child("-").ok().and_then(|member| workspace.metadata.rules(&member).ok());
    rules.is_some_and(|rules| {
        let resolved = rules.resolved();
        resolved.singleton && resolved.operation(OperationName::List).path.is_none()
    })
}

/// Whether metadata states that the resource at `path` is a singleton, and not those below it.
fn is_singleton(workspace: &Workspace<'_>, path: &LogicalPath) -> bool {
    let states_it = workspace.metadata.rules(path).is_ok_and(|rules| rules.resolved().singleton);
    states_it && !path.is_root() && !holds_singletons(workspace, path)
}
