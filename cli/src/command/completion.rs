//! `declarest completion`.

use clap::CommandFactory as _;
use clap_complete::Shell as Dialect;

use crate::args::{Args, Shell};
use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

/// Prints the completion script of a shell.
pub fn run(shell: Shell, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Text)?;
    let dialect = match shell {
        Shell::Bash => Dialect::Bash,
        Shell::Zsh => Dialect::Zsh,
        Shell::Fish => Dialect::Fish,
        Shell::Pwsh => Dialect::PowerShell,
    };
    let mut script = Vec::new();
    clap_complete::generate(dialect, &mut Args::command(), "declarest", &mut script);
    Ok(output.show(&(), Some(&String::from_utf8_lossy(&script)))?)
}
