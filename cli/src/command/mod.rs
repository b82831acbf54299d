//! The commands, one file per group. A group uses only groups before it in the order `metadata`, `defaults`, `resource`,
//! `plan` and `init`.

pub mod complete;
pub mod completion;
pub mod context;
pub mod contract;
pub mod defaults;
pub mod init;
pub mod metadata;
pub mod operator;
pub mod plan;
pub mod reference;
pub mod repository;
pub mod resource;
pub mod schemas;
pub mod secret;
pub mod server;
pub mod validate;
pub mod version;
