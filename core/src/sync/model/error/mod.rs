//! Errors of the sync of one resource.

mod doubt;

use std::sync::Arc;

use http::StatusCode;

use super::FailureReason;
use crate::error::{Categorized, Category, categories, clause, with_causes};
use crate::language::reference::{Reference, ReferenceError};
use crate::memory::Shortage;
use crate::metadata::MetadataError;
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::repository::{MAX_PAYLOAD, RepositoryError, metadata_place};
use crate::secrets::ResolveError;
use crate::server::ServerError;

pub use doubt::*;

/// A failure that concerns one resource.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The desired payload could not be read.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The rules are missing or do not fit the payload.
    #[error("{}", with_causes(.0))]
    Metadata(#[from] MetadataError),
    /// The server or the connection to it failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server does not have the resource.
    #[error("{0} not found on the server")]
    Absent(LogicalPath),
    /// The server has the resource, which was to be created.
    #[error("{0} exists on the server; update or apply it")]
    Exists(LogicalPath),
    /// Several declared resources have the requested name.
    #[error(
        "{0} is ambiguous: {names} have the name \"{name}\"; use the path of one of them",
        names = .1.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "),
        name = .0.name()
    )]
    AmbiguousName(LogicalPath, Vec<LogicalPath>),
    /// Reads of the members of this collection have an envelope around the resource, which this jq expression removes.
    #[error(
        "{0}: the answers to reads have an envelope around the resource; add the step {{jqExpression: '{1}'}} to operations.get.transforms in {file}",
        file = metadata_place(.0)
    )]
    Enveloped(LogicalPath, String),
    /// The list of this collection names members, and none of them can be read.
    #[error(
        "the list of {0} shows members ({1}), but the server answers to the read of each of them that it does not exist; correct operations.get.path or resource.id in {file}",
        file = metadata_place(.0)
    )]
    NoMembers(LogicalPath, usize),
    /// The transforms of lists need each other, or are nested too deep.
    #[error(
        "the list of {0} is read again by its own transforms through resource(), or too many lists are nested; remove the cycle"
    )]
    ListCycle(LogicalPath),
    /// The answers of the server do not show whether it has the resource. Nothing is written.
    #[error("cannot determine whether {0} exists: {1}{file}", file = .1.file(.0))]
    Undecided(LogicalPath, Doubt),
    /// The id of a parent cannot be found, so the resource has no address.
    #[error("cannot address {0}: {1}")]
    Parent(LogicalPath, #[source] Arc<SyncError>),
    /// A resource that Git does not declare is kept, because it may be in use or be declared under another path.
    #[error("not deleted: {0}")]
    NotDeleted(String),
    /// The server shows one resource in several collections: a deletion beside this one also deleted the declared resource
    /// at the other path.
    #[error(
        "{0}: the deletion of a resource of its collection also deleted {1}, which Git declares, because the server shows \
         the same resources in both collections; state resource.onRemove: keep in {file}",
        file = metadata_place(&.0.collection())
    )]
    Shared(LogicalPath, String),
    /// A resource of the server cannot be compared with all declared resources.
    #[error("cannot determine whether a file at another path declares {0}: {1}")]
    Incomparable(LogicalPath, String),
    /// Two declared resources are the same one on the server. Holds the path of one and the name of the other.
    #[error(
        "{0}: {1} declares the same resource; correct the id or the alias in one of the payloads, the name of a directory, or the address in metadata"
    )]
    Claimed(LogicalPath, String),
    /// The DELETE to this address found nothing, but the resource still exists.
    #[error(
        "{0}: DELETE {1} found nothing, but the resource still exists; state the address in operations.delete.path; if Git no longer declares the resource, declare it once more with this metadata"
    )]
    StillThere(LogicalPath, String),
    /// The answer to the write has a status of success and states a failure, and the server shows no effect of the write.
    #[error(
        "{0}: {1}; the server shows no effect of the request; if a sign-in page or a proxy answers, correct the address or the credentials of the server"
    )]
    NotDone(LogicalPath, #[source] Box<ServerError>),
    /// After an update, the list has several entries with these ids and the names of the resource.
    #[error(
        "{0}: after the update, several entries of the list of its collection have its names (ids: {ids}); if the update has created one, add the id to its body in operations.update.transforms, or state its address in operations.update.path, and delete the duplicate",
        ids = abridged(.1)
    )]
    Doubled(LogicalPath, Vec<String>),
    /// A page after the first one failed, so the list fails: the missing pages may show further resources.
    #[error("list of {0}: page {1}: {cause}", cause = .2.to_string().replacen(&format!("list of {}: ", .0), "", 1))]
    Page(LogicalPath, usize, #[source] Box<SyncError>),
    /// The server refuses to read this resource, which the whole list of its collection does not show.
    #[error(
        "{1}; the list of its collection does not show it: if this answer means that it does not exist, state operations.get.absent: {{status: [{status}]}} in {file}",
        status = .1.status().map_or(0, |status| status.as_u16()),
        file = metadata_place(&.0.collection())
    )]
    RefusedRead(LogicalPath, ServerError),
    /// The transforms of this resource need it themselves, or resources nest too deep.
    #[error(
        "{0}: its transforms read it again through resource(), or too many such reads are nested; remove the cycle"
    )]
    ReadCycle(LogicalPath),
    /// A text in the payload begins like a reference and is malformed.
    #[error("{0}: {1}")]
    MalformedReference(LogicalPath, ReferenceError),
    /// A reference in the payload or in metadata has no value.
    #[error(
        "{resource}: cannot resolve {reference}{place}: {why}",
        place = .at.as_ref().map_or_else(|| " in its metadata".to_owned(), |at| format!(" at \"{at}\""))
    )]
    Reference {
        /// The resource.
        resource: LogicalPath,
        /// The place in its payload; `None` if a template of metadata has the reference.
        at: Option<Pointer>,
        /// The reference.
        reference: Box<Reference>,
        /// The reason.
        why: Unresolved,
    },
    /// The list of this collection exceeds a limit, or its pages form a cycle.
    #[error("list of {0}: {1}")]
    UnboundedList(LogicalPath, String),
    /// A placeholder cannot be replaced. Nothing is sent, because it would overwrite the credential on the server.
    #[error("{}", with_causes(.0))]
    Secret(#[from] ResolveError),
    /// The server refuses an update of attributes that cannot be changed.
    #[error(
        "{}; if an update cannot change this attribute, state it in resource.replaceOn: then the resource is deleted and created again",
        clause(.0)
    )]
    Fixed(ServerError),
    /// The transforms of the update remove or replace all of these places, which differ, in the request.
    #[error(
        "{0} differs only at {1}, which operations.update.transforms remove from the request or replace; correct these transforms; if the server sets the value, exclude it in operations.compare.transforms; if an update cannot change it, state resource.replaceOn: then the resource is deleted and created again"
    )]
    NotSent(LogicalPath, String),
    /// The server refuses the create because of a conflict, and has a resource with this name, which differs in case or accents.
    #[error(
        "{error}; the list shows the name \"{1}\", and the server may ignore case and accents: use this spelling in Git, or rename the resource on the server",
        error = clause(.0)
    )]
    Taken(ServerError, String),
    /// The update of a resource found nothing at the name with which it was read. Holds the path of an update by the id.
    #[error(
        "{error}; the server shows the resource at this address, and may accept names in reads only: state the address in operations.update.path, for example \"{1}\"",
        error = clause(.0)
    )]
    NamedWrite(ServerError, Box<str>),
    /// The update or the deletion of a resource fails, and its read was answered without content.
    #[error(
        "{error}; the server answers the read of the resource without content: if this means that it does not exist, state operations.get.absent: {{jq: '. == null'}} in {file}",
        error = clause(.1),
        file = metadata_place(&.0.collection())
    )]
    NothingShown(LogicalPath, Box<SyncError>),
    /// The answer to a create was lost, so its effect is unknown. It is not sent again: a later run searches for the
    /// resource.
    #[error("{0}: creation outcome unknown: {cause}; {2}", cause = clause(.1))]
    Unsure(LogicalPath, Box<ServerError>, String),
    /// An earlier create of the resource timed out, or the server did not show its result. The server may still execute
    /// it within this number of seconds.
    #[error(
        "{0}: creation outcome unknown: the server does not show the result of an earlier create; it is looked for again in {1} s"
    )]
    UnderWay(LogicalPath, u64),
    /// The server confirmed the create with this status, but does not show the resource.
    #[error(
        "{0}: the server answered {1} to the create, but does not show the resource; {hint}; a further create may create it again",
        hint = match .2 {
            None if *.1 == 202 => "it may still process the create, so wait until its task has ended before the next run; the option -vvv shows the answer".to_owned(),
            Some(id) => format!("it assigned the id {id} instead of that in the file, so remove the id from the file, and state resource.alias"),
            None => "the option -vvv shows the answer, and operations.create.failed can describe it if it states a failure; if the server changes names, for example to upper case, state this in resource.id and resource.alias; if the credentials may not read it, extend their rights".to_owned(),
        }
    )]
    NotShown(LogicalPath, u16, Option<String>),
    /// The server confirmed the create with this status, and shows the resource with another name.
    #[error(
        "{0}: the server answered {1} to the create, but shows the name \"{2}\"; if it is this resource, use this name in Git, or state in resource.id and resource.alias how the server changes names"
    )]
    Renamed(LogicalPath, u16, String),
    /// The create does not contain this id, which is the only name of the resource.
    #[error(
        "{0}: the create does not contain the id {1}, so the server assigns another one, and no run finds the resource; remove the id from the payload, and state resource.alias in {file}",
        file = metadata_place(&.0.collection())
    )]
    IdNotSent(LogicalPath, String),
    /// The resource was created, with this id if it is known, and no run finds it. Another run would create one more.
    #[error(
        "{0}: created{id}, but the server does not show a resource with its names; state resource.id and resource.alias in {file}, add an attribute with its name to the payload, or correct operations.list, if it does not show all resources; a further create would create it again{again}",
        id = with_id(.1.as_deref()),
        file = metadata_place(&.0.collection()),
        again = if .1.is_none() { "; if it no longer exists, run `declarest resource create`" } else { "" }
    )]
    Unfindable(LogicalPath, Option<String>),
    /// The server confirmed the update with this status, and does not show the resource afterwards.
    #[error(
        "{0}: the server answered {1} to the update, and does not show the resource afterwards; the update may have changed its name: the option -vvv shows the answer, and operations.update.transforms can exclude attributes"
    )]
    Vanished(LogicalPath, u16),
    /// The resource was created, and the update that sets what the create did not set fails.
    #[error("created, but not completed: {0}")]
    Incomplete(#[source] Box<SyncError>),
    /// The server had another version than the one just read, this number of times in a row.
    #[error(
        "{0}: it keeps changing: {1} times in a row, the server had another version than the one just read; nothing was overwritten"
    )]
    Contended(LogicalPath, u32),
    /// An update takes values from the content on the server, which only a list shows.
    #[error(
        "{0}: only a list shows it, which may leave out attributes that the update would remove; correct operations.get, or state operations.get.from: list if the list shows all attributes"
    )]
    OnlyListed(LogicalPath),
    /// The resource was deleted in order to create it again, and was not created, for this reason.
    #[error("{0}: deleted in order to create it again, but not created yet: {1}; a later run creates it")]
    NotRecreated(LogicalPath, &'static str),
    /// The resource was created, and its deferred attributes were not set yet, for this reason.
    #[error("{0}: created, but not completed yet: {1}; a later run completes it")]
    NotCompleted(LogicalPath, &'static str),
    /// The resource was not created because its parent, the second path, could not be created.
    #[error("{0}: not created because its parent {1} could not be created")]
    ParentFailed(LogicalPath, LogicalPath),
    /// The resource was not created because the server does not have its parent, the second path.
    #[error("{0}: not created because its parent {1} does not exist on the server")]
    NoParent(LogicalPath, LogicalPath),
    /// The dependencies of the resource form a cycle of these paths, or lead to one.
    #[error(
        "{0}: not written because of a cycle of dependencies: {cycle}; correct resource.dependsOn or references, or defer attributes",
        cycle = .1.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
    )]
    DependencyCycle(LogicalPath, Vec<LogicalPath>),
    /// The run ended before the resource, for this reason.
    #[error("{0}: not attempted: {1}")]
    NotAttempted(LogicalPath, String),
    /// The memory for the resource is not available.
    #[error("{0}: {1}")]
    Memory(LogicalPath, Shortage),
    /// A task panicked or was cancelled. Holds the reason of the runtime.
    #[error("{0}: internal failure while working on it: {1}")]
    Task(LogicalPath, String),
}

