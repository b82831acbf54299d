//! Tests of metadata documents.

mod decode;
mod defaults;
mod encode;
mod layers;
mod managed;
mod validate;
