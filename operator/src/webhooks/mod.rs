//! Receives webhooks of Git hosts: a push to a followed branch is fetched at once, not at the next poll.
//!
//! ```text
//! provider    the headers of each Git host, and the proof that it was the sender (pure)
//! push        what a push is about (pure)
//! recent      the deliveries of the last minutes
//! announce    writes the annotations of a repository, at most once per second
//! receiver    one delivery, check by check
//! ```
//!
//! Each file uses those above it. Every replica receives; the leader reacts to the annotations.

mod announce;
mod provider;
mod push;
mod receiver;
mod recent;

pub use receiver::Receiver;
