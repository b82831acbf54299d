//! Values that templates insert into requests cannot change the target of the requests.

use axum::response::Response;
use declarest_core::path::LogicalPath;
use declarest_core::sync::{self, Options, Report, Selection, Stop};
use http::Method;
use rstest::rstest;

use crate::recorder::{Recorder, Seen, json};
use crate::session::session;

/// Starts a server without resources that accepts all writes.
async fn empty_server() -> Recorder {
    Recorder::start(|seen: &Seen| -> Response {
        // The response contains the created resource, so it is not read back.
        if seen.method == Method::GET { json(404, "") } else { json(200, seen.body.clone()) }
    })
    .await
}

/// Syncs a shop with this value to a server whose base URL has a path.
async fn sync(server: &Recorder, metadata: &str, value: &str) -> Report {
    let repository = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = repository.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("shops/_/metadata.yaml", metadata);
    write("shops/rio/resource.json", &serde_json::json!({"id": "rio", "where": value}).to_string());
    let session = session(repository.path(), &format!("{}/api", server.url()));
    let everything = Selection::full(session.tree.as_ref(), &LogicalPath::root(), true).unwrap();
    sync::run(&session, everything, &Options::default(), &Stop::default()).await
}

const PATHS: &str = "operations: {get: {path: '{{/where}}'}, create: {path: '{{/where}}'}}";
const PARTS: &str = "operations: {get: {path: '/x/{{/where}}/y'}, create: {path: '/x/{{/where}}/y'}}";
const QUERIES: &str = "operations: {get: {query: {q: '{{/where}}'}}, create: {query: {q: '{{/where}}'}}}";

#[rstest]
#[tokio::test]
async fn requests_stay_below_the_base_url_for_any_value(
    #[values(PATHS, PARTS, QUERIES)] metadata: &str,
    #[values(
        "http://<elsewhere>/x",
        "//<elsewhere>/x",
        "\\\\<elsewhere>\\x",
        "@<elsewhere>/x",
        "user:pass@<elsewhere>",
        ":80@<elsewhere>/",
        "../../x",
        "..",
        "a/../../x",
        "..\\..\\x",
        "%2e%2e/%2e%2e/x",
        "x\r\nHost: <elsewhere>\r\nX-Evil: 1",
        "x HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET /y",
        "x?admin=1#y",
        "file:///etc/passwd"
    )]
    value: &str,
) {
    let (server, elsewhere) = (empty_server().await, empty_server().await);
    let value = value.replace("<elsewhere>", &elsewhere.address.to_string());
    let report = sync(&server, metadata, &value).await;
    assert_eq!(elsewhere.lines(), [""; 0]);
    for seen in server.seen() {
        assert_eq!(seen.header("host"), server.address.to_string(), "{seen:?}");
        assert_eq!(seen.header("x-evil"), "", "{seen:?}");
        let (path, query) = seen.target.split_once('?').unwrap_or((&seen.target, ""));
        assert!(path.starts_with("/api/") && !path.split('/').any(|segment| segment == ".."), "{seen:?}");
        assert_eq!(query.matches('&').count(), 0, "{seen:?}");
        assert!(seen.method != Method::POST || (metadata == QUERIES) == query.starts_with("q="), "{seen:?}");
    }
    // The value is either sent literally, or is an error that names the resource.
    let sent = server.seen().iter().any(|seen| seen.method == Method::POST);
    assert!(sent != (report.stats.failed > 0), "{report:?}");
    assert!(report.failures.iter().all(|failure| failure.path.as_str() == "/shops/rio"), "{report:?}");
}

#[rstest]
#[case("blue\r\nX-Evil: 1")]
#[case("blue\nX-Evil: 1")]
#[case("blue\rX-Evil: 1")]
#[case("blue\r\n\r\n{\"id\": \"other\"}")]
#[tokio::test]
async fn a_value_cannot_start_another_header(#[case] value: &str) {
    let server = empty_server().await;
    let metadata = "operations: {create: {headers: {X-Tenant: 'tenant {{/where}}'}}}";
    let report = sync(&server, metadata, value).await;
    assert_eq!(report.stats.failed, 1, "{report:?}");
    assert!(report.failures[0].message.contains("would start another header"), "{report:?}");
    assert!(server.seen().iter().all(|seen| seen.method == Method::GET), "{:?}", server.lines());
}

#[tokio::test]
async fn a_value_without_line_break_is_sent_unchanged() {
    let server = empty_server().await;
    let metadata = "operations: {create: {headers: {X-Tenant: 'tenant {{/where}}'}}}";
    let report = sync(&server, metadata, "blue: X-Evil").await;
    assert_eq!(report.stats.created, 1, "{report:?}");
    let seen = server.seen().into_iter().find(|seen| seen.method == Method::POST).unwrap();
    assert_eq!(seen.header("x-tenant"), "tenant blue: X-Evil");
}
