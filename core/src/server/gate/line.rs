//! The queue of a gate: the requests that run, the requests that wait, and the rules that admit the next one. A plain
//! data structure: it does not read the clock and does not wait.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::breaker::{Breaker, Passage};
use super::limit::Limit;
use super::{Answer, Outcome, Refused};
use crate::server::BaseUrl;
use crate::transport::retry::LONGEST_WAIT;

/// The longest time for which a `Retry-After` closes the gate.
const LONGEST_CLOSURE: Duration = Duration::from_hours(1);

/// The state of a gate.
///
/// Tickets are numbered in the order of arrival, and requests are admitted in the order of their tickets. If the
/// sender of a waiting request is dropped, the request checks the state again. Changes of the state reach waiting
/// requests in this way.
#[derive(Debug)]
pub(super) struct Line {
    limit: Limit,
    breaker: Breaker,
    closed: Option<Closed>,
    /// The server that the state describes.
    learnt_from: Option<BaseUrl>,
    queue_size: Option<usize>,
    inside: usize,
    waiting: BTreeMap<u64, oneshot::Sender<Passage>>,
    /// Places that are taken in the queue. A request keeps its place while it checks the state again.
    places: usize,
    next_ticket: u64,
}

/// The server asked for no requests until this time.
#[derive(Clone, Copy, Debug)]
struct Closed {
    until: Instant,
    clock: SystemTime,
    status: StatusCode,
}

/// The kind of request that enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Caller {
    /// A single request. It fails if the queue is full.
    Alone,
    /// A request of a run. It waits even if the queue is full, because the run itself bounds the number of its
    /// requests. An error would fail the resource, and the next request would find the same queue.
    Run,
}

/// An admitted request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub ticket: u64,
    pub passage: Passage,
}

/// One attempt of an admitted request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub passage: Passage,
    pub started: Instant,
    pub ended: Instant,
}

