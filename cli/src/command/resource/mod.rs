//! `declarest resource`.

mod apply;
mod change;
mod copy;
mod crawl;
mod delete;
mod describe;
mod diff;
mod envelope;
mod fetch;
mod get;
mod import;
mod item;
mod list;
pub mod outcome;
mod read;
mod record;
mod reported;
mod request;
mod save;
mod source;
mod targets;

pub use import::{ImportArguments, ImportOptions, Imported, import};
pub use outcome::show_plan;
pub use reported::Reported;
pub use targets::{Targets, pruning};

use clap::Subcommand;

use super::defaults::{self, DefaultsCommand};
use super::metadata::{self, MetadataCommand};
use crate::error::Failure;
use crate::input::accepts_assignments;
use crate::invocation::Invocation;
use crate::target::{EditArguments, PathArguments};

#[derive(Debug, Subcommand)]
pub enum ResourceCommand {
    /// Print a resource or the members of a collection
    Get(get::GetArguments),
    /// Save a resource from the server, or a payload, to the repository
    #[command(mut_arg("payload", accepts_assignments))]
    Save(save::SaveArguments),
    /// Create missing resources and update changed ones
    #[command(mut_arg("payload", accepts_assignments))]
    Apply(apply::ApplyArguments),
    /// Create resources on the server
    #[command(mut_arg("payload", accepts_assignments))]
    Create(apply::WriteArguments),
    /// Update resources on the server, even if they are equal
    #[command(mut_arg("payload", accepts_assignments))]
    Update(apply::WriteArguments),
    /// Delete resources on the server, in the repository, or both
    Delete(delete::DeleteArguments),
    /// Show the differences between the repository and the server
    Diff(diff::DiffArguments),
    /// Copy a resource to another path of the repository
    Copy(copy::CopyArguments),
    /// Edit a resource of the repository
    Edit(EditArguments),
    /// List the differences of one resource
    Explain(PathArguments),
    /// Show what metadata says about a path: identity, format, requests and schemas
    Describe(PathArguments),
    /// Print a payload as the body of an update, with placeholders of secrets
    Template(describe::TemplateArguments),
    /// List the resources of a collection
    List(list::ListArguments),
    /// Send a request to the server, by the metadata of its path
    #[command(subcommand, arg_required_else_help = true)]
    Request(request::RequestCommand),
    /// Read, infer and change metadata
    #[command(subcommand, arg_required_else_help = true)]
    Metadata(MetadataCommand),
    /// Read, infer and change the defaults of resources
    #[command(subcommand, arg_required_else_help = true)]
    Defaults(DefaultsCommand),
}

impl ResourceCommand {
    /// Returns whether the last line on standard error reports success or failure.
    pub fn prints_footer(&self) -> bool {
        match self {
            Self::Request(command) => command.prints_footer(),
            Self::Defaults(command) => command.prints_footer(),
            Self::Get(_)
            | Self::List(_)
            | Self::Metadata(_)
            | Self::Diff(_)
            | Self::Explain(_)
            | Self::Describe(_)
            | Self::Template(_) => false,
            _ => true,
        }
    }
}

/// Runs a command of the group.
pub fn run(command: &ResourceCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        ResourceCommand::Get(arguments) => get::run(arguments, invocation),
        ResourceCommand::Save(arguments) => save::run(arguments, invocation),
        ResourceCommand::Apply(arguments) => apply::apply(arguments, invocation),
        ResourceCommand::Create(arguments) => apply::create(arguments, invocation),
        ResourceCommand::Update(arguments) => apply::update(arguments, invocation),
        ResourceCommand::Delete(arguments) => delete::run(arguments, invocation),
        ResourceCommand::Diff(arguments) => diff::diff(arguments, invocation),
        ResourceCommand::Copy(arguments) => copy::copy(arguments, invocation),
        ResourceCommand::Edit(arguments) => copy::edit(arguments, invocation),
        ResourceCommand::Explain(path) => diff::explain(path, invocation),
        ResourceCommand::Describe(path) => describe::describe(path, invocation),
        ResourceCommand::Template(arguments) => describe::template(arguments, invocation),
        ResourceCommand::Defaults(command) => defaults::run(command, invocation),
        ResourceCommand::List(arguments) => list::run(arguments, invocation),
        ResourceCommand::Request(command) => request::run(command, invocation),
        ResourceCommand::Metadata(command) => metadata::run(command, invocation),
    }
}
