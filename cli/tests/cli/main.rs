//! The binary as users run it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod completion;
mod context_broken;
mod context_catalogue;
mod context_check;
mod context_commands;
mod context_input;
mod environment;
mod globals;
mod resource_get;
mod resource_get_local;
mod resource_list;
mod resource_metadata;
mod server;
mod usage;
mod version;
