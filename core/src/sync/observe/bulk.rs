//! Many resources by the lists of their collections, where these show the same as single reads.
//!
//! A list proves absence once one member that is not on it was looked for by itself in vain. It proves equality once
//! one member that it shows as equal was read by itself and is shown whole. What differs is always read by itself.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

use tokio::sync::OnceCell;

use super::server::{Remote, cell};
use crate::metadata::Entry;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::sync::model::{
    Address, ListAnswer, Observed, Options, Question, Reading, Resource, Selection, SyncError, Transcript,
    Verdict, Wanted, judge,
};

/// Fewer members than this are read by themselves: the list may show thousands of others.
const WORTH_A_LIST: usize = 3;

/// The server, and the collections whose lists may answer in one run.
pub struct Bulk {
    pub remote: Arc<Remote>,
    collections: HashMap<LogicalPath, Proof>,
    /// Whether a list may show that a member is as desired.
    compares: bool,
    /// Whether a list is asked for before a member is found missing.
    lists_first: bool,
}

/// What was found out about the list of one collection.
#[derive(Debug, Default)]
struct Proof {
    /// Whether a resource that is not on it does not exist.
    absence: OnceCell<bool>,
    /// Set once it was compared with a single read, in this run or before.
    compared: OnceCell<bool>,
    /// How many members were not looked at yet, and one more if resources below them need the list, too.
    left: AtomicUsize,
}

impl Bulk {
    /// The collections of `selection`, if it is about all that they declare.
    pub fn new(remote: Arc<Remote>, selection: &Selection, options: &Options) -> Self {
        let mut members: HashMap<LogicalPath, usize> = HashMap::new();
        if selection.whole_scope {
            for collection in selection.resources.iter().filter_map(|file| file.path.parent()) {
                *members.entry(collection).or_default() += 1;
            }
        }
        let above: HashSet<LogicalPath> = members.keys().flat_map(LogicalPath::ancestors).collect();
        let worth_it = members.into_iter().filter(|(_, count)| *count >= WORTH_A_LIST);
        let proof = |(path, count): (LogicalPath, usize)| {
            let left = AtomicUsize::new(count + usize::from(above.contains(&path)));
            (path, Proof { left, ..Proof::default() })
        };
        let collections = worth_it.map(proof).collect();
        let compares = options.effective_reading() == Reading::Bulk;
        // Much may be missing in a first run, and each of it would be looked for by itself.
        Self { remote, collections, compares, lists_first: compares || options.first }
    }

    /// Drops the list of a collection after the last of its members: lists are most of what a run holds.
    pub fn looked_at(&self, path: &LogicalPath) {
        let Some(collection) = path.parent() else { return };
        let proof = self.collections.get(&collection);
        if proof.is_some_and(|proof| proof.left.fetch_sub(1, Ordering::Relaxed) == 1) {
            self.remote.lists.lock().unwrap_or_else(PoisonError::into_inner).remove(&collection);
        }
    }

    /// Whether the list of its collection, which is known to show all that exist, does not show `wanted`.
    pub fn is_known_absent(&self, wanted: &Resource) -> bool {
        let collection = wanted.path.parent().unwrap_or_else(LogicalPath::root);
        let proof = self.collections.get(&collection);
        proof.is_some_and(|proof| proof.absence.get() == Some(&true))
            && cell(&self.remote.lists, &collection).get().is_some_and(|list| is_absent(list, wanted))
    }

    /// What the server has of one member of the selection, `None` if that is what is desired: by the list of its
    /// collection where that is enough, else by reading it. What most resources do not need is boxed: the future of a
    /// read is moved around for each of them.
    pub async fn look(&self, wanted: &Resource) -> Result<Option<Observed>, SyncError> {
        let collection = wanted.path.parent().unwrap_or_else(LogicalPath::root);
        let Some(proof) = self.collections.get(&collection) else {
            return self.remote.read(wanted).await.map(Some);
        };
        if self.lists_first || proof.absence.get() == Some(&true) {
            let compares = self.compares && wanted.rules.entries_may_stand_for_reads();
            let list = self.remote.listed(&collection).await;
            match (verdict(&list, wanted), &*list) {
                (Verdict::Absent(_), _) => {
                    // Below parents with other ids on the server, another list shows what is there.
                    let is_missing =
                        |observed: &Observed| observed.payload.is_none() && observed.at.path == wanted.path;
                    let is_proven = || proof.absence.get() == Some(&true);
                    let read = self.unless_proven(&proof.absence, wanted, is_missing, is_proven);
                    let absent = || Observed::new(wanted.clone(), None);
                    return Ok(Some(Box::pin(read).await?.unwrap_or_else(absent)));
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
            let absent =
                observed.at.path == wanted.path && is_absent(&*self.remote.listed(&collection).await, wanted);
            // Another task may have been faster, with the same result.
            let _ = proof.absence.set(absent);
        }
        Ok(Some(observed))
    }

    /// A member that the list shows as `entry`; `None` if that is desired and enough to know.
    async fn compared(
        &self,
        collection: &LogicalPath,
        proof: &Proof,
        entry: &Entry,
        wanted: &Resource,
    ) -> Result<Option<Observed>, SyncError> {
        let knowledge = &self.remote.session.knowledge;
        let note = |whole| knowledge.judge(collection, &wanted.rules, whole);
        if !is_desired(wanted, &entry.payload) {
            let observed = self.remote.read(wanted).await?;
            if observed.payload.as_ref().is_some_and(|payload| is_desired(wanted, payload)) {
                // The list shows something else than a read does.
                note(false);
            }
            return Ok(Some(observed));
        }
        if let Some(whole) = knowledge.shows_whole(collection, &wanted.rules) {
            // An earlier run has read a member by itself, or this one has.
            let _ = proof.compared.set(whole);
        }
        let is_shown_whole = |observed: &Observed| {
            let whole = observed.payload.as_ref() == Some(&entry.payload);
            note(whole);
            whole
        };
        // Asked anew each time: a later member may have refuted the first one.
        let is_proven = || knowledge.shows_whole(collection, &wanted.rules) == Some(true);
        self.unless_proven(&proof.compared, wanted, is_shown_whole, is_proven).await
    }

    /// Reads a member by itself, unless the list is proven to show it well. The first member that is read `confirms`
    /// what the list shows or refutes it, and the others wait for that. A run that is repeated does not read again what
    /// only confirmed the list.
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

/// What the list alone says about `wanted`.
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
