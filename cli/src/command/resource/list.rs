//! `resource list`.

use clap::Args;
use declarest_core::metadata::OperationName;

use super::item::{self, Exclusions};
use super::read;
use super::source::{Source, SourceArguments};
use crate::error::Failure;
use crate::invocation::{Invocation, block_on};
use crate::output::OutputPolicy;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct ListArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    exclusions: Exclusions,
    /// Include all resources below the members
    #[arg(short, long)]
    recursive: bool,
}

/// Prints the resources of a collection.
pub fn run(arguments: &ListArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Adaptive)?;
    let path = arguments.path.target(invocation)?.path;
    let source = arguments.source.source()?;
    arguments.exclusions.check()?;
    let overrides = arguments.source.overrides(&[OperationName::List])?;
    let mut items = block_on(async {
        match source {
            Source::ManagedServer => {
                let workspace = Workspace::connected_with(invocation, overrides).await?;
                read::remote_list(&workspace, &path, arguments.recursive, invocation).await
            }
            Source::Repository => {
                read::local_list(&Workspace::local(invocation).await?, &path, arguments.recursive)
            }
        }
    })?;
    arguments.exclusions.apply(&mut items);
    items.iter_mut().for_each(item::Item::mask);
    let lines = item::lines(&items);
    Ok(output.show_list(&item::payloads(items), &lines)?)
}