impl SyncError {
    /// Whether the declaration was not read because the resource needs too much memory.
    pub(crate) fn is_too_heavy(&self) -> bool {
        matches!(self, Self::Repository(error) if error.is_too_heavy())
    }

    /// Whether the declaration exceeds the limit of payload files, and not only a limit of memory.
    pub(crate) fn exceeds_file_limit(&self) -> bool {
        matches!(self, Self::Repository(RepositoryError::TooLarge { size, .. }) if *size > MAX_PAYLOAD)
    }

    /// Whether the server does not show the resource, and only the proof of its absence is missing.
    pub(crate) fn is_lack_of_proof(&self) -> bool {
        let Self::Undecided(_, doubt) = self else { return false };
        !doubt.may_pass() && doubt.category() != Category::Conflict
    }

    /// Whether another resource may be missing that the run writes: the server rejects the request, but not the
    /// credentials. Some servers then answer 500.
    pub(crate) fn may_lack_another(&self) -> bool {
        const OTHER_REASONS: [u16; 6] = [401, 403, 406, 408, 415, 429];
        match self {
            Self::ParentFailed(..)
            | Self::NoParent(..)
            | Self::NotDone(..)
            | Self::Undecided(_, Doubt::NoList | Doubt::ParentId) => true,
            error if error.lacks().is_some() => true,
            Self::Unsure(..) => false,
            error => error.http_status().is_some_and(|status| {
                status.is_client_error() && !OTHER_REASONS.contains(&status.as_u16())
                    || [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK].contains(&status)
            }),
        }
    }

