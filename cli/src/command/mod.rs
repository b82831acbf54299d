//! The commands, one file each.

mod completion;
mod version;

use std::process::ExitCode;

use crate::args::{Command, Request};
use crate::error::Failure;

/// Does what was asked for.
pub fn run(request: Request) -> Result<ExitCode, Failure> {
    let Request::Run(args) = request else { return Ok(ExitCode::SUCCESS) };
    let output = args.output.as_deref();
    match args.command {
        Command::Completion(shell) => completion::run(shell, output),
        Command::Version => version::run(output),
    }
    .map(|()| ExitCode::SUCCESS)
}
