//! Many resources by the lists of their collections, where these show the same as single reads.
//!
//! A list proves absence once one member that is not on it was looked for by itself in vain; in a first run, which
//! may find much missing, list and member are asked for at the same time. It proves equality once one member that it
//! shows as equal was read by itself and is shown whole. What differs is always read by itself.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::remote::Remote;
use crate::metadata::Entry;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::sync::model::{
    Address, ListAnswer, Observed, Options, Question, Reading, Resource, Selection, SyncError, Verdict,
    Wanted, judge,
};

/// Fewer members than this are read by themselves: the list may show thousands of others.
const WORTH_A_LIST: usize = 3;

/// The server, and the collections whose lists may answer in one run.
pub struct Bulk {
    pub remote: Arc<Remote>,
    collections: HashMap<LogicalPath, Proof>,
    reading: Reading,
    /// Whether a list is asked for together with its first member.
    eager: bool,
}

/// What was found out about the list of one collection.
#[derive(Debug, Default)]
struct Proof {
    /// Whether a resource that is not on it does not exist.
    absence: OnceCell<bool>,
    /// Set once it was compared with a single read, in this run or before.
    compared: OnceCell<()>,
    /// Set once it was asked for together with a member, in a first run.
    opened: OnceCell<()>,
}

/// What the server has of a resource, as far as it had to be looked at.
#[derive(Debug)]
pub enum Seen {
    /// What is desired; the payload is of no further use.
    Equal,
    /// Something, or nothing.
    Observed(Box<Observed>),
}

