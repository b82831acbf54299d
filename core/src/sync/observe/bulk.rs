//! Reads many resources by the lists of their collections, if these show the same as single reads.
//!
//! A list proves absence after a single read has confirmed the absence of one member. It proves equality after a single
//! read of one equal member has shown the same payload as the list. A member that differs is always read by itself.
//! If the entry of a member proved in an earlier run of the same revision that it is equal, the same entry proves it
//! again.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use tokio::sync::OnceCell;

use super::once::cell;
use super::parents::is_below_number;
use super::server::Remote;
use crate::metadata::Entry;
use crate::path::{LogicalPath, PathNames};
use crate::payload::Value;
use crate::sync::model::{
    Address, ListAnswer, Observed, Options, Question, Reading, Resource, Seen, Selection, Session, SyncError,
    Transcript, Verdict, Wanted, judge,
};

/// If a collection has fewer members than this, they are read by themselves: the list may show thousands of others.
const WORTH_A_LIST: usize = 3;

/// The server, and the collections whose lists may be used in one run.
pub struct Bulk {
    pub remote: Arc<Remote>,
    collections: HashMap<LogicalPath, Proof>,
    /// Whether a list may prove that a member is equal.
    compares: bool,
    /// Whether a list is read before any member is found missing.
    lists_first: bool,
}

/// What the server shows of one member of the selection.
#[expect(clippy::large_enum_variant, reason = "one value at a time, which is used immediately")]
pub enum Looked {
    /// The entry of a list with this id proves that it is equal.
    Equal(String),
    Read(Observed),
}

/// The knowledge about the list of one collection.
#[derive(Debug, Default)]
struct Proof {
    /// Whether the list proves the absence of resources that it does not show.
    absence: OnceCell<bool>,
    /// Set after the list was compared with a single read, in this run or before.
    compared: OnceCell<bool>,
    /// The number of members that were not processed yet, plus one if resources below them also need the list.
    left: AtomicUsize,
}

impl Bulk {
    /// Returns the collections of `selection` if it is the whole scope.
    pub fn new(remote: Arc<Remote>, selection: &Selection, options: &Options) -> Self {
        let declared =
            selection.resources.iter().filter(|_| selection.is_whole_scope()).map(|file| &file.path);
        let proof = |left| Proof { left: AtomicUsize::new(left), ..Proof::default() };
        let collections = uses_of_lists(declared).map(|(path, left)| (path, proof(left))).collect();
        let compares = options.effective_reading() == Reading::Bulk;
        // In a first run many members may be missing, and each of them would need a search.
        Self { remote, collections, compares, lists_first: compares || options.first }
    }

    /// Removes the members of `selection` that are still equal, and returns their number. They are not read from Git,
    /// so a drift check that finds few differences takes little more time than its lists.
    pub async fn take_equal(&self, selection: &mut Selection, options: &Options) -> usize {
        let Session { knowledge, tree, client, .. } = &self.remote.session;
        let settled = tree.revision().and_then(|revision| knowledge.settled(revision, options));
        let Some(settled) = settled else { return 0 };
        let mut members: HashMap<LogicalPath, Vec<LogicalPath>> = HashMap::new();
        for path in selection.resources.iter().map(|file| &file.path) {
            if let Some(collection) = path.parent().filter(|path| self.collections.contains_key(path)) {
                members.entry(collection).or_default().push(path.clone());
            }
        }
        members.retain(|collection, _| knowledge.shows_only_whole(collection));
        let seen = &settled.seen;
        let still = members.into_iter().map(|(collection, members)| async move {
            let list = self.remote.listed(&collection).await;
            let rules = self.remote.rules(&collection).await;
            let names = rules.map(|rules| rules.path_names()).unwrap_or_default();
            let still = still_equal(seen, &list.answer, members, names);
            for path in &still {
                self.looked_at(path);
            }
            still
        });
        let still = futures::stream::iter(still).buffer_unordered(client.max_concurrency());
        let still: HashSet<LogicalPath> = still.flat_map(futures::stream::iter).collect().await;
        selection.resources.retain(|file| !still.contains(&file.path));
        still.len()
    }

    /// Drops the list of a collection after the last of its members: lists need most of the memory of a run.
    pub fn looked_at(&self, path: &LogicalPath) {
        let Some(collection) = path.parent() else { return };
        let proof = self.collections.get(&collection);
        if proof.is_some_and(|proof| proof.left.fetch_sub(1, Ordering::Relaxed) == 1) {
            self.remote.lists.lock().remove(&collection);
        }
    }

