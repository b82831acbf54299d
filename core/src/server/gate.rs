//! The gate that every request to one managed server passes: concurrency, queue and rate.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::ServerError;

/// Requests at once when nothing else is configured.
pub const DEFAULT_CONCURRENCY: usize = 16;

/// The `requestThrottling` of a managed server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttling {
    /// Requests at once; at least 1.
    pub max_concurrent_requests: Option<usize>,
    /// Requests that may wait for a slot; `None` or 0 waits without bound.
    pub queue_size: Option<usize>,
    /// Requests started per second; above 0, fractions allowed.
    pub requests_per_second: Option<f64>,
    /// Requests that may start at once before the rate holds; default `max(1, floor(rate))`.
    pub burst: Option<u32>,
}

/// Shared by everything that talks to one managed server. Waiting is first come, first served.
#[derive(Debug)]
pub struct Gate {
    slots: Semaphore,
    limit: usize,
    queue: Option<usize>,
    waiting: AtomicUsize,
    rate: Option<DefaultDirectRateLimiter>,
}

/// Why a request was not let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The queue holds this many already.
    QueueFull(usize),
    /// The gate was closed; does not happen while a client lives.
    Closed,
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
        let limit = max_concurrent_requests.unwrap_or(DEFAULT_CONCURRENCY).min(Semaphore::MAX_PERMITS);
        Ok(Self {
            slots: Semaphore::new(limit),
            limit,
            queue: queue_size.filter(|size| *size > 0),
            waiting: AtomicUsize::new(0),
            rate,
        })
    }

    /// How many requests may run at once.
    pub fn concurrency(&self) -> usize {
        self.limit
    }

    /// Waits for a slot, then for the rate. Returns the slot and whether anything had to wait.
    pub(super) async fn enter(&self) -> Result<(SemaphorePermit<'_>, bool), Refused> {
        let (slot, mut waited) = match self.slots.try_acquire() {
            Ok(slot) => (slot, false),
            Err(_) => (self.wait_for_slot().await?, true),
        };
        if let Some(rate) = &self.rate
            && rate.check().is_err()
        {
            rate.until_ready().await;
            waited = true;
        }
        Ok((slot, waited))
    }

    async fn wait_for_slot(&self) -> Result<SemaphorePermit<'_>, Refused> {
        let _place = self.take_place()?;
        self.slots.acquire().await.map_err(|_| Refused::Closed)
    }

    fn take_place(&self) -> Result<Place<'_>, Refused> {
        let before = self.waiting.fetch_add(1, Ordering::AcqRel);
        let place = Place(&self.waiting);
        match self.queue {
            Some(size) if before >= size => Err(Refused::QueueFull(size)),
            _ => Ok(place),
        }
    }
}

/// A place in the queue, given back also when the waiting future is dropped.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Throttling { max_concurrent_requests: Some(0), ..Throttling::default() }, "at least 1")]
    #[case(Throttling { queue_size: Some(1), ..Throttling::default() }, "needs maxConcurrentRequests")]
    #[case(Throttling { burst: Some(1), ..Throttling::default() }, "needs requestsPerSecond")]
    #[case(Throttling { requests_per_second: Some(0.0), ..Throttling::default() }, "above 0")]
    fn contradictions_are_refused(#[case] throttling: Throttling, #[case] expected: &str) {
        let error = Gate::new(&throttling).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[tokio::test]
    async fn one_runs_one_waits_the_third_fails_at_once() {
        let gate = Gate::new(&Throttling {
            max_concurrent_requests: Some(1),
            queue_size: Some(1),
            ..Throttling::default()
        })
        .unwrap();
        let (first, waited) = gate.enter().await.unwrap();
        assert!(!waited);
        let second = gate.enter();
        tokio::pin!(second);
        assert!(futures::poll!(&mut second).is_pending());
        assert_eq!(gate.enter().await.map(|_| ()), Err(Refused::QueueFull(1)));
        drop(first);
        assert!(second.await.unwrap().1);
    }

    #[tokio::test]
    async fn a_cancelled_waiter_gives_its_place_back() {
        let gate = Gate::new(&Throttling {
            max_concurrent_requests: Some(1),
            queue_size: Some(1),
            ..Throttling::default()
        })
        .unwrap();
        let _running = gate.enter().await.unwrap();
        {
            let abandoned = gate.enter();
            tokio::pin!(abandoned);
            assert!(futures::poll!(&mut abandoned).is_pending());
        }
        let next = gate.enter();
        tokio::pin!(next);
        assert!(futures::poll!(&mut next).is_pending());
    }
}
