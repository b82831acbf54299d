//! Payloads: the value model, what formats there are, and one codec per format.
//!
//! [`Descriptor`] says what a payload is; [`decode`] and [`encode`] translate between bytes and [`Value`].
//! Nothing here knows files or servers.

mod codec;
mod error;
pub mod pointer;
mod registry;
mod value;

pub use codec::{MAX_DEPTH, decode, encode};
pub use error::{PayloadError, Position};
pub use registry::{Class, Descriptor, PayloadType};
pub use value::{Object, Value};
