//! Commands that transform a payload: `secret mask`, `resolve`, `normalize`.

use std::sync::Arc;

use clap::Args;
use declarest_core::error::{Categorized as _, Category};
use declarest_core::payload::Value;
use declarest_core::secrets::{self, Scope, Secret, SecretKey, SecretReader, SecretStore};

use super::{open, reading};
use crate::error::Failure;
use crate::input::{Payload, PayloadArguments};
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::{Output, OutputPolicy};

#[derive(Debug, Args)]
pub struct MaskArguments {
    #[command(flatten)]
    input: PayloadArguments,
    /// Replace stored secrets that have other values
    #[arg(long)]
    force: bool,
}

/// Stores likely secrets, and prints the payload with placeholders.
pub fn mask(arguments: &MaskArguments, invocation: &Invocation) -> Result<(), Failure> {
    let (output, Payload { value, .. }) = read(&arguments.input, invocation)?;
    let (masked, extracted) = secrets::extract(value)?;
    invocation.messages.hide(extracted.iter().map(|(_, value)| value.clone()));
    block_on(async {
        let store = open(invocation)?;
        if !arguments.force {
            check_unused(&store, &extracted).await?;
        }
        Ok::<_, Failure>(store.set_all(extracted).await?)
    })?;
    show(&output, &masked)
}

/// Fails if a key has another value. The keys do not name the payload, so an earlier payload may refer to them.
async fn check_unused(store: &SecretStore, entries: &[(SecretKey, Secret)]) -> Result<(), Failure> {
    for (key, value) in entries {
        match store.get(key).await {
            Ok(stored) if stored.expose() != value.expose() => {
                let message = format!(
                    "the store has another value for the secret {key}, which an earlier payload may refer to; replace it \
                     with --force, or store this value under another key with \"declarest secret set\" and write \
                     {{{{secret \"KEY\"}}}} in the payload"
                );
                return Err(Failure::new(Category::Conflict, message));
            }
            Err(error) if error.category() != Category::NotFound => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Prints the payload with the values of its placeholders.
pub fn resolve(input: &PayloadArguments, invocation: &Invocation) -> Result<(), Failure> {
    let (output, Payload { value, descriptor, .. }) = read(input, invocation)?;
    let resolved = reading(invocation, async {
        let reader = SecretReader::new(Some(open(invocation)?));
        invocation.messages.hide_read(&reader);
        Ok(reader.resolve(&Scope::Payload, Some(&descriptor), Arc::new(value)).await?)
    })?;
    show(&output, &resolved.payload)
}

/// Prints the payload with canonical placeholders.
pub fn normalize(input: &PayloadArguments, invocation: &Invocation) -> Result<(), Failure> {
    let (output, Payload { value, .. }) = read(input, invocation)?;
    invocation.context()?;
    show(&output, &secrets::normalize(value)?)
}

fn read(input: &PayloadArguments, invocation: &Invocation) -> Result<(Output, Payload), Failure> {
    let output = invocation.output(OutputPolicy::JsonDefault)?;
    Ok((output, input.required_document()?.decode()?))
}

fn show(output: &Output, payload: &Value) -> Result<(), Failure> {
    Ok(output.show(payload, None)?)
}
