//! Desired state in Git: immutable views of it, its layout, and changes to it.
//!
//! A [`Tree`] is one consistent view: a commit of a [`Mirror`], or a directory. [`resources`] and [`read_payload`]
//! find and read the declared resources, [`MetadataFiles`] their metadata. [`classify`] returns what a change between
//! two trees affects, and [`Mirror::undeclared`] the resources that earlier revisions declared and a later one does
//! not. A [`Store`] is a directory to which desired state is written. A [`Worktree`] is the checkout in which a user
//! edits desired state.
//!
//! Every call blocks. Asynchronous callers use the blocking pool of their runtime.

mod changes;
mod connection;
mod deadline;
mod diff;
mod dir_tree;
mod directories;
mod error;
mod fetch;
mod git_tree;
mod handles;
mod history;
mod known_hosts;
mod layout;
mod memory_tree;
mod metadata_files;
mod mirror;
mod network;
mod objects;
mod packs;
mod payload_name;
mod pins;
mod remote;
mod repack;
mod revision;
mod sidecar;
mod store;
mod tree;
mod unused;
mod walk;
mod worktree;

pub use crate::atomic::{Mode, write_atomically, write_secret_file, write_through};
pub use changes::{ApplyTarget, Changes, FullRule, classify};
pub use deadline::Deadline;
pub use diff::{ChangeStatus, FileChange};
pub use dir_tree::DirTree;
pub use error::RepositoryError;
pub use fetch::Quota;
pub use git_tree::GitTree;
pub use history::Undeclared;
pub use known_hosts::{HostKey, HostKeyError, KnownHosts};
pub use layout::{
    Listing, ResourceFile, declares_at_least, members, read_payload, read_payload_within, resource_file,
    resources,
};
pub use memory_tree::MemoryTree;
pub use metadata_files::{MetadataDocument, MetadataFiles, MetadataReach, metadata_place};
pub use mirror::Mirror;
pub use payload_name::{DEFAULTS_EXTENSIONS, is_profile_name};
pub use remote::{Remote, RemoteAuth, RemoteUrl};
pub use revision::Revision;
pub use sidecar::{Sidecar, read_sidecar, sidecar_file};
pub use store::{DefaultsEdit, DefaultsFile, DocumentFile, Save, Store};
pub use tree::{EmptyTree, Entry, EntryKind, MAX_DOCUMENT, MAX_PAYLOAD, Tree};
pub use unused::{Includes, Unused, UnusedFile, unused_files};
pub use worktree::{
    Author, FileState, FileStatus, HistoryFilter, Kept, LoggedCommit, Pushed, Refreshed, SyncState, Worktree,
    WorktreeSettings, WorktreeStatus,
};

#[cfg(test)]
mod fixtures;