/// What a list shows of one member.
enum Shown {
    /// What is desired.
    Equal,
    Different,
    Absent,
    /// Nothing that could be relied on.
    Nothing,
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
        let worth_it = members.into_iter().filter(|(_, count)| *count >= WORTH_A_LIST);
        let collections = worth_it.map(|(path, _)| (path, Proof::default())).collect();
        Self { remote, collections, reading: options.effective_reading(), eager: options.first }
    }

    /// Whether the list of its collection, which is known to show all that exist, does not show `wanted`.
    pub fn is_known_absent(&self, wanted: &Resource) -> bool {
        let collection = wanted.path.parent().unwrap_or_else(LogicalPath::root);
        let proof = self.collections.get(&collection);
        proof.is_some_and(|proof| proof.absence.get() == Some(&true))
            && self
                .remote
                .lists
                .cell(&collection)
                .get()
                .is_some_and(|answer| matches!(shown_in(answer, wanted, false), Shown::Absent))
    }

    /// Looks at one member of the selection: on the list of its collection where that is enough, else by
    /// reading it. What most resources do not need is boxed: the future of a read is moved around for each of them.
    pub async fn look(&self, wanted: &Resource) -> Result<Seen, SyncError> {
        let compares = self.reading == Reading::Bulk && wanted.rules.entries_may_stand_for_reads();
        let collection = wanted.path.parent().unwrap_or_else(LogicalPath::root);
        let Some(proof) = self.collections.get(&collection) else {
            return self.remote.read(wanted).await.map(Seen::observed);
        };
        if self.eager
            && !proof.opened.initialized()
            && let Some(observed) = Box::pin(self.open(&collection, proof, wanted)).await
        {
            return observed.map(Seen::observed);
        }
        let lists = self.eager || self.reading == Reading::Bulk;
        let listed = lists || proof.absence.get() == Some(&true);
        let shown = if listed { self.shown(&collection, wanted, compares).await } else { Shown::Nothing };
        match shown {
            Shown::Absent => Box::pin(self.absent(proof, wanted)).await,
            Shown::Equal => Box::pin(self.equal(&collection, proof, wanted)).await,
            Shown::Different => {
                let observed = self.remote.read(wanted).await?;
                if observed.payload.as_ref().is_some_and(|payload| is_desired(wanted, payload)) {
                    // The list shows something else than a read does.
                    self.remote.server.session.knowledge.judge(&collection, &wanted.rules, false);
                }
                Ok(Seen::observed(observed))
            }
            Shown::Nothing => {
                let observed = self.remote.read(wanted).await?;
                if observed.payload.is_none() && proof.absence.get().is_none() {
                    let absent = observed.is_missing_at(&wanted.path)
                        && matches!(self.shown(&collection, wanted, false).await, Shown::Absent);
                    // Another task may have been faster, with the same result.
                    let _ = proof.absence.set(absent);
                }
                Ok(Seen::observed(observed))
            }
        }
    }

    /// Reads the first member of a collection and asks for its list at the same time; the others wait for that. `None`
    /// for the others.
    async fn open(
        &self,
        collection: &LogicalPath,
        proof: &Proof,
        wanted: &Resource,
    ) -> Option<Result<Observed, SyncError>> {
        let mut sample = None;
        let opening = async {
            let (observed, shown) =
                tokio::join!(self.remote.read(wanted), self.shown(collection, wanted, false));
            let missing = observed.as_ref().is_ok_and(|observed| observed.is_missing_at(&wanted.path));
            if missing && matches!(shown, Shown::Absent) {
                // No other task has looked yet.
                let _ = proof.absence.set(true);
            }
            sample = Some(observed);
        };
        proof.opened.get_or_init(|| opening).await;
        sample
    }

    /// A member that is not on the list. The first one is looked for by itself; the others wait for what
    /// that shows of the list.
    async fn absent(&self, proof: &Proof, wanted: &Resource) -> Result<Seen, SyncError> {
        let mut sample = None;
        let probe = async {
            let remote = self.remote.probing();
            let observed = remote.read(wanted).await?;
            let absent = observed.is_missing_at(&wanted.path);
            if !absent {
                self.remote.adopt(&remote);
            }
            sample = Some(observed);
            Ok::<_, SyncError>(absent)
        };
        let believed = *proof.absence.get_or_try_init(|| probe).await?;
        if let Some(observed) = sample {
            return Ok(Seen::observed(observed));
        }
        if believed {
            return Ok(Seen::observed(Observed::new(wanted.clone(), None)));
        }
        self.remote.read(wanted).await.map(Seen::observed)
    }

    /// A member that the list shows as equal. The first one is read by itself, unless an earlier run did so.
    async fn equal(
        &self,
        collection: &LogicalPath,
        proof: &Proof,
        wanted: &Resource,
    ) -> Result<Seen, SyncError> {
        let knowledge = &self.remote.server.session.knowledge;
        let mut sample = None;
        let compare = async {
            if knowledge.shows_whole(collection, &wanted.rules).is_none() {
                let remote = self.remote.probing();
                let observed = remote.read(wanted).await?;
                let whole = self.is_shown_whole(collection, wanted, &observed).await;
                if !whole {
                    self.remote.adopt(&remote);
                }
                knowledge.judge(collection, &wanted.rules, whole);
                sample = Some(observed);
            }
            Ok::<_, SyncError>(())
        };
        proof.compared.get_or_try_init(|| compare).await?;
        if let Some(observed) = sample {
            return Ok(Seen::observed(observed));
        }
        // Asked anew each time: a later member may have refuted the first one.
        if knowledge.shows_whole(collection, &wanted.rules) == Some(true) {
            return Ok(Seen::Equal);
        }
        self.remote.read(wanted).await.map(Seen::observed)
    }

    /// Whether the list shows the very payload that was read.
    async fn is_shown_whole(&self, collection: &LogicalPath, wanted: &Resource, observed: &Observed) -> bool {
        let is_same = |answer: &ListAnswer| match verdict(answer, wanted) {
            Verdict::Present(entry) => Some(&entry.payload) == observed.payload.as_ref(),
            _ => false,
        };
        self.remote.lists.with(collection, is_same).await
    }

    async fn shown(&self, collection: &LogicalPath, wanted: &Resource, compares: bool) -> Shown {
        self.remote.lists.with(collection, |answer| shown_in(answer, wanted, compares)).await
    }
}

/// What the list alone says about `wanted`.
fn verdict<'l>(answer: &'l ListAnswer, wanted: &'l Resource) -> Verdict<&'l Entry> {
    let question = Question { wanted: Wanted::of(wanted), ..Question::default() };
    judge(&question, Address::NotAsked, answer)
}

fn shown_in(answer: &ListAnswer, wanted: &Resource, compares: bool) -> Shown {
    let ListAnswer::Listed { listing, .. } = answer else { return Shown::Nothing };
    let identity = &wanted.identity;
    match verdict(answer, wanted) {
        Verdict::Absent(_) => Shown::Absent,
        Verdict::Present(entry) if compares && listing.is_unique(&entry.remote_id, &identity.alias) => {
            if is_desired(wanted, &entry.payload) {
                Shown::Equal
            } else {
                Shown::Different
            }
        }
        Verdict::Present(_) | Verdict::Here | Verdict::Unknown(_) => Shown::Nothing,
    }
}

fn is_desired(wanted: &Resource, payload: &Value) -> bool {
    let compared = wanted.evaluation().and_then(|evaluation| Ok(evaluation.compare(payload)?));
    compared.is_ok_and(|differences| differences.is_empty())
}

impl Seen {
    fn observed(observed: Observed) -> Self {
        Self::Observed(Box::new(observed))
    }
}
