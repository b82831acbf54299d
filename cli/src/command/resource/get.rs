//! `resource get`.

use std::sync::Arc;

use clap::Args;
use declarest_core::error::Category;
use declarest_core::language::referred::Unread;
use declarest_core::metadata::document::Document;
use declarest_core::metadata::{OperationName, Rules};
use declarest_core::payload::{Descriptor, PayloadType, Value};

use super::item::{self, Exclusions, Secrets};
use super::read::{self, Read, View};
use super::source::{Source, SourceArguments};
use crate::error::Failure;
use crate::hint::similar_path;
use crate::invocation::Invocation;
use crate::output::{OutputPolicy, show_names};
use crate::target::{PathArguments, Target};
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct GetArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    exclusions: Exclusions,
    /// Omit values that equal the resource's defaults
    #[arg(long)]
    prune_defaults: bool,
    /// Print secrets instead of placeholders
    #[arg(long)]
    show_secrets: bool,
    /// Also print the metadata, rendered
    #[arg(long)]
    show_metadata: bool,
}

/// Prints a resource or the members of a collection.
pub fn run(arguments: &GetArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output_about_resources(OutputPolicy::PayloadNoYaml)?;
    let target = arguments.path.target(invocation)?;
    let source = arguments.source.source()?;
    arguments.exclusions.check()?;
    let secrets = Secrets::new(arguments.show_secrets, invocation)?;
    let (read, rules, metadata) = source.block_on(async {
        let (mut read, rules) = read(arguments, source, &target, invocation).await?;
        // Metadata is rendered before secrets are resolved, because it shows the stored values.
        let metadata = match &read {
            Read::Resource(item) if arguments.show_metadata => Some(item.metadata()?),
            _ => None,
        };
        if let Read::Collection(items) = &mut read {
            arguments.exclusions.apply(items);
        }
        for item in read.items_mut() {
            if arguments.prune_defaults {
                item.prune_defaults();
            }
            secrets.apply(item).await?;
        }
        Ok((read, rules, metadata))
    })?;
    let with_metadata = |payload: Value, metadata: Document| {
        let members = [("payload", payload), ("metadata", metadata.to_value())];
        let both = Value::Object(members.map(|(key, value)| (key.to_owned(), value)).into());
        output.show_payload(&both, &Descriptor::of(PayloadType::Json))
    };
    match read {
        Read::Resource(item) => match metadata {
            Some(metadata) => Ok(with_metadata(item.payload, metadata)?),
            None if output.is_names() => Ok(show_names(&[item.path.as_str()])?),
            None => Ok(output.show_payload(&item.payload, &item.descriptor())?),
        },
        Read::Collection(items) => {
            if arguments.show_metadata {
                let metadata = rules.on_collection_with(&target.path, Some(&Unread), None)?.document();
                return Ok(with_metadata(item::payloads(items), metadata)?);
            }
            let paths = item::paths(&items);
            Ok(output.show_list(&item::payloads(items), &paths, &paths)?)
        }
    }
}

/// Reads the target, and returns it with its rules.
async fn read(
    arguments: &GetArguments,
    source: Source,
    target: &Target,
    invocation: &Invocation,
) -> Result<(Read, Arc<Rules>), Failure> {
    let operation = if target.explicit_collection { OperationName::List } else { OperationName::Get };
    let workspace = match source {
        Source::ManagedServer => {
            let overrides = arguments.source.method.overrides(&[operation])?;
            Workspace::connected_with(invocation, overrides, None).await?
        }
        Source::Repository => Workspace::of_repository(invocation).await?,
    };
    let read = match source {
        Source::ManagedServer => read::remote(&workspace, target, View::Listed, invocation).await,
        Source::Repository => read::local(&workspace, target),
    };
    let path = &target.path;
    let read = read.map_err(|failure| {
        let missing = failure.category() == Category::NotFound;
        let similar = |_: &_| similar_path(workspace.tree.as_ref(), path).filter(|_| missing);
        failure.at(path.as_str()).with_hint(similar)
    })?;
    Ok((read, workspace.metadata.rules(&target.path)?))
}
