//! The knowledge about a server that earlier runs pass to later runs, and the answers that one run passes to the next.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use http::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{Options, Reading, Resource, Stats, Wanted};
use crate::language::jq::Query;
use crate::metadata::{Entry, Listing, Rules};
use crate::path::LogicalPath;
use crate::payload::pointer::Pointer;
use crate::repository::Revision;
use crate::server::{Request, Response, ServerError};

/// The maximum number of requests of a run that can be rechecked. A run with more requests is repeated in full.
const MAX_EXCHANGES: usize = 4096;

/// The maximum numbers of answers, and of bytes of their bodies, that a failed recheck keeps for the run that follows.
/// The run requests the others again.
const MAX_AT_HAND: usize = 4096;
const MAX_BYTES_AT_HAND: usize = 32 << 20;

/// The knowledge that runs of one scope gained about the server.
///
/// It holds no payloads and no secrets. The caller uses [`Knowledge::of_creates`] if the server, the connection to it, or
/// the settings outside of the files of the scope change.
#[derive(Debug, Default)]
pub struct Knowledge(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Whether the list of a collection shows the same payloads as single reads, under the rules with this digest.
    whole: HashMap<(LogicalPath, [u8; 32]), bool>,
    settled: Option<Arc<Settled>>,
    /// The hashes of the names of resources whose creates have an unknown outcome, or that a list may not show yet, and
    /// the time until which the server may still create or show them.
    uncertain: HashMap<u64, Instant>,
    /// The latest of these times.
    latest: Option<Instant>,
    /// The keys of these hashes.
    keys: RandomState,
    /// Created resources that no run finds.
    lost: HashMap<LogicalPath, Lost>,
    /// The last created resources of each collection that no list has shown yet, by the path of the collection on the server.
    witnesses: HashMap<LogicalPath, Vec<Witness>>,
    /// Where the next run begins, because the last one was stopped.
    next: Option<Start>,
    /// The resources that refer to values of others, by the paths of the others.
    referrers: HashMap<LogicalPath, HashSet<Referrer>>,
    /// Whether a run has looked at the whole scope, so that all referrers are known.
    whole_scope: bool,
}

/// Where a run begins to read.
#[derive(Debug)]
pub(crate) enum Start {
    At(LogicalPath),
    /// After the resources at and below this path.
    Behind(LogicalPath),
}

/// A resource, and the pointer of the value to which it refers; `None` means any value.
pub(crate) type Referrer = (LogicalPath, Option<Pointer>);

impl Known {
    fn expect(&mut self, names: impl IntoIterator<Item = u64>, wait: Duration) {
        let now = Instant::now();
        // Rarely, because a run may create many resources.
        if self.uncertain.len() == self.uncertain.capacity() {
            self.uncertain.retain(|_, until| *until > now);
        }
        self.uncertain.extend(names.into_iter().map(|name| (name, now + wait)));
        self.latest = self.latest.max(Some(now + wait));
    }

    /// Returns the hashes of the names of `desired`: its path, and its id and its alias in its collection.
    fn names_of(&self, desired: &Resource) -> Vec<u64> {
        let (wanted, collection) = (Wanted::of(desired), desired.path.parent());
        let names = wanted.unique().map(|name| self.keys.hash_one((&collection, name)));
        std::iter::once(self.keys.hash_one(&desired.path)).chain(names).collect()
    }
}

/// A created resource that the list of its collection must show.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Its path in the repository.
    pub(crate) path: LogicalPath,
    /// The id that the server assigned.
    pub(crate) id: String,
    pub(crate) alias: String,
    /// Whether messages must not show the id.
    pub(crate) hides_id: bool,
}

impl Witness {
    /// Whether `listing` shows it.
    pub(crate) fn is_in(&self, listing: &Listing) -> bool {
        let mut named = listing.with_id(&self.id).chain(listing.with_alias(&self.alias));
        named.next().is_some()
    }

    /// Returns the id, unless it is a secret.
    pub(crate) fn shown_id(&self) -> Option<&str> {
        (!self.hides_id).then_some(&self.id)
    }
}

/// A created resource that no run finds.
#[derive(Clone, Debug)]
pub struct Lost {
    /// The id that the server assigned, if it is known and not a secret.
    pub(crate) id: Option<String>,
    /// The digest of the metadata and the payload from which it was created. It contains no secrets.
    digest: u64,
    keys: RandomState,
}

