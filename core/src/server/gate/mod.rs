//! The gate for all requests to one managed server. It limits their number and rate, and stops them while the server
//! is unavailable.
//!
//! Configured limits hold exactly. A limit that is not configured adapts to the server's answers (`gate/limit.rs`).
//! `Retry-After` and the circuit breaker (`gate/breaker.rs`) apply to every client that shares the gate.
//!
//! A request passes these stages: the queue for a slot, the rate limit, a second check of the gate, and
//! [`Pass::settle`], which returns the slot and evaluates the outcome.

mod breaker;
mod limit;
mod line;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::limit::Limit;
pub(super) use self::line::Caller;
use self::line::{Attempt, Entry, Line, Place};
use super::{BaseUrl, ServerError};

/// The initial number of concurrent requests if none is configured.
pub const DEFAULT_CONCURRENCY: usize = 16;

/// The highest number of concurrent requests if none is configured.
pub const MAX_CONCURRENCY: usize = 64;

/// The `requestThrottling` of a managed server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttling {
    /// The number of concurrent requests; at least 1. If absent, the number adapts, from [`DEFAULT_CONCURRENCY`] and
    /// up to [`MAX_CONCURRENCY`].
    pub max_concurrent_requests: Option<usize>,
    /// Requests that may wait for a slot; `None` or 0 means no bound. Requests of a run always wait.
    pub queue_size: Option<usize>,
    /// Requests started per second; above 0, fractions allowed.
    pub requests_per_second: Option<f64>,
    /// Requests that may start at once before the rate applies; default `max(1, floor(rate))`.
    pub burst: Option<u32>,
}

/// The gate that all clients of one managed server share. Requests are admitted in the order of arrival.
#[derive(Debug)]
pub struct Gate {
    line: Mutex<Line>,
    rate: Option<DefaultDirectRateLimiter>,
    /// Requests that have a slot and wait for the rate.
    awaiting_rate: AtomicUsize,
    ceiling: usize,
}

/// The current state of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateStatus {
    /// Requests that may run at once now.
    pub concurrency_limit: usize,
    /// Requests that are running.
    pub in_flight: usize,
    /// Whether requests fail without contacting the server, because the last attempts did not reach it.
    pub breaker_open: bool,
}

/// The reason why a request was not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The queue is full with this many requests.
    QueueFull(usize),
    /// The server answered `status` and asked for no requests until then. That is too long to wait.
    AskedToWait { status: StatusCode, until: SystemTime },
    /// The server could not be reached. `probe_in` is zero while the probe is running.
    Unreachable { failures: u32, probe_in: Duration, cause: String },
}

/// The result of an attempt, as the gate evaluates it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    /// The server answered.
    Answered(Answer),
    /// The server could not be reached, or its answer was incomplete. The text is the cause.
    Failed(&'a str),
}

/// The parts of an answer that affect the gate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub retry_after: Option<Duration>,
}

impl Gate {
    /// Returns a gate for `throttling`; an error if settings contradict each other.
    pub fn new(throttling: &Throttling) -> Result<Self, ServerError> {
        let refuse = |reason: &str| Err(ServerError::setting("requestThrottling", reason));
        let Throttling { max_concurrent_requests, queue_size, requests_per_second, burst } = *throttling;
        if max_concurrent_requests == Some(0) {
            return refuse("maxConcurrentRequests must be at least 1");
        }
        if queue_size.is_some() && max_concurrent_requests.is_none() {
            return refuse("queueSize needs maxConcurrentRequests");
        }
        if burst.is_some() && requests_per_second.is_none() {
            return refuse("burst needs requestsPerSecond");
        }
        let rate = match requests_per_second {
            None => None,
            Some(rate) => match quota(rate, burst) {
                Some(quota) => Some(RateLimiter::direct(quota)),
                None => return refuse("requestsPerSecond must be above 0"),
            },
        };
        let limit = max_concurrent_requests.map_or_else(Limit::adaptive, Limit::configured);
        Ok(Self {
            ceiling: limit.ceiling(),
            line: Mutex::new(Line::new(limit, queue_size.filter(|size| *size > 0))),
            rate,
            awaiting_rate: AtomicUsize::new(0),
        })
    }

    /// Returns the number of requests that may run at once now.
    pub fn concurrency(&self) -> usize {
        self.line.lock().limit()
    }

    /// Returns the highest number of requests that may ever run at once: the configured one, else
    /// [`MAX_CONCURRENCY`]. A caller that keeps this many requests pending always uses the current limit in full.
    pub fn max_concurrency(&self) -> usize {
        self.ceiling
    }

    /// Returns the current state of the gate.
    pub fn status(&self) -> GateStatus {
        let line = self.line.lock();
        GateStatus {
            concurrency_limit: line.limit(),
            in_flight: self.running(&line),
            breaker_open: line.breaker_open(),
        }
    }

