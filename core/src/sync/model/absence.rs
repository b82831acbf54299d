//! Whether the server has a resource: one pure function from what was asked and answered. Creating, adopting, updating
//! and pruning all rest on it.
//!
//! | what was answered | the client chooses ids | the server chooses ids |
//! |---|---|---|
//! | its own address: not found; create is a PUT to that address | absent | absent |
//! | its own address: not found; the payload states the id, which is also the alias; no list shows it | absent | - |
//! | its own address: not found; the payload states the id; list: 403 or 405 | absent | - |
//! | its own address: not found; whole list without its id and alias | absent | absent |
//! | its parent is absent | absent | absent |
//! | list: cut, as long as a usual page, 404, not a list, HTML, empty body, failed | unknown | unknown |
//! | list: several entries have its names | unknown | unknown |
//! | its own address: found, and states another alias | the list decides | the list decides |

use std::fmt;

use http::StatusCode;

use super::identity::{Match, Wanted};
use crate::error::Category;
use crate::metadata::{Entry, Listing};

/// What is to be decided about one resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'r> {
    /// The names that it is looked for by.
    pub wanted: Wanted<'r>,
    /// Whether a create is an idempotent PUT to the address of its read.
    pub put_creates: bool,
    /// Whether it was applied under the same id before, so that another alias there is a change and not another resource.
    pub is_known: bool,
    /// Whether it is to be deleted. Then a member that commonly names resources is not enough.
    pub doomed: bool,
}

/// What the address of a resource answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// It was not asked.
    NotAsked,
    /// A resource; the alias that it states, if it states one.
    Found {
        /// The alias by the rules of the resource.
        alias: Option<&'a str>,
    },
    /// HTTP 404 or 410.
    NotFound,
    /// The server cannot read a single resource there, or no path can be rendered.
    Unreadable,
}

/// What the list of a collection answered.
#[derive(Debug)]
pub enum ListAnswer {
    /// It was not asked.
    NotAsked,
    /// Entries.
    Listed {
        /// Those that were shown.
        listing: Listing,
        /// How much of the list they are.
        extent: Extent,
    },
    /// HTTP 404 or 410: there may be no such collection yet, or no list.
    Missing,
    /// An answer that is not a list.
    NotAList(String),
    /// The server refuses to list.
    Refused(StatusCode),
    /// Anything else that went wrong.
    Failed {
        /// Of what kind.
        category: Category,
        /// Whether the server answered 401.
        unauthorized: bool,
        /// Whether the server could not be reached or is overloaded.
        unreachable: bool,
        /// What went wrong.
        message: String,
    },
}

/// How much of a list is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// All of it, unless the server cut it at this usual size of a page without saying so.
    PageSized(u64),
    /// The server says that there is more, and nothing says how to ask for it.
    Cut,
}

/// Whether the server has a resource.
#[derive(Debug)]
pub enum Verdict<'l> {
    /// What its own address showed.
    Here,
    /// This entry of the list.
    Present(&'l Entry),
    /// It does not exist.
    Absent(Proof),
    /// Nothing may be written on this account.
    Unknown(Doubt),
}

/// Why a resource surely does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its address has nothing, and a PUT there creates it or changes what is there.
    PutCreates,
    /// Its address, which its payload states, has nothing, and it has no other name.
    Address,
    /// The same, and the server lists nothing that could show it under another id.
    Unlistable,
    /// The whole list shows neither its id nor its alias.
    List,
    /// Its parent does not exist.
    Parent,
}

/// Why it is not known whether a resource exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The list was not asked for yet.
    NotListed,
    /// The server says that its list goes on.
    Cut,
    /// The list is as long as a usual page.
    PageSized(u64),
    /// The list answered 404.
    NoList,
    /// The server refuses to list.
    Unlistable(StatusCode),
    /// The list is not one.
    NotAList(String),
    /// The list failed.
    Failed {
        /// Of what kind.
        category: Category,
        /// Whether the server answered 401.
        unauthorized: bool,
        /// Whether the server could not be reached or is overloaded.
        unreachable: bool,
        /// What went wrong.
        message: String,
    },
    /// So many entries do not show the alias.
    AliasNotListed(usize),
    /// Several entries have its names.
    Several(Vec<String>),
    /// What its id addresses has another alias.
    AnotherAlias(String),
    /// Only a member that metadata does not name as id or alias has its name.
    ByMember(String),
}

