//! What runs learned about a server, for the runs that follow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use http::StatusCode;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::report::Stats;
use super::{Report, Session, Stop};
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
}

/// A run that found everything in its desired state, and what it was told. A run is a function of its
/// revision, its rules and the answers, so the same answers mean the same again.
#[derive(Debug)]
struct Settled {
    revision: Revision,
    stats: Stats,
    exchanges: Vec<Exchange>,
}

#[derive(Debug)]
struct Exchange {
    request: Request,
    answer: Answer,
}

/// An answer, as far as a run depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// A success, by the digest of its content type, links and body.
    Success([u8; 32]),
    /// A refusal; its text is for people.
    Refusal(StatusCode),
}

impl Answer {
    /// `None` if the server did not answer.
    fn of(answer: &Result<Response, ServerError>) -> Option<Self> {
        match answer {
            Ok(response) => {
                let mut hash = Sha256::new();
                hash.update(response.content_type.as_deref().unwrap_or_default());
                hash.update([0]);
                // A list goes on where they say, whatever its body holds.
                for link in &response.links {
                    hash.update(link);
                    hash.update([0]);
                }
                hash.update(&response.body);
                Some(Self::Success(hash.finalize().into()))
            }
            Err(error) => error.status().map(Self::Refusal),
        }
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

    /// Forgets the settled run.
    pub(super) fn unsettle(&self) {
        self.known().settled = None;
    }

    /// Whether [`recheck`] has something to repeat for this revision.
    pub fn is_settled_at(&self, revision: &Revision) -> bool {
        self.settled(Some(revision)).is_some()
    }

    fn settled(&self, revision: Option<&Revision>) -> Option<Arc<Settled>> {
        self.known().settled.clone().filter(|settled| Some(&settled.revision) == revision)
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

/// Answers that a run need not ask for again. Each serves once.
#[derive(Debug, Default)]
pub struct Answers(Mutex<HashMap<Key, Response>>);

/// What tells reads of one server apart.
type Key = (String, Vec<(String, String)>, Option<String>, Option<Box<Url>>);

fn key(request: &Request) -> Key {
    (request.path.clone(), request.query.clone(), request.accept.clone(), request.link.clone())
}

impl Answers {
    pub(super) fn take(&self, request: &Request) -> Option<Response> {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.is_empty() { None } else { answers.remove(&key(request)) }
    }
}

/// Repeats the requests of the last run with [`Reading::Bulk`](super::Reading) that found everything of this
/// revision in its desired state. Its report stands if all answers are the same, byte for byte. Otherwise
/// the result is what was answered, for the run that has to look closer; empty where no such run is known.
pub async fn recheck(session: &Session, stop: &Stop) -> Result<Report, Answers> {
    let Some(settled) = session.knowledge.settled(session.tree.revision()) else {
        return Err(Answers::default());
    };
    let ask = |exchange: &Exchange| {
        let (client, request, expected) = (session.client.clone(), exchange.request.clone(), exchange.answer);
        async move {
            let answer = client.send(&request).await;
            (request, Answer::of(&answer) == Some(expected), answer)
        }
    };
    let requests = futures::stream::iter(&settled.exchanges).map(ask);
    let mut answers = requests.buffer_unordered(session.client.max_concurrency());
    let mut at_hand = HashMap::new();
    let mut same = true;
    while let Some((request, is_same, answer)) = answers.next().await {
        same &= is_same;
        match answer {
            _ if stop.reason().is_some() => return Err(Answers::default()),
            Ok(response) => drop(at_hand.insert(key(&request), response)),
            // A run knows better how often to try.
            Err(error) if error.status().is_none() => return Err(Answers::default()),
            Err(_) => {}
        }
    }
    if same {
        return Ok(Report::new(settled.stats, Vec::new(), None, None, stop));
    }
    Err(Answers(Mutex::new(at_hand)))
}