impl Line {
    pub(super) fn new(limit: Limit, queue_size: Option<usize>) -> Self {
        Self {
            limit,
            breaker: Breaker::default(),
            closed: None,
            learnt_from: None,
            queue_size,
            inside: 0,
            waiting: BTreeMap::new(),
            places: 0,
            next_ticket: 0,
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit.now()
    }

    pub(super) fn inside(&self) -> usize {
        self.inside
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.inside == 0 && self.waiting.is_empty() && self.places == 0
    }

    pub(super) fn breaker_open(&self) -> bool {
        self.breaker.is_open()
    }

    /// Admits a request if no other request waits and a slot is free. Fails if waiting would be useless. A request
    /// that queues again passes its `ticket`.
    pub(super) fn try_enter(&mut self, ticket: Option<u64>, now: Instant) -> Result<Option<Entry>, Refused> {
        self.refusal(now).map_or(Ok(()), Err)?;
        if !self.waiting.is_empty() || self.inside >= self.limit.now() || !self.is_open(now) {
            return Ok(None);
        }
        let Some(passage) = self.breaker.ask(now) else { return Ok(None) };
        self.inside += 1;
        Ok(Some(Entry { ticket: ticket.unwrap_or_else(|| self.ticket()), passage }))
    }

    fn refusal(&self, now: Instant) -> Option<Refused> {
        if let Some(closed) = self.closed.filter(|closed| closed.until > now + LONGEST_WAIT) {
            return Some(Refused::AskedToWait { status: closed.status, until: closed.clock });
        }
        self.breaker.refusal(now)
    }

    fn is_open(&self, now: Instant) -> bool {
        self.opens_at(now).is_none()
    }

    /// Returns the end of the wait that the server asked for, if it is in the future.
    pub(super) fn opens_at(&self, now: Instant) -> Option<Instant> {
        self.closed.map(|closed| closed.until).filter(|until| *until > now)
    }

    /// Whether waiting requests wait because of the configuration or because of the server.
    pub(super) fn holds_back(&self, now: Instant) -> bool {
        self.limit.holds_back() || !self.is_open(now)
    }

    /// Takes a place in the queue; an error if the queue is full for `caller`. A request that has a `ticket` always
    /// gets its place.
    pub(super) fn take_place(&mut self, ticket: Option<u64>, caller: Caller) -> Result<u64, Refused> {
        let bound = self.queue_size.filter(|_| ticket.is_none() && caller == Caller::Alone);
        if let Some(size) = bound.filter(|size| self.places >= *size) {
            return Err(Refused::QueueFull(size));
        }
        self.places += 1;
        Ok(ticket.unwrap_or_else(|| self.ticket()))
    }

    fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Waits with a ticket; an error if waiting would be useless. The receiver fails if the request must check the
    /// state again.
    pub(super) fn wait(&mut self, ticket: u64, now: Instant) -> Result<oneshot::Receiver<Passage>, Refused> {
        self.refusal(now).map_or(Ok(()), Err)?;
        let (sender, turn) = oneshot::channel();
        self.waiting.insert(ticket, sender);
        self.admit(now);
        Ok(turn)
    }

    /// Admits as many requests as there are free slots.
    fn admit(&mut self, now: Instant) {
        while self.inside < self.limit.now() && self.is_open(now) {
            let Some((_, turn)) = self.waiting.pop_first() else { break };
            // The breaker admits none. The dropped sender makes the request check again and fail with the reason.
            let Some(passage) = self.breaker.ask(now) else { continue };
            match turn.send(passage) {
                Ok(()) => self.inside += 1,
                Err(passage) => self.breaker.abandoned(passage, now),
            }
        }
    }

    /// Whether an admitted request that has not been sent may still be sent.
    pub(super) fn may_stay(&self, passage: Passage, now: Instant) -> bool {
        let reachable = passage == Passage::Probe || !self.breaker.is_open();
        reachable && self.is_open(now) && self.inside <= self.limit.now()
    }

    /// Releases a slot and admits the next request.
    pub(super) fn leave(&mut self, now: Instant) {
        self.inside = self.inside.saturating_sub(1);
        self.admit(now);
    }

    /// Releases the slot of a request that ended without an outcome.
    pub(super) fn abandon(&mut self, passage: Passage, now: Instant) {
        self.breaker.abandoned(passage, now);
        self.leave(now);
    }

    /// Evaluates the outcome of an attempt that was one of `running`. Its slot is still taken.
    pub(super) fn learn(&mut self, attempt: &Attempt, running: usize, outcome: Outcome<'_>) {
        let Attempt { passage, started, ended } = *attempt;
        match outcome {
            Outcome::Answered(answer) => {
                self.breaker.succeeded();
                self.answered(started, ended, running, &answer);
            }
            Outcome::Failed(cause) => {
                self.limit.overloaded(started, ended);
                if self.breaker.failed(passage, started, ended, cause) {
                    self.waiting.clear();
                }
            }
        }
    }

    fn answered(&mut self, started: Instant, now: Instant, running: usize, answer: &Answer) {
        match answer.status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                self.limit.overloaded(started, now);
                if let Some(patience) = answer.retry_after.filter(|patience| !patience.is_zero()) {
                    self.close(now, patience.min(LONGEST_CLOSURE), answer.status);
                }
            }
            // A gateway reports that the server behind it did not answer in time.
            StatusCode::GATEWAY_TIMEOUT => self.limit.overloaded(started, now),
            // The server failed, so the limit does not grow.
            status if status.is_server_error() => {}
            _ => self.limit.answered(started, now, running),
        }
    }

    /// Closes the gate for `patience`, unless it is already closed for longer.
    fn close(&mut self, now: Instant, patience: Duration, status: StatusCode) {
        let until = now + patience;
        if self.closed.is_none_or(|closed| closed.until < until) {
            self.closed = Some(Closed { until, clock: SystemTime::now() + patience, status });
            self.waiting.clear();
        }
    }

    /// See [`super::Gate::serves`].
    pub(super) fn serves(&mut self, base_url: &BaseUrl, now: Instant) {
        self.breaker = Breaker::default();
        if self.learnt_from.as_ref() != Some(base_url) {
            self.limit.forget();
            self.closed = None;
            self.learnt_from = Some(base_url.clone());
        }
        self.admit(now);
    }
}

/// A place in the queue. Dropping it, for example with a cancelled future, releases the place, and the slot if one
/// was just given.
#[derive(Debug)]
pub(super) struct Place<'a> {
    line: &'a Mutex<Line>,
    pub ticket: u64,
    pub turn: Option<oneshot::Receiver<Passage>>,
}

impl<'a> Place<'a> {
    pub(super) fn new(line: &'a Mutex<Line>, ticket: u64) -> Self {
        Self { line, ticket, turn: None }
    }

    /// Waits for the slot. `None` means that the request must check the state again: at `opens` if the gate is
    /// closed, otherwise when the state changes.
    pub(super) async fn turn(&mut self, opens: Option<Instant>) -> Option<Passage> {
        let turn = self.turn.as_mut()?;
        let given = match opens {
            None => turn.await.ok(),
            Some(opens) => match timeout_at(opens, turn).await {
                Ok(given) => given.ok(),
                Err(_) => return self.withdraw(&mut self.line.lock()),
            },
        };
        self.turn = None;
        given
    }

    fn withdraw(&mut self, line: &mut Line) -> Option<Passage> {
        line.waiting.remove(&self.ticket);
        self.turn.take().and_then(|mut turn| turn.try_recv().ok())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        line.places = line.places.saturating_sub(1);
        if let Some(passage) = self.withdraw(&mut line) {
            line.abandon(passage, Instant::now());
        }
    }
}
