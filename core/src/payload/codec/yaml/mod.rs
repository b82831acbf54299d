//! YAML: the core types, read through the events of `granit-parser` and written in block style.
//!
//! Events instead of a serde front end, because the rules for scalars, keys and aliases are part of the
//! contract of a repository and must not move with a library.

mod decode;
mod encode;
mod scalar;

pub use decode::compose;
pub use encode::encode;

use crate::payload::{PayloadError, Value};

/// One document; an empty one is null. Equal keys in one mapping are an error.
pub fn decode(bytes: &[u8]) -> Result<Value, PayloadError> {
    Ok(compose(bytes)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
