//! The four controllers, one file per kind, and the frame that they share.

pub mod backoff;
pub mod cache;
pub mod conditions;
pub mod error;
pub mod events;
pub mod expand;
pub mod outcome;
pub mod status;
