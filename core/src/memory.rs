//! Bounds the memory that payloads of this process use at the same time.
//!
//! [`limit`] divides a budget among [`Pool`]s. A payload that needs more than [`LIGHT`] bytes reserves a [`Share`] of
//! its pool before it is kept, and returns it when its last holder is dropped. So payloads of one user cannot exhaust
//! the memory of all: large ones wait for each other, and fail after [`PATIENCE`]. Smaller ones never wait. Without a
//! budget, as in the command line tool, nothing waits or fails. The pages of a list count together.
//!
//! Work acquires shares in the order of [`Pool`], so it does not wait for itself.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, MutexGuard, OwnedSemaphorePermit, Semaphore};

/// A payload of at most this number of bytes in memory is not counted.
pub const LIGHT: usize = 64 << 10;
/// The maximum time that a payload waits for its share.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Permits of semaphores are 32-bit numbers, so pools count in this unit.
const UNIT: usize = 1 << 10;

/// The purposes of the budget, which do not compete with each other. Each gets a fifth of it. The rest is for the copies
/// that a comparison and a request need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Payloads that Git declares, and the requests made of them.
    Desired,
    /// Answers of servers.
    Answers,
    /// Bundles and `OpenAPI` documents, which are kept.
    Artifacts,
}

/// A pool cannot provide a share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// The whole pool is too small.
    #[error("it needs more than {} of memory, which is the limit for {pool}; raise the memory limit of the operator", mebibytes(*.capacity))]
    TooLarge {
        /// The pool.
        pool: Pool,
        /// Its size in bytes.
        capacity: usize,
    },
    /// Other payloads did not release enough memory in time.
    #[error("it needs {} of memory, and less than that is free of the {} for {pool}; it is tried again", mebibytes(*.needed), mebibytes(*.capacity))]
    Busy {
        /// The pool.
        pool: Pool,
        /// The bytes that were requested.
        needed: usize,
        /// Its size in bytes.
        capacity: usize,
    },
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Desired => "payloads of repositories",
            Self::Answers => "answers of servers",
            Self::Artifacts => "bundles and OpenAPI documents",
        })
    }
}

fn mebibytes(bytes: usize) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// A part of a pool. Clones share it, and the last one returns it.
#[derive(Clone, Debug, Default)]
pub struct Share(Option<Arc<OwnedSemaphorePermit>>);

impl Share {
    /// Returns `bytes`, which hold this share until they are dropped.
    pub fn keep(&self, bytes: Bytes) -> Bytes {
        struct Kept(Bytes, #[expect(dead_code, reason = "held until it is dropped")] Share);
        impl AsRef<[u8]> for Kept {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        if self.0.is_none() { bytes } else { Bytes::from_owner(Kept(bytes, self.clone())) }
    }
}

/// The growing share of a body that is being read, or of values that are kept together.
#[derive(Debug)]
pub(crate) struct Reservation {
    pool: Pool,
    permits: Option<OwnedSemaphorePermit>,
    /// The bytes that are reserved; up to [`LIGHT`] need no permit.
    covered: usize,
    /// The bytes of the values that were added.
    added: usize,
}

impl Reservation {
    /// The step by which a reservation grows, so that most bodies need one.
    const STEP: usize = 1 << 20;

    /// Returns a reservation of nothing.
    pub const fn new(pool: Pool) -> Self {
        Self { pool, permits: None, covered: LIGHT, added: 0 }
    }

    /// Waits until the reservation covers `bytes` in total.
    pub async fn cover(&mut self, bytes: usize) -> Result<(), Shortage> {
        let ahead = self.covered + Self::STEP;
        self.grow(bytes, ahead.min(capacity(self.pool).unwrap_or(ahead))).await
    }

    /// Waits until the reservation also covers a value of `bytes`.
    pub async fn add(&mut self, bytes: usize) -> Result<(), Shortage> {
        self.added += bytes;
        self.grow(self.added, 0).await
    }

    /// Waits until `bytes` are covered, and at least `ahead` if that takes a new permit.
    async fn grow(&mut self, bytes: usize, ahead: usize) -> Result<(), Shortage> {
        if bytes <= self.covered {
            return Ok(());
        }
        let total = bytes.max(if self.permits.is_some() { ahead } else { 0 }).next_multiple_of(UNIT);
        if let Some(budget) = BUDGET.get() {
            // It would wait for its own permits.
            budget.fitting(self.pool, total)?;
            let more = if self.permits.is_some() { total - self.covered } else { total };
            let more = budget.acquire(self.pool, more, PATIENCE).await?;
            match &mut self.permits {
                Some(permits) => permits.merge(more),
                None => self.permits = Some(more),
            }
        }
        self.covered = total;
        Ok(())
    }

    pub fn share(self) -> Share {
        Share(self.permits.map(Arc::new))
    }
}

/// The pools of one process.
#[derive(Debug)]
struct Budget {
    /// By [`Pool`].
    pools: [Semaphored; 3],
    /// Held while a payload of unknown size is decoded, before its memory is reserved.
    measuring: Mutex<()>,
}

#[derive(Debug)]
struct Semaphored {
    units: Arc<Semaphore>,
    capacity: usize,
}

impl Semaphored {
    fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).min(u32::MAX as usize);
        Self { units: Arc::new(Semaphore::new(units)), capacity: units * UNIT }
    }
}

