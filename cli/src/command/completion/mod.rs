//! `declarest completion`. The scripts call `declarest __complete`, so that they complete logical paths and contexts.

use clap::Subcommand;

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

/// A shell with a completion script.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Shell {
    /// Print the script for bash; load it with: source <(declarest completion bash)
    Bash,
    /// Print the script for zsh; load it with: source <(declarest completion zsh)
    Zsh,
    /// Print the script for fish; load it with: declarest completion fish | source
    Fish,
    /// Print the script for PowerShell; load it with: declarest completion powershell | Out-String |
    /// Invoke-Expression
    #[command(name = "powershell")]
    Pwsh,
}

/// Prints the completion script of a shell.
pub fn run(shell: Shell, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Text)?;
    let script = match shell {
        Shell::Bash => include_str!("declarest.bash"),
        Shell::Zsh => include_str!("declarest.zsh"),
        Shell::Fish => include_str!("declarest.fish"),
        Shell::Pwsh => include_str!("declarest.ps1"),
    };
    Ok(output.show(&(), Some(script))?)
}
