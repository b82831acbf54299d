//! The target resources of commands that compare or write.

use std::sync::Arc;

use declarest_core::error::Category;
use declarest_core::metadata::{Metadata, is_assigned, is_named};
use declarest_core::path::LogicalPath;
use declarest_core::payload::{Descriptor, Value};
use declarest_core::repository::{self, EntryKind, GitTree, RepositoryError, ResourceFile, Tree, Undeclared};
use declarest_core::sync::{
    self, Candidate, Options, PruneLimit, Resource, Selection, Session, Subject, SyncError,
};

use crate::error::Failure;
use crate::hint::similar_path;
use crate::input::Payload;
use crate::output::Messages;
use crate::repository::{Contact, explained, worktree};
use crate::workspace::Workspace;

/// Returns the options of a run that may delete withdrawn resources. The user has seen the plan or confirmed it, so there
/// is no other limit.
pub fn pruning() -> Options {
    Options { prune_limit: PruneLimit::Count(usize::MAX), allow_empty: true, ..Options::default() }
}

/// The target resources.
pub struct Targets {
    /// The selection for the engine.
    pub selection: Selection,
    /// Whether the target is the one named resource and not a batch.
    pub single: bool,
}

impl Targets {
    /// Returns the declared resources at `path`: the resource, otherwise the members of the collection. With
    /// `recursive`, the resource and all resources below the path.
    pub fn declared(workspace: &Workspace<'_>, path: &LogicalPath, recursive: bool) -> Result<Self, Failure> {
        if let Some(declared) = Self::if_declared(workspace, path, recursive)? {
            return Ok(declared);
        }
        let mut message = format!("no local resources found under \"{path}\"");
        let below =
            if recursive { 0 } else { Selection::full(workspace.tree.as_ref(), path, true)?.targeted() };
        if below > 0 {
            message = format!("{message}; add --recursive for the {below} below its collections");
        }
        let failure = Failure::new(Category::NotFound, message).at(path.as_str());
        Err(failure.with_hint(|_| similar_path(workspace.tree.as_ref(), path)))
    }

    /// Returns the targets of a plan about `subject`: like [`Self::declared`], and if it prunes, all resources below the
    /// path and those that Git no longer declares.
    pub fn planned(workspace: &Workspace<'_>, subject: &Subject) -> Result<Self, Failure> {
        let path = LogicalPath::parse(&subject.path)?;
        if subject.prune {
            Self::with_withdrawn(workspace, &path, subject.prune_base.as_deref())
        } else {
            Self::declared(workspace, &path, subject.recursive)
        }
    }

    /// Like [`Self::declared`] with `recursive`, and with the resources to delete because Git no longer declares them.
    fn with_withdrawn(
        workspace: &Workspace<'_>,
        path: &LogicalPath,
        base: Option<&str>,
    ) -> Result<Self, Failure> {
        let checkout = worktree(workspace.context, Contact::None, "--prune")?;
        // Files that are not committed could be the same resource under another path.
        checkout.require_clean().map_err(explained)?;
        let (mut candidates, mut hidden) = (Vec::new(), Vec::new());
        for (undeclared, tree) in checkout.withdrawn(path, base)? {
            match undeclared.hidden_by.clone() {
                Some((file, kind)) => hidden.push(hides(undeclared.path, file, kind)),
                None => candidates.extend(candidate(undeclared, tree, workspace.messages)?),
            }
        }
        // What a commit before the base removed is not selected, so nothing may be left.
        if candidates.is_empty() && hidden.is_empty() && base.is_none() {
            return Self::declared(workspace, path, true);
        }
        let store = workspace.store()?;
        let mut selection = Selection::full(store.tree(), path, true)?;
        selection.broken.append(&mut hidden);
        Ok(Self { selection: Selection { prune: candidates, ..selection }, single: false })
    }

    /// Like [`Self::declared`]; returns `None` if there are none.
    pub fn if_declared(
        workspace: &Workspace<'_>,
        path: &LogicalPath,
        recursive: bool,
    ) -> Result<Option<Self>, Failure> {
        // A context without a repository is an error.
        let store = workspace.store()?;
        let selection = Selection::full(store.tree(), path, recursive)?;
        if selection.is_empty() {
            return Self::named(workspace, path);
        }
        let files = selection.resources.iter().map(|file| &file.path);
        let mut paths = files.chain(selection.broken.iter().map(|failure| &failure.path));
        let single = !recursive && selection.targeted() == 1 && paths.all(|at| at == path);
        Ok(Some(Self { selection, single }))
    }

