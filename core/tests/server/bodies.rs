//! Bodies as servers send them: compressed, in pieces, slowly, too large, cut off.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use declarest_core::error::{Categorized, Category};
use declarest_core::server::{Client, Request, ServerError};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use http::{Method, StatusCode};

use crate::recorder::{Recorder, json};
use crate::server::gate;

const LIMIT: usize = 32 << 20;

async fn ask(server: &Recorder, method: Method) -> Result<String, ServerError> {
    let client = Client::new(server.settings(), gate(None), None).unwrap();
    let answer = client.with_attempt_timeout(Duration::from_secs(20)).send(&Request::new(method, "/x")).await;
    answer.map(|answer| String::from_utf8(answer.body.to_vec()).unwrap())
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_bodies_are_unpacked() {
    let server = Recorder::start(|_| {
        let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
        (headers, gzip(b"{\"a\":1}")).into_response()
    })
    .await;
    assert_eq!(ask(&server, Method::GET).await.unwrap(), "{\"a\":1}");
    assert_eq!(server.seen()[0].header("accept-encoding"), "gzip");
}

#[tokio::test]
async fn what_is_not_what_it_says_is_a_broken_answer() {
    let server = Recorder::start(|_| ([("content-encoding", "gzip")], "no gzip").into_response()).await;
    let error = ask(&server, Method::POST).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport, "{error}");
    assert!(error.to_string().contains("the answer is incomplete"), "{error}");
}

#[tokio::test]
async fn limits_hold_for_what_is_unpacked() {
    let packed = gzip(&vec![b' '; LIMIT + 1]);
    assert!(packed.len() < LIMIT / 100);
    let server =
        Recorder::start(move |_| ([("content-encoding", "gzip")], packed.clone()).into_response()).await;
    let error = ask(&server, Method::GET).await.unwrap_err();
    assert_eq!(error.category(), Category::Transport);
    assert!(error.to_string().ends_with(&format!("larger than the limit of {LIMIT} bytes")), "{error}");
    assert_eq!(server.seen().len(), 1, "not asked again");
}

#[tokio::test]
async fn a_body_as_large_as_the_limit_is_read_whole() {
    let packed = gzip(&vec![b' '; LIMIT]);
    let server =
        Recorder::start(move |_| ([("content-encoding", "gzip")], packed.clone()).into_response()).await;
    assert_eq!(ask(&server, Method::GET).await.unwrap().len(), LIMIT);
}

fn in_pieces(pieces: Vec<&'static str>, pause: Duration) -> Response {
    let pieces = futures::stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, Infallible>(piece)
    });
    Body::from_stream(pieces).into_response()
}

#[tokio::test]
async fn pieces_become_one_body() {
    let server =
        Recorder::start(|_| in_pieces(vec!["{\"a\"", ":", "", "1", "}"], Duration::from_millis(2))).await;
    assert_eq!(ask(&server, Method::GET).await.unwrap(), "{\"a\":1}");
}

#[tokio::test]
async fn an_attempt_ends_with_the_last_byte() {
    let server = Recorder::start(|_| in_pieces(vec!["{", "}"], Duration::from_hours(1))).await;
    let client = Client::new(server.settings(), gate(None), None).unwrap();
    let client = client.with_attempt_timeout(Duration::from_secs(1));
    let error = client.send(&Request::new(Method::POST, "/x")).await.unwrap_err();
    assert!(error.to_string().ends_with("no complete answer within 1 s"), "{error}");
    assert!(error.may_be_done());
    assert_eq!(server.seen().len(), 1, "a write is not repeated");
}

#[tokio::test]
async fn a_slot_is_held_until_the_body_is_read() {
    let ended = Arc::new(AtomicBool::new(false));
    let server = Recorder::start(move |seen| {
        if seen.target == "/other" {
            return json(200, ended.load(Ordering::SeqCst).to_string());
        }
        let ended = Arc::clone(&ended);
        let pieces = futures::stream::iter(["{", "}"]).then(move |piece| {
            let ended = Arc::clone(&ended);
            async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                ended.store(piece == "}", Ordering::SeqCst);
                Ok::<_, Infallible>(piece)
            }
        });
        Body::from_stream(pieces).into_response()
    })
    .await;
    let client = Client::new(server.settings(), gate(Some(1)), None).unwrap();
    let (slow, other) = (Request::new(Method::GET, "/slow"), Request::new(Method::GET, "/other"));
    let (_, other) = tokio::join!(client.send(&slow), client.send(&other));
    assert_eq!(other.unwrap().body, "true");
}

#[tokio::test]
async fn errors_without_end_are_read_as_far_as_they_are_shown() {
    let server = Recorder::start(|_| {
        let forever = futures::stream::repeat_with(|| Ok::<_, Infallible>("no ".repeat(1000)));
        (StatusCode::BAD_REQUEST, Body::from_stream(forever)).into_response()
    })
    .await;
    let error = ask(&server, Method::POST).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().contains("status 400: no no no"), "{error}");
}

#[tokio::test]
async fn errors_show_the_beginning_of_their_body() {
    let server = Recorder::start(|_| json(422, format!("  {}", "é".repeat(300_000)))).await;
    let error = ask(&server, Method::PUT).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    let expected = format!("PUT /x: remote request failed with status 422: {}…", "é".repeat(256));
    assert_eq!(error.to_string(), expected);
}

/// No request had a condition (RFC 9110, section 15.4.5).
#[rstest::rstest]
#[tokio::test]
async fn not_modified_is_not_a_success(#[values(Method::GET, Method::PUT, Method::DELETE)] method: Method) {
    let server = Recorder::start(|_| StatusCode::NOT_MODIFIED.into_response()).await;
    let error = ask(&server, method).await.unwrap_err();
    assert_eq!(error.status(), Some(StatusCode::NOT_MODIFIED), "{error}");
}