    /// Returns the other resource, if the server does not have it and the request needs its content.
    pub(crate) fn lacks(&self) -> Option<&LogicalPath> {
        match self {
            Self::Reference { reference, why: Unresolved::Absent, .. } => Some(&reference.path),
            Self::Metadata(error) => error.lacks(),
            _ => None,
        }
    }

    /// Whether the address of the resource needs the value of a resource that the server does not have.
    pub(crate) fn lacks_reference(&self) -> bool {
        matches!(self, Self::Reference { at: None, why, .. } if why.is_absence())
    }

    /// Whether the resource cannot be read by itself: the server rejects the request, or its path cannot be rendered.
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            Self::Server(ServerError::Status { status, .. }) => {
                status.is_client_error() && self.category() == Category::Validation
            }
            Self::Metadata(error) => {
                use MetadataError::{Identity, Render, Unusable};
                matches!(error, Render { .. } | Unusable { .. } | Identity { .. })
            }
            _ => false,
        }
    }

    /// Whether the server rejects the address of a request (400, 405, 422), also that of the list that shows the resource.
    pub(crate) fn rejects_address(&self) -> bool {
        let status = match self {
            Self::Server(ServerError::Status { status, .. })
            | Self::Undecided(_, Doubt::Unlistable(status)) => status,
            Self::Undecided(_, Doubt::Failed(error)) => return error.rejects_address(),
            _ => return false,
        };
        [StatusCode::BAD_REQUEST, StatusCode::METHOD_NOT_ALLOWED, StatusCode::UNPROCESSABLE_ENTITY]
            .contains(status)
    }

    /// Whether the server may not accept a name in the place of an id. Servers with a database answer 500 to a name if
    /// ids are numbers or UUIDs.
    pub(crate) fn may_reject_name(&self) -> bool {
        self.rejects_address() || self.http_status() == Some(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Whether the server refuses to show one resource (400, 403, 405, 422, 500). This proves nothing about the resource.
    pub(crate) fn is_refusal(&self) -> bool {
        self.may_reject_name() || self.http_status() == Some(StatusCode::FORBIDDEN)
    }

    /// Whether the server answered 401. Then it refuses the credentials for all resources.
    pub(crate) fn is_unauthorized(&self) -> bool {
        self.of_server().is_some_and(|error| error.status() == Some(StatusCode::UNAUTHORIZED))
    }

    /// Whether the managed server could not be reached or is overloaded. A server that answers with another status
    /// was reached, and may answer another request.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.of_server().is_some_and(ServerError::is_unreachable)
    }

    /// Returns the status of the server if it decided the failure.
    pub fn http_status(&self) -> Option<StatusCode> {
        self.of_server().and_then(ServerError::status)
    }

    /// Returns the error of the server or of the connection, if it is the cause.
    pub(super) fn of_server(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error)
            | Self::Fixed(error)
            | Self::Taken(error, _)
            | Self::NamedWrite(error, _)
            | Self::RefusedRead(_, error) => Some(error),
            Self::Unsure(_, lost, _) => Some(lost),
            Self::Undecided(_, Doubt::Failed(error) | Doubt::Hidden(error)) | Self::Parent(_, error) => {
                error.of_server()
            }
            Self::NothingShown(_, error) => error.of_server(),
            Self::Page(_, _, source) | Self::Incomplete(source) => source.of_server(),
            _ => None,
        }
    }

    /// Whether the secret store, not the managed server, could not be read.
    pub(crate) fn is_of_secret_store(&self) -> bool {
        let lookup = matches!(self, Self::Secret(ResolveError::Lookup { .. }));
        lookup && matches!(self.category(), Category::Auth | Category::Transport)
    }

    /// Returns the reason that status shows, one of a fixed set.
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

