//! Validating admission webhooks: an invalid object is rejected when it is written, not when it is reconciled.
//!
//! ```text
//! warnings       what is allowed and risky (pure)
//! review         whether one request is allowed
//! certificate    the certificate of the server, reloaded when its files change
//! server         HTTPS
//! ```
//!
//! Each file uses those above it. The controllers make the same checks, so admission is optional.

mod certificate;
mod review;
mod server;
mod warnings;

pub use certificate::Certificates;
pub use review::Reviewer;
pub use server::server;
