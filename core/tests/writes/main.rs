//! Writes of the engine when answers are lost and others change resources, too: nothing is done twice, and
//! nothing is overwritten unseen.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed unwrap is a failed test")]

#[path = "../../../demo/rest_server/mod.rs"]
mod rest_server;

mod lost_answers;
mod recurrences;
mod versions;
mod world;
