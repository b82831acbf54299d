//! What is sent again, how often, and what never is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use axum::response::Response;
use declarest_core::error::{Categorized as _, Category};
use declarest_core::server::{BaseUrl, Client, Request, ServerError, Settings};
use http::header::RETRY_AFTER;
use http::{HeaderValue, Method};
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::recorder::{Recorder, json};
use crate::server::{Ear, Server, gate, status};

fn client(base_url: &str) -> Client {
    Client::new(Settings::new(BaseUrl::parse(base_url).unwrap()), gate(None), None).unwrap()
}

async fn send(client: &Client, method: &str) -> Result<(), ServerError> {
    client.send(&Request::new(method.parse().unwrap(), "/x")).await.map(drop)
}

/// Gives `first` as the first answers, this often, and then a good one.
async fn stumbling(times: usize, first: impl Fn() -> Response + Send + Sync + 'static) -> Recorder {
    let answered = AtomicUsize::new(0);
    Recorder::start(
        move |_| {
            if answered.fetch_add(1, Ordering::SeqCst) < times { first() } else { json(200, "{}") }
        },
    )
    .await
}

#[rstest]
#[tokio::test]
async fn statuses_that_pass_are_waited_out(
    #[values(429, 502, 503, 504)] status: u16,
    #[values("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH")] method: &str,
) {
    let server = stumbling(1, move || json(status, "not now")).await;
    let outcome = send(&client(&server.url()), method).await;
    // With 429 a server says that it has done nothing (RFC 6585 section 4).
    let again = status == 429 || !matches!(method, "POST" | "PATCH");
    assert_eq!((outcome.is_ok(), server.seen().len()), (again, 1 + usize::from(again)), "{outcome:?}");
}

/// Like Octavia, the server refuses writes while it completes an earlier one.
#[rstest]
#[case::octavia(409, "Pool 1 is immutable and cannot be updated.")]
#[case::operation(409, "AnotherOperationInProgress")]
#[case::locked(423, "")]
#[tokio::test]
async fn a_lock_is_waited_for(
    #[case] status: u16,
    #[case] answer: &'static str,
    #[values("PUT", "POST", "DELETE")] method: &str,
) {
    let server = stumbling(1, move || json(status, answer)).await;
    let outcome = send(&client(&server.url()), method).await;
    assert_eq!((outcome.is_ok(), server.seen().len()), (true, 2), "{outcome:?}");
}

#[rstest]
#[case::conflict(409, "a pool with this name exists", "POST")]
#[case::read(409, "the pool is locked", "GET")]
#[tokio::test]
async fn another_conflict_is_an_answer(
    #[case] status: u16,
    #[case] answer: &'static str,
    #[case] method: &str,
) {
    let server = stumbling(1, move || json(status, answer)).await;
    let error = send(&client(&server.url()), method).await.unwrap_err();
    assert_eq!((error.status().unwrap().as_u16(), server.seen().len()), (status, 1));
}

#[rstest]
#[tokio::test]
async fn other_statuses_are_an_answer(#[values(400, 401, 404, 408, 409, 425, 500, 501, 507)] status: u16) {
    let server = stumbling(9, move || json(status, "no")).await;
    let error = send(&client(&server.url()), "GET").await.unwrap_err();
    assert_eq!((error.status().unwrap().as_u16(), server.seen().len()), (status, 1));
}

#[tokio::test]
async fn four_attempts_are_the_most() {
    let server = stumbling(9, || json(503, "not now")).await;
    let error = send(&client(&server.url()), "PUT").await.unwrap_err();
    assert_eq!((error.category(), server.seen().len()), (Category::Transport, 4));
    assert!(error.to_string().ends_with("status 503: not now"), "{error}");
}

/// How long it takes until the second attempt succeeds.
async fn patience(method: &str, asked: impl Fn() -> String + Send + Sync + 'static) -> Duration {
    let server = stumbling(1, move || {
        let mut answer = json(429, "");
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::try_from(asked()).unwrap());
        answer
    })
    .await;
    let began = Instant::now();
    send(&client(&server.url()), method).await.unwrap();
    assert_eq!(server.seen().len(), 2);
    began.elapsed()
}

#[tokio::test]
async fn a_server_is_given_the_time_it_asks_for() {
    let seconds = patience("POST", || "1".to_owned());
    // Exact to the second.
    let date = patience("GET", || httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(2)));
    let (seconds, date) = tokio::join!(seconds, date);
    assert!(seconds.as_millis() >= 1000 && date.as_millis() >= 950, "{seconds:?} {date:?}");
}