/// Decides whether the server has what `question` asks for.
pub fn judge<'l>(
    question: &Question<'l>,
    address: Address<'_>,
    list: &'l ListAnswer,
    parent_is_absent: bool,
) -> Verdict<'l> {
    let wanted = &question.wanted;
    match address {
        Address::Found { alias } => confirm(question, alias, list),
        Address::NotFound if parent_is_absent => Verdict::Absent(Proof::Parent),
        Address::NotFound if question.put_creates => Verdict::Absent(Proof::PutCreates),
        Address::NotFound if wanted.id.is_some() && wanted.one_name => by_address(wanted, list),
        Address::NotFound | Address::NotAsked | Address::Unreadable => match list {
            ListAnswer::Refused(_) if address == Address::NotFound && wanted.id.is_some() => {
                Verdict::Absent(Proof::Unlistable)
            }
            ListAnswer::Listed { listing, extent } => look_up(question, listing, *extent),
            other => Verdict::Unknown(Doubt::of(other)),
        },
    }
}

/// What has one name and is not at the address of that name does not exist, unless a list shows it: some servers read
/// by another id than the one that metadata names.
fn by_address<'l>(wanted: &Wanted<'l>, list: &'l ListAnswer) -> Verdict<'l> {
    match list {
        ListAnswer::NotAsked => Verdict::Unknown(Doubt::NotListed),
        ListAnswer::Listed { listing, .. } => match wanted.find(listing) {
            Match::Entry(entry) => Verdict::Present(entry),
            Match::Several(ids) => Verdict::Unknown(several(&ids)),
            Match::Member(_) | Match::Nothing => Verdict::Absent(Proof::Address),
        },
        _ => Verdict::Absent(Proof::Address),
    }
}

/// What a list shows of a resource whose own address showed nothing.
fn look_up<'l>(question: &Question<'l>, listing: &'l Listing, extent: Extent) -> Verdict<'l> {
    let wanted = &question.wanted;
    match (wanted.find(listing), extent) {
        (Match::Several(ids), _) => Verdict::Unknown(several(&ids)),
        (Match::Entry(entry), _) if is_renamed(wanted, entry) => {
            Verdict::Unknown(Doubt::AnotherAlias(entry.alias.clone()))
        }
        (Match::Member(entry), _) if question.doomed => {
            Verdict::Unknown(Doubt::ByMember(entry.remote_id.clone()))
        }
        (Match::Entry(entry) | Match::Member(entry), _) => Verdict::Present(entry),
        (Match::Nothing, Extent::Cut) => Verdict::Unknown(Doubt::Cut),
        (Match::Nothing, Extent::PageSized(entries)) => Verdict::Unknown(Doubt::PageSized(entries)),
        (Match::Nothing, Extent::Whole) => {
            let unnamed = if wanted.alias.is_some() { listing.without_alias() } else { 0 };
            if unnamed == 0 {
                Verdict::Absent(Proof::List)
            } else {
                Verdict::Unknown(Doubt::AliasNotListed(unnamed))
            }
        }
    }
}

/// Whether what an address shows is the resource: an id may be stale, and then it addresses another one.
fn confirm<'l>(question: &Question<'l>, shown: Option<&str>, list: &'l ListAnswer) -> Verdict<'l> {
    let wanted = &question.wanted;
    if wanted.one_name || wanted.by_path {
        return Verdict::Here;
    }
    let same = shown.is_some_and(|shown| wanted.answers_to(shown));
    // Asked for by its name, it shows that name. Only an id may be a stale one.
    if same && wanted.id.is_none() {
        return Verdict::Here;
    }
    match list {
        ListAnswer::Listed { listing, .. } => match wanted.find(listing) {
            Match::Several(ids) => Verdict::Unknown(several(&ids)),
            _ if same => Verdict::Here,
            Match::Entry(entry) if is_renamed(wanted, entry) => {
                Verdict::Unknown(Doubt::AnotherAlias(entry.alias.clone()))
            }
            // The id of the payload addresses something else than the alias names.
            Match::Entry(entry) if wanted.id.is_some_and(|id| id != entry.remote_id) => {
                Verdict::Unknown(Doubt::AnotherAlias(shown.unwrap_or_default().to_owned()))
            }
            Match::Entry(entry) if wanted.id.is_none() && entry.remote_id != wanted.name => {
                Verdict::Present(entry)
            }
            Match::Nothing if shown.is_some() && wanted.id.is_none() && wanted.states_alias => {
                Verdict::Unknown(Doubt::AnotherAlias(shown.unwrap_or_default().to_owned()))
            }
            // The id may be another resource's, and then this one does not exist yet.
            Match::Entry(_) | Match::Nothing
                if shown.is_some() && wanted.id.is_some() && !question.is_known =>
            {
                Verdict::Unknown(Doubt::AnotherAlias(shown.unwrap_or_default().to_owned()))
            }
            Match::Entry(_) | Match::Member(_) | Match::Nothing => Verdict::Here,
        },
        ListAnswer::NotAsked => Verdict::Unknown(Doubt::NotListed),
        _ if same => Verdict::Here,
        // The id that the payload states is what is left to know it by.
        ListAnswer::Missing | ListAnswer::NotAList(_) | ListAnswer::Refused(_)
            if shown.is_none() && wanted.id.is_some() =>
        {
            Verdict::Here
        }
        other => Verdict::Unknown(Doubt::of(other)),
    }
}

