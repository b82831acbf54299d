//! YAML: the core types, decoded from the events of `granit-parser`, and encoded in block style.
//!
//! Events are used instead of serde, because the rules for scalars, keys and aliases are part of the repository
//! format and must not change with a library.

mod decode;
mod encode;
mod scalar;

pub use decode::compose;
pub use encode::encode;

use crate::payload::weight::Meter;
use crate::payload::{PayloadError, Value};

/// Decodes one document; an empty one is null. Duplicate keys in one mapping are an error.
pub fn decode(bytes: &[u8], meter: &Meter) -> Result<Value, PayloadError> {
    Ok(compose(bytes, meter)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
