//! `declarest server`.

use clap::Subcommand;

use crate::context::ResolvedContext;
use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// Print a setting of the connection to the server
    #[command(subcommand, arg_required_else_help = true)]
    Get(Part),
    /// Request the health check of the server, or its base URL if it has no health check
    Check,
}

/// The setting to print.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Part {
    /// The base URL of all paths
    BaseUrl,
    /// The OAuth 2.0 token endpoint
    TokenUrl,
    /// An OAuth 2.0 access token; a secret
    AccessToken,
}

/// Runs a command of the group.
pub fn run(command: &ServerCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        ServerCommand::Get(part) => get(*part, invocation),
        ServerCommand::Check => check(invocation),
    }
}

fn get(part: Part, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Text)?;
    let context = invocation.context()?;
    let text = match part {
        Part::BaseUrl => context.http()?.url.0.trim().to_owned(),
        Part::TokenUrl => token_url(context)?,
        Part::AccessToken => {
            // Report a missing configuration before the request.
            token_url(context)?;
            let client = invocation.client(context, None)?;
            let token = block_on(async { Ok(client.access_token().await?) })?;
            token.map(|token| token.expose().to_owned()).unwrap_or_default()
        }
    };
    Ok(output.show(&(), Some(&text))?)
}

fn token_url(context: &ResolvedContext) -> Result<String, Failure> {
    let oauth2 = context.http()?.oauth2().ok_or_else(|| {
        Failure::invalid(format!(
            "context \"{}\": the managed server does not use OAuth 2.0; configure managedServer.http.auth.oauth2",
            context.name
        ))
    })?;
    Ok(oauth2.token_url.0.trim().to_owned())
}

fn check(invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Text)?;
    let client = invocation.client(invocation.context()?, None)?;
    let target = client.health_target()?;
    block_on(async { Ok(client.health().await?) })?;
    let text = format!("server check: OK (probe succeeded: GET {target})");
    Ok(output.show(&(), Some(&text))?)
}
