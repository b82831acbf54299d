//! Decides whether the server has a resource: one pure function of the question and the answers. All creates, updates
//! and deletions depend on it. `docs/lists.md` explains this table.
//!
//! | answer | the client chooses ids | the server chooses ids |
//! |---|---|---|
//! | its own address: not found; create is a PUT to that address | absent | absent |
//! | its own address: not found; the payload states the id, which is also the alias; not in the list | absent | - |
//! | its own address: not found; the payload states the id; list: 403 or 405 | absent | - |
//! | its own address: not found; whole list without its id and alias | absent | absent |
//! | its parent is absent | absent | absent |
//! | its own address: not found; list: several entries have its names | unknown | unknown |
//! | its own address: not found; list: does not show it, and is cut, as long as a usual page, 404, not a list, failed | unknown | unknown |
//! | its own address: found, and states another alias | the list decides; unknown if the id is also the alias | the list decides |

use super::{Doubt, Match, Wanted};
use crate::memory::Share;
use crate::metadata::{Entry, Listing};

/// The question whether the server has one resource.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the resource")]
pub struct Question<'r> {
    /// The names of the resource.
    pub wanted: Wanted<'r>,
    /// Whether a create is an idempotent PUT to the address of its read.
    pub put_creates: bool,
    /// Whether a create is a POST to the collection, so that it never changes another resource.
    pub post_creates: bool,
    /// Whether it was applied under the same id before. Then another alias at this id is a change, not another
    /// resource.
    pub is_known: bool,
    /// Whether it is to be deleted. Then a match by a member that commonly names resources is not enough.
    pub doomed: bool,
}

/// The answer of the address of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address<'a> {
    /// The address was not read.
    NotAsked,
    /// A resource. Holds its alias, if it shows one. See `Observed::alias`.
    Found(Option<&'a str>),
    /// The same, at an address that is not below that of its collection. The resource may belong to another one.
    Elsewhere(Option<&'a str>),
    /// HTTP 404 or 410.
    NotFound,
    /// HTTP 404 or 410; its parent does not exist either.
    NoParent,
    /// The server cannot read a single resource at this address, or the path cannot be rendered.
    Unreadable,
}

/// The answer of the list of a collection.
#[derive(Debug)]
pub enum ListAnswer {
    /// The list was read.
    Listed {
        /// The entries that the list shows.
        listing: Listing,
        /// Why other resources may exist in addition; `None` if the list is complete.
        doubt: Option<Doubt>,
        /// The memory that the entries occupy.
        held: Share,
    },
    /// The list is unknown for this reason.
    Unknown(Doubt),
}

/// Whether the server has a resource.
#[derive(Debug)]
pub enum Verdict<'l> {
    /// Its own address shows it.
    Here,
    /// This entry of the list is the resource.
    Present(&'l Entry),
    /// It does not exist.
    Absent(Proof),
    /// Unknown; nothing may be written.
    Unknown(Doubt),
}

/// The proof that a resource does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its address has nothing. A PUT there creates the resource or updates an existing one.
    PutCreates,
    /// Its address, which its payload states, has nothing, and the resource has no other name.
    Address,
    /// The address has nothing, and the server refuses to list the collection.
    Unlistable,
    /// The whole list shows neither its id nor its alias.
    List,
    /// Its parent does not exist.
    Parent,
}

/// Returns whether the server has the resource of `question`.
pub fn judge<'l>(question: &Question<'l>, address: Address<'_>, list: &'l ListAnswer) -> Verdict<'l> {
    let (wanted, at_nothing) = (&question.wanted, address == Address::NotFound);
    match (address, list) {
        (Address::Found(alias) | Address::Elsewhere(alias), _) => confirm(question, address, alias, list),
        (Address::NoParent, _) => Verdict::Absent(Proof::Parent),
        (Address::NotFound, _) if question.put_creates => Verdict::Absent(Proof::PutCreates),
        (Address::NotFound, _) if wanted.id.is_some() && wanted.one_name => by_address(wanted, list),
        (_, ListAnswer::Unknown(Doubt::Unlistable(_))) if at_nothing && wanted.id.is_some() => {
            Verdict::Absent(Proof::Unlistable)
        }
        (_, ListAnswer::Listed { listing, doubt, .. }) => look_up(question, listing, doubt.as_ref()),
        (_, ListAnswer::Unknown(doubt)) => Verdict::Unknown(doubt.clone()),
    }
}

/// Decides for a resource whose id is also its alias and whose address has nothing. It does not exist unless a list
/// shows it: some servers read by another id than the one that metadata states.
fn by_address<'l>(wanted: &Wanted<'l>, list: &'l ListAnswer) -> Verdict<'l> {
    match list {
        ListAnswer::Unknown(Doubt::NotListed) => Verdict::Unknown(Doubt::NotListed),
        ListAnswer::Unknown(_) => Verdict::Absent(Proof::Address),
        ListAnswer::Listed { listing, .. } => match wanted.find(listing) {
            Match::Entry(entry) => Verdict::Present(entry),
            Match::Several(ids) => Verdict::Unknown(Doubt::Several(ids)),
            Match::Member(_) | Match::Nothing => Verdict::Absent(Proof::Address),
        },
    }
}