    /// Whether the list of its collection, which is known to be complete, does not show `wanted`.
    pub fn is_known_absent(&self, wanted: &Resource) -> bool {
        let collection = wanted.path.collection();
        let proof = self.collections.get(&collection);
        proof.is_some_and(|proof| proof.absence.get() == Some(&true))
            && cell(&self.remote.lists, &collection)
                .get()
                .is_some_and(|list| is_absent(&list.clone().of(wanted), wanted))
            && !wanted.has_unknown_name()
    }

    /// Returns the state of one member of the selection. Uses the list of its collection if
    /// that is sufficient, else a single read. Rare branches are boxed, because the future is moved for each resource.
    pub async fn look(&self, wanted: &Resource) -> Result<Looked, SyncError> {
        let collection = wanted.path.collection();
        // A list that needs the ids of parents is read for each resource that is located.
        let proof = self.collections.get(&collection).filter(|_| !wanted.rules.names_ids());
        let Some(proof) = proof else {
            return self.remote.read(wanted).await.map(Looked::Read);
        };
        if is_below_number(&wanted.path) && !Box::pin(self.remote.is_at_its_names(&wanted.path)).await? {
            return self.remote.read(wanted).await.map(Looked::Read);
        }
        if self.lists_first || proof.absence.get() == Some(&true) {
            let compares = self.compares && wanted.rules.entries_may_stand_for_reads();
            let list = self.remote.list_for(wanted, &collection).await;
            match (verdict(&list, wanted), &*list) {
                (Verdict::Absent(_), _) => {
                    // If the parents have other ids on the server, another list shows the members.
                    let is_missing =
                        |observed: &Observed| observed.payload.is_none() && observed.at.path == wanted.path;
                    let is_proven = || proof.absence.get() == Some(&true);
                    let read = self.unless_proven(&proof.absence, wanted, is_missing, is_proven);
                    let absent = || Observed::new(wanted.clone(), None);
                    return Ok(Looked::Read(Box::pin(read).await?.unwrap_or_else(absent)));
                }
                (Verdict::Present(entry), ListAnswer::Listed { listing, .. })
                    if compares && listing.is_unique(&entry.remote_id, &wanted.identity.alias) =>
                {
                    return Box::pin(self.compared(&collection, proof, entry, wanted)).await;
                }
                _ => {}
            }
        }
        let observed = self.remote.read(wanted).await?;
        if observed.payload.is_none() && !proof.absence.initialized() {
            let absent = observed.at.path == wanted.path
                && is_absent(self.remote.list_for(wanted, &collection).await.as_ref(), wanted);
            // Another task may have set the same result before.
            let _ = proof.absence.set(absent);
        }
        Ok(Looked::Read(observed))
    }

    /// Returns the state of a member that the list shows as `entry`.
    async fn compared(
        &self,
        collection: &LogicalPath,
        proof: &Proof,
        entry: &Entry,
        wanted: &Resource,
    ) -> Result<Looked, SyncError> {
        let knowledge = &self.remote.session.knowledge;
        let note = |whole| knowledge.judge(collection, &wanted.rules, whole);
        let shown = wanted.rules.as_read(Cow::Borrowed(&entry.payload));
        if !is_desired(wanted, &shown) {
            let observed = self.remote.read(wanted).await?;
            if observed.payload.as_ref().is_some_and(|payload| is_desired(wanted, payload)) {
                // The list and the read show different payloads.
                note(false);
            }
            return Ok(Looked::Read(observed));
        }
        if let Some(whole) = knowledge.shows_whole(collection, &wanted.rules) {
            // An earlier run or this one has read a member by itself.
            let _ = proof.compared.set(whole);
        }
        let is_shown_whole = |observed: &Observed| {
            let whole = observed.payload.as_ref() == Some(&*shown);
            note(whole);
            whole
        };
        // Checked for each member: a later one may have refuted the first one.
        let is_proven = || knowledge.shows_whole(collection, &wanted.rules) == Some(true);
        let read = Box::pin(self.unless_proven(&proof.compared, wanted, is_shown_whole, is_proven)).await?;
        // The entry also proves the member that was read if both show the same.
        if read.as_ref().is_none_or(|observed| observed.payload.as_ref() == Some(&*shown)) {
            self.remote.transcript.note_equal(&wanted.path, entry);
        }
        Ok(read.map_or_else(|| Looked::Equal(entry.remote_id.clone()), Looked::Read))
    }

