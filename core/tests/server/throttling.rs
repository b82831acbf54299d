use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use declarest_core::error::{Categorized, Category};
use declarest_core::server::{
    DEFAULT_CONCURRENCY, Gate, MAX_CONCURRENCY, Request, RequestObserver, ServerError, Throttling,
};
use http::header::{LOCATION, RETRY_AFTER};
use http::{Method, StatusCode};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use crate::server::{Ear, Server, gate, send, status};

/// Answers no request before so many have arrived.
fn together(requests: usize) -> impl Fn() -> futures::future::BoxFuture<'static, ()> + Send + Sync {
    let barrier = Arc::new(Barrier::new(requests));
    move || {
        let barrier = Arc::clone(&barrier);
        Box::pin(async move {
            barrier.wait().await;
        })
    }
}

#[tokio::test]
async fn a_configured_number_is_reached_and_never_exceeded() {
    let all = together(5);
    let server = Server::start(move |sequence| {
        let all = (sequence < 5).then(&all);
        async {
            if let Some(all) = all {
                all.await;
            }
            status(200)
        }
    })
    .await;
    let gate = gate(Some(5));
    let (one, other) = (server.client(&gate), server.client(&gate));
    let sent = tokio::join!(send(&one, &Method::GET, 100), send(&other, &Method::PUT, 100));
    assert_eq!(sent, (100, 100));
    assert_eq!(server.take_peak(), 5, "two clients share one budget");
}

#[tokio::test]
async fn without_configuration_the_number_stays_within_its_bounds() {
    let server = Server::start(|_| async {
        tokio::time::sleep(Duration::from_millis(3)).await;
        status(200)
    })
    .await;
    let gate = gate(None);
    let (ear, _) = Ear::new();
    let client = server.observed(&gate, Some(ear.clone()));
    assert_eq!(client.concurrency(), DEFAULT_CONCURRENCY);
    assert_eq!(send(&client, &Method::GET, 1000).await, 1000);
    let peak = server.take_peak();
    assert!((DEFAULT_CONCURRENCY / 2..=MAX_CONCURRENCY).contains(&peak), "{peak} at once");
    assert_eq!(ear.held_back.load(Ordering::SeqCst), 0, "waiting for one's turn is not being throttled");
}

#[tokio::test]
async fn answers_that_take_longer_do_not_lower_the_number() {
    let server = Server::start(|sequence| async move {
        // Quick at first, then much slower than at best, which has many reasons.
        tokio::time::sleep(Duration::from_millis(if sequence < 200 { 2 } else { 60 })).await;
        status(200)
    })
    .await;
    let client = server.client(&gate(None));
    assert_eq!(send(&client, &Method::GET, 200).await, 200);
    let before = client.concurrency();
    for _ in 0..10 {
        assert_eq!(send(&client, &Method::GET, 64).await, 64);
        assert!(client.concurrency() >= before, "{} after {before}", client.concurrency());
    }
}

