//! What runs work with and leave behind: values and pure decisions about them. Nothing here does I/O.

pub(super) mod absence;
pub(super) mod action;
pub(super) mod answers;
pub(super) mod call;
pub(super) mod confidential;
pub(super) mod error;
pub(super) mod identity;
pub(super) mod knowledge;
pub(super) mod options;
pub(super) mod recurrence;
pub(super) mod report;
pub(super) mod resource;
pub(super) mod selection;
pub(super) mod session;
pub(super) mod stop;
pub(super) mod version;
