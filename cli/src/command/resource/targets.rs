//! Which resources a command that compares or writes is about.

use declarest_core::error::{Categorized as _, Category};
use declarest_core::path::LogicalPath;
use declarest_core::repository;
use declarest_core::sync::{self, Resource, Selection, Session};

use crate::error::Failure;
use crate::input::Payload;
use crate::workspace::Workspace;

/// The resources, and whether the command is about one alone.
pub struct Targets {
    /// What the engine works on.
    pub selection: Selection,
    /// Whether this is the one resource that was named, and no batch.
    pub single: bool,
}

impl Targets {
    /// What the repository declares at `path`: the resource, else the members of the collection; with
    /// `recursive` the resource and all that is below the path.
    pub fn declared(workspace: &Workspace<'_>, path: &LogicalPath, recursive: bool) -> Result<Self, Failure> {
        let declared = Self::if_declared(workspace, path, recursive)?;
        declared.ok_or_else(|| Failure::Failed {
            category: Category::NotFound,
            message: format!("no local resources found under \"{path}\""),
        })
    }

    /// [`Self::declared`]; `None` if nothing is.
    pub fn if_declared(
        workspace: &Workspace<'_>,
        path: &LogicalPath,
        recursive: bool,
    ) -> Result<Option<Self>, Failure> {
        // Tells if the context has no repository at all.
        let store = workspace.store()?;
        let selection = Selection::full(store.tree(), path, recursive)?;
        if selection.is_empty() {
            return Self::named(workspace, path);
        }
        let single = !recursive
            && selection.targeted() == 1
            && selection
                .resources
                .iter()
                .map(|file| &file.path)
                .chain(selection.broken.iter().map(|f| &f.path))
                .all(|at| at == path);
        Ok(Some(Self { selection, single }))
    }

    /// The declared resource that has the last segment as its alias or id.
    fn named(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<Option<Self>, Failure> {
        if path.is_root() {
            return Ok(None);
        }
        match sync::lookup(workspace.tree.as_ref(), &workspace.metadata, path) {
            Ok(resource) => {
                let selection = Selection { given: vec![resource], ..Selection::default() };
                Ok(Some(Self { selection, single: true }))
            }
            Err(error) if error.category() == Category::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The resource that somebody wrote by hand.
    pub fn written(session: &Session, path: &LogicalPath, input: Payload) -> Result<Self, Failure> {
        let path = address(session, path, &input)?;
        let (tree, metadata) = (session.tree.as_ref(), &session.metadata);
        let resource = Resource::written(tree, metadata, path, input.value, input.descriptor)?;
        let selection = Selection { given: vec![resource], ..Selection::default() };
        Ok(Self { selection, single: true })
    }

    /// The resources as they are meant to be, for whoever looks at them once more after a run. What cannot be
    /// read is left out, as the run has told it.
    pub fn resources(&self, session: &Session) -> Vec<Resource> {
        let files = self.selection.resources.iter();
        let declared = files.filter_map(|file| sync::desired(session, file.clone()).ok());
        declared.chain(self.selection.given.iter().cloned()).collect()
    }
}

/// Where a payload belongs that was given for `path`: there, if its names say so or nothing does; else below, if
/// metadata knows the path as a collection.
fn address(session: &Session, path: &LogicalPath, input: &Payload) -> Result<LogicalPath, Failure> {
    let rules = session.metadata.rules(path)?;
    if !rules.identity().any_explicit() || input.value.as_object().is_none() {
        return Ok(path.clone());
    }
    let complete =
        rules.resolved().with_defaults(input.value.clone()).unwrap_or_else(|_| input.value.clone());
    let identity = rules.identity();
    let named = identity.alias().evaluate(&complete).or_else(|_| identity.id().evaluate(&complete));
    let Ok(name) = named else { return Ok(path.clone()) };
    if path.name() == name {
        return Ok(path.clone());
    }
    if session.metadata.has_wildcard_child(path)?
        && repository::resource_file(session.tree.as_ref(), path)?.is_none()
    {
        return Ok(path.child(&name)?);
    }
    Err(Failure::invalid(format!(
        "the payload is named \"{name}\", which does not match path segment \"{}\" of {path}; change one of them",
        path.name()
    )))
}