#[tokio::test]
async fn push_back_halves_the_number_and_success_restores_it() {
    let all = together(16);
    let server = Server::start(move |sequence| {
        let all = (sequence < 16).then(&all);
        async {
            let Some(all) = all else { return status(200) };
            all.await;
            status(429)
        }
    })
    .await;
    let gate = gate(Some(16));
    let client = server.client(&gate);
    let (ear, mut pushed_back) = Ear::new();
    let observed = server.observed(&gate, Some(ear.clone()));
    let sixteen = tokio::spawn(async move { send(&observed, &Method::POST, 16).await });
    for _ in 0..16 {
        pushed_back.recv().await.unwrap();
    }
    assert_eq!(client.concurrency(), 8, "sixteen refusals of one round trip are one");
    server.take_peak();
    assert_eq!(sixteen.await.unwrap(), 16, "what was refused is sent again");
    assert!(server.take_peak() < 16);
    while client.concurrency() < 16 {
        assert_eq!(send(&client, &Method::GET, 32).await, 32);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    send(&client, &Method::GET, 200).await;
    assert!(server.take_peak() <= 16);
}

#[tokio::test]
async fn retry_after_binds_every_client_of_the_server() {
    let server = Server::start(|sequence| async move {
        if sequence > 0 {
            return status(200);
        }
        let mut answer = status(503);
        answer.headers_mut().insert(RETRY_AFTER, "1".parse().unwrap());
        answer
    })
    .await;
    let gate = gate(None);
    let (ear, mut pushed_back) = Ear::new();
    let (one, other) = (server.observed(&gate, Some(ear.clone())), server.observed(&gate, Some(ear.clone())));
    let resumed = tokio::spawn(async move { send(&one, &Method::GET, 1).await });
    pushed_back.recv().await.unwrap();
    assert_eq!(send(&other, &Method::GET, 5).await, 5);
    assert_eq!(resumed.await.unwrap(), 1);
    let arrivals = server.arrivals();
    let early = arrivals[1..].iter().filter(|at| **at < arrivals[0] + Duration::from_secs(1)).count();
    assert_eq!(early, 0, "requests within the second that the server asked for");
    assert!(ear.held_back.load(Ordering::SeqCst) >= 5);
}

#[tokio::test]
async fn patience_for_more_than_a_minute_is_an_error_that_says_until_when() {
    let server = Server::start(|_| async {
        let mut answer = status(429);
        answer.headers_mut().insert(RETRY_AFTER, "600".parse().unwrap());
        answer
    })
    .await;
    let gate = gate(None);
    let (one, other) = (server.client(&gate), server.client(&gate));
    let request = Request::new(Method::POST, "/items");
    assert!(matches!(one.send(&request).await, Err(ServerError::Status { .. })));
    let error = other.send(&request).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    let text = error.to_string();
    let expected = "POST /items: not contacted: with status 429 the server asked for no requests until ";
    assert!(text.starts_with(expected) && text.ends_with(" GMT"), "{text}");
    assert_eq!(server.arrivals().len(), 1);
}

#[tokio::test]
async fn a_dead_server_is_not_hammered() {
    let server = Server::start(|_| async { status(200) }).await;
    server.break_connections(true);
    let gate = gate(None);
    let client = server.client(&gate);
    for _ in 0..5 {
        let error = client.send(&Request::new(Method::POST, "/items")).await.unwrap_err();
        assert!(matches!(error, ServerError::Transport { .. }), "{error}");
    }
    assert!(gate.status().breaker_open);
    let before = server.connections();
    // With four attempts each, 400 connections without a breaker; each probe after a longer time with it.
    assert_eq!(send(&client, &Method::GET, 100).await, 0);
    let probes = server.connections() - before;
    assert!((1..=8).contains(&probes), "{probes} connections to a dead server");
    let error = loop {
        let error = client.send(&Request::new(Method::POST, "/items")).await.unwrap_err();
        // The other ones are probes.
        if matches!(error, ServerError::NotContacted { .. }) {
            break error;
        }
    };
    assert_eq!(error.category(), Category::Transport);
    let text = error.to_string();
    assert!(
        text.starts_with("POST /items: not contacted: the last ") && text.contains("; the last one: "),
        "{text}"
    );
}

#[tokio::test]
async fn a_server_that_is_back_is_noticed_by_the_next_request() {
    let server = Server::start(|_| async { status(200) }).await;
    server.break_connections(true);
    let gate = gate(None);
    let client = server.client(&gate);
    assert_eq!(send(&client, &Method::POST, 1).await, 0);
    while !gate.status().breaker_open {
        send(&client, &Method::POST, 1).await;
    }
    server.break_connections(false);
    assert_eq!(send(&client, &Method::POST, 20).await, 20, "they wait for the probe, which is soon");
    assert!(!gate.status().breaker_open);
}

#[tokio::test]
async fn a_request_that_is_not_sent_does_not_close_the_breaker() {
    let server = Server::start(|_| async { status(200) }).await;
    server.break_connections(true);
    let gate = gate(None);
    let client = server.client(&gate);
    while !gate.status().breaker_open {
        send(&client, &Method::POST, 1).await;
    }
    let unusable = Request { accept: Some("\n".into()), ..Request::new(Method::GET, "/items") };
    loop {
        // Until it is admitted as the probe.
        if let Err(ServerError::Request { .. }) = client.send(&unusable).await {
            break;
        }
    }
    assert!(gate.status().breaker_open, "the server was not contacted");
    server.break_connections(false);
    assert_eq!(send(&client, &Method::POST, 1).await, 1, "the next request is the probe");
    assert!(!gate.status().breaker_open);
}

/// Lets one request pass.
#[derive(Default)]
struct LeadsOnce(AtomicBool);

impl RequestObserver for LeadsOnce {
    fn completed(&self, _: &Method, _: Option<StatusCode>, _: Duration) {}

    fn throttled(&self, _: bool) {}

    fn may_send(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_redirect_that_is_not_followed_is_an_answer() {
    let server = Server::start(|_| async {
        let mut answer = status(302);
        answer.headers_mut().insert(LOCATION, "/other".parse().unwrap());
        answer
    })
    .await;
    server.break_connections(true);
    let gate = gate(None);
    let client = server.client(&gate);
    while !gate.status().breaker_open {
        send(&client, &Method::POST, 1).await;
    }
    server.break_connections(false);
    loop {
        // Until one is admitted as the probe.
        let client = server.observed(&gate, Some(Arc::new(LeadsOnce::default())));
        let error = client.send(&Request::new(Method::GET, "/items")).await.unwrap_err();
        if matches!(error, ServerError::Cancelled { .. }) {
            break;
        }
    }
    assert!(!gate.status().breaker_open, "the server has answered");
}

#[tokio::test]
async fn what_may_have_arrived_is_never_called_not_contacted() {
    let server = Server::start(|_| async { status(200) }).await;
    server.break_connections(true);
    let gate = gate(None);
    let client = server.client(&gate);
    // Broken off, then refused by the breaker that this opened.
    let put = |number: usize| {
        let request = Request::new(Method::PUT, format!("/items/{number}"));
        let client = &client;
        async move { client.send(&request).await.unwrap_err() }
    };
    let errors = futures::future::join_all((0..DEFAULT_CONCURRENCY).map(put)).await;
    assert!(gate.status().breaker_open);
    for error in errors {
        assert!(matches!(error, ServerError::Transport { .. }), "{error}");
    }
}

/// A gate for so many requests at once, where one more may wait.
fn narrow(max_concurrent_requests: usize) -> Arc<Gate> {
    let max_concurrent_requests = Some(max_concurrent_requests);
    let throttling = Throttling { max_concurrent_requests, queue_size: Some(1), ..Throttling::default() };
    Arc::new(Gate::new(&throttling).unwrap())
}

#[tokio::test]
async fn requests_of_a_run_wait_however_full_the_queue_is() {
    // Three refusals of the first requests halve the limit while the run keeps as many under way as before.
    let server = Server::start(|sequence| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        status(if sequence < 3 { 503 } else { 201 })
    })
    .await;
    let gate = narrow(16);
    let client = server.client(&gate).until(CancellationToken::new());
    assert_eq!(send(&client, &Method::PUT, 200).await, 200);
    assert_eq!(server.arrivals().len(), 203, "nothing is sent twice but what was refused");
    assert!(server.take_peak() <= 16);
}

#[tokio::test]
async fn a_request_that_is_not_part_of_a_run_fails_at_a_full_queue() {
    let (release, released) = tokio::sync::watch::channel(false);
    let server = Server::start(move |_| {
        let mut released = released.clone();
        async move {
            released.wait_for(|released| *released).await.unwrap();
            status(200)
        }
    })
    .await;
    let gate = narrow(1);
    let (alone, run) = (server.client(&gate), server.client(&gate).until(CancellationToken::new()));
    let request = Request::new(Method::GET, "/items");
    let (mut running, mut waiting) = (Box::pin(alone.send(&request)), Box::pin(run.send(&request)));
    while server.arrivals().is_empty() {
        assert!(futures::poll!(&mut running).is_pending());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(futures::poll!(&mut waiting).is_pending());
    let mut patient = Box::pin(run.send(&request));
    assert!(futures::poll!(&mut patient).is_pending(), "the run waits for its turn");
    let refused = alone.send(&request).await.unwrap_err();
    assert!(matches!(refused, ServerError::QueueFull { waiting: 1, .. }), "{refused}");
    release.send(true).unwrap();
    let (first, second, third) = tokio::join!(running, waiting, patient);
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
}

#[tokio::test]
async fn a_cancelled_run_leaves_a_full_queue() {
    let server = Server::start(|_| futures::future::pending()).await;
    let gate = narrow(1);
    let token = CancellationToken::new();
    let (alone, run) = (server.client(&gate), server.client(&gate).until(token.clone()));
    let held = tokio::spawn(async move { send(&alone, &Method::GET, 1).await });
    while server.arrivals().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let request = Request::new(Method::GET, "/items");
    let waiting = futures::future::join_all((0..5).map(|_| run.send(&request)));
    let ended = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        token.cancel();
    };
    let (outcomes, ()) = tokio::join!(waiting, ended);
    for outcome in outcomes {
        assert!(matches!(outcome, Err(ServerError::Cancelled { .. })), "{outcome:?}");
    }
    held.abort();
}

/// Leads for a while after it is first asked.
#[derive(Default)]
struct LeadsFor(OnceLock<Instant>);

impl RequestObserver for LeadsFor {
    fn completed(&self, _: &Method, _: Option<StatusCode>, _: Duration) {}

    fn throttled(&self, _: bool) {}

    fn may_send(&self) -> bool {
        self.0.get_or_init(Instant::now).elapsed() < Duration::from_millis(200)
    }
}

#[tokio::test]
async fn a_redirect_that_waited_for_the_rate_is_not_sent_after_the_lead_is_lost() {
    let server = Server::start(|_| async {
        let mut answer = status(307);
        answer.headers_mut().insert(LOCATION, "/other".parse().unwrap());
        answer
    })
    .await;
    let throttling = Throttling { requests_per_second: Some(1.0), burst: Some(1), ..Throttling::default() };
    let gate = Arc::new(Gate::new(&throttling).unwrap());
    let client = server.observed(&gate, Some(Arc::new(LeadsFor::default())));
    let error = client.send(&Request::new(Method::GET, "/items")).await.unwrap_err();
    assert!(matches!(error, ServerError::Cancelled { .. }), "{error}");
    assert_eq!(server.arrivals().len(), 1);
}
