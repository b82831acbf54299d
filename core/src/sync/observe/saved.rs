//! The members of a list as reads of each of them show them, for files.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::StreamExt as _;

use super::other_id::is_another;
use super::remote::Members;
use super::server::Remote;
use crate::error::{Categorized as _, Category};
use crate::metadata::transform::member_expression;
use crate::metadata::{Entry, Identity};
use crate::path::LogicalPath;
use crate::payload::{Object, Value};
use crate::sync::model::{Doubt, Observed, Resource, SyncError};

/// The number of reads without an answer in succession that end the reads of a collection.
const UNANSWERED: usize = 3;
/// The number of members of a collection that are read to learn whether its list shows them whole.
const MAX_SAMPLES: usize = 50;

impl Remote {
    /// Returns `members` of the collection at `path` with the payloads that reads of them show. `others` are its members that
    /// the caller does not need.
    ///
    /// Reads the largest of all and, if that fails, one more. If both fail, `members` keep the payloads of the list. If a read
    /// shows the same JSON as the list, others that the list may shorten are read, too. If all show the same,
    /// `members` keep the payloads of the list; otherwise each of them is read, and those that cannot be read are in `unread`.
    ///
    /// Fails if the first read shows another resource, or has an envelope around the resource: a file with it would be sent
    /// to the server. Also fails if the server answers no read, or its answer cannot be evaluated.
    pub async fn as_reads_show(
        &self,
        path: &LogicalPath,
        members: Members,
        others: &BTreeMap<LogicalPath, Entry>,
    ) -> Result<Members, SyncError> {
        if members.entries.is_empty() {
            return Ok(members);
        }
        let located = members.located.as_ref().unwrap_or(path);
        // The others were saved before, so they can probably be read.
        let all = || others.iter().chain(&members.entries);
        let largest = all().max_by_key(|(_, entry)| entry.payload.weight());
        let Some((at, largest)) = largest else { return Ok(members) };
        let rules = self.rules(at).await?;
        // Such members were already read.
        if rules.lists_names() || rules.reads_from_list() {
            return Ok(members);
        }
        let other = all().find(|(path, _)| *path != at).map(|(_, entry)| entry);
        let (mut read, mut failed) = (None, Vec::new());
        for sample in std::iter::once(largest).chain(other) {
            match self.with_payload(path, located, sample.clone()).await {
                Ok(entry) => {
                    read = entry.map(|entry| (sample, entry));
                    break;
                }
                Err(error) if may_concern_one(&error) || error.is_unreachable() => failed.push(error),
                Err(error) => return Err(error),
            }
        }
        let Some((sample, read)) = read else {
            if let Some(lost) = failed.iter().position(SyncError::is_unreachable) {
                return Err(failed.swap_remove(lost));
            }
            return Ok(Members { as_listed: failed.into_iter().next().map(Box::new), ..members });
        };
        let listed = rules.as_read(Cow::Borrowed(&sample.payload));
        if read.payload == *listed && read.format.is_none() {
            let further = samples(others.values().chain(members.entries.values()), sample);
            if self.show_the_same(path, located, further).await? {
                return Ok(members);
            }
        }
        if let Some(member) = envelope(&read.payload, &listed) {
            return Err(SyncError::Enveloped(path.clone(), member));
        }
        let (entries, unread) = self.read_members(path, located, members.entries).await?;
        Ok(Members { entries: entries.into_iter().collect(), unread, ..members })
    }

