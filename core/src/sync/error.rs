//! Why one resource could not be synced.

use http::StatusCode;

use super::report::FailureReason;
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
    #[error("{path} not found on the server")]
    Absent {
        /// The resource.
        path: LogicalPath,
    },
    /// Two resources of the server share a name of this one.
    #[error(
        "{path} is ambiguous: several entries of the list of its collection have the alias \"{alias}\" or the id \"{remote_id}\""
    )]
    NotUnique {
        /// The resource.
        path: LogicalPath,
        /// Its alias.
        alias: String,
        /// Its id on the server.
        remote_id: String,
    },
    /// Several declared resources answer to the name that was asked for.
    #[error(
        "{path} is ambiguous: {} answer to \"{}\"; use the path of one of them",
        paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
        path.name()
    )]
    AmbiguousName {
        /// What was asked for.
        path: LogicalPath,
        /// The resources that answer.
        paths: Vec<LogicalPath>,
    },
    /// Lists whose transforms need each other, or too many of them.
    #[error("the list of {path} needs itself through resource(), or lists nest too deep")]
    ListCycle {
        /// The collection.
        path: LogicalPath,
    },
    /// The list that must tell whether a resource exists failed.
    #[error("cannot tell whether {path} exists: {message}")]
    List {
        /// The resource.
        path: LogicalPath,
        /// The category of the list's failure.
        category: Category,
        /// Whether the server answered 401.
        unauthorized: bool,
        /// Whether the server lists nothing here, however often it is asked.
        refused: bool,
        /// What failed.
        message: String,
    },
    /// A page of a list after the first one failed. All of the list fails then, since what is not on the pages
    /// before may exist.
    #[error("list of {collection}: page {page}: {source}")]
    Page {
        /// The collection.
        collection: LogicalPath,
        /// The number of the page, from 1.
        page: usize,
        /// What failed.
        source: Box<SyncError>,
    },
    /// The pages of a list lead back to where they came from.
    #[error("list of {collection}: the pages do not end: page {page} {reason}")]
    EndlessList {
        /// The collection.
        collection: LogicalPath,
        /// The number of the page, from 1.
        page: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A list that is longer than we read.
    #[error(
        "list of {collection}: it is longer than the limit of {limit}; narrow it with operations.list.query"
    )]
    ListTooLong {
        /// The collection.
        collection: LogicalPath,
        /// The limit with its unit.
        limit: String,
    },
    /// The list has more pages, and nothing says how to ask for them, so absence from it proves nothing;
    /// creating what may exist would make a duplicate.
    #[error(
        "cannot tell whether {path} exists: the list of {collection} has further pages; say in operations.list.pagination how to ask for them"
    )]
    PartialList {
        /// The resource.
        path: LogicalPath,
        /// The collection whose list is paginated.
        collection: LogicalPath,
    },
    /// The server gives the id and does not list the collection, so nothing tells whether it has the resource.
    #[error("cannot tell whether {path} exists: the server gives its id, and {collection} cannot be listed")]
    Unlisted {
        /// The resource.
        path: LogicalPath,
        /// The collection without list.
        collection: LogicalPath,
    },
    /// A placeholder cannot be replaced; sending it would overwrite the live credential.
    #[error("{}", with_causes(.0))]
    Secret(#[from] ResolveError),
    /// A create was sent, its answer was lost, and whether it was carried out cannot be told. It is not sent
    /// again: the next run sees what became of it.
    #[error("{path}: it is not known whether it was created: {lost}; looking for it: {why}")]
    Unsure {
        /// The resource.
        path: LogicalPath,
        /// What became of the answer.
        lost: Box<ServerError>,
        /// Why looking for it did not tell.
        why: String,
    },
    /// Whenever the resource is to be written, the server has another version than the one just read.
    #[error(
        "{path}: somebody else keeps changing it: the server had another version than the one just read, twice in a row; nothing was overwritten"
    )]
    Contended {
        /// The resource.
        path: LogicalPath,
    },
    /// The parent could not be created, so there is nowhere to put this.
    #[error("{path}: not created because its parent {parent} could not be created")]
    ParentFailed {
        /// The resource.
        path: LogicalPath,
        /// The ancestor whose creation failed.
        parent: LogicalPath,
    },
    /// The run ended first.
    #[error("{path}: not attempted: {reason}")]
    NotAttempted {
        /// The resource.
        path: LogicalPath,
        /// Why the run ended.
        reason: String,
    },
    /// A task of ours died.
    #[error("{path}: internal failure while working on it: {reason}")]
    Task {
        /// The resource.
        path: LogicalPath,
        /// What the runtime says.
        reason: String,
    },
}

impl SyncError {
    /// Whether the server said 401: the credentials themselves are refused, for every resource alike.
    pub(super) fn is_unauthorized(&self) -> bool {
        match self {
            Self::Server(error) => error.status() == Some(StatusCode::UNAUTHORIZED),
            Self::List { unauthorized, .. } => *unauthorized,
            Self::Page { source, .. } => source.is_unauthorized(),
            _ => false,
        }
    }

    /// Whether the managed server could not be reached, or has no time for anybody. Who answers with another status
    /// has been reached, and may answer another request.
    pub(super) fn is_unreachable(&self) -> bool {
        match self {
            Self::Server(error) => error.is_unreachable(),
            Self::Unsure { lost, .. } => lost.is_unreachable(),
            Self::Page { source, .. } => source.is_unreachable(),
            _ => false,
        }
    }

    /// Whether the secret store, and not the managed server, could not be asked.
    pub(super) fn is_of_secret_store(&self) -> bool {
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
            Self::ParentFailed { .. } => FailureReason::ParentFailed,
            Self::NotAttempted { .. } => FailureReason::NotAttempted,
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
            Self::List { category, .. } => *category,
            // That a page is gone does not mean that the list is: it may have changed while it was read.
            Self::Page { source, .. } => match source.category() {
                Category::NotFound => Category::Transport,
                category => category,
            },
            Self::Absent { .. } => Category::NotFound,
            Self::ListCycle { .. }
            | Self::EndlessList { .. }
            | Self::ListTooLong { .. }
            | Self::PartialList { .. }
            | Self::Unlisted { .. } => Category::Validation,
            Self::NotUnique { .. }
            | Self::AmbiguousName { .. }
            | Self::Contended { .. }
            | Self::ParentFailed { .. } => Category::Conflict,
            Self::Unsure { .. } | Self::NotAttempted { .. } => Category::Transport,
            Self::Task { .. } => Category::Internal,
        }
    }
}
