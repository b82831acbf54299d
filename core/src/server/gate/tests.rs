//! Tests of the gate.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::FutureExt;
use rstest::rstest;
use tokio::time::{advance, sleep};

use super::*;

const OK: Outcome<'static> = answered(StatusCode::OK, None);

const fn answered(status: StatusCode, retry_after: Option<Duration>) -> Outcome<'static> {
    Outcome::Answered(Answer { status, retry_after })
}

fn push_back(seconds: u64) -> Outcome<'static> {
    answered(StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(seconds)))
}

fn gate(max_concurrent_requests: usize, queue_size: Option<usize>) -> Gate {
    let max_concurrent_requests = Some(max_concurrent_requests);
    Gate::new(&Throttling { max_concurrent_requests, queue_size, ..Throttling::default() }).unwrap()
}

fn unconfigured() -> Gate {
    Gate::new(&Throttling::default()).unwrap()
}

type Entering<'a> = Pin<Box<dyn Future<Output = Result<Pass<'a>, Refused>> + Send + 'a>>;

/// Returns a request that has begun to wait.
fn waiter(gate: &Gate) -> Entering<'_> {
    let mut entering: Entering<'_> = Box::pin(gate.enter(Caller::Alone));
    assert!((&mut entering).now_or_never().is_none(), "admitted at once");
    entering
}

/// Enters with a request that does not have to wait.
fn at_once(gate: &Gate) -> Result<Pass<'_>, Refused> {
    gate.enter(Caller::Alone).now_or_never().expect("has to wait")
}

/// Fails attempts one after the other.
async fn fail(gate: &Gate, attempts: usize) {
    for _ in 0..attempts {
        advance(Duration::from_millis(1)).await;
        at_once(gate).unwrap().settle(Outcome::Failed("connection refused"));
    }
}

