//! The commands, one file per group.

mod completion;
mod context;
mod metadata;
mod plan;
mod repository;
mod resource;
mod schemas;
mod secret;
mod server;
mod version;

use std::process::ExitCode;

pub use context::ContextCommand;
pub use plan::PlanArguments;
pub use repository::RepositoryCommand;
pub use resource::ResourceCommand;
pub use secret::SecretCommand;
pub use server::ServerCommand;

use crate::args::{Args, Command};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::terminal;

/// Runs the command, prints its failure or success, and returns the exit code.
pub fn run(args: &Args, invocation: &Invocation) -> ExitCode {
    if invocation.settings.no_input {
        terminal::refuse_input();
    }
    let footer = prints_footer(&args.command) && !invocation.settings.skip_result_message;
    match dispatch(&args.command, invocation) {
        Ok(()) => {
            if footer {
                invocation.messages.success();
            }
            ExitCode::SUCCESS
        }
        // The output has shown the differences.
        Err(failure @ Failure::Differs) => failure.exit_code(),
        Err(failure) => {
            invocation.messages.failure(&failure, footer);
            failure.exit_code()
        }
    }
}

fn dispatch(command: &Command, invocation: &Invocation) -> Result<(), Failure> {
    // An invalid --output is an error also for commands without a result.
    invocation.settings.output.check_flag()?;
    match command {
        Command::Context(command) => context::run(command, invocation),
        Command::Repository(command) => repository::run(command, invocation),
        Command::Resource(command) => resource::run(command, invocation),
        Command::Secret(command) => secret::run(command, invocation),
        Command::Plan(arguments) => plan::run(arguments, invocation),
        Command::Server(command) => server::run(command, invocation),
        Command::Completion(shell) => completion::run(*shell, invocation),
        Command::Schemas { dir } => schemas::run(dir),
        Command::Version => version::run(invocation),
    }
}

/// Returns whether the last line on standard error reports success or failure, as for commands that make changes and
/// usually print nothing.
fn prints_footer(command: &Command) -> bool {
    match command {
        Command::Repository(command) => matches!(command, RepositoryCommand::Commit(_)),
        Command::Resource(command) => command.prints_footer(),
        Command::Context(_)
        | Command::Secret(_)
        | Command::Plan(_)
        | Command::Server(_)
        | Command::Completion(_)
        | Command::Schemas { .. }
        | Command::Version => false,
    }
}