categories!(SyncError {
    {
        // A missing page does not mean a missing list: the list may have changed during the read.
        Self::Page(_, _, source) => match source.category() {
            Category::NotFound => Category::Transport,
            category => category,
        },
        Self::Reference { why: Unresolved::Failed(error), .. } => error.category(),
        Self::Memory(_, Shortage::TooLarge { .. }) => Category::Validation,
        Self::Memory(_, Shortage::Busy { .. }) => Category::Transport,
    }
    .0: Repository, Metadata, Server, Fixed, Taken, NamedWrite, Secret, Incomplete;
    .1: Undecided, Parent, RefusedRead, NothingShown;
    Validation: NotShown, Renamed, ListCycle, ReadCycle, Enveloped, NoMembers, Unfindable, IdNotSent, Vanished, NotDone,
        NotSent, MalformedReference, Reference, UnboundedList, DependencyCycle, Incomparable, OnlyListed;
    NotFound: Absent, NoParent;
    Conflict: Exists, AmbiguousName, Contended, NotDeleted, Shared, StillThere, Doubled, Claimed, ParentFailed;
    Transport: Unsure, UnderWay, NotRecreated, NotCompleted, NotAttempted;
    Internal: Task;
});

/// The reason why a reference has no value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unresolved {
    /// The server does not have the resource, which Git declares.
    #[error("the server does not have the resource yet")]
    Absent,
    /// The server does not have the resource, and Git does not declare it.
    #[error("the server does not have the resource, and Git does not declare it; correct the path")]
    Undeclared,
    /// The resource has no such value.
    #[error(
        "the resource has no value there on the server; correct the pointer, or operations.get.transforms if they remove the value"
    )]
    NoValue,
    /// The resource cannot be read.
    #[error("{0}")]
    Failed(Arc<SyncError>),
}

impl Unresolved {
    /// Whether the server does not have the resource.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Absent | Self::Undeclared)
    }
}
