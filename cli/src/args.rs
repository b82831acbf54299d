//! The command line.

use clap::error::ErrorKind;
use clap::{ArgAction, Parser, Subcommand};

use crate::error::Failure;
use crate::output;

/// Author, compare and apply desired state by hand
#[derive(Debug, Parser)]
#[command(
    name = "declarest",
    bin_name = "declarest",
    arg_required_else_help = true,
    disable_help_flag = true,
    after_help = "Environment variables:\n  DECLAREST_OUTPUT  Default of --output"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    /// Format of the result: auto, text, json or yaml
    #[arg(short, long, global = true, value_name = "FORMAT", help_heading = "Global Flags")]
    pub output: Option<String>,

    /// Print help
    #[arg(short, long, global = true, action = ArgAction::Help, help_heading = "Global Flags")]
    help: Option<bool>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print a completion script for a shell
    #[command(subcommand, arg_required_else_help = true)]
    Completion(Shell),
    /// Print the version, commit and date of this build
    Version,
}

/// A shell that completion scripts exist for.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Shell {
    #[command(about = "source <(declarest completion bash)")]
    Bash,
    #[command(about = "source <(declarest completion zsh)")]
    Zsh,
    #[command(about = "declarest completion fish | source")]
    Fish,
    #[command(
        name = "powershell",
        about = "declarest completion powershell | Out-String | Invoke-Expression"
    )]
    Pwsh,
}

/// What to do after the command line was read.
#[derive(Debug)]
pub enum Request {
    /// Run this command.
    Run(Args),
    /// Everything asked for is done: help was printed.
    Done,
}

/// Reads the command line of the process. Help, also that of a group without a command, goes to standard
/// output and is a success.
pub fn read() -> Result<Request, Failure> {
    let error = match Args::try_parse() {
        Ok(args) => return Ok(Request::Run(args)),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::print(error.render().to_string().as_bytes())?;
            Ok(Request::Done)
        }
        _ => Err(Failure::Syntax(error.render().to_string())),
    }
}