#[rstest]
#[case(Throttling { max_concurrent_requests: Some(0), ..Throttling::default() }, "at least 1")]
#[case(Throttling { queue_size: Some(1), ..Throttling::default() }, "needs maxConcurrentRequests")]
#[case(Throttling { burst: Some(1), ..Throttling::default() }, "needs requestsPerSecond")]
#[case(Throttling { requests_per_second: Some(0.0), ..Throttling::default() }, "above 0")]
fn contradicting_settings_are_rejected(#[case] throttling: Throttling, #[case] expected: &str) {
    let error = Gate::new(&throttling).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[rstest]
#[case::adaptive(unconfigured(), (DEFAULT_CONCURRENCY, MAX_CONCURRENCY))]
#[case::configured(gate(200, None), (200, 200))]
fn concurrency_at_the_start_and_at_most(#[case] gate: Gate, #[case] expected: (usize, usize)) {
    assert_eq!((gate.concurrency(), gate.max_concurrency()), expected);
}

#[tokio::test]
async fn a_request_fails_at_once_if_the_queue_is_full() {
    let gate = gate(1, Some(1));
    let first = at_once(&gate).unwrap();
    assert!(!first.held_back());
    let second = waiter(&gate);
    assert_eq!(at_once(&gate).map(drop), Err(Refused::QueueFull(1)));
    first.settle(OK);
    assert!(second.await.unwrap().held_back());
}

#[tokio::test]
async fn requests_of_a_run_wait_in_a_full_queue_and_count_in_it() {
    let gate = gate(1, Some(1));
    let first = at_once(&gate).unwrap();
    let mut of_a_run: Vec<_> = (0..3).map(|_| Box::pin(gate.enter(Caller::Run))).collect();
    assert!(of_a_run.iter_mut().all(|entering| entering.now_or_never().is_none()));
    assert_eq!(at_once(&gate).map(drop), Err(Refused::QueueFull(1)));
    drop(first);
    for entering in of_a_run {
        assert!(entering.await.is_ok(), "first come, first served");
    }
}

#[tokio::test]
async fn a_cancelled_waiter_gives_its_place_back() {
    let gate = gate(1, Some(1));
    let running = at_once(&gate).unwrap();
    drop(waiter(&gate));
    let next = waiter(&gate);
    drop(running);
    assert!(next.await.is_ok());
}

#[tokio::test]
async fn a_waiter_that_is_cancelled_in_its_turn_passes_the_slot_on() {
    let gate = gate(1, None);
    let running = at_once(&gate).unwrap();
    let (chosen, next) = (waiter(&gate), waiter(&gate));
    drop(running);
    drop(chosen);
    assert!(next.now_or_never().unwrap().is_ok());
    assert_eq!(gate.status().in_flight, 0);
}

#[tokio::test]
async fn requests_are_admitted_in_the_order_of_arrival() {
    let gate = gate(2, None);
    let mut running = vec![at_once(&gate).unwrap(), at_once(&gate).unwrap()];
    let mut waiting: Vec<_> = (0..20).map(|_| waiter(&gate)).collect();
    while !waiting.is_empty() {
        drop(running.remove(0));
        let mut first = waiting.remove(0);
        running.push((&mut first).now_or_never().expect("not the first one's turn").unwrap());
        assert!(waiting.iter_mut().all(|waiter| waiter.now_or_never().is_none()));
    }
}

#[tokio::test(start_paused = true)]
async fn the_rate_holds_back_requests_that_have_a_slot() {
    let throttling = Throttling { requests_per_second: Some(0.001), burst: Some(1), ..Throttling::default() };
    let gate = Gate::new(&throttling).unwrap();
    assert!(!gate.enter(Caller::Alone).await.unwrap().held_back());
    let second = waiter(&gate);
    assert_eq!(gate.status().in_flight, 0, "waiting for the rate is not running");
    drop(second);
    assert_eq!(gate.status(), GateStatus { concurrency_limit: 16, in_flight: 0, breaker_open: false });
}

#[tokio::test]
async fn a_wait_counts_as_held_back_only_after_a_push_back() {
    let gate = unconfigured();
    let mut running: Vec<_> = (0..DEFAULT_CONCURRENCY).map(|_| at_once(&gate).unwrap()).collect();
    let pipelined = waiter(&gate);
    running.pop().unwrap().settle(OK);
    assert!(!pipelined.await.unwrap().held_back());
    running.pop().unwrap().settle(answered(StatusCode::SERVICE_UNAVAILABLE, None));
    let held_back = waiter(&gate);
    running.clear();
    assert!(held_back.await.unwrap().held_back());
}

#[tokio::test]
async fn no_request_is_admitted_until_fewer_run_than_a_lowered_limit() {
    let gate = gate(4, None);
    let mut running: Vec<_> = (0..4).map(|_| at_once(&gate).unwrap()).collect();
    let mut next = waiter(&gate);
    running.pop().unwrap().settle(answered(StatusCode::TOO_MANY_REQUESTS, None));
    assert_eq!((gate.concurrency(), gate.status().in_flight), (2, 3));
    for _ in 0..2 {
        assert!((&mut next).now_or_never().is_none());
        drop(running.pop());
    }
    assert!(next.now_or_never().unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn retry_after_closes_the_gate_for_new_and_waiting_requests() {
    let gate = gate(1, None);
    let begin = Instant::now();
    let running = at_once(&gate).unwrap();
    let mut early = waiter(&gate);
    running.settle(push_back(7));
    let mut late = waiter(&gate);
    assert_eq!(gate.status().in_flight, 0, "no request holds a slot while the gate is closed");
    advance(Duration::from_millis(6900)).await;
    assert!((&mut early).now_or_never().is_none() && (&mut late).now_or_never().is_none());
    // Polled in reverse order, but admitted in the order of arrival.
    let late = async {
        let pass = late.await.unwrap();
        assert!(pass.held_back());
        begin.elapsed()
    };
    let early = async {
        let pass = early.await.unwrap();
        assert!(pass.held_back());
        let opened = begin.elapsed();
        sleep(Duration::from_secs(1)).await;
        drop(pass);
        opened
    };
    let (late, early) = tokio::join!(late, early);
    assert_eq!((early.as_secs(), late.as_secs()), (7, 8));
}

#[tokio::test(start_paused = true)]
async fn the_longest_retry_after_counts() {
    let gate = unconfigured();
    let begin = Instant::now();
    let passes: Vec<_> = (0..3).map(|_| at_once(&gate).unwrap()).collect();
    for (pass, seconds) in passes.into_iter().zip([5, 9, 2]) {
        pass.settle(push_back(seconds));
    }
    assert!(gate.enter(Caller::Alone).await.is_ok());
    assert_eq!(begin.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn requests_fail_while_retry_after_is_more_than_a_minute_away() {
    let gate = unconfigured();
    let (first, second) = (at_once(&gate).unwrap(), at_once(&gate).unwrap());
    first.settle(push_back(30));
    let waiting = waiter(&gate);
    second.settle(push_back(90));
    let refused = waiting.await.map(drop);
    let Err(Refused::AskedToWait { status: StatusCode::TOO_MANY_REQUESTS, until }) = refused else {
        panic!("{refused:?}")
    };
    let left = until.duration_since(SystemTime::now()).unwrap();
    assert!((80..=90).contains(&left.as_secs()), "{left:?}");
    assert!(at_once(&gate).is_err());
    advance(Duration::from_secs(31)).await;
    let waiting = gate.enter(Caller::Alone);
    let begin = Instant::now();
    assert!(waiting.await.is_ok());
    assert!((58..=60).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn retry_after_closes_the_gate_for_an_hour_at_most() {
    let gate = unconfigured();
    at_once(&gate).unwrap().settle(push_back(u64::MAX));
    assert!(at_once(&gate).is_err());
    advance(Duration::from_secs(3601)).await;
    assert!(at_once(&gate).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_the_rate_obeys_retry_after_too() {
    let throttling = Throttling { requests_per_second: Some(2.0), burst: Some(1), ..Throttling::default() };
    let gate = Gate::new(&throttling).unwrap();
    let begin = Instant::now();
    let running = gate.enter(Caller::Alone).await.unwrap();
    let waiting = waiter(&gate);
    running.settle(push_back(20));
    assert!(waiting.await.unwrap().held_back());
    assert_eq!(begin.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_refuses_until_one_probe_succeeds() {
    let gate = unconfigured();
    fail(&gate, 4).await;
    assert!(!gate.status().breaker_open);
    fail(&gate, 1).await;
    assert!(gate.status().breaker_open);
    let refused = at_once(&gate).map(drop);
    let Err(Refused::Unreachable { failures, probe_in, cause }) = refused else { panic!("{refused:?}") };
    assert_eq!((failures, cause.as_str()), (5, "connection refused"));
    advance(probe_in).await;
    let probe = at_once(&gate).unwrap();
    let refused = at_once(&gate).map(drop);
    assert!(
        matches!(refused, Err(Refused::Unreachable { probe_in: Duration::ZERO, .. })),
        "one probe at a time: {refused:?}"
    );
    drop(probe);
    at_once(&gate).unwrap().settle(answered(StatusCode::INTERNAL_SERVER_ERROR, None));
    assert!(!gate.status().breaker_open);
    assert!(at_once(&gate).is_ok());
}

#[tokio::test(start_paused = true)]
async fn waiting_requests_fail_when_the_breaker_opens() {
    let gate = gate(1, None);
    fail(&gate, 4).await;
    advance(Duration::from_millis(1)).await;
    let running = at_once(&gate).unwrap();
    let (first, second) = (waiter(&gate), waiter(&gate));
    running.settle(Outcome::Failed("connection refused"));
    for waiting in [first, second] {
        assert!(matches!(waiting.await.map(drop), Err(Refused::Unreachable { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_client_closes_the_breaker() {
    let gate = unconfigured();
    let here = BaseUrl::parse("https://here.test").unwrap();
    gate.serves(&here);
    at_once(&gate).unwrap().settle(push_back(3600));
    gate.serves(&here);
    assert!(at_once(&gate).is_err(), "a rotated credential does not end the patience of the same server");
    gate.serves(&BaseUrl::parse("https://there.test").unwrap());
    assert_eq!(gate.concurrency(), DEFAULT_CONCURRENCY);
    fail(&gate, 5).await;
    assert!(at_once(&gate).is_err());
    gate.serves(&BaseUrl::parse("https://there.test").unwrap());
    assert!(at_once(&gate).is_ok(), "new trust or credentials may reach it");
}

/// Sends requests that run for random times, fail, are pushed back or are abandoned.
#[rstest]
#[case::adaptive(Throttling::default())]
#[case::configured(Throttling { max_concurrent_requests: Some(7), ..Throttling::default() })]
#[case::rated(Throttling {
    max_concurrent_requests: Some(5),
    requests_per_second: Some(20_000.0),
    burst: Some(50),
    ..Throttling::default()
})]
#[tokio::test(start_paused = true)]
async fn never_more_requests_than_the_limit_are_admitted(
    #[case] throttling: Throttling,
    #[values(1, 2, 3, 4)] seed: u64,
) {
    let gate = Arc::new(Gate::new(&throttling).unwrap());
    let (running, passed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let exceeded = Arc::new(AtomicBool::new(false));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1500 {
        let (start, patience, work) =
            (random.u64(0..4000), random.u64(1..400), Duration::from_millis(random.u64(1..40)));
        let fate = random.u8(0..100);
        let (gate, running, passed) = (Arc::clone(&gate), Arc::clone(&running), Arc::clone(&passed));
        let exceeded = Arc::clone(&exceeded);
        tasks.spawn(async move {
            sleep(Duration::from_millis(start)).await;
            let one = async {
                let Ok(pass) = gate.enter(Caller::Alone).await else { return };
                let running = Counted::new(&running);
                // Requests that ran before a decrease may finish, but no request is admitted beyond the limit.
                if running.0.load(Ordering::Relaxed) > gate.concurrency() {
                    exceeded.store(true, Ordering::Relaxed);
                }
                passed.fetch_add(1, Ordering::Relaxed);
                sleep(work).await;
                drop(running);
                match fate {
                    0..3 => pass.settle(Outcome::Failed("reset")),
                    3..6 => pass.settle(answered(StatusCode::SERVICE_UNAVAILABLE, None)),
                    6 => pass.settle(answered(StatusCode::TOO_MANY_REQUESTS, Some(work * 5))),
                    7..15 => drop(pass),
                    _ => pass.settle(OK),
                }
            };
            if fate.is_multiple_of(3) {
                let _ = tokio::time::timeout(Duration::from_millis(patience), one).await;
            } else {
                one.await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert!(!exceeded.load(Ordering::Relaxed), "more than the limit at once");
    assert!(passed.load(Ordering::Relaxed) > 500, "only {} passed", passed.load(Ordering::Relaxed));
    // At the end all slots are free and no request waits.
    assert_eq!(gate.status().in_flight, 0);
    let line = gate.line.lock();
    assert!(line.is_idle(), "{line:?}");
}
