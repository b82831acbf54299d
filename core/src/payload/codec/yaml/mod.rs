//! YAML: the core types, read through the events of `granit-parser` and written in block style.
//!
//! Events instead of a serde front end, because the rules for scalars, keys and aliases are part of the
//! contract of a repository and must not move with a library.

mod decode;
mod encode;
mod scalar;

pub use decode::decode;
pub use encode::encode;

#[cfg(test)]
mod tests;
