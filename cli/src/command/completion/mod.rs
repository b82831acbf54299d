//! `declarest completion`.

use clap::Subcommand;
use clap_complete::Shell as Dialect;

use crate::error::Failure;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

/// A shell with a completion script.
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
    clap_complete::generate(dialect, &mut invocation.parser(), "declarest", &mut script);
    Ok(output.show(&(), Some(&String::from_utf8_lossy(&script)))?)
}
