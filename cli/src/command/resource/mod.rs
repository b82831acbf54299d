//! `declarest resource`.

mod get;
mod item;
mod list;
mod read;
mod source;

use clap::Subcommand;

use super::metadata::{self, MetadataCommand};
use crate::error::Failure;
use crate::invocation::Invocation;

#[derive(Debug, Subcommand)]
pub enum ResourceCommand {
    /// Print a resource or the members of a collection
    Get(get::GetArguments),
    /// List the resources of a collection
    List(list::ListArguments),
    /// Read, infer and change metadata
    #[command(subcommand, arg_required_else_help = true)]
    Metadata(MetadataCommand),
}

impl ResourceCommand {
    /// Whether the last line on standard error tells how the command ended.
    pub fn prints_footer(&self) -> bool {
        match self {
            Self::Get(_) | Self::List(_) | Self::Metadata(_) => false,
        }
    }
}

/// Runs a command of the group.
pub fn run(command: &ResourceCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        ResourceCommand::Get(arguments) => get::run(arguments, invocation),
        ResourceCommand::List(arguments) => list::run(arguments, invocation),
        ResourceCommand::Metadata(command) => metadata::run(command, invocation),
    }
}
