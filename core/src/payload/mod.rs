//! Payloads: the value model, what formats there are, and one codec per format.
//!
//! [`Descriptor`] says what a payload is; [`decode`] and [`encode`] translate between bytes and [`Value`].
//! Nothing here knows files or servers.
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
mod error;
pub mod pointer;
mod registry;
mod value;

pub use codec::{Located, MAX_DEPTH, Part, decode, decode_located, encode};
pub use error::{PayloadError, Position};
pub use registry::{Class, Descriptor, PayloadType};
pub use value::{Object, Value};
