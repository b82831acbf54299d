//! The pauses of watches that fail.

use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::watcher::{self, Event};
use tokio::time::Instant;

/// The pause after the first failure. It doubles with each further one.
const FIRST: Duration = Duration::from_millis(800);

/// The longest pause of a watch that the operator cannot work without.
pub const LONGEST_OF_REQUIRED: Duration = Duration::from_secs(10);

/// A watch without a failure for this time after a pause has recovered. A watch of objects that do not change yields no
/// events.
const RECOVERED: Duration = Duration::from_mins(2);

/// Pauses after each failure of a watch: 0.8 s, doubled each time until the watch has recovered, at most `longest`. Each
/// pause is varied by up to a tenth.
///
/// A watch announces each list before it requests it, so the backoff of kube takes the announcement for a success and
/// never grows while lists fail.
pub fn with_pauses<T: Send + 'static>(
    events: impl Stream<Item = watcher::Result<Event<T>>> + Send + 'static,
    longest: Duration,
) -> impl Stream<Item = watcher::Result<Event<T>>> + Send {
    let start = (Box::pin(events), 0, false, Instant::now());
    stream::unfold(start, move |(mut events, mut failures, failed, mut resumed)| async move {
        if failed {
            tokio::time::sleep(pause(failures, longest)).await;
            resumed = Instant::now();
        }
        let event = events.next().await?;
        match &event {
            Err(_) if resumed.elapsed() > RECOVERED => failures = 1,
            Err(_) => failures += 1,
            Ok(Event::Init) => {}
            Ok(_) => failures = 0,
        }
        let failed = event.is_err();
        Some((event, (events, failures, failed, resumed)))
    })
}

fn pause(failures: u32, longest: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    FIRST.saturating_mul(1 << doublings).min(longest).mul_f64(0.9 + fastrand::f64() * 0.2)
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc::unbounded;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_until_a_request_succeeds() {
        let (sender, events) = unbounded();
        let send = |event: watcher::Result<Event<()>>| sender.unbounded_send(event).unwrap();
        let failed = || Err(watcher::Error::NoResourceVersion);
        for _ in 0..12 {
            send(Ok(Event::Init));
            send(failed());
        }
        send(Ok(Event::InitDone));
        send(failed());
        send(Ok(Event::Init));
        let mut events = Box::pin(with_pauses(events, Duration::from_mins(5)));
        let mut pauses = Vec::new();
        let mut last = Instant::now();
        for _ in 0..27 {
            events.next().await.unwrap().ok();
            pauses.push(last.elapsed().as_secs_f64());
            last = Instant::now();
        }
        pauses.retain(|pause| *pause > 0.0);
        let expected = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 300.0, 300.0, 300.0, 0.8];
        assert_eq!(pauses.len(), expected.len(), "{pauses:?}");
        for (pause, expected) in pauses.iter().zip(expected) {
            assert!((pause / expected - 1.0).abs() < 0.11, "{pauses:?}");
        }
    }
    #[tokio::test(start_paused = true)]
    async fn a_quiet_watch_recovers_without_events() {
        let failures = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_mins(10)).await;
            Some((Err::<Event<()>, _>(watcher::Error::NoResourceVersion), ()))
        });
        let mut events = Box::pin(with_pauses(failures, Duration::from_mins(5)));
        let mut last = Instant::now();
        for _ in 0..5 {
            events.next().await.unwrap().ok();
            let pause = last.elapsed().saturating_sub(Duration::from_mins(10));
            assert!(pause < Duration::from_secs(1), "{pause:?}");
            last = Instant::now();
        }
    }
}