    /// Whether reads show the same as these entries of a list. Those that cannot be read do not count.
    async fn show_the_same(
        &self,
        collection: &LogicalPath,
        located: &LogicalPath,
        entries: Vec<&Entry>,
    ) -> Result<bool, SyncError> {
        let reads = futures::stream::iter(entries).map(|entry| async move {
            let rules = self.rules(&entry.path(located, self.rules(collection).await?.path_names())?).await?;
            match self.with_payload(collection, located, entry.clone()).await {
                Ok(Some(read)) => Ok(read.payload == *rules.as_read(Cow::Borrowed(&entry.payload))),
                Ok(None) => Ok(true),
                Err(error) if may_concern_one(&error) => Ok(true),
                Err(error) if error.is_unauthorized() => Err(error),
                // The reads of all members name it.
                Err(_) => Ok(false),
            }
        });
        let mut reads = reads.buffered(self.session.client.max_concurrency());
        while let Some(is_same) = reads.next().await {
            if !is_same? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns `entry` with the payload of the member that it names; `None` if a list of names has a name that the server does not know.
    /// The collection has the path `located` on the server.
    async fn with_payload(
        &self,
        collection: &LogicalPath,
        located: &LogicalPath,
        entry: Entry,
    ) -> Result<Option<Entry>, SyncError> {
        let names = self.rules(collection).await?.path_names();
        let path = entry.path(located, names)?;
        let rules = self.rules(&path).await?;
        let is_named = rules.lists_names() || rules.reads_from_list();
        let declared = (collection != located).then(|| entry.path(collection, names)).transpose()?;
        let read = if rules.reads_from_list() {
            let member = Resource { declared, ..Resource::named(path, rules, entry.payload.clone())? };
            let (member, lacking) = self.with_template_values(self.with_reader(&member)).await?;
            lacking.map_or(Ok(()), Err)?;
            self.of_entry(&member, &entry).await
        } else {
            let named = match Resource::by_path(path.clone(), Arc::clone(&rules)) {
                Ok(member) => member,
                // Its names are more than its path shows.
                Err(_) => Resource { seeded: true, ..Resource::named(path, rules, entry.payload.clone())? },
            };
            // Nothing was read at its names before.
            let identity = Identity { alias: entry.alias.clone(), remote_id: String::new() };
            let member = Resource { declared, identity, ..named };
            let names = Identity { alias: entry.alias.clone(), remote_id: entry.remote_id.clone() };
            match self.read_at_entry(&member, &entry).await {
                // Some servers answer with another resource if the address is wrong.
                Ok(observed) if states_names(&observed) && is_another(&observed, &names) => {
                    Err(observed.at.undecided(Doubt::AnotherThere(names.remote_id)))
                }
                read => read,
            }
        };
        match read {
            Ok(Observed { payload, descriptor, .. }) => {
                let format = descriptor.map(Box::new);
                Ok(payload.map(|payload| Entry { payload, format, ..entry }))
            }
            // What a list of entries shows exists.
            Err(error) if error.category() == Category::NotFound && is_named => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the members that exist with the payloads that reads of them show, and those that could not be read. Fails
    /// if the server rejects the credentials, or does not answer several reads in succession: one may be about its member.
    pub(super) async fn read_members(
        &self,
        collection: &LogicalPath,
        located: &LogicalPath,
        members: impl IntoIterator<Item = (LogicalPath, Entry)>,
    ) -> Result<(Vec<(LogicalPath, Entry)>, Vec<(LogicalPath, SyncError)>), SyncError> {
        let reads = futures::stream::iter(members).map(|(member, entry)| async move {
            let read = self.with_payload(collection, located, entry).await;
            (member, read)
        });
        let mut reads = reads.buffered(self.session.client.max_concurrency());
        let (mut read, mut unread, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        let mut unanswered = 0;
        while let Some((member, result)) = reads.next().await {
            let answers = !result.as_ref().is_err_and(SyncError::is_unreachable);
            unanswered = if answers { 0 } else { unanswered + 1 };
            match result {
                Ok(Some(entry)) => read.push((member, entry)),
                Ok(None) => gone.push(member),
                Err(error) if error.is_unauthorized() || unanswered == UNANSWERED => return Err(error),
                Err(error) => unread.push((member, error)),
            }
        }
        if !gone.is_empty() && !read.is_empty() {
            let still = self.still_listed(collection, located, gone).await?;
            unread.extend(still.map(|member| (member.clone(), SyncError::Absent(member))));
        }
        Ok((read, unread))
    }

    /// Returns those of the members that do not exist which a list of names shows once more. The others were deleted after
    /// the list was read; the names or the address of these are wrong.
    async fn still_listed(
        &self,
        collection: &LogicalPath,
        located: &LogicalPath,
        gone: Vec<LogicalPath>,
    ) -> Result<impl Iterator<Item = LogicalPath> + use<>, SyncError> {
        let rules = self.rules(collection).await?;
        let again = if rules.lists_names() { self.read_list(located).await.ok() } else { None };
        let entries = again.map(|list| list.entries.named).unwrap_or_default();
        let path = |entry: Entry| entry.path(collection, rules.path_names()).ok();
        let listed: HashSet<_> = entries.into_iter().filter_map(path).collect();
        Ok(gone.into_iter().filter(move |member| listed.contains(member)))
    }
}

/// Returns the entries that show whether a list leaves out attributes or shortens values: one with each set of attributes,
/// and the one with the longest text or array of each attribute, but not `known`.
fn samples<'e>(entries: impl Iterator<Item = &'e Entry> + Clone, known: &Entry) -> Vec<&'e Entry> {
    let (mut shapes, mut longest) = (HashSet::new(), HashMap::<String, (usize, &Entry)>::new());
    let mut chosen = Vec::new();
    for entry in entries {
        let mut lengths = BTreeMap::new();
        measure(&entry.payload, String::new(), &mut lengths);
        if shapes.insert(lengths.keys().cloned().collect::<Vec<_>>()) {
            chosen.push(entry);
        }
        for (attribute, length) in lengths {
            let most = longest.entry(attribute).or_insert((length, entry));
            if length > most.0 {
                *most = (length, entry);
            }
        }
    }
    let mut longest: Vec<_> = longest.into_values().collect();
    longest.sort_by(|(a, first), (b, second)| b.cmp(a).then_with(|| first.remote_id.cmp(&second.remote_id)));
    let mut names = HashSet::from([&known.remote_id]);
    let all = chosen.into_iter().chain(longest.into_iter().map(|(_, entry)| entry));
    all.filter(|entry| names.insert(&entry.remote_id)).take(MAX_SAMPLES).collect()
}

/// Adds the length of each text and array in `value` by its place. The entries of arrays have one place.
fn measure(value: &Value, at: String, lengths: &mut BTreeMap<String, usize>) {
    let length = match value {
        Value::String(text) => text.len(),
        Value::Array(entries) => entries.len(),
        _ => 0,
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                measure(member, format!("{at}/{name}"), lengths);
            }
        }
        Value::Array(entries) => {
            for entry in entries {
                measure(entry, format!("{at}/*"), lengths);
            }
        }
        _ => {}
    }
    let longest = lengths.entry(at).or_default();
    *longest = length.max(*longest);
}

impl Members {
    /// Fails with the first error if members could not be read. Those that do not exist are left out.
    pub fn all_read(mut self) -> Result<Self, SyncError> {
        self.unread.retain(|(_, error)| !matches!(error, SyncError::Absent(_)));
        if self.unread.is_empty() { Ok(self) } else { Err(self.unread.swap_remove(0).1) }
    }
}

/// Whether the answer states its id, or metadata states that its alias is the id.
fn states_names(observed: &Observed) -> bool {
    let rules = &observed.at.rules;
    let states_id = |payload| rules.observed_id(payload).is_some();
    rules.identity().any_explicit()
        && (rules.identity().is_one() || observed.payload.as_ref().is_some_and(states_id))
}

/// Whether another member may be readable, although this is the error of the read of one.
fn may_concern_one(error: &SyncError) -> bool {
    let is_absent = error.category() == Category::NotFound;
    let is_of_server = matches!(error, SyncError::Server(_)) && !error.is_unreachable();
    is_absent || error.is_unreadable() || is_of_server && !error.is_unauthorized()
}

/// Returns the member of a read that has the content of the entry, if the read has an envelope: it has few members of
/// the entry, and only one of its members has most of them.
fn envelope(read: &Value, entry: &Value) -> Option<String> {
    let (Value::Object(read), Value::Object(entry)) = (read, entry) else { return None };
    let shared = |object: &Object| entry.keys().filter(|name| object.contains_key(*name)).count();
    // Some servers answer the read of one resource with a list.
    let only = |member: &Value| matches!(member.as_array(), Some([_]));
    // Others answer it with an object that has a list of its parts, which have attributes of the same names.
    let equal =
        |object: &Object| entry.iter().filter(|(name, value)| object.get(*name) == Some(value)).count();
    let held = |member: &Value| match member.as_array() {
        Some([only]) => only.as_object().map(equal),
        _ => member.as_object().map(shared),
    };
    let holds = |member: &Value| held(member).is_some_and(|shared| shared * 4 >= entry.len() * 3);
    let mut holders = read.iter().filter(|(_, member)| holds(member));
    let (name, member) = holders.next().filter(|_| shared(read) * 2 < entry.len())?;
    let index = if only(member) { "[0]" } else { "" };
    holders.next().is_none().then(|| format!("{}{index}", member_expression(name)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case::envelope(r#"{"version": 1, "shop": {"id": 1, "tier": "gold"}}"#, Some(".shop"))]
    #[case::without_some(r#"{"data": {"id": 1, "size": 2}}"#, None)]
    #[case::with_more(r#"{"data": {"id": 1, "tier": "gold", "size": 2}}"#, Some(".data"))]
    #[case::the_resource_itself(r#"{"id": 1, "data": {"id": 1, "tier": "gold"}}"#, None)]
    #[case::with_others(r#"{"labels": {"id": "Id"}, "result": {"id": 1, "tier": "gold"}}"#, Some(".result"))]
    #[case::several(r#"{"meta": {"id": 1, "tier": "gold"}, "spec": {"id": 1, "tier": "free"}}"#, None)]
    #[case::list(r#"{"data": [{"id": 1, "tier": "gold"}]}"#, Some(".data[0]"))]
    #[case::part(r#"{"ruleset": 1, "rules": [{"id": 91, "tier": "silver"}]}"#, None)]
    #[case::longer_list(r#"{"data": [{"id": 1, "tier": "gold"}, {"id": 2, "tier": "free"}]}"#, None)]
    #[case::text("\"x\"", None)]
    fn envelopes(#[case] read: &str, #[case] expected: Option<&str>) {
        let json = |text: &str| decode(PayloadType::Json, text.as_bytes()).unwrap();
        let found = envelope(&json(read), &json(r#"{"id": 1, "tier": "gold"}"#));
        assert_eq!(found.as_deref(), expected);
    }
}
