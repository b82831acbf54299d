//! Lists that answer for the members of their collections, where they are known to tell the same as single
//! reads.
//!
//! Absence is believed once one member that is not on the list was looked for by itself in vain; in a first run, which
//! may find much missing, list and member are asked for at the same time. Equality
//! is believed once one member that the list shows as equal was read by itself and is shown whole. What
//! differs is always read by itself.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::lists::ListOutcome;
use super::remote::Remote;
use super::resource::{Observed, Resource};
use super::{Options, Reading, Selection, SyncError};
use crate::metadata::{Entry, Listing, MetadataError};
use crate::path::LogicalPath;
use crate::payload::Value;

/// Fewer members than this are read by themselves: the list may show thousands of others.
const WORTH_A_LIST: usize = 3;

/// The collections whose lists may answer in one run.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    collections: HashMap<LogicalPath, Proof>,
    reading: Reading,
    /// Whether a list is asked for together with its first member.
    eager: bool,
}

/// What was found out about the list of one collection.
#[derive(Debug, Default)]
struct Proof {
    /// Whether who is not on it does not exist.
    absence: OnceCell<bool>,
    /// Set once it was compared with a single read, in this run or before.
    compared: OnceCell<()>,
    /// Set once it was asked for together with a member, in a first run.
    opened: OnceCell<()>,
}

/// What the server has of a resource, as far as somebody had to look.
#[derive(Debug)]
pub(super) enum Seen {
    /// What is desired, at this address; nobody needs the payload.
    Equal(Box<Resource>),
    /// Something, or nothing.
    Observed(Box<Observed>),
}

/// What a list says about one member.
enum Shown {
    /// It is what is desired, under this id.
    Equal(String),
    Different,
    Absent,
    /// Nothing that could be relied on.
    Nothing,
}

impl Bulk {
    /// The collections of `selection`, if it is about all that they declare.
    pub fn of(selection: &Selection, options: &Options) -> Self {
        if !selection.whole_scope {
            return Self::default();
        }
        let files = selection.resources.iter().map(|file| &file.path);
        let paths = files.chain(selection.prune.iter().map(|candidate| &candidate.path));
        let mut members: HashMap<LogicalPath, usize> = HashMap::new();
        for collection in paths.filter_map(LogicalPath::parent) {
            *members.entry(collection).or_default() += 1;
        }
        let worth_it = members.into_iter().filter(|(_, count)| *count >= WORTH_A_LIST);
        let collections = worth_it.map(|(path, _)| (path, Proof::default())).collect();
        Self { collections, reading: options.effective_reading(), eager: options.first }
    }
}

impl Remote {
    /// Looks at one member of the selection: on the list of its collection where that is enough, else by
    /// reading it.
    pub(super) async fn look(self: &Arc<Self>, wanted: &Resource) -> Result<Seen, SyncError> {
        let compares = self.bulk.reading == Reading::Bulk && wanted.rules.entries_may_stand_for_reads();
        self.look_up(wanted, compares).await
    }

    /// Looks whether something exists; what exists is read by itself.
    pub(super) async fn look_for(self: &Arc<Self>, wanted: &Resource) -> Result<Observed, SyncError> {
        match self.look_up(wanted, false).await? {
            Seen::Observed(observed) => Ok(*observed),
            Seen::Equal(at) => self.read(&at).await,
        }
    }

    /// Whether the list of its collection, which is known to show all that exist, does not show `wanted`.
    pub(super) fn is_known_absent(&self, wanted: &Resource) -> bool {
        let collection = wanted.path.parent().unwrap_or_else(LogicalPath::root);
        let proof = self.bulk.collections.get(&collection);
        proof.is_some_and(|proof| proof.absence.get() == Some(&true))
            && matches!(
                self.lists.cell(&collection).get(),
                Some(ListOutcome::Listed(listing)) if matches!(shown_on(listing, wanted, false), Shown::Absent)
            )
    }

    /// What most resources do not need is boxed: the future of a read is moved around for each of them.
    async fn look_up(self: &Arc<Self>, wanted: &Resource, compares: bool) -> Result<Seen, SyncError> {
        let collection = wanted.path.parent().unwrap_or_else(LogicalPath::root);
        let Some(proof) = self.bulk.collections.get(&collection) else {
            return self.read(wanted).await.map(Seen::observed);
        };
        if self.bulk.eager
            && !proof.opened.initialized()
            && let Some(observed) = Box::pin(self.open(&collection, proof, wanted)).await
        {
            return observed.map(Seen::observed);
        }
        let lists = self.bulk.eager || self.bulk.reading == Reading::Bulk;
        let listed = lists || proof.absence.get() == Some(&true);
        let shown = if listed { self.shown(&collection, wanted, compares).await } else { Shown::Nothing };
        match shown {
            Shown::Absent => Box::pin(self.absent(proof, wanted)).await,
            Shown::Equal(remote_id) => Box::pin(self.equal(&collection, proof, wanted, &remote_id)).await,
            Shown::Different => {
                let observed = self.read(wanted).await?;
                if observed.payload.as_ref().is_some_and(|payload| is_desired(wanted, payload)) {
                    // The list shows something else than a read does.
                    self.session.knowledge.judge(&collection, &wanted.rules, false);
                }
                Ok(Seen::observed(observed))
            }
            Shown::Nothing => {
                let observed = self.read(wanted).await?;
                if observed.payload.is_none() && proof.absence.get().is_none() {
                    let absent = observed.is_missing_at(&wanted.path)
                        && matches!(self.shown(&collection, wanted, false).await, Shown::Absent);
                    // Somebody else may have been faster, with the same result.
                    let _ = proof.absence.set(absent);
                }
                Ok(Seen::observed(observed))
            }
        }
    }