    /// Reads a member by itself, unless the list is proven correct. The first member that is read `confirms` or refutes
    /// the list, and the others wait for this result. A recheck does not repeat a read that only confirmed the list.
    async fn unless_proven(
        &self,
        first: &OnceCell<bool>,
        wanted: &Resource,
        confirms: impl FnOnce(&Observed) -> bool,
        is_proven: impl FnOnce() -> bool,
    ) -> Result<Option<Observed>, SyncError> {
        let mut sample = None;
        let probe = async {
            let transcript = Transcript::new(true);
            let remote = Remote { transcript: Arc::clone(&transcript), ..(*self.remote).clone() };
            let observed = remote.read(wanted).await?;
            let confirmed = confirms(&observed);
            if !confirmed {
                self.remote.transcript.append(&transcript);
            }
            sample = Some(observed);
            Ok::<_, SyncError>(confirmed)
        };
        first.get_or_try_init(|| probe).await?;
        match sample {
            None if !is_proven() => self.remote.read(wanted).await.map(Some),
            sample => Ok(sample),
        }
    }
}

/// Returns the collections whose lists are worth a request, and the number of uses of each list: one for each member in
/// `declared`, and one that never ends if resources below the members need the list.
fn uses_of_lists<'p>(
    declared: impl Iterator<Item = &'p LogicalPath>,
) -> impl Iterator<Item = (LogicalPath, usize)> {
    let mut members: HashMap<LogicalPath, usize> = HashMap::new();
    for collection in declared.filter_map(LogicalPath::parent) {
        *members.entry(collection).or_default() += 1;
    }
    let above: HashSet<LogicalPath> = members.keys().flat_map(LogicalPath::ancestors).collect();
    let worth_it = members.into_iter().filter(|(_, count)| *count >= WORTH_A_LIST);
    worth_it.map(move |(path, count)| {
        let uses = count + usize::from(above.contains(&path));
        (path, uses)
    })
}

/// Returns those `members` of a collection whose entry is the same as the one that proved them equal. No other entry may
/// have one of their names.
fn still_equal(
    seen: &Seen,
    list: &ListAnswer,
    members: Vec<LogicalPath>,
    names: PathNames,
) -> Vec<LogicalPath> {
    let ListAnswer::Listed { listing, .. } = list else { return Vec::new() };
    let entries: HashMap<u64, &Entry> =
        listing.entries().iter().map(|entry| (seen.hash(entry), entry)).collect();
    let is_equal = |path: &LogicalPath| {
        let entry = seen.equal(path).and_then(|hash| entries.get(&hash));
        entry.is_some_and(|entry| listing.is_alone(entry, &names.decode(path.name())))
    };
    members.into_iter().filter(is_equal).collect()
}

/// Returns the verdict of the list alone about `wanted`.
fn verdict<'l>(list: &'l ListAnswer, wanted: &'l Resource) -> Verdict<'l> {
    judge(&Question { wanted: Wanted::of(wanted), ..Question::default() }, Address::NotAsked, list)
}

fn is_absent(list: &ListAnswer, wanted: &Resource) -> bool {
    matches!(verdict(list, wanted), Verdict::Absent(_))
}

fn is_desired(wanted: &Resource, payload: &Value) -> bool {
    let compared = wanted.evaluation().and_then(|evaluation| Ok(evaluation.compare(payload)?));
    compared.is_ok_and(|differences| differences.is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::leaves(&["/a/x", "/a/y", "/a/z", "/b/x"], &["/a 3"])]
    #[case::parents(&["/a/x", "/a/y", "/a/z", "/a/x/c/d", "/a/x/c/e", "/a/x/c/f"], &["/a 4", "/a/x/c 3"])]
    #[case::undeclared_parents(&["/a/x", "/a/y", "/a/z", "/a/u/c/d"], &["/a 4"])]
    fn a_list_is_dropped_after_its_last_use(#[case] declared: &[&str], #[case] expected: &[&str]) {
        let declared: Vec<LogicalPath> =
            declared.iter().map(|path| LogicalPath::parse(path).unwrap()).collect();
        let uses = uses_of_lists(declared.iter()).map(|(path, left)| format!("{path} {left}"));
        let mut uses: Vec<String> = uses.collect();
        uses.sort();
        assert_eq!(uses, expected);
    }
}
