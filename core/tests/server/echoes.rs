//! Servers that repeat requests, and the part of them that messages show.

use std::sync::{Arc, Mutex};

use axum::response::IntoResponse as _;
use declarest_core::secrets::{Redactor, Secret};
use declarest_core::server::{BaseUrl, Client, Request, Settings, Trace};
use http::{Method, StatusCode};
use rstest::rstest;

use crate::recorder::{Recorder, json};
use crate::server::gate;

const VALUE: &str = "s3cret<&> \"/é";

async fn refused(server: &Recorder, settings: Settings, request: &Request) -> String {
    let client = Client::new(settings, gate(None), None).unwrap();
    let error = client.send(request).await.unwrap_err().to_string();
    assert!(!server.seen().is_empty());
    error
}

fn knowing(path: &str, secrets: &[&str]) -> Request {
    let secrets = secrets.iter().map(|secret| Secret::from((*secret).to_owned())).collect();
    Request { secrets, ..Request::new(Method::GET, path) }
}

#[tokio::test]
async fn paths_are_shown_without_secrets() {
    let server = Recorder::start(|request| json(400, request.target.clone())).await;
    let error = refused(&server, server.settings(), &knowing(&format!("/x/{VALUE}"), &[VALUE])).await;
    // The slash is one between two segments.
    assert_eq!(error, "GET /x/<redacted>: remote request failed with status 400: /x/<redacted>");
}

#[rstest]
#[case::go(r#"s3cret\u003c\u0026\u003e \"/é"#)]
#[case::ascii(r#"s3cret<&> \"/\u00e9"#)]
#[case::html("s3cret&lt;&amp;&gt; &#34;/é")]
#[case::url("s3cret%3C&%3E+%22/%c3%a9")]
#[tokio::test]
async fn no_spelling_of_a_secret_is_shown(#[case] spelling: &'static str) {
    let server = Recorder::start(move |_| json(422, format!("not {spelling}"))).await;
    let error = refused(&server, server.settings(), &knowing("/x", &[VALUE])).await;
    assert!(error.ends_with("status 422: not <redacted>"), "{error}");
}

#[tokio::test]
async fn a_short_secret_of_ours_uncovers_no_longer_one() {
    let server = Recorder::start(|_| json(422, "tell-nobody-of-it".to_owned())).await;
    let base = BaseUrl::parse(&format!("http://{}/?key=unseen", server.address)).unwrap();
    let settings = Settings::new(base);
    let error = refused(&server, settings, &knowing("/x", &["tell-nobody-of-it"])).await;
    assert!(error.ends_with("status 422: <redacted>"), "{error}");
}

#[tokio::test]
async fn the_query_of_the_base_url_is_not_shown() {
    let server = Recorder::start(|request| json(400, request.target.clone())).await;
    let base = BaseUrl::parse(&format!("http://{}/?api_key=canary%2Fkey", server.address)).unwrap();
    let error = refused(&server, Settings::new(base), &Request::new(Method::GET, "/x")).await;
    assert!(error.ends_with("status 400: /x?api_key=<redacted>"), "{error}");
}

#[tokio::test]
async fn what_only_others_know_is_taken_out_before_the_cut() {
    let server = Recorder::start(|_| json(422, format!("{}canary-of-others", "x".repeat(250)))).await;
    let trace = Trace::new(0, false, |_, _| {})
        .hiding(|| Redactor::new([&Secret::from("canary-of-others".to_owned())]));
    let settings = Settings { trace: Some(trace), ..server.settings() };
    let error = refused(&server, settings, &Request::new(Method::GET, "/x")).await;
    assert!(error.ends_with("x<redac…"), "{error}");
    // Who learns of it later finds the beginning.
    let error = refused(&server, server.settings(), &Request::new(Method::GET, "/x")).await;
    assert!(error.ends_with("xcanary…"), "{error}");
    let later = Redactor::new([&Secret::from("canary-of-others".to_owned())]);
    assert!(later.redact(&error).ends_with("x<redacted>…"), "{error}");
}

#[tokio::test]
async fn control_characters_are_shown_as_escapes() {
    let server = Recorder::start(|_| json(422, "no\n\u{1b}[2J\u{9b}1m".to_owned())).await;
    let error = refused(&server, server.settings(), &Request::new(Method::GET, "/x")).await;
    assert!(error.ends_with(r"status 422: no\n\u{1b}[2J\u{9b}1m"), "{error}");
}

#[tokio::test]
async fn headers_of_answers_are_traced_without_keys() {
    let server = Recorder::start(|_| {
        let headers = [
            ("link", "</x?page=2&key=canary-1>; rel=\"next\", </x?last>; rel=\"last\""),
            ("content-location", "/x?token=canary-2#a"),
            ("x-auth-token", "canary-3"),
            ("x-tenant", "blue"),
        ];
        (StatusCode::OK, headers, "{}").into_response()
    })
    .await;
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    let trace = Trace::new(3, false, move |_, line| kept.lock().unwrap().push(line.to_owned()));
    let settings = Settings { trace: Some(trace), ..server.settings() };
    let client = Client::new(settings, gate(None), None).unwrap();
    client.send(&Request::new(Method::GET, "/x")).await.unwrap();
    let lines = lines.lock().unwrap().join("\n");
    assert!(!lines.contains("canary"), "{lines}");
    for expected in [
        "< link: </x?page=<redacted>&key=<redacted>>; rel=\"next\", </x?last>; rel=\"last\"",
        "< content-location: /x?token=<redacted>#a",
        "< x-auth-token: <redacted>",
        "< x-tenant: blue",
    ] {
        assert!(lines.contains(expected), "{expected} in {lines}");
    }
}
