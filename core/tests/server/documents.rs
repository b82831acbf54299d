//! `OpenAPI` documents are fetched conditionally, and kept for the case that a fetch fails.

use axum::response::Response;
use declarest_core::server::{Client, FetchedOpenApi, OpenApiSource};
use http::{HeaderName, HeaderValue};
use rstest::rstest;
use std::sync::Arc;

use crate::recorder::{Recorder, Seen, json};
use crate::server::gate;

const DOCUMENT: &str = "{\"openapi\": \"3.1.0\", \"paths\": {}}";

/// Starts a server that responds with the header `name: value`, or with 304 if the request has this value.
async fn server(name: &'static str, condition: &'static str, value: &'static str) -> Recorder {
    Recorder::start(move |seen: &Seen| -> Response {
        let known = seen.header(condition) == value;
        let mut answer = if known { json(304, "") } else { json(200, DOCUMENT) };
        answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        answer
    })
    .await
}

#[rstest]
#[case::tag("etag", "if-none-match", "\"v1\"")]
#[case::time("last-modified", "if-modified-since", "Sat, 21 Nov 2026 20:00:00 GMT")]
#[tokio::test]
async fn an_unchanged_document_is_kept(
    #[case] name: &'static str,
    #[case] condition: &'static str,
    #[case] value: &'static str,
) {
    let (server, elsewhere) =
        (Recorder::start(|_| json(200, "{}")).await, server(name, condition, value).await);
    let client = Client::new(server.settings(), gate(None), None).unwrap();
    let source = OpenApiSource::url(&format!("{}/openapi.json", elsewhere.url())).unwrap();
    let first = FetchedOpenApi::fetch(&client, source.clone(), None, None).await.unwrap();
    let second = FetchedOpenApi::fetch(&client, source, Some(first.clone()), None).await.unwrap();
    assert!(Arc::ptr_eq(&first.document, &second.document));
    let asked: Vec<_> = elsewhere.seen().iter().map(|seen| seen.header(condition).to_owned()).collect();
    assert_eq!(asked, ["", value]);
    // The document of one URL is not used as a condition for another URL.
    let other = OpenApiSource::url(&format!("{}/other.json", elsewhere.url())).unwrap();
    FetchedOpenApi::fetch(&client, other, Some(second), None).await.unwrap();
    assert_eq!(elsewhere.seen().last().unwrap().header(condition), "");
}

#[tokio::test]
async fn the_next_process_uses_the_kept_document() {
    let (server, elsewhere) =
        (Recorder::start(|_| json(200, "{}")).await, server("etag", "if-none-match", "\"v1\"").await);
    let client = Client::new(server.settings(), gate(None), None).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("openapi");
    let source = OpenApiSource::url(&format!("{}/openapi.json?key=s3cret", elsewhere.url())).unwrap();
    let kept = || FetchedOpenApi::kept(place.clone(), source.clone());
    assert!(kept().await.is_none());
    let fetch = |known| FetchedOpenApi::fetch(&client, source.clone(), known, Some(place.clone()));
    let first = fetch(None).await.unwrap();
    assert_eq!(std::fs::read_to_string(first.file().unwrap()).unwrap(), DOCUMENT);

    let restored = kept().await.unwrap();
    assert_eq!((restored.file(), restored.document.digest()), (first.file(), first.document.digest()));
    fetch(Some(restored)).await.unwrap();
    let asked: Vec<_> = elsewhere.seen().iter().map(|seen| seen.header("if-none-match").to_owned()).collect();
    assert_eq!(asked, ["", "\"v1\""]);

    let names = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
    for file in names.collect::<Vec<_>>() {
        assert!(!std::fs::read_to_string(file).unwrap().contains("s3cret"));
    }
    let other = OpenApiSource::url(&format!("{}/other.json", elsewhere.url())).unwrap();
    assert!(FetchedOpenApi::kept(place.clone(), other).await.is_none());
    // Simulate a process that ended between writing the two files.
    std::fs::write(first.file().unwrap(), "{\"paths\": {}}").unwrap();
    assert!(kept().await.is_none());
}
