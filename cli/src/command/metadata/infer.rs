//! `resource metadata infer`.

use clap::Args;
use declarest_core::authoring::add_inferred;
use declarest_core::metadata::Api;
use declarest_core::metadata::inference::{Example, infer_with};
use declarest_core::repository;

use super::change::{CommitArgument, finish, lock};
use super::{Subject, workspace};
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
    if arguments.commit.is_given() && !arguments.apply {
        return Err(Failure::invalid("--commit needs --apply"));
    }
    let authoring = if arguments.apply { arguments.commit.begin(&subject, invocation)? } else { None };
    let inferred = block_on(async {
        let workspace = workspace(invocation).await?;
        let document = workspace.metadata.api().map(Api::document);
        // A guess may not fit the resources, so it is not stored.
        let inferred =
            infer_with(&subject.text, document, &examples(&workspace, &subject)?, !arguments.apply)?;
        if !arguments.apply {
            return Ok(inferred);
        }
        lock(authoring.as_ref())?;
        let (store, governed) = (workspace.metadata_store()?, subject.representative()?);
        Ok(add_inferred(&store, &workspace.metadata, &subject.selector, &governed, &inferred)?)
    })?;
    finish(authoring)?;
    Ok(output.show(&inferred.to_value(), None)?)
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