impl Lost {
    /// Whether neither the payload nor the metadata has changed since.
    pub(crate) fn is_of(&self, desired: &Resource) -> bool {
        self.digest == digest_of(desired, &self.keys)
    }
}

fn digest_of(desired: &Resource, keys: &RandomState) -> u64 {
    keys.hash_one((desired.rules.digest(), &desired.payload))
}

/// A run that found everything in its desired state, with the answers of the server.
#[derive(Debug)]
pub struct Settled {
    revision: Revision,
    pub(crate) stats: Stats,
    pub(crate) seen: Seen,
}

/// The answers that a run read.
#[derive(Debug, Default)]
pub struct Seen {
    pub(crate) exchanges: Vec<Exchange>,
    /// The hashes of list entries that proved resources equal, by the hashes of their paths. The server cannot know
    /// the keys of the hashes, so it cannot cause a collision.
    equal: HashMap<u64, u64>,
    keys: RandomState,
}

impl Seen {
    /// Returns the hash that identifies `entry` in this run.
    pub(crate) fn hash(&self, entry: &Entry) -> u64 {
        self.keys.hash_one(entry)
    }

    /// Returns the hash of the entry that proved that the resource at `path` is equal.
    pub(crate) fn equal(&self, path: &LogicalPath) -> Option<u64> {
        self.equal.get(&self.keys.hash_one(path)).copied()
    }
}

/// A request, and the digest of the parts of its answer that a run reads.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub(crate) request: Request,
    answer: [u8; 32],
}

impl Exchange {
    /// Whether `answer` equals the earlier one.
    pub(crate) fn is_repeated_by(&self, answer: &Result<Response, ServerError>) -> bool {
        digest(answer) == Some(self.answer)
    }
}

/// Returns the digest of the parts of `answer` that a run reads; `None` if the server did not answer.
fn digest(answer: &Result<Response, ServerError>) -> Option<[u8; 32]> {
    let mut hash = Sha256::new();
    match answer {
        Ok(response) => {
            hash.update(response.content_type.as_deref().unwrap_or_default());
            hash.update([0]);
            // Links may refer to the next page of a list.
            for link in &response.links {
                hash.update(link);
                hash.update([0]);
            }
            hash.update(format!("{:?}", response.paging));
            hash.update(&response.body);
        }
        // A run does not read the text of an error.
        Err(error) => hash.update(error.status()?.as_str()),
    }
    Some(hash.finalize().into())
}

impl Knowledge {
    /// Returns only the knowledge about creates, which prevents that they are repeated. If it may not be the `same_server`,
    /// the knowledge that has a lasting effect is dropped, too.
    #[must_use]
    pub fn of_creates(&self, same_server: bool) -> Self {
        let known = self.0.lock();
        let lost = if same_server { known.lost.clone() } else { HashMap::new() };
        Self(Mutex::new(Known {
            uncertain: known.uncertain.clone(),
            latest: known.latest,
            keys: known.keys.clone(),
            witnesses: known.witnesses.clone(),
            lost,
            ..Known::default()
        }))
    }

    /// Whether the list of `collection` shows complete members; `None` if this is unknown.
    pub(crate) fn shows_whole(&self, collection: &LogicalPath, rules: &Rules) -> Option<bool> {
        self.0.lock().whole.get(&(collection.clone(), *rules.digest())).copied()
    }

    /// Whether the list of `collection` shows complete members under all rules for which this is known.
    pub(crate) fn shows_only_whole(&self, collection: &LogicalPath) -> bool {
        let known = self.0.lock();
        let mut lists =
            known.whole.iter().filter(|((list, _), _)| list == collection).map(|(_, whole)| *whole);
        lists.next().is_some_and(|first| first && lists.all(|whole| whole))
    }

    /// Stores whether the list of `collection` shows complete members.
    pub(crate) fn judge(&self, collection: &LogicalPath, rules: &Rules, whole: bool) {
        self.0.lock().whole.insert((collection.clone(), *rules.digest()), whole);
    }

    /// Records that `resource` refers to the value at `pointer` of the resource or collection at `other`; `None` means any
    /// value.
    pub(crate) fn note_reference(
        &self,
        resource: &LogicalPath,
        other: &LogicalPath,
        pointer: Option<&Pointer>,
    ) {
        let referrer = (resource.clone(), pointer.cloned());
        let mut known = self.0.lock();
        if !known.referrers.get(other).is_some_and(|referrers| referrers.contains(&referrer)) {
            known.referrers.entry(other.clone()).or_default().insert(referrer);
        }
    }

