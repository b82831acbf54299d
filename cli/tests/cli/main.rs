//! The binary as users run it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod completion;
mod environment;
mod usage;
mod version;