#[rstest]
#[case(429)]
#[case(503)]
#[tokio::test]
async fn more_than_a_minute_is_not_waited_for(#[case] status: u16) {
    let server = stumbling(1, move || {
        let mut answer = json(status, "");
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("61"));
        answer
    })
    .await;
    let error = send(&client(&server.url()), "GET").await.unwrap_err();
    assert_eq!((error.status().unwrap().as_u16(), server.seen().len()), (status, 1));
}

/// Sends this much of an answer to the first request, and then closes the connection. Others are answered. How many
/// connections there were.
async fn breaking_off(after: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    // Fails where another test was first, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let whole = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
            let answer = if count.fetch_add(1, Ordering::SeqCst) == 0 { after } else { whole };
            tokio::spawn(reply(stream, answer));
        }
    });
    (address, connections)
}

/// Answers the request without body that comes over a connection, and closes it.
async fn reply(mut stream: TcpStream, answer: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[rstest]
#[tokio::test]
async fn what_may_have_arrived_is_repeated_only_if_that_does_no_more(
    #[values("", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{")] after: &'static str,
    #[values("GET", "OPTIONS", "PUT", "DELETE", "POST", "PATCH")] method: &str,
) {
    let (address, connections) = breaking_off(after).await;
    let outcome = send(&client(&format!("http://{address}")), method).await;
    let again = !matches!(method, "POST" | "PATCH");
    assert_eq!(connections.load(Ordering::SeqCst), 1 + usize::from(again));
    match outcome {
        Ok(()) => assert!(again),
        Err(error) => {
            assert!(!again && error.may_be_done(), "{error}");
            assert_eq!(error.category(), Category::Transport);
        }
    }
}

#[rstest]
#[case::refused("http://127.0.0.1:1")]
// Longer than a label of a name may be, so that no DNS server is asked for it (RFC 1035 section 2.3.4).
#[case::no_address("http://a234567890123456789012345678901234567890123456789012345678901234.test")]
#[tokio::test]
async fn what_never_left_is_repeated_whatever_it_is(#[case] base_url: &str) {
    // Fails where another test was first, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (ear, _) = Ear::new();
    let settings = Settings::new(BaseUrl::parse(base_url).unwrap());
    let client = Client::new(settings, gate(None), Some(ear.clone())).unwrap();
    let error = send(&client, "POST").await.unwrap_err();
    assert_eq!((error.category(), error.may_be_done()), (Category::Transport, false), "{error}");
    assert_eq!(ear.attempts.load(Ordering::SeqCst), 4, "{error}");
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_looked_at_once() {
    let server = Server::start_tls(&[], |_| async { status(200) }).await;
    let error = send(&client(&format!("https://{}", server.address)), "GET").await.unwrap_err();
    assert!(error.to_string().contains("its certificate is not trusted"), "{error}");
    assert!(!error.may_be_done());
    assert_eq!(server.connections(), 1);
}

/// Time passes as soon as there is nothing left to do but to wait for it.
#[tokio::test(start_paused = true)]
async fn connecting_takes_ten_seconds_at_the_most() {
    // The system makes the connections; no bytes are sent over them.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // Fails where another test was first, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = client(&format!("https://{}", listener.local_addr().unwrap()));
    let began = tokio::time::Instant::now();
    let error = send(&client, "POST").await.unwrap_err();
    let seconds = began.elapsed().as_secs();
    // Four attempts with pauses of half a second, one and two at the most.
    assert!((40..45).contains(&seconds), "{seconds} s: {error}");
    assert!(!error.may_be_done(), "nothing was sent: {error}");
}

#[tokio::test]
async fn waiting_for_a_turn_is_no_part_of_an_attempt() {
    let server = Server::start(|sequence| async move {
        if sequence == 0 {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        status(200)
    })
    .await;
    let gate = gate(Some(1));
    let (patient, hurried) =
        (server.client(&gate), server.client(&gate).with_attempt_timeout(Duration::from_secs(1)));
    let first = tokio::spawn(async move { send(&patient, "POST").await });
    while server.arrivals().is_empty() {
        tokio::task::yield_now().await;
    }
    send(&hurried, "POST").await.unwrap();
    first.await.unwrap().unwrap();
    let arrivals = server.arrivals();
    assert!(arrivals[1] - arrivals[0] >= Duration::from_secs(2));
}

#[tokio::test]
async fn every_attempt_has_its_own_time() {
    let server = Server::start(|sequence| async move {
        if sequence == 0 {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        status(200)
    })
    .await;
    let client = server.client(&gate(None)).with_attempt_timeout(Duration::from_millis(1500));
    client.send(&Request::new(Method::GET, "/x")).await.unwrap();
    assert_eq!(server.arrivals().len(), 2);
}
