//! Payloads: the value model, the formats, and one codec per format.
//!
//! A [`Descriptor`] describes the format of a payload. [`decode`] and [`encode`] convert between bytes and [`Value`].
//! This module does not access files or servers.
//!
//! ```
//! use declarest_core::payload::{Descriptor, PayloadType, decode, encode};
//!
//! let descriptor = Descriptor::from_extension(".yml");
//! let value = decode(descriptor.payload_type, b"name: Rio\nopen: yes\n")?;
//! assert_eq!(encode(PayloadType::Properties, &value)?, b"name=Rio\nopen=yes\n");
//! # Ok::<(), declarest_core::payload::PayloadError>(())
//! ```

mod codec;
mod descriptor;
mod error;
pub mod fields;
pub mod form;
pub mod pointer;
mod registry;
mod value;
mod weight;

pub use codec::{
    Located, Part, decode, decode_leniently, decode_located, decode_located_within, decode_within, encode,
};
pub use descriptor::Descriptor;
pub(crate) use error::TOO_HEAVY;
pub use error::{PayloadError, Position};
pub use registry::{Class, PayloadType};
pub use value::{MAX_DEPTH, Object, Value};
pub use weight::MAX_WEIGHT;
