//! Commands that transform a payload: `secret mask`, `resolve`, `normalize`.

use std::sync::Arc;

use declarest_core::payload::Value;
use declarest_core::secrets::{self, Scope, SecretReader};

use super::{open, reading};
use crate::error::Failure;
use crate::input::{Payload, PayloadArguments};
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::output::{Output, OutputPolicy};

/// Stores likely secrets, and prints the payload with placeholders.
pub fn mask(input: &PayloadArguments, invocation: &Invocation) -> Result<(), Failure> {
    let (output, Payload { value, .. }) = read(input, invocation)?;
    let (masked, extracted) = secrets::extract(value)?;
    invocation.messages.hide(extracted.iter().map(|(_, value)| value.clone()));
    block_on(async { Ok(open(invocation)?.set_all(extracted).await?) })?;
    show(&output, &masked)
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
