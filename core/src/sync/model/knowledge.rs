//! What runs learned about a server, for the runs that follow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use url::Url;

use super::{Options, Reading, Stats};
use crate::metadata::Rules;
use crate::path::LogicalPath;
use crate::repository::Revision;
use crate::server::{Request, Response, ServerError};

/// So many requests of one run are remembered; a run that needs more is repeated in full.
const MAX_EXCHANGES: usize = 4096;

/// So many answers, and bytes of their bodies, are kept for the run that has to look closer; it asks for the others
/// once more.
const MAX_AT_HAND: usize = 4096;
const MAX_BYTES_AT_HAND: usize = 32 << 20;

/// What runs of one scope learned about the server.
///
/// It holds no payloads and no secrets. The caller begins anew when the server, the way to it, or what governs the
/// scope beside its own files changes.
#[derive(Debug, Default)]
pub struct Knowledge(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Whether the list of a collection shows of its members what single reads show, under the rules with
    /// this digest.
    whole: HashMap<(LogicalPath, [u8; 32]), bool>,
    settled: Option<Arc<Settled>>,
    /// Creates whose outcome is unknown, and until when they may still be under way.
    uncertain: HashMap<LogicalPath, Instant>,
    /// Where the last run was stopped before it came to its end.
    stopped_at: Option<LogicalPath>,
}

/// A run that found everything in its desired state, and what the server answered.
#[derive(Debug)]
pub struct Settled {
    revision: Revision,
    pub(crate) stats: Stats,
    pub(crate) exchanges: Vec<Exchange>,
}

/// A request, and the digest of what a run reads of its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub(crate) request: Request,
    answer: [u8; 32],
}

impl Exchange {
    /// Whether `answer` is the same again.
    pub(crate) fn is_repeated_by(&self, answer: &Result<Response, ServerError>) -> bool {
        digest(answer) == Some(self.answer)
    }
}

/// The digest of what a run reads of `answer`; `None` if the server did not answer.
fn digest(answer: &Result<Response, ServerError>) -> Option<[u8; 32]> {
    let mut hash = Sha256::new();
    match answer {
        Ok(response) => {
            hash.update(response.content_type.as_deref().unwrap_or_default());
            hash.update([0]);
            // A list goes on where these say, whatever its body holds.
            for link in &response.links {
                hash.update(link);
                hash.update([0]);
            }
            hash.update(format!("{:?}", response.paging));
            hash.update(&response.body);
        }
        // The text of a refusal is for people.
        Err(error) => hash.update(error.status()?.as_str()),
    }
    Some(hash.finalize().into())
}

impl Knowledge {
    /// Whether the list of `collection` is known to show its members whole, or known not to.
    pub(crate) fn shows_whole(&self, collection: &LogicalPath, rules: &Rules) -> Option<bool> {
        self.known().whole.get(&(collection.clone(), *rules.digest())).copied()
    }

    /// Remembers how the list of `collection` compares with single reads.
    pub(crate) fn judge(&self, collection: &LogicalPath, rules: &Rules, whole: bool) {
        self.known().whole.insert((collection.clone(), *rules.digest()), whole);
    }

    /// Forgets what lists show, so that the next run that trusts lists proves them again.
    pub(crate) fn doubt(&self) {
        self.known().whole.clear();
    }

    /// Remembers a run of `revision` that had nothing to do; without a revision it forgets the one before.
    pub(crate) fn settle(&self, revision: Option<&Revision>, stats: Stats, transcript: &Transcript) {
        let settled = revision.cloned().zip(transcript.kept().take());
        self.known().settled =
            settled.map(|(revision, exchanges)| Arc::new(Settled { revision, stats, exchanges }));
    }

    /// Whether [`recheck`](crate::sync::recheck) has something to repeat for this revision.
    pub fn can_recheck(&self, revision: &Revision, options: &Options) -> bool {
        self.settled(revision, options).is_some()
    }

    /// The settled run of this revision, if it is what `options` ask for.
    pub(crate) fn settled(&self, revision: &Revision, options: &Options) -> Option<Arc<Settled>> {
        let wanted = options.effective_reading() == Reading::Bulk;
        self.known().settled.clone().filter(|settled| wanted && settled.revision == *revision)
    }

    /// The create of the resource at `path` may be carried out within `wait` from now on.
    pub(crate) fn expect(&self, path: &LogicalPath, wait: Duration) {
        let (mut known, now) = (self.known(), Instant::now());
        known.uncertain.retain(|_, until| *until > now);
        known.uncertain.insert(path.clone(), now + wait);
    }

    /// How long an earlier create of the resource at `path` may still be under way.
    pub(crate) fn expected(&self, path: &LogicalPath) -> Option<Duration> {
        let left = self.known().uncertain.get(path)?.checked_duration_since(Instant::now());
        left.filter(|left| !left.is_zero())
    }

    /// Remembers the resource at which a run was stopped, if it was. Returns that of the run before.
    pub(crate) fn stopped_at(&self, path: Option<LogicalPath>) -> Option<LogicalPath> {
        std::mem::replace(&mut self.known().stopped_at, path)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every state between two calls is a valid one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was asked during one run; `None` stands for a request without an answer. It need not be complete once it is too
/// long to be repeated.
#[derive(Debug)]
pub struct Transcript(Mutex<Option<Vec<Exchange>>>);

impl Transcript {
    /// An empty one; one that is not `open` keeps nothing.
    pub(crate) fn new(open: bool) -> Arc<Self> {
        Arc::new(Self(Mutex::new(open.then(Vec::new))))
    }

    /// Adds what `other` holds, and leaves it empty.
    pub(crate) fn append(&self, other: &Self) {
        let added = other.kept().take();
        let mut kept = self.kept();
        match (kept.as_mut(), added) {
            (Some(kept), Some(added)) if kept.len() + added.len() <= MAX_EXCHANGES => kept.extend(added),
            _ => *kept = None,
        }
    }

    pub(crate) fn note(&self, request: &Request, answer: &Result<Response, ServerError>) {
        let mut kept = self.kept();
        let Some(exchanges) = kept.as_mut() else { return };
        match digest(answer) {
            Some(answer) if exchanges.len() < MAX_EXCHANGES => {
                // What is kept must hold no secret.
                let request = Request { secrets: Arc::default(), ..request.clone() };
                exchanges.push(Exchange { request, answer });
            }
            _ => *kept = None,
        }
    }

    /// All of it, if it can be repeated.
    fn kept(&self) -> MutexGuard<'_, Option<Vec<Exchange>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers that a run need not ask for again. Each serves once.
#[derive(Debug, Default)]
pub struct Answers {
    at_hand: Mutex<HashMap<Key, Response>>,
    /// Of the bodies of all that were kept.
    bytes: usize,
}

/// What distinguishes reads of one server.
type Key = (String, Vec<(String, String)>, Option<String>, Option<Box<Url>>);

fn key(request: &Request) -> Key {
    (request.path.clone(), request.query.clone(), request.accept.clone(), request.link.clone())
}

impl Answers {
    pub(crate) fn keep(&mut self, request: &Request, response: Response) {
        let bytes = self.bytes + response.body.len();
        let at_hand = self.at_hand.get_mut().unwrap_or_else(PoisonError::into_inner);
        if at_hand.len() < MAX_AT_HAND && bytes <= MAX_BYTES_AT_HAND {
            self.bytes = bytes;
            at_hand.insert(key(request), response);
        }
    }

    pub(crate) fn take(&self, request: &Request) -> Option<Response> {
        let mut at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner);
        if at_hand.is_empty() { None } else { at_hand.remove(&key(request)) }
    }
}
