//! `resource get`.

use clap::Args;
use declarest_core::metadata::OperationName;

use super::item::{self, Exclusions, Secrets};
use super::read::{self, Read};
use super::source::{Source, SourceArguments};
use crate::error::Failure;
use crate::invocation::{Invocation, block_on};
use crate::output::OutputPolicy;
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
    /// Leave out values that the defaults of metadata give as well
    #[arg(long)]
    prune_defaults: bool,
    /// Print secrets instead of placeholders
    #[arg(long)]
    show_secrets: bool,
}

/// Prints a resource or the members of a collection.
pub fn run(arguments: &GetArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::PayloadNoYaml)?;
    let target = arguments.path.target(invocation)?;
    let source = arguments.source.source()?;
    let secrets = Secrets::new(arguments.show_secrets, invocation)?;
    let prepare = |item: &mut item::Item| {
        if arguments.prune_defaults {
            item.prune_defaults();
        }
        secrets.apply(item)
    };
    match block_on(read(arguments, source, &target, invocation))? {
        Read::Resource(mut item) => {
            prepare(&mut item)?;
            Ok(output.show_payload(&item.payload, &item.descriptor())?)
        }
        Read::Collection(mut items) => {
            arguments.exclusions.apply(&mut items);
            items.iter_mut().try_for_each(prepare)?;
            let paths = item::paths(&items);
            Ok(output.show_list(&item::payloads(items), &paths)?)
        }
    }
}

async fn read(
    arguments: &GetArguments,
    source: Source,
    target: &Target,
    invocation: &Invocation,
) -> Result<Read, Failure> {
    let operation = if target.explicit_collection { OperationName::List } else { OperationName::Get };
    match source {
        Source::ManagedServer => {
            let overrides = arguments.source.overrides(&[operation])?;
            let workspace = Workspace::connected_with(invocation, overrides).await?;
            read::remote(&workspace, target, invocation).await
        }
        Source::Repository => read::local(&Workspace::local(invocation).await?, target),
    }
}
