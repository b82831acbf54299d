//! Why the existence of a resource is unknown.

use std::sync::Arc;

use http::StatusCode;

use super::SyncError;
use crate::error::{Categorized as _, Category};
use crate::path::LogicalPath;
use crate::repository::metadata_place;

/// The correction if the answer is not one of the server.
const OTHER_ANSWER: &str =
    "if a sign-in page or a proxy answers, correct the address or the credentials of the server,";
/// The correction that identifies a resource by the id of its payload if its collection cannot be listed.
const STATE_ID: &str = "add an id to the payload that equals the alias, or set operations.create to a PUT to the path of operations.get";

/// The reason why the existence of a resource is unknown. Its text names the metadata that resolves it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Doubt {
    /// The list was not read yet.
    #[error("the list of its collection was not read")]
    NotListed,
    /// The list has further pages, and metadata does not state how to request them.
    #[error(
        "the list of its collection has further pages; state operations.list.pagination, so that they can be requested"
    )]
    Cut,
    /// The length of the list is a usual page size, so the server may have cut it without a sign.
    #[error(
        "the list of its collection has {0} entries, which is a usual page size; state operations.list.pagination ({{style: none}} if lists are always whole)"
    )]
    PageSized(u64),
    /// Entries were removed from the list while its pages were read, so a page may lack others.
    #[error(
        "entries were removed from the list of its collection while the pages were read; the next run reads it again"
    )]
    Shrank,
    /// The list answered 404 or 410: the collection may not exist yet, or it cannot be listed.
    #[error("its collection cannot be listed (HTTP 404); {STATE_ID}")]
    NoList,
    /// The server refuses to list.
    #[error(
        "its collection cannot be listed (HTTP {}); {}{STATE_ID}",
        .0.as_u16(),
        if *.0 == StatusCode::FORBIDDEN { "extend the rights of the credentials, or " } else { "" }
    )]
    Unlistable(StatusCode),
    /// The answer is not a list. Holds the fault, and whether the answer could be decoded, unlike a page or a redirect.
    #[error(
        "the answer to the list of its collection is not a list ({0}); {advice} or {STATE_ID}",
        advice = if *.1 { "select the entries in operations.list.transforms," } else { OTHER_ANSWER }
    )]
    NotAList(String, bool),
    /// The list failed in another way.
    #[error("{0}")]
    Failed(Arc<SyncError>),
    /// The health check fails with this error.
    #[error("the health check rejects the credentials, so the server may hide resources: {0}")]
    Hidden(Arc<SyncError>),
    /// The metadata of the resource has other values of these fields than that of its collection.
    #[error(
        "the list of its collection is read with other metadata than the resource; state {} for the whole collection",
        .0.join(", ")
    )]
    OtherRules(Vec<&'static str>),
    /// This number of entries does not show the alias.
    #[error(
        "{0} entries of the list of its collection do not state resource.alias; correct resource.alias, or add it in operations.list.transforms"
    )]
    AliasNotListed(usize),
    /// Several entries have its names.
    #[error(
        "its names are ambiguous: several entries of the list of its collection have its id or its alias (ids: {}); correct the names in the payload or the name of the directory, remove resource.alias if aliases are not unique, or delete an entry that is a duplicate",
        abridged(.0)
    )]
    Several(Vec<String>),
    /// Several entries have its alias, which metadata states as this text without a placeholder.
    #[error(
        "resource.alias is the constant \"{0}\", so all resources of the collection have the same alias; state an attribute, such as /name"
    )]
    ConstantAlias(String),
    /// Its id addresses a resource with another alias.
    #[error(
        "its id addresses a resource with another alias (\"{0}\"); correct the id or the alias in the payload, or rename it on the server first"
    )]
    AnotherAlias(String),
    /// The payload states the first id, and the resource with its name has the second one.
    #[error(
        "the payload states the id {0}, but the resource with its name has the id {1}; correct or remove the id in the payload"
    )]
    AnotherId(String, String),
    /// An earlier run created the resource with this path, and with this id unless that is a secret, in the collection, and
    /// the list does not show it.
    #[error(
        "the list of its collection does not show {0}, which an earlier run created{id}; correct operations.list, so that it shows all resources",
        id = with_id(.1.as_deref())
    )]
    Unlisted(LogicalPath, Option<String>),
    /// The payload states the first id, and an undeclared resource with the same name has the second one.
    #[error(
        "the payload states the id {0}, and the list of its collection shows an undeclared resource with the same name and the id {1}, so the server may have assigned this id to it; remove the id from the payload and state resource.alias, or save the other resource to Git if it is another one"
    )]
    AssignedId(String, String),
    /// The id that the payload states addresses a resource that the list of its collection does not show.
    #[error(
        "its payload states the id {0}, but the list of its collection does not show the resource with this id, so it may belong to another collection; correct or remove the id in the payload, or state operations.list so that it shows all resources"
    )]
    NotAMember(String),
    /// Another resource than the one with this id is at its address.
    #[error(
        "the server shows another resource at the address with the id {0}; correct resource.id, or state operations.get.path or operations.get.from: list"
    )]
    AnotherThere(String),
    /// The server redirects to the first path, where another name is in the place of the second one.
    #[error(
        "the server redirects to {0}, which has another name in the place of \"{1}\", so the resource was renamed or moved on the server; change its name or path in Git or on the server"
    )]
    Moved(String, String),
    /// The run has created its parent, and the answer of the server does not show the id.
    #[error("the server does not show the id of its parent, which was created in this run")]
    ParentId,
    /// The name matches only a member that metadata does not state as id or alias.
    #[error(
        "only a member that metadata does not mention has its name (id {0}); state resource.id and resource.alias"
    )]
    ByMember(String),
}

