//! `declarest secret`.

mod detect;
mod key;
mod list;
mod payload;
mod value;

use clap::Subcommand;
use declarest_core::secrets::SecretStore;

use crate::error::Failure;
use crate::input::PayloadArguments;
use crate::interrupt::{block_on, block_on_local};
use crate::invocation::Invocation;
use crate::output::OutputPolicy;

#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Initialize the secret store, or check that it can be used
    Init,
    /// Store a secret
    #[command(visible_alias = "store")]
    Set(value::SetArguments),
    /// Print a secret
    Get(key::KeyArguments),
    /// List the keys of secrets
    List(list::ListArguments),
    /// Delete a secret
    Delete(key::KeyArguments),
    /// Find plaintext values that look like secrets, in a payload or in the repository
    Detect(detect::DetectArguments),
    /// Store the likely secrets of a payload, and print the payload with placeholders
    Mask(payload::MaskArguments),
    /// Print a payload with values in place of its placeholders
    Resolve(PayloadArguments),
    /// Print a payload with its placeholders in their canonical form
    Normalize(PayloadArguments),
}

/// Runs a command of the group.
pub fn run(command: &SecretCommand, invocation: &Invocation) -> Result<(), Failure> {
    match command {
        SecretCommand::Init => block_on(async { Ok(open(invocation)?.init().await?) }),
        SecretCommand::Set(arguments) => value::set(arguments, invocation),
        SecretCommand::Get(arguments) => get(arguments, invocation),
        SecretCommand::List(arguments) => list::run(arguments, invocation),
        SecretCommand::Delete(arguments) => {
            let key = arguments.key(invocation)?;
            block_on(async { Ok(open(invocation)?.delete(&key).await?) })
        }
        SecretCommand::Detect(arguments) => detect::run(arguments, invocation),
        SecretCommand::Mask(input) => payload::mask(input, invocation),
        SecretCommand::Resolve(input) => payload::resolve(input, invocation),
        SecretCommand::Normalize(input) => payload::normalize(input, invocation),
    }
}

fn get(arguments: &key::KeyArguments, invocation: &Invocation) -> Result<(), Failure> {
    let output = invocation.output(OutputPolicy::Text)?;
    let key = arguments.key(invocation)?;
    let secret = reading(invocation, async { Ok(open(invocation)?.get(&key).await?) })?;
    Ok(output.show(&secret.expose(), Some(secret.expose()))?)
}

/// Runs work that reads secrets. A file needs no threads, and no response to Ctrl-C.
fn reading<T>(invocation: &Invocation, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match invocation.context()?.secret_store()?.vault {
        Some(_) => block_on(work),
        None => block_on_local(work),
    }
}

fn open(invocation: &Invocation) -> Result<SecretStore, Failure> {
    invocation.context()?.open_secret_store()
}
