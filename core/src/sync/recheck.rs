//! Asking a server again what it was asked before, which tells that nothing changed without a look into Git.
//!
//! A run is a function of its revision, its rules and the answers, so the same answers mean the same again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use tokio::task::JoinSet;
use url::Url;

use super::knowledge::{Exchange, Settled};
use super::reads::Reads;
use super::report::Stats;
use super::{Options, Report, Session, Stop, joined};
use crate::path::LogicalPath;
use crate::server::{Client, Request, Response, ServerError};

/// So many answers, and bytes of their bodies, are kept for the run that has to look closer; it asks for the others
/// once more.
const MAX_AT_HAND: usize = 4096;
const MAX_BYTES_AT_HAND: usize = 32 << 20;

/// Answers that a run need not ask for again.
#[derive(Debug, Default)]
pub struct Answers {
    /// Each serves once.
    at_hand: Mutex<AtHand>,
    /// Reads that were repeated, and which of them showed once more that their resource is as desired.
    repeated: Option<(Arc<Reads>, Vec<AtomicBool>)>,
}

#[derive(Debug, Default)]
struct AtHand {
    answers: HashMap<Key, Result<Response, ServerError>>,
    /// Of the bodies.
    bytes: usize,
}

impl AtHand {
    fn keep(&mut self, request: &Request, answer: Result<Response, ServerError>) {
        let bytes = answer.as_ref().map_or(0, |response| response.body.len());
        if self.answers.len() < MAX_AT_HAND && self.bytes + bytes <= MAX_BYTES_AT_HAND {
            self.bytes += bytes;
            self.answers.insert(key(request), answer);
        }
    }
}

/// What tells reads of one server apart.
type Key = (String, Vec<(String, String)>, Option<String>, Option<Box<Url>>);

fn key(request: &Request) -> Key {
    (request.path.clone(), request.query.clone(), request.accept.clone(), request.link.clone())
}

impl Answers {
    pub(super) fn take(&self, request: &Request) -> Option<Result<Response, ServerError>> {
        let mut at_hand = self.at_hand();
        if at_hand.answers.is_empty() { None } else { at_hand.answers.remove(&key(request)) }
    }

    /// Whether a read just showed once more that the resource at `path` is as desired.
    pub(super) fn confirm(&self, path: &LogicalPath) -> bool {
        let Some((reads, same)) = &self.repeated else { return false };
        reads.position(path).is_some_and(|index| same[index].load(Ordering::Relaxed))
    }

    /// How many reads were answered as before, and were to be.
    fn confirmed(&self) -> (usize, usize) {
        let same = self.repeated.as_ref().map_or(&[][..], |(_, same)| same);
        (same.iter().filter(|same| same.load(Ordering::Relaxed)).count(), same.len())
    }

    fn at_hand(&self) -> MutexGuard<'_, AtHand> {
        // Every state between two calls is a valid one.
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Repeats the requests of the last run with these options that found everything of this revision in its desired
/// state. Its report stands if all answers are the same, byte for byte. Otherwise the result is what was answered,
/// for the run that has to look closer; empty where no such run is known.
pub async fn recheck(session: &Session, options: &Options, stop: &Stop) -> Result<Report, Arc<Answers>> {
    let session = &stop.bounding(session);
    let Some(revision) = session.tree.revision() else { return Err(Arc::default()) };
    if let Some(settled) = session.knowledge.settled(revision, options) {
        return recheck_run(session, &settled, stop).await.map_err(Arc::new);
    }
    let Some((reads, complete)) = session.knowledge.reads(revision, options) else {
        return Err(Arc::default());
    };
    let answers = repeat(session, reads, stop).await;
    // As after any run that read each resource by itself.
    session.knowledge.doubt();
    match answers.confirmed() {
        (same, all) if complete && same == all => {
            let stats = Stats { targeted: all, applied: all, unchanged: all, ..Stats::default() };
            Ok(Report::new(stats, Vec::new(), None, None, stop))
        }
        _ => Err(answers),
    }
}

/// Repeats all that a run asked.
async fn recheck_run(session: &Session, settled: &Settled, stop: &Stop) -> Result<Report, Answers> {
    let ask = |exchange: &Exchange| {
        let (client, exchange) = (session.client.clone(), exchange.clone());
        async move {
            let answer = client.send(&exchange.request).await;
            (exchange.answer.is_repeated_by(&answer), exchange.request, answer)
        }
    };
    let requests = futures::stream::iter(&settled.exchanges).map(ask);
    let mut answers = requests.buffer_unordered(session.client.max_concurrency());
    let mut at_hand = AtHand::default();
    let mut same = true;
    while let Some((is_same, request, answer)) = answers.next().await {
        same &= is_same;
        match answer {
            _ if stop.reason().is_some() => return Err(Answers::default()),
            Ok(response) => at_hand.keep(&request, Ok(response)),
            // A run knows better how often to try.
            Err(error) if error.status().is_none() => return Err(Answers::default()),
            Err(_) => {}
        }
    }
    if same {
        return Ok(Report::new(settled.stats, Vec::new(), None, None, stop));
    }
    Err(Answers { at_hand: Mutex::new(at_hand), repeated: None })
}

/// Repeats single reads, each of which tells of its resource alone, as many at once as the gate may let through.
async fn repeat(session: &Session, reads: Arc<Reads>, stop: &Stop) -> Arc<Answers> {
    let same = std::iter::repeat_with(AtomicBool::default).take(reads.len()).collect();
    let answers = Answers { repeated: Some((Arc::clone(&reads), same)), ..Answers::default() };
    let at_once = session.client.max_concurrency().min(reads.len());
    let repetition = Arc::new(Repetition {
        client: session.client.clone(),
        reads,
        next: AtomicUsize::default(),
        answers: Arc::new(answers),
        silent: AtomicBool::default(),
        stop: stop.clone(),
    });
    let mut workers = JoinSet::new();
    for _ in 0..at_once {
        let repetition = Arc::clone(&repetition);
        workers.spawn(async move { repetition.work().await });
    }
    while let Some(ended) = workers.join_next().await {
        joined(ended);
    }
    Arc::clone(&repetition.answers)
}

/// What those share who repeat single reads.
struct Repetition {
    client: Client,
    reads: Arc<Reads>,
    next: AtomicUsize,
    answers: Arc<Answers>,
    /// Set when the server does not answer: a run knows better how often to try.
    silent: AtomicBool,
    stop: Stop,
}

impl Repetition {
    /// Repeats one read after the other until none is left or further ones are pointless.
    async fn work(&self) {
        while !self.silent.load(Ordering::Relaxed) && self.stop.reason().is_none() {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(read) = self.reads.get(index) else { return };
            let request = read.request();
            let answer = self.client.send(&request).await;
            if read.is_repeated_by(&answer) {
                if let Some((_, same)) = &self.answers.repeated {
                    same[index].store(true, Ordering::Relaxed);
                }
                continue;
            }
            if answer.as_ref().is_err_and(|error| error.status().is_none()) {
                self.silent.store(true, Ordering::Relaxed);
                return;
            }
            self.answers.at_hand().keep(&request, answer);
        }
    }
}