    /// Returns the declared resource with the last segment as its alias or remote id.
    fn named(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<Option<Self>, Failure> {
        if path.is_root() {
            return Ok(None);
        }
        Ok(workspace.declared(path)?.map(Self::of))
    }

    /// Returns one resource.
    fn of(resource: Resource) -> Self {
        Self { selection: Selection { given: vec![resource], ..Selection::default() }, single: true }
    }

    /// Returns the resource of a given payload.
    pub fn written(session: &Session, path: &LogicalPath, input: Payload) -> Result<Self, Failure> {
        let path = address(session, path, &input)?;
        let (tree, metadata) = (session.tree.as_ref(), &session.metadata);
        Ok(Self::of(Resource::written(tree, metadata, path, input.value, input.descriptor)?))
    }

    /// Returns the desired resources, to read them again after a run. Omits those that cannot be read, because the run
    /// reports them.
    pub fn resources(&self, session: &Session) -> Vec<Resource> {
        let files = self.selection.resources.iter();
        let declared = files.filter_map(|file| sync::desired(session, file.clone()).ok());
        declared.chain(self.selection.given.iter().cloned()).collect()
    }
}

/// Returns a resource to delete. The last declaration states its id on the server, so it is kept if that cannot be read.
fn candidate(
    undeclared: Undeclared,
    tree: GitTree,
    messages: &Messages,
) -> Result<Option<Candidate>, Failure> {
    let Undeclared { path, file, .. } = undeclared;
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension).to_owned();
    let file = ResourceFile { path: path.clone(), file, descriptor: Descriptor::from_extension(&extension) };
    match repository::read_payload(&tree, &file) {
        Ok(payload) => Ok(Some(Candidate { path, payload, declared_in: Some(Arc::new(tree)) })),
        Err(error @ RepositoryError::Payload { .. }) => {
            let kept = format!("{path} is not deleted, because its last declaration cannot be read: {error}");
            messages.note(&kept);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the failure of a file that replaced the directory of a resource, so that it may still be declared.
fn hides(path: LogicalPath, file: String, kind: EntryKind) -> sync::Failure {
    let kind = if kind == EntryKind::File { "a file" } else { "a symbolic link or a submodule" };
    let error = RepositoryError::Hidden { path: path.clone(), file, kind };
    sync::Failure::new(path, sync::LIST, &SyncError::from(error))
}

/// Returns the path of a payload that was given for `path`: `path` if its alias or id matches or is unknown, otherwise
/// a member of `path` if this is a collection.
fn address(session: &Session, path: &LogicalPath, input: &Payload) -> Result<LogicalPath, Failure> {
    let (tree, metadata) = (session.tree.as_ref(), &session.metadata);
    let Some(name) = other_name(tree, metadata, path, &input.value)? else { return Ok(path.clone()) };
    let file = repository::resource_file(tree, path)?;
    if file.is_none()
        && (metadata.has_wildcard_child(path)? || !repository::members(tree, path)?.resources.is_empty())
    {
        let names = metadata.rules(path)?.path_names();
        return Ok(path.child(&names.encode(&name))?);
    }
    // The server may have assigned the id, and accept names in paths.
    if is_assigned(&name) && !metadata.rules(path)?.identity().any_explicit() {
        return Ok(path.clone());
    }
    Err(mismatch(&name, path, "change one of them"))
}

/// Returns the alias or id of a payload if it differs from the last segment of `path`. If metadata states neither, a
/// usual member may have the name, and the id may be the one that the file at `path` states.
pub fn other_name(
    tree: &dyn Tree,
    metadata: &Metadata,
    path: &LogicalPath,
    payload: &Value,
) -> Result<Option<String>, Failure> {
    if payload.as_object().is_none() {
        return Ok(None);
    }
    let rules = metadata.rules(path)?;
    let (identity, own) = (rules.identity(), rules.path_names().decode(path.name()));
    let complete = rules.resolved().with_defaults(payload.clone()).unwrap_or_else(|_| payload.clone());
    let id = |payload: &Value| identity.id().evaluate(payload).ok();
    if identity.any_explicit() {
        let named = identity.alias().evaluate(&complete).ok().or_else(|| id(&complete));
        return Ok(named.filter(|name| *name != own));
    }
    let Some(named) = id(&complete).filter(|name| *name != own && !is_named(&complete, &own)) else {
        return Ok(None);
    };
    let file = repository::resource_file(tree, path)?;
    let declared = file.map(|file| repository::read_payload(tree, &file)).transpose()?;
    Ok(Some(named).filter(|named| declared.and_then(|declared| id(&declared)).as_ref() != Some(named)))
}

/// Returns the failure of a payload whose `name` is not the last segment of `path`.
pub fn mismatch(name: &str, path: &LogicalPath, advice: &str) -> Failure {
    let segment = path.name();
    Failure::invalid(format!(
        "the payload is named \"{name}\", which does not match path segment \"{segment}\" of {path}; {advice}"
    ))
}
