//! Waiting for a moment, and not for one that the system finds good enough.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// No system that is well wakes a thread later than this.
const LATEST: u64 = 1_000_000;

/// Knows how late the system wakes, which on a virtual machine is a tenth of ten milliseconds.
#[derive(Default)]
pub struct Pace {
    /// On average, in nanoseconds.
    lateness: AtomicU64,
}

impl Pace {
    /// Waits until `due`, on average.
    pub async fn wait_until(&self, due: Instant) {
        let lateness = self.lateness.load(Ordering::Relaxed);
        let Some(wake) = due.checked_sub(Duration::from_nanos(lateness)) else { return };
        // Timers of the runtime count in whole milliseconds and are late by up to two of them.
        let sleep = move || std::thread::sleep(wake.saturating_duration_since(Instant::now()));
        let _ = tokio::task::spawn_blocking(sleep).await;
        let late = u64::try_from(wake.elapsed().as_nanos()).unwrap_or(LATEST).min(LATEST);
        self.lateness.store((lateness * 15 + late) / 16, Ordering::Relaxed);
    }
}