    /// Registers a new client. It closes the breaker, because other credentials or trust may reach the server. If the
    /// base URL is another one, the adapted limit and the wait that the server asked for are discarded, too.
    pub(super) fn serves(&self, base_url: &BaseUrl) {
        self.line.lock().serves(base_url, Instant::now());
    }

    /// Waits for a slot, then for the rate.
    pub(super) async fn enter(&self, caller: Caller) -> Result<Pass<'_>, Refused> {
        // Stage 1: wait for a slot.
        let mut pass = self.slot(None, caller).await?;
        // Stage 2: wait for the rate.
        while let Some(rate) = self.rate.as_ref().filter(|rate| rate.check().is_err()) {
            {
                let _waiting = Counted::new(&self.awaiting_rate);
                rate.until_ready().await;
            }
            pass.held_back = true;
            pass.started = Instant::now();
            // Stage 3: check the gate again. During the wait the server may have sent `Retry-After`, or the limit may
            // have become lower. If so, queue again with the same ticket.
            if self.line.lock().may_stay(pass.entry.passage, pass.started) {
                break;
            }
            let ticket = pass.entry.ticket;
            drop(pass);
            pass = self.slot(Some(ticket), caller).await?;
            pass.held_back = true;
        }
        Ok(pass)
    }

    /// Waits until the rate allows another request of the holder of a slot, such as one after a redirect.
    pub(super) async fn pace(&self) {
        if let Some(rate) = &self.rate {
            let _waiting = Counted::new(&self.awaiting_rate);
            rate.until_ready().await;
        }
    }

    /// Waits for a slot. A request that queues again keeps its `ticket`, and so its place before later requests.
    async fn slot(&self, ticket: Option<u64>, caller: Caller) -> Result<Pass<'_>, Refused> {
        // Enter at once if possible, otherwise take a place in the queue.
        let mut place = {
            let mut line = self.line.lock();
            let now = Instant::now();
            if let Some(entry) = line.try_enter(ticket, now)? {
                return Ok(self.pass(entry, false, now));
            }
            Place::new(&self.line, line.take_place(ticket, caller)?)
        };
        let mut held_back = false;
        // Wait for the turn. A closed gate, an open breaker or a lower limit ends a wait; then wait again or fail.
        loop {
            let opens = {
                let mut line = self.line.lock();
                let now = Instant::now();
                held_back |= line.holds_back(now);
                place.turn = Some(line.wait(place.ticket, now)?);
                line.opens_at(now)
            };
            if let Some(passage) = place.turn(opens).await {
                let now = Instant::now();
                let pass = self.pass(Entry { ticket: place.ticket, passage }, held_back, now);
                // The state may have changed since the slot was given.
                if self.line.lock().may_stay(passage, now) {
                    return Ok(pass);
                }
            }
        }
    }

    fn pass(&self, entry: Entry, held_back: bool, started: Instant) -> Pass<'_> {
        Pass { gate: self, entry, held_back, started, settled: false }
    }

    /// Returns the number of admitted requests that have been sent: those that do not wait for the rate.
    fn running(&self, line: &Line) -> usize {
        line.inside().saturating_sub(self.awaiting_rate.load(Ordering::Relaxed))
    }
}

/// The permission to send one request. A pass that is dropped without [`Pass::settle`] does not change the limit.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    gate: &'a Gate,
    entry: Entry,
    held_back: bool,
    started: Instant,
    settled: bool,
}

impl Pass<'_> {
    /// Whether the request waited because of the configuration, or because the server asked to slow down. A wait for a
    /// slot counts only if the limit is configured or currently reduced.
    pub(super) fn held_back(&self) -> bool {
        self.held_back
    }

    /// Stage 4: returns the slot and evaluates the outcome of the attempt.
    pub(super) fn settle(mut self, outcome: Outcome<'_>) {
        self.settled = true;
        let now = Instant::now();
        let mut line = self.gate.line.lock();
        let attempt = Attempt { passage: self.entry.passage, started: self.started, ended: now };
        let running = self.gate.running(&line);
        line.learn(&attempt, running, outcome);
        line.leave(now);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.gate.line.lock().abandon(self.entry.passage, Instant::now());
        }
    }
}

/// Increments a counter during its lifetime.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn quota(rate: f64, burst: Option<u32>) -> Option<Quota> {
    if !rate.is_finite() || rate <= 0.0 {
        return None;
    }
    let period = Duration::try_from_secs_f64(1.0 / rate).ok()?;
    let burst = burst.filter(|burst| *burst > 0).unwrap_or_else(|| (rate.floor() as u32).max(1));
    Some(Quota::with_period(period)?.allow_burst(NonZeroU32::new(burst)?))
}