    /// Returns the resources that refer, or referred in an earlier run, to values of the resource at `path`, or to any
    /// value of what is above it.
    pub(crate) fn referrers(&self, path: &LogicalPath) -> Vec<Referrer> {
        let known = self.0.lock();
        let above = path.ancestors().filter(|above| above != path);
        let above = above.filter_map(|path| known.referrers.get(&path)).flatten();
        let own = known.referrers.get(path).into_iter().flatten();
        own.chain(above.filter(|(_, pointer)| pointer.is_none())).cloned().collect()
    }

    /// Records that a run has looked at all resources of the scope.
    pub(crate) fn note_whole_scope(&self) {
        self.0.lock().whole_scope = true;
    }

    /// Whether a run has looked at all resources of the scope. Otherwise, a run must look at them before it deletes any,
    /// because it is not known which resources refer to others.
    pub fn has_whole_scope(&self) -> bool {
        self.0.lock().whole_scope
    }

    /// Drops the knowledge about lists, so that the next run that uses lists checks them again.
    pub(crate) fn doubt(&self) {
        self.0.lock().whole.clear();
    }

    /// Stores a run of `revision` that had nothing to do. Without a revision, drops the earlier one.
    pub(crate) fn settle(&self, revision: Option<&Revision>, stats: Stats, transcript: &Transcript) {
        let settled = revision.cloned().zip(transcript.0.lock().take());
        self.0.lock().settled = settled.map(|(revision, seen)| Arc::new(Settled { revision, stats, seen }));
    }

    /// Whether [`recheck`](crate::sync::recheck) is possible for this revision.
    pub fn can_recheck(&self, revision: &Revision, options: &Options) -> bool {
        self.settled(revision, options).is_some()
    }

    /// Returns the settled run of this revision, if it fits `options`.
    pub(crate) fn settled(&self, revision: &Revision, options: &Options) -> Option<Arc<Settled>> {
        let wanted = options.effective_reading() == Reading::Bulk;
        self.0.lock().settled.clone().filter(|settled| wanted && settled.revision == *revision)
    }

    /// Records that the server may execute the create of `desired`, or show its result, within `wait` from now on.
    pub(crate) fn expect(&self, desired: &Resource, wait: Duration) {
        let mut known = self.0.lock();
        let names = known.names_of(desired);
        known.expect(names, wait);
    }

    /// Like [`Self::expect`], if only the path of the resource is known.
    pub(crate) fn expect_at(&self, path: &LogicalPath, wait: Duration) {
        let mut known = self.0.lock();
        let name = known.keys.hash_one(path);
        known.expect([name], wait);
    }

    /// Returns how long the server may still execute an earlier create of `desired`, which may have had another path.
    pub(crate) fn expected(&self, desired: &Resource) -> Option<Duration> {
        let mut known = self.0.lock();
        if known.latest? <= Instant::now() {
            (known.uncertain, known.latest) = (HashMap::new(), None);
            return None;
        }
        let until =
            known.names_of(desired).into_iter().filter_map(|name| known.uncertain.get(&name)).max()?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Records that the server shows `desired`, so that no create of it is late.
    pub(crate) fn shown(&self, desired: &Resource) {
        let mut known = self.0.lock();
        if known.latest.is_some() {
            for name in known.names_of(desired) {
                known.uncertain.remove(&name);
            }
        }
    }

    /// Records that the server created `desired`, with this id if it is known and not a secret, and that runs do not find
    /// it.
    pub(crate) fn lose(&self, desired: &Resource, id: Option<String>) {
        let keys = RandomState::new();
        let lost = Lost { id, digest: digest_of(desired, &keys), keys };
        self.0.lock().lost.insert(desired.path.clone(), lost);
    }

    /// Records that a run found the resource at `path`.
    pub(crate) fn find(&self, path: &LogicalPath) {
        self.0.lock().lost.remove(path);
    }

    /// Returns the resource that the server created for this path, and that runs do not find.
    pub(crate) fn lost(&self, path: &LogicalPath) -> Option<Lost> {
        self.0.lock().lost.get(path).cloned()
    }

    /// Records resources that the server created in `collection`, and that its list must show.
    pub(crate) fn expect_in_list(&self, collection: LogicalPath, created: Vec<Witness>) {
        self.0.lock().witnesses.insert(collection, created);
    }

    /// Returns the resource that was created in `collection` for `path`, or otherwise the last one, unless a list has
    /// shown it.
    pub(crate) fn witness(&self, collection: &LogicalPath, path: &LogicalPath) -> Option<Witness> {
        let known = self.0.lock();
        let created = known.witnesses.get(collection)?;
        created.iter().find(|witness| witness.path == *path).or(created.last()).cloned()
    }

    /// Records that the list of `collection` shows the resource that was created for `path`, or that this no longer exists.
    pub(crate) fn shown_in_list(&self, collection: &LogicalPath, path: &LogicalPath) {
        let mut known = self.0.lock();
        if let Some(created) = known.witnesses.get_mut(collection) {
            created.retain(|witness| witness.path != *path);
            if created.is_empty() {
                known.witnesses.remove(collection);
            }
        }
    }

    /// Stores where the next run begins, if a run was stopped. Returns what the run before stored.
    pub(crate) fn begin_next_at(&self, path: Option<Start>) -> Option<Start> {
        std::mem::replace(&mut self.0.lock().next, path)
    }
}

/// The requests of one run with the digests of their answers. `None` if a request had no answer, or if there are too
/// many requests to repeat.
#[derive(Debug)]
pub struct Transcript(Mutex<Option<Seen>>);

impl Transcript {
    /// Returns an empty transcript. If it is not `open`, it keeps nothing.
    pub(crate) fn new(open: bool) -> Arc<Self> {
        Arc::new(Self(Mutex::new(open.then(Seen::default))))
    }

