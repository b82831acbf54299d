//! The gate that every request to one managed server passes: how many at once, how fast, and whether at all.
//!
//! What is configured holds exactly. What is not adapts to how the server answers (`gate/limit.rs`); what the
//! server asks for (`Retry-After`) and whether it can be reached at all (`gate/breaker.rs`) bind everybody who
//! shares the gate.

mod breaker;
mod limit;
mod line;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::StatusCode;
use tokio::time::Instant;

use self::limit::Limit;
pub(super) use self::line::Caller;
use self::line::{Attempt, Entry, Line, Place};
use super::{BaseUrl, ServerError};

/// Requests at once to begin with when nothing else is configured.
pub const DEFAULT_CONCURRENCY: usize = 16;

/// Requests at once that an unconfigured gate never exceeds, however well the server takes them.
pub const MAX_CONCURRENCY: usize = 64;

/// The `requestThrottling` of a managed server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttling {
    /// Requests at once; at least 1. Without it the number adapts, from [`DEFAULT_CONCURRENCY`] and up to
    /// [`MAX_CONCURRENCY`].
    pub max_concurrent_requests: Option<usize>,
    /// Requests that may wait for a slot; `None` or 0 waits without bound. Requests of a run always wait.
    pub queue_size: Option<usize>,
    /// Requests started per second; above 0, fractions allowed.
    pub requests_per_second: Option<f64>,
    /// Requests that may start at once before the rate holds; default `max(1, floor(rate))`.
    pub burst: Option<u32>,
}

/// Shared by everything that talks to one managed server. Waiting is first come, first served.
#[derive(Debug)]
pub struct Gate {
    line: Mutex<Line>,
    rate: Option<DefaultDirectRateLimiter>,
    /// Those who have a slot and wait for the rate.
    awaiting_rate: AtomicUsize,
    ceiling: usize,
}

/// How a gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateStatus {
    /// Requests that may run at once now.
    pub concurrency_limit: usize,
    /// Requests that run.
    pub in_flight: usize,
    /// Whether requests fail without contacting the server, because the last attempts did not reach it.
    pub breaker_open: bool,
}

/// Why a request was not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The queue holds this many already.
    QueueFull(usize),
    /// The server answered `status` and asked for no requests until then, which is too long to wait for.
    AskedToWait { status: StatusCode, until: SystemTime },
    /// The server could not be reached. Zero until the probe: it is under way.
    Unreachable { failures: u32, probe_in: Duration, cause: String },
}

/// What an attempt taught.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome<'a> {
    /// The server answered.
    Answered(Answer),
    /// It could not be reached, or did not answer to the end, because of this.
    Failed(&'a str),
}

/// What counts about an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub status: StatusCode,
    pub retry_after: Option<Duration>,
}

impl Gate {
    /// A gate for `throttling`; settings that contradict each other are refused.
    pub fn new(throttling: &Throttling) -> Result<Self, ServerError> {
        let refuse = |reason: &str| {
            Err(ServerError::Setting { setting: "requestThrottling", reason: reason.to_owned() })
        };
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

    /// How many requests may run at once now.
    pub fn concurrency(&self) -> usize {
        self.line().limit()
    }

    /// How many requests may ever run at once: what is configured, else [`MAX_CONCURRENCY`]. Whoever keeps
    /// this many under way uses all that the gate allows, and waits here while it allows less.
    pub fn max_concurrency(&self) -> usize {
        self.ceiling
    }

    /// How the gate stands.
    pub fn status(&self) -> GateStatus {
        let line = self.line();
        GateStatus {
            concurrency_limit: line.limit(),
            in_flight: self.running(&line),
            breaker_open: line.breaker_open(),
        }
    }

    /// Takes note of a new client. Other credentials or trust may reach a server that could not be reached;
    /// at another address nothing of what the gate has learnt holds.
    pub(super) fn serves(&self, base_url: &BaseUrl) {
        self.line().serves(base_url, Instant::now());
    }

    /// Waits for a slot, then for the rate.
    pub(super) async fn enter(&self, caller: Caller) -> Result<Pass<'_>, Refused> {
        let mut pass = self.slot(None, caller).await?;
        while let Some(rate) = self.rate.as_ref().filter(|rate| rate.check().is_err()) {
            {
                let _waiting = Counted::new(&self.awaiting_rate);
                rate.until_ready().await;
            }
            pass.held_back = true;
            pass.started = Instant::now();
            // Meanwhile the server may have asked for patience, or for less at once.
            if self.line().may_stay(pass.entry.passage, pass.started) {
                break;
            }
            let ticket = pass.entry.ticket;
            drop(pass);
            pass = self.slot(Some(ticket), caller).await?;
            pass.held_back = true;
        }
        Ok(pass)
    }

    /// Waits for a slot. Whoever comes back keeps the ticket, and with it the place before those who came later.
    async fn slot(&self, ticket: Option<u64>, caller: Caller) -> Result<Pass<'_>, Refused> {
        let mut place = {
            let mut line = self.line();
            let now = Instant::now();
            if let Some(entry) = line.try_enter(ticket, now)? {
                return Ok(self.pass(entry, false, now));
            }
            Place::new(&self.line, line.take_place(ticket, caller)?)
        };
        let mut held_back = false;
        loop {
            let opens = {
                let mut line = self.line();
                let now = Instant::now();
                held_back |= line.holds_back(now);
                place.turn = Some(line.wait(place.ticket, now)?);
                line.opens_at(now)
            };
            if let Some(passage) = place.turn(opens).await {
                let now = Instant::now();
                let pass = self.pass(Entry { ticket: place.ticket, passage }, held_back, now);
                // What happened since the turn was given counts too.
                if self.line().may_stay(passage, now) {
                    return Ok(pass);
                }
            }
        }
    }

    fn pass(&self, entry: Entry, held_back: bool, started: Instant) -> Pass<'_> {
        Pass { gate: self, entry, held_back, started, settled: false }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        line::lock(&self.line)
    }

    /// How many of those inside have sent their request.
    fn running(&self, line: &Line) -> usize {
        line.inside().saturating_sub(self.awaiting_rate.load(Ordering::Relaxed))
    }
}

/// Leave to send one request. Dropped without being settled, it teaches nothing.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    gate: &'a Gate,
    entry: Entry,
    held_back: bool,
    started: Instant,
    settled: bool,
}

impl Pass<'_> {
    /// Whether the request had to wait because of what is configured or what the server asked for, and not
    /// just for its turn among requests as many as the server takes gladly.
    pub(super) fn held_back(&self) -> bool {
        self.held_back
    }

    /// Gives the slot back and takes note of how the attempt ended.
    pub(super) fn settle(mut self, outcome: Outcome<'_>) {
        self.settled = true;
        let now = Instant::now();
        let mut line = self.gate.line();
        let attempt = Attempt { passage: self.entry.passage, started: self.started, ended: now };
        let running = self.gate.running(&line);
        line.learn(&attempt, running, outcome);
        line.leave(now);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.gate.line().abandon(self.entry.passage, Instant::now());
        }
    }
}

/// Counts one while it lives.
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
