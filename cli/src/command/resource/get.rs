//! `resource get`.

use clap::Args;
use declarest_core::payload::{Descriptor, PayloadType};

use super::source::SourceArguments;
use crate::error::Failure;
use crate::invocation::{Invocation, block_on};
use crate::output::OutputPolicy;
use crate::target::PathArguments;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub struct GetArguments {
    #[command(flatten)]
    path: PathArguments,
    #[command(flatten)]
    source: SourceArguments,
}

/// Prints a resource or the members of a collection.
pub fn run(arguments: &GetArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::PayloadNoYaml)?;
    let target = arguments.path.target(invocation)?;
    arguments.source.source()?;
    block_on(async {
        let workspace = Workspace::connected(invocation).await?;
        let observed = workspace.remote()?.get(&target.path).await?;
        let descriptor = observed.at.descriptor.unwrap_or_else(|| Descriptor::of(PayloadType::Json));
        Ok(output.show_payload(&observed.payload.unwrap_or_default(), &descriptor)?)
    })
}
