//! `declarest resource`.

mod get;
mod source;

use clap::Subcommand;

use crate::error::Failure;
use crate::invocation::Invocation;

#[derive(Debug, Subcommand)]
pub enum ResourceCommand {
    /// Print a resource or the members of a collection
    Get(get::GetArguments),
}

impl ResourceCommand {
    /// Whether the last line on standard error tells how the command ended.
    pub fn prints_footer(&self) -> bool {
        match self {
            Self::Get(_) => false,
        }
    }
}

/// Runs a command of the group.
pub fn run(command: &ResourceCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        ResourceCommand::Get(arguments) => get::run(arguments, invocation),
    }
}