    /// Reads the first member of a collection and asks for its list at the same time; the others wait for that. `None`
    /// for the others.
    async fn open(
        self: &Arc<Self>,
        collection: &LogicalPath,
        proof: &Proof,
        wanted: &Resource,
    ) -> Option<Result<Observed, SyncError>> {
        let mut sample = None;
        let opening = async {
            let (observed, shown) = tokio::join!(self.read(wanted), self.shown(collection, wanted, false));
            let missing = observed.as_ref().is_ok_and(|observed| observed.is_missing_at(&wanted.path));
            if missing && matches!(shown, Shown::Absent) {
                // Nobody else has looked yet.
                let _ = proof.absence.set(true);
            }
            sample = Some(observed);
        };
        proof.opened.get_or_init(|| opening).await;
        sample
    }

    /// A member that is not on the list. The first one is looked for by itself; the others wait for what
    /// that tells about the list.
    async fn absent(self: &Arc<Self>, proof: &Proof, wanted: &Resource) -> Result<Seen, SyncError> {
        let mut sample = None;
        let probe = async {
            let remote = self.probing();
            let observed = remote.read(wanted).await?;
            let absent = observed.is_missing_at(&wanted.path);
            if !absent {
                self.adopt(&remote);
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
        self.read(wanted).await.map(Seen::observed)
    }

    /// A member that the list shows as equal. The first one is read by itself, unless an earlier run did so.
    async fn equal(
        self: &Arc<Self>,
        collection: &LogicalPath,
        proof: &Proof,
        wanted: &Resource,
        remote_id: &str,
    ) -> Result<Seen, SyncError> {
        let knowledge = &self.session.knowledge;
        let mut sample = None;
        let compare = async {
            if knowledge.shows_whole(collection, &wanted.rules).is_none() {
                let remote = self.probing();
                let observed = remote.read(wanted).await?;
                let whole = self.is_shown_whole(collection, wanted, &observed).await;
                if !whole {
                    self.adopt(&remote);
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
            return Ok(Seen::Equal(Box::new(wanted.with_remote_id(remote_id))));
        }
        self.read(wanted).await.map(Seen::observed)
    }

    /// Whether the list shows the very payload that was read.
    async fn is_shown_whole(
        self: &Arc<Self>,
        collection: &LogicalPath,
        wanted: &Resource,
        observed: &Observed,
    ) -> bool {
        self.with_list(collection, |outcome| {
            let ListOutcome::Listed(listing) = outcome else { return false };
            let entry = member(listing, wanted);
            entry.is_ok_and(|entry| entry.map(|entry| &entry.payload) == observed.payload.as_ref())
        })
        .await
    }

    async fn shown(self: &Arc<Self>, collection: &LogicalPath, wanted: &Resource, compares: bool) -> Shown {
        self.with_list(collection, |outcome| match outcome {
            ListOutcome::Listed(listing) => shown_on(listing, wanted, compares),
            _ => Shown::Nothing,
        })
        .await
    }
}

/// The entry of a member: by its id, else by the name of its path.
fn member<'l>(listing: &'l Listing, wanted: &Resource) -> Result<Option<&'l Entry>, MetadataError> {
    match listing.find(&wanted.path, &wanted.identity.remote_id)? {
        Some(entry) => Ok(Some(entry)),
        None => listing.find(&wanted.path, wanted.path.name()),
    }
}

fn shown_on(listing: &Listing, wanted: &Resource, compares: bool) -> Shown {
    let identity = &wanted.identity;
    match member(listing, wanted) {
        Ok(None) if is_usual_page(listing.entries().len()) => Shown::Nothing,
        Ok(None) => Shown::Absent,
        Ok(Some(_)) if !compares || !listing.is_unique(&identity.remote_id, &identity.alias) => {
            Shown::Nothing
        }
        Ok(Some(entry)) if is_desired(wanted, &entry.payload) => Shown::Equal(entry.remote_id.clone()),
        Ok(Some(_)) => Shown::Different,
        Err(_) => Shown::Nothing,
    }
}

/// Whether a list of so many entries may have been cut at the size of a page without saying so.
const fn is_usual_page(entries: usize) -> bool {
    entries >= 10 && (entries.is_multiple_of(10) || entries.is_multiple_of(25) || entries.is_power_of_two())
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