/// Decides by the list if the address of the resource has nothing.
fn look_up<'l>(question: &Question<'l>, listing: &'l Listing, doubt: Option<&Doubt>) -> Verdict<'l> {
    let wanted = &question.wanted;
    let unnamed = if wanted.alias.is_some() { listing.without_alias() } else { 0 };
    match (wanted.find(listing), doubt) {
        (Match::Several(ids), _) => Verdict::Unknown(Doubt::Several(ids)),
        (Match::Entry(entry), doubt) if is_renamed(wanted, entry) => match doubt {
            None if is_number_of_another(question, entry) => Verdict::Absent(Proof::List),
            _ => another(&entry.alias),
        },
        (Match::Member(entry), _) if question.doomed => {
            Verdict::Unknown(Doubt::ByMember(entry.remote_id.clone()))
        }
        (Match::Entry(entry) | Match::Member(entry), _) => Verdict::Present(entry),
        (Match::Nothing, Some(doubt)) => Verdict::Unknown(doubt.clone()),
        (Match::Nothing, None) if unnamed > 0 => Verdict::Unknown(Doubt::AliasNotListed(unnamed)),
        (Match::Nothing, None) => Verdict::Absent(Proof::List),
    }
}

/// Decides whether the resource at the address is the wanted one. A stale id addresses another resource.
fn confirm<'l>(
    question: &Question<'l>,
    address: Address<'_>,
    shown: Option<&str>,
    list: &'l ListAnswer,
) -> Verdict<'l> {
    let wanted = &question.wanted;
    let same = shown.is_some_and(|shown| wanted.answers_to(shown));
    // The resource with the alias of the payload may be another one.
    let by_segment = shown.is_some_and(|shown| wanted.is_only_segment(shown));
    // An address by name needs no check. Only an id may be stale.
    if wanted.by_path || same && wanted.id.is_none() && !by_segment {
        return Verdict::Here;
    }
    if wanted.one_name {
        return shown.filter(|_| !same).map_or(Verdict::Here, another);
    }
    let (listing, is_whole) = match list {
        ListAnswer::Listed { listing, doubt, .. } => (listing, doubt.is_none()),
        ListAnswer::Unknown(Doubt::NotListed) => return Verdict::Unknown(Doubt::NotListed),
        ListAnswer::Unknown(_) if same => return Verdict::Here,
        // The id that the payload states is the only name that can be checked.
        ListAnswer::Unknown(Doubt::NoList | Doubt::NotAList(..) | Doubt::Unlistable(_))
            if shown.is_none() && wanted.id.is_some() =>
        {
            return Verdict::Here;
        }
        ListAnswer::Unknown(doubt) => return Verdict::Unknown(doubt.clone()),
    };
    let shown_alias = shown.unwrap_or_default();
    match (wanted.find(listing), wanted.id) {
        (Match::Several(ids), _) => Verdict::Unknown(Doubt::Several(ids)),
        // The stale id addresses a resource of another collection that has the same alias.
        (Match::Entry(entry), Some(id)) if same && entry.states.id && id != entry.remote_id => {
            Verdict::Unknown(Doubt::AnotherId(id.to_owned(), entry.remote_id.clone()))
        }
        (Match::Nothing, Some(id)) if same && is_whole && matches!(address, Address::Elsewhere(_)) => {
            Verdict::Unknown(Doubt::NotAMember(id.to_owned()))
        }
        (Match::Entry(entry), None) if by_segment && wanted.alias == Some(&entry.alias) => {
            Verdict::Present(entry)
        }
        _ if same => Verdict::Here,
        (Match::Entry(entry), None) if is_renamed(wanted, entry) => {
            let is_absent = is_whole && is_number_of_another(question, entry);
            if is_absent { Verdict::Absent(Proof::List) } else { another(&entry.alias) }
        }
        (Match::Entry(entry), None) if entry.remote_id != wanted.name => Verdict::Present(entry),
        // The id of the payload addresses another resource than the alias.
        (Match::Entry(entry), Some(id)) if id != entry.remote_id => another(shown_alias),
        // The id may belong to another resource, and then this one does not exist yet.
        (Match::Entry(_) | Match::Nothing, Some(_)) if shown.is_some() && !question.is_known => {
            another(shown_alias)
        }
        (Match::Nothing, None) if shown.is_some() && wanted.states_alias => {
            // The name is the id of a member of another collection.
            let is_foreign = matches!(address, Address::Elsewhere(_))
                && listing.with_alias(shown_alias).next().is_none()
                && listing.without_alias() == 0;
            if is_foreign && is_whole && question.post_creates {
                Verdict::Absent(Proof::List)
            } else {
                another(shown_alias)
            }
        }
        _ => Verdict::Here,
    }
}

/// Whether an entry was found by its id, which is the last segment of the path, although it has another alias.
fn is_renamed(wanted: &Wanted<'_>, entry: &Entry) -> bool {
    let by_alias = wanted.answers_to(&entry.alias);
    wanted.id.is_none() && wanted.states_alias && wanted.alias.is_some() && entry.states.alias && !by_alias
}

/// Whether the id of a renamed entry is a number that the server assigned, and the name of the wanted resource only
/// happens to be the same.
fn is_number_of_another(question: &Question<'_>, entry: &Entry) -> bool {
    question.post_creates && entry.states.number && question.wanted.has_only_its_name()
}

fn another<'l>(alias: &str) -> Verdict<'l> {
    Verdict::Unknown(Doubt::AnotherAlias(alias.to_owned()))
}

#[cfg(test)]
#[path = "absence_tests.rs"]
mod tests;