/// Whether an entry was found by the last segment of the path, taken for an id, though its alias is another one.
fn is_renamed(wanted: &Wanted<'_>, entry: &Entry) -> bool {
    let by_alias = wanted.answers_to(&entry.alias);
    wanted.id.is_none() && wanted.states_alias && wanted.alias.is_some() && entry.states.alias && !by_alias
}

fn several(ids: &[&str]) -> Doubt {
    Doubt::Several(ids.iter().map(|id| (*id).to_owned()).collect())
}

impl Doubt {
    /// What a list without the resource leaves open.
    pub fn of(list: &ListAnswer) -> Self {
        match list {
            ListAnswer::NotAsked | ListAnswer::Listed { .. } => Doubt::NotListed,
            ListAnswer::Missing => Doubt::NoList,
            ListAnswer::NotAList(reason) => Doubt::NotAList(reason.clone()),
            ListAnswer::Refused(status) => Doubt::Unlistable(*status),
            ListAnswer::Failed { category, unauthorized, unreachable, message } => Doubt::Failed {
                category: *category,
                unauthorized: *unauthorized,
                unreachable: *unreachable,
                message: message.clone(),
            },
        }
    }

    /// The kind of failure that it is.
    pub fn category(&self) -> Category {
        match self {
            Self::Failed { category, .. } => *category,
            Self::Unlistable(StatusCode::FORBIDDEN) => Category::Auth,
            Self::Several(_) | Self::AnotherAlias(_) | Self::ByMember(_) => Category::Conflict,
            Self::NotListed
            | Self::Cut
            | Self::PageSized(_)
            | Self::NoList
            | Self::Unlistable(_)
            | Self::NotAList(_)
            | Self::AliasNotListed(_) => Category::Validation,
        }
    }

    /// Whether the same question may be answered by the next run, without a change of metadata.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

/// What is unknown and which line of metadata would help.
impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const STATE_ID: &str =
            "state an id in the payload that is the alias, too, or create with PUT at the address of get";
        match self {
            Self::NotListed => write!(f, "the list of its collection was not read"),
            Self::Cut => write!(
                f,
                "the list of its collection has further pages; state in operations.list.pagination how to ask for them"
            ),
            Self::PageSized(entries) => write!(
                f,
                "the list of its collection has {entries} entries, which is a usual page size; state operations.list.pagination ({{style: none}} if lists are always whole)"
            ),
            Self::NoList => write!(f, "its collection cannot be listed (HTTP 404); {STATE_ID}"),
            Self::Unlistable(status) => {
                write!(f, "its collection cannot be listed (HTTP {}); {STATE_ID}", status.as_u16())
            }
            Self::NotAList(reason) => write!(
                f,
                "the answer to the list of its collection is not a list ({reason}); select the entries in operations.list.transforms, or {STATE_ID}"
            ),
            Self::Failed { message, .. } => f.write_str(message),
            Self::AliasNotListed(entries) => write!(
                f,
                "{entries} entries of the list of its collection do not state resource.alias; correct resource.alias, or add it in operations.list.transforms"
            ),
            Self::Several(ids) => write!(
                f,
                "several entries of the list of its collection have its id or its alias (ids: {}); correct the id in the payload, or delete the duplicate",
                ids.join(", ")
            ),
            Self::AnotherAlias(alias) => write!(
                f,
                "its id addresses a resource with another alias (\"{alias}\"); correct the id or the alias in the payload, or rename it on the server first"
            ),
            Self::ByMember(id) => write!(
                f,
                "only a member that metadata does not mention has its name (id {id}); state resource.id and resource.alias"
            ),
        }
    }
}

#[cfg(test)]
#[path = "absence_tests.rs"]
mod tests;
