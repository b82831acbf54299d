//! Payloads: the value model, media types and one codec per format.

mod value;

pub use value::{Object, Value};
