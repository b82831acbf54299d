//! `declarest contract`.

mod cluster;
mod manifests;
mod source;
mod validate;
mod verify;

use clap::Subcommand;
use declarest_core::transport::Destinations;

use crate::error::Failure;
use crate::invocation::Invocation;

#[derive(Debug, Subcommand)]
pub enum ContractCommand {
    /// Check a contract document
    Validate(validate::ValidateArguments),
    /// Compare a contract with the objects of a cluster, or with manifests
    Verify(verify::VerifyArguments),
}

/// Runs a command of the group.
pub fn run(command: &ContractCommand, invocation: &Invocation) -> Result<(), Failure> {
    // A contract may be of another author, and names a web server or a registry.
    Destinations::new(true, &[], &[], Vec::new()).restrict_process();
    match command {
        ContractCommand::Validate(arguments) => validate::run(arguments, invocation),
        ContractCommand::Verify(arguments) => verify::run(arguments, invocation),
    }
}
