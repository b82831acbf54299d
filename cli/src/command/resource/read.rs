//! Reads the resource or the collection at a path, from the server or the repository.

use std::borrow::Cow;
use std::collections::BTreeMap;

use declarest_core::authoring::is_list;
use declarest_core::metadata::{Entry, Metadata, MetadataError};
use declarest_core::path::LogicalPath;
use declarest_core::repository::{self, ResourceFile, Tree, metadata_place};
use declarest_core::sync::{Found, Members, Observed, Remote, Resource, SyncError};

use super::item::{Exclusions, Item};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::target::Target;
use crate::workspace::Workspace;

/// The resource or the collection at a path.
pub enum Read {
    Resource(Box<Item>),
    /// The members of a collection, sorted by path.
    Collection(Vec<Item>),
}

impl Read {
    /// Returns all items, mutable.
    pub fn items_mut(&mut self) -> &mut [Item] {
        match self {
            Self::Resource(item) => std::slice::from_mut(&mut **item),
            Self::Collection(items) => items,
        }
    }
}

/// The payloads of the members of a collection.
#[derive(Clone, Copy, Debug)]
pub enum View<'e> {
    /// As the list shows them.
    Listed,
    /// As reads of the members show them, without excluded ones.
    Read(&'e Exclusions),
}

impl View<'_> {
    fn excludes(self, member: &LogicalPath, entry: &Entry) -> bool {
        matches!(self, Self::Read(excluded) if excluded.cover_entry(member, entry))
    }
}