impl Budget {
    fn new(bytes: usize) -> Self {
        Self { pools: [(); 3].map(|()| Semaphored::new(bytes / 5)), measuring: Mutex::default() }
    }

    fn pool(&self, pool: Pool) -> &Semaphored {
        &self.pools[pool as usize]
    }

    /// Returns the semaphore and the size of a pool, unless it is too small for `bytes`.
    fn fitting(&self, pool: Pool, bytes: usize) -> Result<(Arc<Semaphore>, usize), Shortage> {
        let Semaphored { units, capacity } = self.pool(pool);
        if bytes > *capacity {
            return Err(Shortage::TooLarge { pool, capacity: *capacity });
        }
        Ok((Arc::clone(units), *capacity))
    }

    async fn reserve(&self, pool: Pool, bytes: usize, patience: Duration) -> Result<Share, Shortage> {
        if bytes <= LIGHT {
            return Ok(Share::default());
        }
        Ok(Share(Some(Arc::new(self.acquire(pool, bytes, patience).await?))))
    }

    fn acquire_now(&self, pool: Pool, bytes: usize) -> Result<Share, Shortage> {
        let (units, capacity) = self.fitting(pool, bytes)?;
        let permit = units.try_acquire_many_owned(units_of(bytes));
        let busy = |_| Shortage::Busy { pool, needed: bytes, capacity };
        Ok(Share(Some(Arc::new(permit.map_err(busy)?))))
    }

    async fn acquire(
        &self,
        pool: Pool,
        bytes: usize,
        patience: Duration,
    ) -> Result<OwnedSemaphorePermit, Shortage> {
        let (units, capacity) = self.fitting(pool, bytes)?;
        let busy = || Shortage::Busy { pool, needed: bytes, capacity };
        let acquired = units.acquire_many_owned(units_of(bytes));
        let permit = tokio::time::timeout(patience, acquired).await.map_err(|_| busy())?;
        // The semaphore is never closed.
        permit.map_err(|_| busy())
    }
}

fn units_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

static BUDGET: OnceLock<Budget> = OnceLock::new();

/// Limits the memory of payloads in this process to `bytes`. Later calls have no effect.
pub fn limit(bytes: usize) {
    let _ = BUDGET.set(Budget::new(bytes));
}

/// Returns the size of a pool, which is also the limit of one payload; `None` without a budget.
pub fn capacity(pool: Pool) -> Option<usize> {
    BUDGET.get().map(|budget| budget.pool(pool).capacity)
}

/// Whether this process has a budget.
pub fn is_limited() -> bool {
    BUDGET.get().is_some()
}

/// Waits for a share of `bytes`. At most [`LIGHT`] bytes need no share.
pub async fn reserve(pool: Pool, bytes: usize) -> Result<Share, Shortage> {
    match BUDGET.get() {
        Some(budget) => budget.reserve(pool, bytes, PATIENCE).await,
        None => Ok(Share::default()),
    }
}

/// Like [`reserve`], but does not wait, because the pool holds what is kept for a long time.
pub fn reserve_now(pool: Pool, bytes: usize) -> Result<Share, Shortage> {
    match BUDGET.get() {
        Some(budget) if bytes > LIGHT => budget.acquire_now(pool, bytes),
        _ => Ok(Share::default()),
    }
}

/// Waits for the turn to decode a payload whose size in memory is unknown. Only one is decoded at a time, until its
/// share is reserved. Without a budget, there are no turns.
pub async fn turn() -> Option<MutexGuard<'static, ()>> {
    Some(BUDGET.get()?.measuring.lock().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_payload_waits_until_another_one_returns_its_share() {
        let budget = Arc::new(Budget::new(10 << 20));
        let first = budget.reserve(Pool::Desired, 2 << 20, SHORT).await.unwrap();
        let held = first.keep(Bytes::from_static(b"body"));
        drop(first);
        let error = budget.reserve(Pool::Desired, 1 << 20, SHORT).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "it needs 1 MiB of memory, and less than that is free of the 2 MiB for payloads of repositories; it is \
             tried again"
        );
        budget.reserve(Pool::Answers, 2 << 20, SHORT).await.unwrap();
        budget.reserve(Pool::Desired, LIGHT, SHORT).await.unwrap();
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.reserve(Pool::Desired, 1 << 20, PATIENCE).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        waiting.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_payload_above_the_capacity_fails_at_once() {
        let budget = Budget::new(5 << 20);
        let error = budget.reserve(Pool::Artifacts, 2 << 20, PATIENCE).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "it needs more than 1 MiB of memory, which is the limit for bundles and OpenAPI documents; raise the memory \
             limit of the operator"
        );
    }
}