    /// Moves the requests of `other` to this transcript.
    pub(crate) fn append(&self, other: &Self) {
        let added = other.0.lock().take();
        let mut kept = self.0.lock();
        match (kept.as_mut(), added) {
            (Some(kept), Some(added)) if kept.exchanges.len() + added.exchanges.len() <= MAX_EXCHANGES => {
                kept.exchanges.extend(added.exchanges);
            }
            _ => *kept = None,
        }
    }

    pub(crate) fn note(&self, request: &Request, answer: &Result<Response, ServerError>) {
        let mut kept = self.0.lock();
        let Some(seen) = kept.as_mut() else { return };
        match digest(answer) {
            Some(answer) if seen.exchanges.len() < MAX_EXCHANGES => {
                // A kept request must not hold secrets.
                let request = Request { secrets: Arc::default(), ..request.clone() };
                seen.exchanges.push(Exchange { request, answer });
            }
            _ => *kept = None,
        }
    }

    /// Records that `entry` proved that the resource at `path` is equal.
    pub(crate) fn note_equal(&self, path: &LogicalPath, entry: &Entry) {
        if let Some(seen) = self.0.lock().as_mut() {
            let (path, entry) = (seen.keys.hash_one(path), seen.keys.hash_one(entry));
            seen.equal.insert(path, entry);
        }
    }
}

/// Answers that a run does not request again. Each is used once.
#[derive(Debug, Default)]
pub struct Answers {
    at_hand: Mutex<HashMap<ReadKey, Response>>,
    /// The total size of the kept bodies.
    bytes: usize,
}

/// The parts of a request that distinguish reads of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReadKey {
    method: Method,
    path: String,
    encoded: bool,
    query: Vec<(String, String)>,
    headers: Vec<(HeaderName, HeaderValue)>,
    accept: Option<Box<str>>,
    body: Option<Bytes>,
    link: Option<Box<Url>>,
    /// The statuses that are answers, not failures.
    answers: Arc<[u16]>,
    /// The condition by which an answer states a failure.
    failed: Option<Query>,
}

impl ReadKey {
    pub fn of(request: &Request) -> Self {
        Self {
            method: request.method.clone(),
            path: request.path.clone(),
            encoded: request.encoded,
            query: request.query.clone(),
            headers: request.headers.clone(),
            accept: request.accept.clone(),
            body: request.body.as_ref().map(|body| body.bytes.clone()),
            link: request.link.clone(),
            answers: Arc::clone(&request.answers),
            failed: request.failed.clone(),
        }
    }
}

impl Answers {
    pub(crate) fn keep(&mut self, request: &Request, response: Response) {
        let bytes = self.bytes + response.body.len();
        let at_hand = self.at_hand.get_mut();
        if at_hand.len() < MAX_AT_HAND && bytes <= MAX_BYTES_AT_HAND {
            self.bytes = bytes;
            at_hand.insert(ReadKey::of(request), response);
        }
    }

    pub(crate) fn take(&self, request: &Request) -> Option<Response> {
        let mut at_hand = self.at_hand.lock();
        if at_hand.is_empty() { None } else { at_hand.remove(&ReadKey::of(request)) }
    }
}
