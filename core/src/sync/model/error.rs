//! Why one resource could not be synced.

use std::sync::Arc;

use http::StatusCode;

use serde::Serialize;

use super::absence::Doubt;
use crate::error::{Categorized, Category, with_causes};
use crate::metadata::MetadataError;
use crate::path::LogicalPath;
use crate::repository::RepositoryError;
use crate::secrets::ResolveError;
use crate::server::ServerError;

/// A failure that concerns one resource.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The desired payload could not be read.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// No rules, or rules that do not fit the payload.
    #[error("{}", with_causes(.0))]
    Metadata(#[from] MetadataError),
    /// The server, or the way to it, failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server has not got the resource.
    #[error("{0} not found on the server")]
    Absent(LogicalPath),
    /// Several declared resources answer to the name that was asked for.
    #[error(
        "{0} is ambiguous: {names} answer to \"{name}\"; use the path of one of them",
        names = .1.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
        name = .0.name()
    )]
    AmbiguousName(LogicalPath, Vec<LogicalPath>),
    /// Lists whose transforms need each other, or too many of them.
    #[error("the list of {0} needs itself through resource(), or lists nest too deep")]
    ListCycle(LogicalPath),
    /// The answers of the server leave open whether it has the resource. Nothing is written on a guess.
    #[error("cannot determine whether {0} exists: {1}")]
    Undecided(LogicalPath, Doubt),
    /// The id of a parent cannot be found, so there is no address to ask.
    #[error("cannot address {0}: {1}")]
    Parent(LogicalPath, #[source] Arc<SyncError>),
    /// A resource that Git does not declare stays, because whether it may go is unknown.
    #[error("not deleted: {0}")]
    NotDeleted(String),
    /// Two declared resources are the same one on the server: the one at this path, and what else declares it.
    #[error("{0}: {1} declares the same resource; correct the id or the alias in one of the payloads")]
    Claimed(LogicalPath, String),
    /// The resource is still there after the deletion that was sent to this address just succeeded or found nothing.
    #[error(
        "{0}: DELETE {1} found nothing, but the resource is still there; state the address in operations.delete.path"
    )]
    StillThere(LogicalPath, String),
    /// A page of a list after the first one failed. All of the list fails then, since what is not on the pages
    /// before may exist.
    #[error("list of {0}: page {1}: {2}")]
    Page(LogicalPath, usize, #[source] Box<SyncError>),
    /// The list of this collection is longer than we read, or its pages lead back to where they came from.
    #[error("list of {0}: {1}")]
    UnboundedList(LogicalPath, String),
    /// A placeholder cannot be replaced; sending it would overwrite the live credential.
    #[error("{}", with_causes(.0))]
    Secret(#[from] ResolveError),
    /// A create was sent, its answer was lost, and whether it was carried out is unknown. It is not sent again: a later
    /// run sees what became of it.
    #[error("{0}: creation outcome unknown: {1}; {2}")]
    Unsure(LogicalPath, Box<ServerError>, String),
    /// An earlier create of the resource timed out and may still be carried out for so many seconds.
    #[error("{0}: creation outcome unknown: an earlier create timed out; it is looked for again in {1} s")]
    UnderWay(LogicalPath, u64),
    /// Whenever the resource is to be written, the server has another version than the one just read.
    #[error(
        "{0}: another client keeps changing it: the server had another version than the one just read, twice in a row; nothing was overwritten"
    )]
    Contended(LogicalPath),
    /// The parent, the second path, could not be created, so there is nowhere to put the resource.
    #[error("{0}: not created because its parent {1} could not be created")]
    ParentFailed(LogicalPath, LogicalPath),
    /// The run ended first, for this reason.
    #[error("{0}: not attempted: {1}")]
    NotAttempted(LogicalPath, String),
    /// A task of ours died, for the reason that the runtime states.
    #[error("{0}: internal failure while working on it: {1}")]
    Task(LogicalPath, String),
}

impl SyncError {
    /// Whether the server shows no resource, and only a proof of its absence is missing.
    pub(crate) fn is_lack_of_proof(&self) -> bool {
        let Self::Undecided(_, doubt) = self else { return false };
        !doubt.may_pass() && doubt.category() != Category::Conflict
    }

