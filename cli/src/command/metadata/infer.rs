//! `resource metadata infer`.

use clap::Args;
use declarest_core::authoring::add_inferred;
use declarest_core::metadata::Api;
use declarest_core::metadata::document::Document;
use declarest_core::metadata::inference::{Example, collections, infer_with};
use declarest_core::path::LogicalPath;
use declarest_core::repository;

use super::Subject;
use super::change::{CommitArgument, finish, lock, store};
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct InferArguments {
    #[command(flatten)]
    path: PathArguments,
    /// Add it to the metadata that is stored for exactly this path, which takes precedence; prints the result
    #[arg(short, long)]
    apply: bool,
    #[arg(short, long, hide = true)]
    recursive: bool,
    #[command(flatten)]
    commit: CommitArgument,
}

/// Prints the metadata that is inferred for a path or selector, and optionally stores it.
pub fn run(arguments: &InferArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    let subject = Subject::new(&arguments.path, invocation)?;
    if arguments.recursive {
        return Err(Failure::invalid("metadata is inferred for one path at a time; remove --recursive"));
    }
    if arguments.commit.commit && !arguments.apply {
        return Err(Failure::invalid("--commit needs --apply"));
    }
    let authoring = if arguments.apply { arguments.commit.begin(&subject, invocation)? } else { None };
    let inferred = block_on(async {
        let workspace = Workspace::connected_if_possible(invocation).await?;
        let document = workspace.metadata.api().map(Api::document);
        // A guess may not fit the resources, so it is not stored.
        let inferred =
            infer_with(&subject.text, document, &examples(&workspace, &subject)?, !arguments.apply)?;
        if !arguments.apply {
            return Ok(inferred);
        }
        let _lock = lock(authoring.as_ref(), &workspace)?;
        let (store, governed) = (workspace.metadata_store()?, subject.representative()?);
        let stored = add_inferred(&store, &workspace.metadata, &subject.selector, &governed, &inferred)?;
        finish(authoring)?;
        Ok(stored)
    })?;
    Ok(output.show(&inferred.to_value(), None)?)
}

/// Stores inferred metadata for each collection at or below `path`, or above it, that the `OpenAPI` document describes,
/// that a request can change, and that has no metadata of its own. Returns their selectors.
pub fn store_inferred(workspace: &Workspace<'_>, path: &LogicalPath) -> Result<Vec<String>, Failure> {
    let Some(api) = workspace.metadata.api() else { return Ok(Vec::new()) };
    let store = workspace.metadata_store()?;
    let mut stored = Vec::new();
    for pattern in collections(api.document()).into_iter().filter(|pattern| meets(pattern, path)) {
        // The document may have names that are not allowed in a repository.
        let Ok(subject) = Subject::of(&format!("{pattern}/")) else { continue };
        if !workspace.metadata.stored(&subject.selector)?.is_empty() {
            continue;
        }
        let examples = examples(workspace, &subject)?;
        let inferred = infer_with(&subject.text, Some(api.document()), &examples, false)?;
        if inferred != Document::default() {
            let governed = subject.representative()?;
            add_inferred(&store, &workspace.metadata, &subject.selector, &governed, &inferred)?;
            stored.push(pattern);
        }
    }
    Ok(stored)
}

/// Changes the stored metadata of collections, so that the ids of their resources are also their names. The names that
/// [`store_inferred`] has chosen may not be unique. Returns the collections that had other names.
pub fn name_by_id<'p>(
    workspace: &Workspace<'_>,
    patterns: impl Iterator<Item = &'p String>,
) -> Result<Vec<&'p String>, Failure> {
    let mut changed = Vec::new();
    for pattern in patterns {
        let subject = Subject::of(&format!("{pattern}/"))?;
        let stored = workspace.metadata.stored(&subject.selector)?;
        let Some(mut document) = stored.last().map(|document| Document::clone(document)) else { continue };
        if let Some(resource) = document.resource.as_mut().filter(|resource| resource.alias != resource.id) {
            resource.alias.clone_from(&resource.id);
            store(&subject, workspace, &document)?;
            changed.push(pattern);
        }
    }
    Ok(changed)
}

/// Whether one of the paths is at or below the other. `_` in the pattern stands for any name.
fn meets(pattern: &str, path: &LogicalPath) -> bool {
    let names = pattern.split('/').filter(|name| !name.is_empty());
    names.zip(path.segments()).all(|(name, segment)| name == "_" || name == segment)
}

/// Returns the declared resources of the collection that can be read.
fn examples(workspace: &Workspace<'_>, subject: &Subject) -> Result<Vec<Example>, Failure> {
    let tree = workspace.tree.as_ref();
    let collection = &subject.selector;
    if !collection.is_collection() {
        return Ok(Vec::new());
    }
    let files = repository::resources(tree, &collection.literal_prefix()?, true)?.resources;
    let members =
        files.into_iter().filter(|file| file.path.parent().is_some_and(|parent| collection.matches(&parent)));
    let examples = members.filter_map(|file| {
        let payload = repository::read_payload(tree, &file).ok()?;
        Some(Example { name: file.path.name().to_owned(), payload })
    });
    Ok(examples.collect())
}