/// Reads from the server. A path with a trailing slash is listed, unless the response is not a list.
pub async fn remote(
    workspace: &Workspace<'_>,
    target: &Target,
    view: View<'_>,
    invocation: &Invocation,
) -> Result<Read, Failure> {
    let (remote, path) = (workspace.remote()?, &target.path);
    let mut listed = None;
    if target.explicit_collection || path.is_root() {
        match list(&remote, path, view).await {
            Ok(members) => listed = Some(members),
            Err(SyncError::Metadata(MetadataError::ListShape { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut members = match listed {
        Some(members) => members,
        None => match remote.find(path).await? {
            Found::Collection(members) => members,
            Found::Resource(observed) => {
                let is_read = matches!(view, View::Read(_));
                let listed = if is_read { members_of(workspace, &observed, path, view).await? } else { None };
                let Some(members) = listed else {
                    let item = Item::observed(path, *observed, &workspace.metadata)?;
                    return Ok(Read::Resource(Box::new(item)));
                };
                members
            }
        },
    };
    note_if_partial(path, &members, invocation);
    Unplaced::take(path, &mut members).note(path, invocation);
    if let View::Read(_) = view {
        members.entries.retain(|member, entry| !view.excludes(member, entry));
        members = remote.as_reads_show(path, members, &BTreeMap::new()).await?.all_read()?;
        note_if_as_listed(path, &members, invocation);
    }
    Item::listed(members, &workspace.metadata).map(Read::Collection)
}

/// Lists a collection without the members that `view` excludes.
async fn list(remote: &Remote, path: &LogicalPath, view: View<'_>) -> Result<Members, SyncError> {
    remote.list_without(path, &|member, entry| view.excludes(member, entry)).await?.all_read()
}

/// Returns the members of a collection whose address answered with a list, if all of them have names.
pub async fn members_of(
    workspace: &Workspace<'_>,
    observed: &Observed,
    path: &LogicalPath,
    view: View<'_>,
) -> Result<Option<Members>, Failure> {
    let Some(payload) = observed.payload.as_ref() else { return Ok(None) };
    if !is_list(&workspace.metadata, path, payload)? {
        return Ok(None);
    }
    let members = list(&*workspace.remote()?, path, view).await.ok();
    Ok(members.filter(|members| members.nameless == 0 && members.pathless.is_empty()))
}

/// Reports a list of a collection that is not complete.
pub fn note_if_partial(path: &LogicalPath, members: &Members, invocation: &Invocation) {
    if members.partial {
        invocation.messages.note(&format!(
            "the list of {path} has further pages; configure operations.list.pagination in {} to request them",
            metadata_place(path)
        ));
    }
}

/// Reports that members have the payloads of their list, which may have fewer attributes than the resources.
pub fn note_if_as_listed(path: &LogicalPath, members: &Members, invocation: &Invocation) {
    if let Some(error) = &members.as_listed {
        let note =
            "the files have the payloads of the list and may lack attributes, because reads of members fail";
        invocation.messages.note(&format!("{path}: {note}: {error}"));
    }
}

/// The names of members without a path directly below their collection.
#[derive(Default)]
pub struct Unplaced {
    slashed: Vec<String>,
    reserved: Vec<String>,
    /// Names that no path can have.
    impossible: Vec<String>,
    /// Names that no directory can have on most file systems.
    long: Vec<String>,
}

/// The maximum length of the name of a directory in bytes.
const MAX_NAME: usize = 255;

impl Unplaced {
    /// Removes the members that are not directly below the collection at `path`.
    pub fn take(path: &LogicalPath, members: &mut Members) -> Self {
        let all = std::mem::take(&mut members.entries).into_iter();
        let is_direct = |member: &LogicalPath| path.child_of(member).is_some();
        let (direct, deeper) =
            all.partition(|(member, _)| is_direct(member) && member.name().len() <= MAX_NAME);
        members.entries = direct;
        let deeper: BTreeMap<_, _> = deeper;
        let deeper = deeper.into_values().map(|entry| entry.alias);
        Self::of(deeper.chain(std::mem::take(&mut members.pathless)))
    }

    pub fn of(names: impl IntoIterator<Item = String>) -> Self {
        let mut unplaced = Self::default();
        for name in names {
            let group = match name.trim() {
                "" | "." | ".." => &mut unplaced.impossible,
                text if text.contains('/') => &mut unplaced.slashed,
                text if text.len() > MAX_NAME => &mut unplaced.long,
                _ => &mut unplaced.reserved,
            };
            group.push(name);
        }
        unplaced
    }

    pub fn is_empty(&self) -> bool {
        [&self.slashed, &self.reserved, &self.impossible, &self.long].into_iter().all(Vec::is_empty)
    }

    /// Reports the members that were removed from the collection at `path`.
    pub fn note(&self, path: &LogicalPath, invocation: &Invocation) {
        let help = "; to include such resources, state resource.pathNames: percentEncoded in _/metadata.yaml";
        let groups = [
            (&self.slashed, ["has a slash", "have a slash"], help),
            (&self.reserved, ["cannot be that of a directory", "cannot be those of directories"], help),
            (&self.impossible, ["cannot be part of a path", "cannot be parts of paths"], ""),
            (
                &self.long,
                ["is longer than 255 bytes", "are longer than 255 bytes"],
                "; to include such resources, state another attribute in resource.alias in _/metadata.yaml",
            ),
        ];
        for (names, [one, several], help) in groups {
            let names = match &names[..] {
                [] => continue,
                [name] => format!("the name {} {one}", abridged(name)),
                [first, more @ ..] => {
                    format!("{} and {} more names {several}", abridged(first), more.len())
                }
            };
            invocation.messages.note(&format!("{path}: {names}{help}"));
        }
    }
}

/// Returns the name, or the beginning of one that is very long.
fn abridged(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_NAME {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().take(40).chain(['…']).collect())
}

/// Reads from the repository: the resource at the path or with that name, otherwise the members of the collection.
pub fn local(workspace: &Workspace<'_>, target: &Target) -> Result<Read, Failure> {
    let tree = workspace.tree.as_ref();
    if !target.explicit_collection && !target.path.is_root() {
        let file = match repository::resource_file(tree, &target.path)? {
            None => match workspace.declared(&target.path)? {
                Some(found) => repository::resource_file(tree, &found.path)?,
                None => None,
            },
            file => file,
        };
        if let Some(file) = file {
            let resource = Resource::unexpanded(tree, &workspace.metadata, file)?;
            return Ok(Read::Resource(Box::new(Item::declared(resource))));
        }
    }
    let members = repository::members(tree, &target.path)?;
    if members.resources.is_empty() && members.broken.is_empty() {
        check_exists(workspace, &target.path)?;
    }
    Ok(Read::Collection(declared(workspace, members, Resource::unexpanded)?))
}

/// Lists from the repository: the members of a collection, or the resource at the path. With `recursive`, both and all
/// resources below.
pub fn local_list(
    workspace: &Workspace<'_>,
    path: &LogicalPath,
    recursive: bool,
) -> Result<Vec<Item>, Failure> {
    check_exists(workspace, path)?;
    declared(workspace, repository::resources(workspace.tree.as_ref(), path, recursive)?, Resource::declared)
}

fn declared(
    workspace: &Workspace<'_>,
    found: repository::Listing,
    read: fn(&dyn Tree, &Metadata, ResourceFile) -> Result<Resource, SyncError>,
) -> Result<Vec<Item>, Failure> {
    let item = |file| Ok(Item::declared(read(workspace.tree.as_ref(), &workspace.metadata, file)?));
    found.whole()?.into_iter().map(item).collect()
}

fn check_exists(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<(), Failure> {
    match workspace.tree.entries(path.relative())? {
        Some(_) => Ok(()),
        None => Err(repository::RepositoryError::ResourceMissing(path.clone()).into()),
    }
}