    /// Whether a single read is not possible this way: the server refuses the request as such, or its path
    /// cannot be rendered.
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            Self::Server(error @ ServerError::Status { .. }) => error.category() == Category::Validation,
            Self::Metadata(error) => {
                use MetadataError::{Identity, Render, Unusable};
                matches!(error, Render { .. } | Unusable { .. } | Identity { .. })
            }
            _ => false,
        }
    }

    /// Whether the server said 401: the credentials themselves are refused, for every resource alike.
    pub(crate) fn is_unauthorized(&self) -> bool {
        self.of_server().is_some_and(|error| error.status() == Some(StatusCode::UNAUTHORIZED))
    }

    /// Whether the managed server could not be reached or is overloaded. A server that answers with another status
    /// was reached, and may answer another request.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.of_server().is_some_and(ServerError::is_unreachable)
    }

    /// What failed on the server or on the way to it, if that is the cause.
    fn of_server(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            Self::Unsure(_, lost, _) => Some(lost),
            Self::Undecided(_, Doubt::Failed(error)) | Self::Parent(_, error) => error.of_server(),
            Self::Page(_, _, source) => source.of_server(),
            _ => None,
        }
    }

    /// Whether the secret store, and not the managed server, could not be asked.
    pub(crate) fn is_of_secret_store(&self) -> bool {
        let lookup = matches!(self, Self::Secret(ResolveError::Lookup { .. }));
        lookup && matches!(self.category(), Category::Auth | Category::Transport)
    }

    /// The bounded reason shown in status.
    pub fn reason(&self) -> FailureReason {
        match self {
            Self::Secret(ResolveError::NoStore { .. }) => FailureReason::SecretStoreMissing,
            Self::Secret(ResolveError::Lookup { source, .. }) => {
                FailureReason::SecretUnreadable(source.category())
            }
            Self::ParentFailed(..) => FailureReason::ParentFailed,
            Self::NotAttempted(..) => FailureReason::NotAttempted,
            other => FailureReason::Category(other.category()),
        }
    }
}

impl Categorized for SyncError {
    fn category(&self) -> Category {
        match self {
            Self::Repository(error) => error.category(),
            Self::Metadata(error) => error.category(),
            Self::Server(error) => error.category(),
            Self::Secret(error) => error.category(),
            Self::Undecided(_, doubt) => doubt.category(),
            Self::Parent(_, source) => source.category(),
            // That a page is gone does not mean that the list is: it may have changed while it was read.
            Self::Page(_, _, source) => match source.category() {
                Category::NotFound => Category::Transport,
                category => category,
            },
            Self::Absent(_) => Category::NotFound,
            Self::ListCycle(_) | Self::UnboundedList(..) => Category::Validation,
            Self::AmbiguousName(..)
            | Self::Contended(_)
            | Self::NotDeleted(_)
            | Self::StillThere(..)
            | Self::Claimed(..)
            | Self::ParentFailed(..) => Category::Conflict,
            Self::Unsure(..) | Self::UnderWay(..) | Self::NotAttempted(..) => Category::Transport,
            Self::Task(..) => Category::Internal,
        }
    }
}

/// The bounded reason of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// The category says enough.
    Category(Category),
    /// A placeholder without a store.
    SecretStoreMissing,
    /// The secret store does not give what a placeholder names.
    SecretUnreadable(Category),
    /// The parent's creation failed.
    ParentFailed,
    /// The run ended first.
    NotAttempted,
    /// The server does not keep what it is sent.
    NeverConverges,
}

impl FailureReason {
    /// The category that decides an exit code.
    pub const fn category(self) -> Category {
        match self {
            Self::Category(category) | Self::SecretUnreadable(category) => category,
            Self::SecretStoreMissing => Category::Validation,
            Self::ParentFailed | Self::NeverConverges => Category::Conflict,
            Self::NotAttempted => Category::Transport,
        }
    }

    /// The CamelCase spelling used in status fields.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Category(category) => category.reason(),
            Self::SecretStoreMissing => "SecretStoreMissing",
            Self::SecretUnreadable(_) => "SecretUnreadable",
            Self::ParentFailed => "ParentFailed",
            Self::NotAttempted => "NotAttempted",
            Self::NeverConverges => "NeverConverges",
        }
    }
}

impl Serialize for FailureReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
