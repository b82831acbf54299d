//! What runs learned about a server, for the runs that follow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use sha2::{Digest as _, Sha256};

use super::reads::{Proofs, Reads};
use super::report::Stats;
use super::{Options, Reading};
use crate::metadata::Rules;
use crate::path::LogicalPath;
use crate::repository::Revision;
use crate::server::{Request, Response, ServerError};

/// So many requests of one run are remembered; a run that needs more is repeated in full.
const MAX_EXCHANGES: usize = 4096;

/// What runs of one scope learned about the server.
///
/// It holds no payloads and no secrets, and losing it costs requests, nothing else. Whoever keeps it begins
/// anew when the server, the way to it, or what governs the scope beside its own files changes.
#[derive(Debug, Default)]
pub struct Knowledge(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Whether the list of a collection shows of its members what single reads show, under the rules with
    /// this digest.
    whole: HashMap<(LogicalPath, [u8; 32]), bool>,
    settled: Option<Arc<Settled>>,
    reads: Option<Arc<Reads>>,
    /// Whether they are all that the scope consists of, and nothing else was to be done in it since they were made.
    complete: bool,
    /// A revision in which every resource of the scope has the name of its path as its id.
    names_are_ids: Option<Revision>,
}

/// A run that found everything in its desired state, and what it was told.
#[derive(Debug)]
pub(super) struct Settled {
    revision: Revision,
    pub stats: Stats,
    pub exchanges: Vec<Exchange>,
}

/// A request, and what was answered.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub request: Request,
    pub answer: Answer,
}

/// An answer, as far as a run depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A success, by the digest of its content type, links and body.
    Success([u8; 32]),
    /// A refusal; its text is for people.
    Refusal(StatusCode),
}

impl Answer {
    /// Whether `answer` is the same again.
    pub fn is_repeated_by(self, answer: &Result<Response, ServerError>) -> bool {
        Self::of(answer) == Some(self)
    }

    /// `None` if the server did not answer.
    pub fn of(answer: &Result<Response, ServerError>) -> Option<Self> {
        match answer {
            Ok(response) => Some(Self::of_success(response)),
            Err(error) => error.status().map(Self::Refusal),
        }
    }

    pub fn of_success(response: &Response) -> Self {
        let mut hash = Sha256::new();
        hash.update(response.content_type.as_deref().unwrap_or_default());
        hash.update([0]);
        // A list goes on where they say, whatever its body holds.
        for link in &response.links {
            hash.update(link);
            hash.update([0]);
        }
        hash.update(&response.body);
        Self::Success(hash.finalize().into())
    }
}

impl Knowledge {
    /// Whether the list of `collection` is known to show its members whole, or known not to.
    pub(super) fn shows_whole(&self, collection: &LogicalPath, rules: &Rules) -> Option<bool> {
        self.known().whole.get(&(collection.clone(), *rules.digest())).copied()
    }

    /// Remembers how the list of `collection` compares with single reads.
    pub(super) fn judge(&self, collection: &LogicalPath, rules: &Rules, whole: bool) {
        self.known().whole.insert((collection.clone(), *rules.digest()), whole);
    }

    /// Forgets what lists show, so that the next run that trusts lists proves them again.
    pub(super) fn doubt(&self) {
        self.known().whole.clear();
    }

    /// Remembers a run that had nothing to do, or that there is none.
    pub(super) fn settle(&self, revision: Option<&Revision>, stats: Stats, transcript: &Transcript) {
        let exchanges = transcript.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let settled = revision
            .cloned()
            .zip(exchanges)
            .map(|(revision, exchanges)| Arc::new(Settled { revision, stats, exchanges }));
        self.known().settled = settled;
    }

    /// Forgets the settled run. What single reads mean stays as it is, but they are not all any more.
    pub(super) fn unsettle(&self) {
        let mut known = self.known();
        (known.settled, known.complete) = (None, false);
    }

    /// Remembers what the single reads of a run at `revision` proved; it found `all`, so many resources, as desired,
    /// or did not.
    pub(super) fn remember(&self, revision: &Revision, proofs: &Proofs, all: Option<usize>) {
        let mut known = self.known();
        known.reads = proofs.collected(revision, known.reads.as_deref()).map(Arc::new);
        known.complete = all.is_some() && all == known.reads.as_deref().map(Reads::len);
    }

    /// Whether every resource that is declared at `revision` is known to have the name of its path as its id.
    pub(super) fn names_are_ids(&self, revision: &Revision) -> bool {
        self.known().names_are_ids.as_ref() == Some(revision)
    }

    /// Remembers a revision in which names are ids, or that in the latest one they may not be.
    pub(super) fn note_names(&self, revision: Option<&Revision>) {
        self.known().names_are_ids = revision.cloned();
    }

    /// Whether [`recheck`](super::recheck) has something to repeat for this revision.
    pub fn can_recheck(&self, revision: &Revision, options: &Options) -> bool {
        self.settled(revision, options).is_some() || self.reads(revision, options).is_some()
    }

    /// The settled run of this revision, if it is what `options` ask for.
    pub(super) fn settled(&self, revision: &Revision, options: &Options) -> Option<Arc<Settled>> {
        let wanted = options.effective_reading() == Reading::Bulk;
        self.known().settled.clone().filter(|settled| wanted && settled.revision == *revision)
    }

    /// The single reads at this revision, if they are what `options` ask for, and whether the scope is as desired if
    /// all of them are.
    pub(super) fn reads(&self, revision: &Revision, options: &Options) -> Option<(Arc<Reads>, bool)> {
        let known = self.known();
        let reads = known.reads.clone().filter(|_| options.reads_may_be_repeated());
        Some((reads.filter(|reads| reads.are_of(revision))?, known.complete))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every state between two calls is a valid one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the server answered during one run. It ends to be kept where it grows too long.
#[derive(Debug)]
pub(super) struct Transcript(Mutex<Option<Vec<Exchange>>>);

impl Default for Transcript {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Transcript {
    /// Adds what `other` holds, and leaves it empty.
    pub fn append(&self, other: &Self) {
        let added = other.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (kept.as_mut(), added) {
            (Some(exchanges), Some(added)) if exchanges.len() + added.len() <= MAX_EXCHANGES => {
                exchanges.extend(added);
            }
            _ => *kept = None,
        }
    }

    pub fn note(&self, request: &Request, answer: &Result<Response, ServerError>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(exchanges) = kept.as_mut() else { return };
        match Answer::of(answer) {
            Some(answer) if exchanges.len() < MAX_EXCHANGES => {
                exchanges.push(Exchange { request: request.clone(), answer });
            }
            _ => *kept = None,
        }
    }
}