impl Doubt {
    /// Returns the category of the failure.
    pub fn category(&self) -> Category {
        match self {
            Self::Failed(error) | Self::Hidden(error) => error.category(),
            Self::Unlistable(StatusCode::FORBIDDEN) => Category::Auth,
            Self::Several(_)
            | Self::AnotherAlias(_)
            | Self::AnotherId(..)
            | Self::AssignedId(..)
            | Self::NotAMember(_)
            | Self::AnotherThere(_)
            | Self::Moved(..)
            | Self::ByMember(_) => Category::Conflict,
            Self::Shrank | Self::ParentId => Category::Transport,
            _ => Category::Validation,
        }
    }

    /// Returns the end of a message about the resource at `path`: the file in which the metadata of the text belongs.
    pub(super) fn file(&self, path: &LogicalPath) -> String {
        match self {
            Self::NotListed
            | Self::ParentId
            | Self::Shrank
            | Self::Failed(_)
            | Self::Hidden(_)
            | Self::Several(_)
            | Self::AnotherAlias(_)
            | Self::AnotherId(..)
            | Self::Moved(..) => String::new(),
            _ => {
                let collection = path.collection();
                format!("; the place is {}", metadata_place(&collection))
            }
        }
    }

    /// Whether the list was read, and its entries are not sufficient.
    pub(crate) fn is_about_entries(&self) -> bool {
        matches!(
            self,
            Self::Cut
                | Self::PageSized(_)
                | Self::Shrank
                | Self::OtherRules(_)
                | Self::AliasNotListed(_)
                | Self::Several(_)
                | Self::Unlisted(..)
        )
    }

    /// Whether the next run may get an answer without a change of metadata.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Shrank | Self::Hidden(_) | Self::ParentId | Self::Unlisted(..))
    }
}

/// Returns the first ones of several ids or places.
pub(crate) fn abridged(ids: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = ids.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if ids.len() > SHOWN { format!("{shown} and {} more", ids.len() - SHOWN) } else { shown }
}

/// Returns " with the id ID"; nothing if the id is unknown or a secret.
pub(crate) fn with_id(id: Option<&str>) -> String {
    id.map(|id| format!(" with the id {id}")).unwrap_or_default()
}
