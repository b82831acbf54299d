//! The binary as users run it.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod completion;
mod context_broken;
mod context_catalogue;
mod context_check;
mod context_commands;
mod context_input;
mod environment;
mod git;
mod globals;
mod repository_filesystem;
mod repository_git;
mod repository_remote;
mod usage;
mod version;
