//! `--envelope`: a payload with its type, as earlier versions printed it.

use clap::Args;
use declarest_core::payload::{Descriptor, PayloadType, Value};

use crate::error::Failure;
use crate::output::Output;

#[derive(Clone, Copy, Debug, Args)]
pub struct EnvelopeArgument {
    /// Print the body as the member Value of an object, beside its type in Descriptor
    #[arg(long)]
    envelope: bool,
}

impl EnvelopeArgument {
    /// Prints a payload, in the envelope if the flag requests it.
    pub fn show(self, output: &Output, payload: Value, descriptor: &Descriptor) -> Result<(), Failure> {
        if !self.envelope {
            return Ok(output.show_payload(&payload, descriptor)?);
        }
        let described = [
            ("PayloadType", descriptor.payload_type.name()),
            ("MediaType", descriptor.media_type),
            ("Extension", descriptor.extension.as_ref()),
        ];
        let described = described.map(|(name, text)| (name.to_owned(), Value::from(text)));
        let members = [("Value", payload), ("Descriptor", Value::Object(described.into()))];
        let envelope = Value::Object(members.map(|(name, value)| (name.to_owned(), value)).into());
        Ok(output.show_payload(&envelope, &Descriptor::of(PayloadType::Json))?)
    }
}
